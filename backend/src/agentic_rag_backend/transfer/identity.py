"""Mapping of ids in an archive to ids in the target tenant. They are equal if the target is the archive's tenant.

The fingerprints of given communities over the current knowledge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from agentic_rag_backend.domain.document import Chunk, chunk_id, content_hash, stable_id
from agentic_rag_backend.domain.graph import Community, Support, normalise_name
from agentic_rag_backend.domain.graph_edits import EditDraft, EditKind, GraphEdit
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.decisions import entity_id
from agentic_rag_backend.themes.communities.detection.knowledge import Edge, VisibleKnowledge, fingerprint_community
from agentic_rag_backend.transfer.record_lines import ArchivedDocument
from agentic_rag_backend.transfer.records import EditRecord

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Identity:
    """Maps ids of ``source`` to ids of ``target``. Equal ids give equal results."""

    source: TenantId
    target: TenantId
    named: dict[str, str] = field(default_factory=dict)
    """Ids of entities in the target, by their id in the archive, of entities that their name alone identifies."""

    @property
    def kept(self) -> bool:
        """Whether ids stay unchanged."""
        return self.source == self.target

    def document_id(self, id: str) -> str:
        """Return a document's id."""
        return id if self.kept else stable_id("imported-document", self.target, id)

    def note_name(self, id: str, name: str, type_: str) -> None:
        """Note the name of an entity. If its id derives from it, new documents must find the entity by the name in the target."""
        key = normalise_name(name)
        for kind in ("", type_):
            if id == entity_id(self.source, key, kind):
                self.named[id] = entity_id(self.target, key, kind)

    def entity_id(self, id: str) -> str:
        """Return an entity's id."""
        return id if self.kept else self.named.get(id) or stable_id("imported-entity", self.target, id)

    def make_edit(self, record: EditRecord) -> GraphEdit:
        """Return an edit of the graph."""
        draft = record.to_value(
            EditDraft,
            kind=EditKind(record.kind),
            entity_id=self.entity_id(record.entity_id),
            entity_ids=tuple(map(self.entity_id, record.entity_ids)),
            document_ids=tuple(map(self.document_id, record.document_ids)),
            new_id=record.new_id and self.entity_id(record.new_id),
        )
        return record.to_value(GraphEdit, draft=draft)

    def community_id(self, members: Sequence[str], id: str) -> str:
        """Return a community's id, derived from ``members``, which are ids of the target."""
        return id if self.kept else stable_id("community", self.target, *sorted(members))

    def make_chunks(self, archived: ArchivedDocument) -> list[Chunk]:
        """Return the document's chunks, with ids derived from their texts."""
        document = self.document_id(archived.document.id)
        occurrences: Counter[str] = Counter()
        new_chunks: list[Chunk] = []
        for ordinal, line in enumerate(archived.chunks):
            text = archived.text_of(line)
            digest = content_hash(text)
            new_chunks.append(
                Chunk(
                    id=chunk_id(self.target, document, digest, occurrences[digest]),
                    document_id=document,
                    version=archived.document.version,
                    ordinal=ordinal,
                    text=text,
                    size_tokens=line.size_tokens,
                    content_hash=digest,
                    location=line.location,
                )
            )
            occurrences[digest] += 1
        return new_chunks


@dataclass(frozen=True, slots=True)
class Passages:
    """The location of the passages that summaries rest on.

    Args:
        chunks: the target's chunk id by the source's; chunks missing here are not in the archive.
    """

    identity: Identity
    chunks: Mapping[str, str]

    def map_support(self, support: Support) -> Support:
        """Return the passage with ids of the target. A passage that the archive lacks gets an id that does not exist."""
        if self.identity.kept:
            return support
        new_id = self.chunks.get(support.chunk_id) or stable_id("imported-chunk", self.identity.target, support.chunk_id)
        return Support(self.identity.document_id(support.document_id), support.version, new_id)

    def rewrite_value(self, value: T) -> T:
        """Return ``value``, a tree of dataclasses and tuples, with ids of the target in every `Support`."""
        return self._rewrite_supports(value)  # type: ignore[no-any-return]

    def _rewrite_supports(self, value: Any) -> Any:
        if isinstance(value, Support):
            return self.map_support(value)
        if isinstance(value, tuple):
            return tuple(map(self._rewrite_supports, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{item.name: self._rewrite_supports(getattr(value, item.name)) for item in fields(value)})
        return value


def fingerprint_communities(knowledge: VisibleKnowledge, communities: Sequence[Community]) -> dict[str, str]:
    """Return fingerprints by community id, except of communities that have lost a member.

    Args:
        knowledge: with its documents, which are a part of fingerprints.
    """
    complete = [community for community in communities if all(member in knowledge.entities for member in community.entity_ids)]
    by_community: dict[str, str] = {}
    for level in {community.level for community in complete}:
        here = [community for community in complete if community.level == level]
        owner = {member: community.id for community in here for member in community.entity_ids}
        inside: dict[str, list[Edge]] = {}
        for edge in knowledge.edges:
            community_id = owner.get(edge.source_id)
            if community_id is not None and community_id == owner.get(edge.target_id):
                inside.setdefault(community_id, []).append(edge)
        by_community.update(
            (community.id, fingerprint_community(knowledge, community.entity_ids, inside.get(community.id, ())))
            for community in here
        )
    return by_community
