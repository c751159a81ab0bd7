"""Relationships are shown with the sentences of visible passages only, while they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from sample_passages import visible_of

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import GraphEdge, StatedFact, Support
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.model.inquiries import DEFAULT_ONTOLOGY
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader

TENANT = TenantId("t_" + "0" * 32)
OLD, NEW, OTHER = Support("d1", 1, "c1"), Support("d1", 2, "c1"), Support("d2", 1, "c2")


def passage(id: str, document: str, version: int) -> VisibleChunk:
    return visible_of("text", id, document_id=document, version=version)


C1, C2 = passage("c1", "d1", 2), passage("c2", "d2", 1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
EDGE = GraphEdge("r", "a", "b", "made", 1.0)
SHOWN: Any = SimpleNamespace(
    chunk_index={"c1": 0, "c2": 1},
    find_mentioned_number={"a": 0, "b": 1}.get,
    entity=lambda number: EntityRef("ab"[number], "N", "other"),
)
"""A tenant's graph with the two chunks and the two entities."""


@dataclass
class Stores:
    """A graph store with one relationship, and a catalogue that shows some chunks."""

    shown: Mapping[str, VisibleChunk] = field(default_factory=dict)
    supports: Sequence[Support] = (OLD, NEW, OTHER)
    validity: Mapping[Support, tuple[int | None, int | None]] = field(default_factory=dict)
    read: list[list[str]] = field(default_factory=list)

    async def fact_sentences(self, tenant: TenantId, ids: Sequence[str]) -> list[StatedFact]:
        assert tenant == TENANT
        return [
            StatedFact(
                relationship_id="r",
                support=each,
                fact=f"{each.document_id} {each.version}",
                start_char=0,
                end_char=1,
                valid_at=_year(self.validity.get(each, (None, None))[0]),
                invalid_at=_year(self.validity.get(each, (None, None))[1]),
            )
            for each in self.supports
        ]

    async def hydrate(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        assert tenant == TENANT
        self.read.append(list(ids))
        return {id: self.shown[id] for id in ids if id in self.shown}

    async def ontology(self, tenant: TenantId) -> None:
        return None

    async def sentences(self, edges: Sequence[GraphEdge] = (EDGE,), **given: Any) -> dict[Support, str] | None:
        found = await FactReader(self, self, Ontologies(self, DEFAULT_ONTOLOGY)).read(
            TENANT, SHOWN, edges, **{"moment": NOW, **given}
        )  # type: ignore[arg-type]
        return {each.support: each.fact for each in found["r"].passages} if "r" in found else None


def _year(year: int | None) -> datetime | None:
    return None if year is None else datetime(year, 1, 1, tzinfo=UTC)


async def test_only_sentences_of_visible_versions_are_shown() -> None:
    assert await Stores({"c1": C1, "c2": C2}).sentences() == {NEW: "d1 2", OTHER: "d2 1"}
    assert await Stores({"c2": C2}).sentences() == {OTHER: "d2 1"}
    assert await Stores({"c2": C2}).sentences([GraphEdge("r", "a", "unknown", "made", 1.0)]) is None


async def test_a_relationship_without_a_visible_passage_is_absent() -> None:
    assert await Stores().sentences() is None
    assert await Stores({"c1": C1}, supports=(OLD,)).sentences() is None


async def test_passages_that_do_not_pass_count_as_invisible() -> None:
    assert await Stores({"c1": C1, "c2": C2}).sentences(passes=lambda each: each.chunk.id != "c1") == {OTHER: "d2 1"}


async def test_known_chunks_are_not_read_again() -> None:
    stores = Stores({"c2": C2})
    assert await stores.sentences(known={"c1": C1}) == {NEW: "d1 2", OTHER: "d2 1"}
    assert stores.read == [["c2"]]
    assert await stores.sentences([]) is None
    assert stores.read == [["c2"]]


async def test_a_fact_holds_in_the_times_of_its_visible_passages() -> None:
    """A hidden version has no effect, and a passage without an end keeps the fact."""
    stores = Stores({"c1": C1, "c2": C2}, validity={OLD: (1900, None), NEW: (2010, 2015), OTHER: (2012, 2020)})
    years = [year for year in range(2005, 2026) if await stores.sentences(moment=_year(year))]
    assert years == list(range(2010, 2020))
    stores.validity = {NEW: (2010, 2015)}
    assert await stores.sentences() is not None
    stores.supports = (NEW,)
    assert await stores.sentences() is None
