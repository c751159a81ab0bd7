"""After any sequence of changes, a rebuild gives the same result as a rebuild from nothing, even if steps were skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.themes.communities.detection.documents import add_documents
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectionOptions, detect_communities
from agentic_rag_backend.themes.communities.detection.knowledge import (
    fingerprint_community,
    list_contexts,
    read_visible,
    weighted_edges,
)
from agentic_rag_backend.themes.communities.generations import Restorer
from agentic_rag_backend.themes.communities.rebuilds.basis import UpToDateCheck
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.service import CommunityService

OpenWorld = Callable[[Path], AbstractAsyncContextManager[Any]]
Change = tuple[str, int]

TEXTS = (
    ["Mira Voss founded the Halden Institute in Brennmoor.", "The Halden Institute built the Tidal Array with Osric Lindqvist."],
    ["Mira Voss and Osric Lindqvist published the Carrow Bay Report.", "The Carrow Bay Report praised the Tidal Array."],
    ["Petra Okafor directs the Lantern Museum in Westerhall.", "The Lantern Museum bought the Glass Atlas from Tomas Rehn."],
    ["Osric Lindqvist praised the Carrow-Bay Report.", "Tomas Rehn and Petra Okafor met Mira Voss in Westerhall."],
)
"""Complete texts. The last one spells a name differently from the second."""

changes = st.lists(
    st.tuples(st.sampled_from(["write", "write", "write", "hide", "forget", "rename"]), st.integers(0, 3)), min_size=0, max_size=3
)
rounds = st.lists(st.tuples(changes, st.sampled_from(["incremental", "incremental", "full"])), min_size=1, max_size=4)


class Player:
    """Applies changes in a world, and compares after each rebuild."""

    def __init__(self, world: Any, tenant: TenantId) -> None:
        self.world, self.tenant = world, tenant
        self.service: CommunityService = world.service()
        self.documents: dict[int, str] = {}
        self.written = 0

    async def change(self, kind: str, number: int) -> bool:
        """Make a change. Return whether there was anything to change."""
        held = self.documents.get(number)
        if kind in ("write", "rename"):
            self.written += 1
            text = TEXTS[number if kind == "write" else 3 - number]
            paragraphs = [*text, f"Edition {self.written} came later."]
            self.documents[number] = await self.world.add(self.tenant, f"Story {number}", paragraphs)
            return True
        if held is None:
            return False
        if kind == "forget":  # knowledge of old versions leaves the graph some time after the new version is visible
            version = (await self.world.catalogue.documents.visible_versions(self.tenant))[held]
            await self.world.graph.delete_document(self.tenant, held, up_to_version=version - 1)
            return True
        await self.world.hide(self.tenant, self.documents.pop(number))
        return True

    async def rebuild(self, mode: str) -> dict[str, Any]:
        job = await self.service.request_rebuild(self.tenant, RebuildOptions(mode=mode))
        await self.service.rebuild(self.tenant, job.id, job.attempt)
        ended = await self.world.catalogue.jobs.job(self.tenant, job.id)
        assert ended.state is JobState.SUCCEEDED, ended.error
        result: dict[str, Any] = ended.result
        return result

    async def held(self) -> set[tuple[object, ...]]:
        """Return the current generation without its number."""
        pointer = await self.world.catalogue.communities.pointer(self.tenant)
        communities = await self.world.graph.communities(self.tenant, pointer.generation)
        return {(each.id, each.level, each.parent_id, frozenset(each.entity_ids), each.fingerprint) for each in communities}

    async def compare(self, *, from_nothing: bool) -> None:
        """Compare the current generation with the current graph."""
        catalogue = self.world.catalogue
        pointer = await catalogue.communities.pointer(self.tenant)
        assert not pointer.stale
        versions = await catalogue.documents.visible_versions(self.tenant)
        order = await catalogue.documents.visible_chunks_in_order(self.tenant)
        knowledge = await read_visible(self.world.graph, self.tenant, versions, order)
        knowledge, documents = await add_documents(self.tenant, knowledge, catalogue.documents, self.world.vectors)
        communities = await self.world.graph.communities(self.tenant, pointer.generation)
        covered = [entity for each in communities if each.parent_id is None for entity in each.entity_ids]
        assert sorted(covered) == sorted(knowledge.entities)
        for each in communities:
            inside = [edge for edge in knowledge.edges if {edge.source_id, edge.target_id} <= set(each.entity_ids)]
            assert each.fingerprint == fingerprint_community(knowledge, each.entity_ids, inside)
        wanted = {each.fingerprint for each in communities}
        assert set(await catalogue.communities.summaries(self.tenant, list(wanted))) == wanted
        restorer = Restorer(communities=catalogue.communities, vectors=self.world.vectors, embedder=self.world.embedder)
        assert await restorer.list_missing_communities(self.tenant, communities) == []
        if from_nothing:
            options = DetectionOptions()
            edges = weighted_edges(knowledge)
            scratch = detect_communities(
                edges,
                entities=knowledge.entities,
                options=options,
                contexts=list_contexts(knowledge),
                documents=documents,
            )
            assert {frozenset(each.entity_ids) for each in communities} == {
                frozenset(each.members) for each in scratch.communities
            }


async def _play(open_world: OpenWorld, sequence: Sequence[tuple[Sequence[Change], str]]) -> None:
    with TemporaryDirectory() as folder:
        async with open_world(Path(folder)) as world:
            player = Player(world, await world.tenant("a"))
            built = False
            for changed, mode in sequence:
                dirty = any([await player.change(*each) for each in changed])
                before = await player.held()
                result = await player.rebuild(mode)
                after = await player.held()
                await player.compare(from_nothing=mode == "full")
                skipped = bool(result.get("unchanged"))
                if skipped:
                    assert after == before
                if built and not dirty and mode == "incremental" and await world.graph.revision(player.tenant):
                    assert skipped, "nothing changed, and yet it was built again"
                if mode == "incremental":
                    with pytest.MonkeyPatch.context() as patched:
                        patched.setattr(UpToDateCheck, "is_up_to_date", _never)
                        await player.rebuild("incremental")
                    assert await player.held() == after, "what was skipped would have made a difference"
                built = True


async def _never(*_: object) -> bool:
    return False


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(rounds)
@example([([("write", 0), ("write", 2)], "full"), ([], "incremental"), ([("hide", 0)], "incremental"), ([], "incremental")])
@example([([("write", 1), ("write", 3)], "full"), ([("rename", 1)], "incremental"), ([("forget", 1)], "incremental")])
@example([([("write", 3)], "full"), ([("write", 1), ("rename", 3)], "incremental"), ([("forget", 3)], "incremental")])
def test_a_rebuild_after_changes_equals_one_from_scratch(open_world: OpenWorld, sequence: list[tuple[list[Change], str]]) -> None:
    asyncio.run(_play(open_world, sequence))
