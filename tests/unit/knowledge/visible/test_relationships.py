"""Relationships are shown with the sentences of visible passages only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.graph import Relationship, RelationshipSupport, Support
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.relationships import RelationshipReader

TENANT = TenantId("t_" + "0" * 32)
OLD, NEW, OTHER = Support("d1", 1, "c1"), Support("d1", 2, "c1"), Support("d2", 1, "c2")


def passage(id: str, document: str, version: int) -> VisibleChunk:
    at = Location(start_char=0, end_char=1, start_line=1, end_line=1)
    chunk = Chunk(
        id=id, document_id=document, version=version, text="text", content_hash=id, size_tokens=1, ordinal=0, location=at
    )
    return VisibleChunk(chunk=chunk, document_title="T", document_key=None, metadata={})


@dataclass
class Stores:
    """A graph store with one relationship, and a catalogue that shows some chunks."""

    shown: Mapping[str, VisibleChunk] = field(default_factory=dict)
    supports: Sequence[Support] = (OLD, NEW, OTHER)
    read: list[list[str]] = field(default_factory=list)

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        assert tenant == TENANT
        made = Relationship(id="r", source_id="a", target_id="b", relation="made", fact="any", supports=tuple(self.supports))
        return {"r": made} if "r" in ids else {}

    async def fact_sentences(self, tenant: TenantId, ids: Sequence[str]) -> list[RelationshipSupport]:
        assert tenant == TENANT
        return [
            RelationshipSupport(
                relationship_id="r", support=each, fact=f"{each.document_id} {each.version}", start_char=0, end_char=1
            )
            for each in self.supports
        ]

    async def hydrate(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        assert tenant == TENANT
        self.read.append(list(ids))
        return {id: self.shown[id] for id in ids if id in self.shown}

    async def sentences(self, ids: Sequence[str] = ("r",), **given: object) -> dict[Support, str] | None:
        found = await RelationshipReader(self, self).read(TENANT, ids, **given)  # type: ignore[arg-type]
        return dict(found["r"].sentences) if "r" in found else None


C1, C2 = passage("c1", "d1", 2), passage("c2", "d2", 1)


async def test_only_sentences_of_visible_versions_are_shown() -> None:
    assert await Stores({"c1": C1, "c2": C2}).sentences() == {NEW: "d1 2", OTHER: "d2 1"}
    assert await Stores({"c2": C2}).sentences() == {OTHER: "d2 1"}


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
