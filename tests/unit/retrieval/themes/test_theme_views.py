"""Themes that a search examined are read again only if another query may see them differently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from agentic_rag_backend.domain.document import VisibleChunk, stable_id
from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.graph import Community, community_point_id
from agentic_rag_backend.domain.query import Query, SeenVersions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.retrieval.caching import TenantCache
from agentic_rag_backend.retrieval.themes.finder import ThemeViews
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, Vector
from agentic_rag_backend.themes.communities.theme_index import CommunityView, JudgedCommunity

POINTER = GenerationPointer(generation=1, stale=False)
THEMES = [
    Community(id=id, generation=1, level=0, parent_id=None, entity_ids=(), fingerprint=f"of {id}", entity_count=1)
    for id in ("one", "two")
]
Ask = Callable[..., Query]


@dataclass
class Reader:
    """Shows each community with the text of its one passage, if that passes."""

    passages: dict[str, VisibleChunk]
    read: list[str] = field(default_factory=list)

    async def judge_communities(
        self, tenant: TenantId, pointer: GenerationPointer, communities: Sequence[Community], *, passes: Any
    ) -> list[JudgedCommunity]:
        found = []
        for each in communities:
            self.read.append(each.id)
            passage = self.passages[each.id]
            shown = passes(passage)
            view = CommunityView(
                id=each.id,
                name=each.id,
                summary=passage.chunk.text,
                keywords=(),
                findings=(),
                entity_count=1,
                level=0,
                parent_id=None,
                generation=1,
                rating=0.0,
                sources=(),
                stale=pointer.stale,
                withheld=False,
                written_by="",
            )
            versions = {passage.chunk.document_id: passage.chunk.version} if shown else {}
            found.append(JudgedCommunity(each.id, view if shown else None, frozenset({passage.chunk.id}), versions))
        return found


@pytest.fixture
def reader(visible: Callable[..., VisibleChunk]) -> Reader:
    return Reader({"one": visible("c1", "harbour"), "two": visible("c2", "lighthouse")})


@pytest.fixture
def views(reader: Reader) -> ThemeViews:
    terms = lambda text: frozenset(map(len, text.split()))  # noqa: E731
    made = ThemeViews(
        cast("Any", SimpleNamespace(documents=None, communities=None, graph=None, vectors=SimpleNamespace(terms=terms))),
        TenantCache("test", 100_000),
    )
    made._reader = cast("Any", reader)
    return made


async def summaries(views: ThemeViews, query: Query, pointer: GenerationPointer = POINTER) -> list[str]:
    return [theme.view.summary for theme in await views.of(query, pointer, THEMES)]


async def test_themes_are_read_once_while_the_tenant_does_not_change(views: ThemeViews, reader: Reader, query: Ask) -> None:
    for text in ("Where?", "Who?"):
        assert await summaries(views, query(text)) == ["harbour", "lighthouse"]
    assert reader.read == ["one", "two"]


@pytest.mark.parametrize("change", ["state", "generation", "stale", "tenant", "anew"])
async def test_a_change_makes_them_unreachable(views: ThemeViews, reader: Reader, query: Ask, change: str) -> None:
    first = query("Where?")
    await summaries(views, first)
    reader.passages["one"] = replace(reader.passages["one"], chunk=replace(reader.passages["one"].chunk, text="changed"))
    changed = {
        "state": replace(first.tenant, state_version=first.tenant.state_version + 1),
        "tenant": replace(first.tenant, id=TenantId("t_" + "f" * 32)),
        "anew": replace(first.tenant, created_at=datetime(2999, 1, 1, tzinfo=UTC)),
    }
    pointers = {"generation": GenerationPointer(generation=2, stale=False), "stale": GenerationPointer(generation=1, stale=True)}
    later = replace(first, tenant=changed.get(change, first.tenant), seen=SeenVersions())
    assert await summaries(views, later, pointers.get(change, POINTER)) == ["changed", "lighthouse"]


async def test_queries_that_choose_their_passages_read_themselves(views: ThemeViews, reader: Reader, query: Ask) -> None:
    await summaries(views, query("Where?"))
    hidden = query("Where?", filters=Comparison("key", "eq", "c2"))
    assert await summaries(views, hidden) == ["lighthouse"]
    assert await summaries(views, query("Where?", as_of=datetime(2020, 1, 1, tzinfo=UTC))) == ["harbour", "lighthouse"]
    assert await summaries(views, query("Where?", cache=False)) == ["harbour", "lighthouse"]
    assert reader.read == ["one", "two"] * 4
    # What they saw is not shown to others.
    assert await summaries(views, query("Where?")) == ["harbour", "lighthouse"]
    assert len(reader.read) == 8


async def test_themes_with_a_period_are_read_every_time(
    views: ThemeViews, reader: Reader, query: Ask, visible: Callable[..., VisibleChunk]
) -> None:
    reader.passages["one"] = visible("c1", "harbour", valid_to="2020-01-01")
    assert await summaries(views, query("Where?", asked_at=datetime(2019, 1, 1, tzinfo=UTC))) == ["harbour", "lighthouse"]
    assert await summaries(views, query("Where?", asked_at=datetime(2021, 1, 1, tzinfo=UTC))) == ["lighthouse"]
    assert await summaries(views, query("Where?", asked_at=datetime(2019, 1, 1, tzinfo=UTC))) == ["harbour", "lighthouse"]
    assert reader.read == ["one", "two", "one", "one"]


async def test_a_query_that_read_another_version_does_not_mix_them(views: ThemeViews, reader: Reader, query: Ask) -> None:
    await summaries(views, query("Where?"))
    asked = query("Where?")
    assert asked.seen.agree_on_version("d:c1", 2)
    # The passage of version 1 is not of the version that this query reads.
    assert await summaries(views, asked) == ["lighthouse"]
    assert await summaries(views, query("Where?")) == ["harbour", "lighthouse"]
    assert asked.seen.versions == {"d:c1": 2, "d:c2": 1}


async def test_without_memory_nothing_is_kept(views: ThemeViews, reader: Reader, query: Ask) -> None:
    views.entries._max_bytes = 0
    for _ in range(2):
        await summaries(views, query("Where?"))
    assert reader.read == ["one", "two"] * 2


async def test_terms_and_tokens_of_a_theme(views: ThemeViews, query: Ask) -> None:
    (first, _) = await views.of(query("Where?"), POINTER, THEMES)
    assert first.terms.tolist() == [4, 7]  # "one." and "harbour"
    assert first.tokens == text_tokens(["one", "harbour"])


@dataclass
class Records:
    """Records the reads of communities and of their vectors."""

    read: list[list[str]] = field(default_factory=list)

    async def communities(self, tenant: TenantId, generation: int, *, ids: Sequence[str], members: bool) -> list[Community]:
        self.read.append(list(ids))
        return [replace(each, generation=generation) for each in THEMES if each.id in ids]

    async def vectors(self, tenant: TenantId, collection: Collection, ids: Sequence[str]) -> dict[str, Vector]:
        self.read.append(list(ids))
        return {id: np.array([1.0, 0.0], dtype=np.float32) for id in ids if id == community_point_id(FIRST, 1)}


FIRST, SECOND = stable_id("first"), stable_id("second")


async def test_communities_and_vectors_are_read_once_while_the_tenant_does_not_change(views: ThemeViews, query: Ask) -> None:
    records = Records()
    views._graph = views._vectors = cast("Any", records)
    question, first = np.array([0.6, 0.8], dtype=np.float32), query("Where?")
    for _ in range(2):
        assert list(await views.records(first, POINTER, ["one", "three"])) == ["one"]
        assert await views.cosines(first, POINTER, question, [FIRST, SECOND]) == {FIRST: pytest.approx(0.6)}
    # What does not exist is asked for again: it may be written without a change of the tenant's state.
    points = [community_point_id(id, 1) for id in (FIRST, SECOND)]
    assert records.read == [["one", "three"], points, ["three"], points[1:]]
    later = replace(first, tenant=replace(first.tenant, state_version=first.tenant.state_version + 1))
    assert list(await views.records(later, POINTER, ["one"])) == ["one"]
    assert records.read[-1] == ["one"]
    await views.records(replace(later, cache=False), POINTER, ["one"])
    assert len(records.read) == 6
