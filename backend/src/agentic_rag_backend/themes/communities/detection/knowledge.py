"""Read the visible part of a tenant's graph in a form that fits in memory: linear in relationships and mentions."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.graph import Support, WeightedEdge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.facts import is_visible, supports_now
from agentic_rag_backend.knowledge.visible.summaries import name_order
from agentic_rag_backend.language.words import content_forms, inverse_frequency
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.themes.communities.detection.hierarchy import METHOD, DetectionOptions, EntityName
from agentic_rag_backend.themes.communities.detection.small_clusters import CoOccurrence

EXCLUDED_TYPES = frozenset({"date"})
"""Types that take no part in communities: a year joins entities that have nothing else in common."""

_CHUNK_WEIGHT = 1_000
_DOCUMENT_WEIGHT = 1
_SAMPLED_FACTS = 5_000
_OWN_SHARE = 0.5
_HOME_SHARE = 0.8
_MAX_THEME_DOCUMENTS = 12
_UNKNOWN = 2**62
"""Position of a passage that became visible after the order was read."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A visible relationship between two entities; ``passages`` state it, and ``digest`` changes with any of them."""

    relationship_id: str
    source_id: str
    target_id: str
    relation: str
    passages: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document with entities: its title, its first passages that mention any, and the number of all mentions."""

    title: str
    opening: tuple[Support, ...]
    mentions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleKnowledge:
    """The content of the visible versions of a tenant's documents; only entities that take part in communities.

    An entity has its filed name if a visible version uses it, otherwise the first name in use. ``positions`` order passages, by
    chunk: ids are random, so they must decide nothing that a reader sees.
    """

    entities: Mapping[str, EntityName] = field(default_factory=dict)
    edges: Sequence[Edge] = ()
    mentions: Mapping[str, tuple[Support, ...]] = field(default_factory=dict)
    """The passages that mention each entity, in order."""
    positions: Mapping[str, int] = field(default_factory=dict)
    term_weights: Mapping[str, float] = field(default_factory=dict)
    """Inverse frequency of words, from a bounded sample of the facts."""
    documents: Mapping[str, KnownDocument] = field(default_factory=dict)
    """By id, in the order of their first passages. `documents.add_documents` adds them."""

    def sort_key(self, support: Support) -> tuple[int, str, str]:
        """Return the sort key of a passage."""
        return self.positions.get(support.chunk_id, _UNKNOWN), *_key_of(support)


async def read_visible(
    graph: KnowledgeStore, tenant: TenantId, versions: Mapping[str, int], order: Sequence[str] = ()
) -> VisibleKnowledge:
    """Stream the graph and keep the parts that passages of ``versions`` (document → visible version) support.

    Args:
        order: the visible chunks in an order that does not depend on their ids.
    """
    supports: dict[Support, Support] = {}
    mentions: dict[str, list[Support]] = defaultdict(list)
    async for mention_batch in graph.all_mentions(tenant):
        for mention in mention_batch:
            if supports_now(versions, mention.support):
                mentions[mention.entity_id].append(supports.setdefault(mention.support, mention.support))
    edges: list[Edge] = []
    sample = _Sample()
    async for relationships in graph.all_relationships(tenant):
        for relationship in relationships:
            passages_seen = sorted({_key_of(support) for support in relationship.supports if supports_now(versions, support)})
            if not passages_seen:
                continue
            edges.append(
                Edge(
                    relationship.id,
                    relationship.source_id,
                    relationship.target_id,
                    relationship.relation,
                    len(passages_seen),
                    _digest_parts([relationship.id, relationship.relation, *("\x1e".join(key) for key in passages_seen)]),
                )
            )
            sample.add_fact(relationship.fact)
    linked = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    called: dict[str, tuple[bool, str, str]] = {}
    async for namings in graph.all_names(tenant):
        for naming in namings:
            if is_visible(versions, naming.document_id, naming.version) and (
                naming.entity_id in mentions or naming.entity_id in linked
            ):
                name = (*name_order(naming.name, naming.entity_name), naming.entity_type)
                called[naming.entity_id] = min(name, called.get(naming.entity_id, name))

    def complete_knowledge() -> VisibleKnowledge:
        names = {entity: EntityName(name, type) for entity, (_, name, type) in sorted(called.items()) if _takes_part(name, type)}
        knowledge = VisibleKnowledge(
            entities=names,
            edges=[edge for edge in edges if edge.source_id in names and edge.target_id in names],
            positions={chunk: position for position, chunk in enumerate(order)},
            term_weights=inverse_frequency(content_forms(fact) for fact in sample.list_facts()),
        )
        ordered = {
            entity: tuple(sorted(supports, key=knowledge.sort_key))
            for entity, supports in sorted(mentions.items())
            if entity in names
        }
        return replace(knowledge, mentions=ordered)

    return await asyncio.to_thread(complete_knowledge)


class _Sample:
    """A bounded number of facts. Their texts decide which, whatever the order in which they are added."""

    def __init__(self) -> None:
        self._facts: dict[bytes, str] = {}

    def add_fact(self, fact: str) -> None:
        self._facts[_digest_parts([fact])] = fact
        if len(self._facts) >= 2 * _SAMPLED_FACTS:
            self._facts = dict(self._select_first())

    def list_facts(self) -> list[str]:
        return [fact for _, fact in self._select_first()]

    def _select_first(self) -> list[tuple[bytes, str]]:
        return sorted(self._facts.items())[:_SAMPLED_FACTS]


def weighted_edges(knowledge: VisibleKnowledge) -> list[WeightedEdge]:
    """Return one edge for each two related entities, sorted by ends.

    The weight is ln(1 + passages) ÷ the geometric mean of the ends' prominence, 1 + ln n for an entity that n passages mention.
    Repetition adds little, and entities that are named everywhere bind little. The weight depends on these two entities alone,
    so that a document about others changes nothing here.
    """
    passages: dict[tuple[str, str], int] = defaultdict(int)
    for edge in knowledge.edges:
        if edge.source_id != edge.target_id:
            low, high = sorted((edge.source_id, edge.target_id))
            passages[low, high] += edge.passages

    def prominence_of(entity: str) -> float:
        return 1 + math.log(max(1, len(knowledge.mentions.get(entity, ()))))

    return [
        WeightedEdge(low, high, math.log1p(count) / math.sqrt(prominence_of(low) * prominence_of(high)))
        for (low, high), count in sorted(passages.items())
    ]


def list_contexts(knowledge: VisibleKnowledge) -> list[CoOccurrence]:
    """Return which entities share a passage and, weaker, a document."""
    by_chunk: dict[str, list[str]] = defaultdict(list)
    by_document: dict[str, set[str]] = defaultdict(set)
    for entity, supports in knowledge.mentions.items():
        for support in supports:
            by_chunk[support.chunk_id].append(entity)
            by_document[support.document_id].add(entity)
    return [CoOccurrence(_CHUNK_WEIGHT, tuple(members)) for members in by_chunk.values() if len(members) > 1] + [
        CoOccurrence(_DOCUMENT_WEIGHT, tuple(members)) for members in by_document.values() if len(members) > 1
    ]


def list_theme_documents(knowledge: VisibleKnowledge, members: Iterable[str]) -> list[tuple[str, float, bool]]:
    """Return the documents that a community is about, with their shares of its mentions, the largest first, and true.

    Most mentions in such a document are of ``members``. If most mentions of ``members`` are in other documents, there are none
    but the one that has nearly all mentions, if any, with false: the community is a part of what this document is about.
    """
    counts = Counter(support.document_id for member in members for support in knowledge.mentions.get(member, ()))
    total = sum(counts.values())
    documents = knowledge.documents
    shares = [(id, count / total, documents[id].mentions) for id, count in counts.items() if id in documents]
    shares.sort(key=lambda item: (-item[1], knowledge.sort_key(documents[item[0]].opening[0])))
    dedicated = [(id, share, True) for id, share, mentions in shares if counts[id] >= _OWN_SHARE * mentions]
    if sum(share for _, share, _ in dedicated) >= _OWN_SHARE:
        return dedicated[:_MAX_THEME_DOCUMENTS]
    return [(id, share, False) for id, share, _ in shares[:1] if share >= _HOME_SHARE]


def graph_digest(knowledge: VisibleKnowledge, options: DetectionOptions) -> str:
    """Return 64 hex digits that change with anything that detection depends on."""
    hasher = hashlib.sha256(repr((METHOD, options)).encode())
    for entity, entity_name in sorted(knowledge.entities.items()):
        passages = ("\x1e".join(_key_of(support)) for support in knowledge.mentions.get(entity, ()))
        hasher.update(_digest_parts([entity, entity_name.name, entity_name.type, *passages]))
    for digest in sorted(edge.digest for edge in knowledge.edges):
        hasher.update(digest)
    return hasher.hexdigest()


def fingerprint_community(knowledge: VisibleKnowledge, members: Iterable[str], inside: Sequence[Edge]) -> str:
    """Return 64 hex digits that change with members, their names, the relationships among them or any passage behind these.

    Without relationships, the passages that mention the members count. The titles and openings of the documents that the
    community is about count, too.
    """
    chosen = sorted(members)
    parts = [f"{entity}\x1e{knowledge.entities[entity].name}\x1e{knowledge.entities[entity].type}" for entity in chosen]
    hasher = hashlib.sha256(_digest_parts(parts))
    for digest in sorted(edge.digest for edge in inside):
        hasher.update(digest)
    if not inside:
        keys = (key for entity in chosen for key in map(_key_of, knowledge.mentions.get(entity, ())))
        hasher.update(_digest_parts("\x1e".join(key) for key in keys))
    for id, *_ in list_theme_documents(knowledge, chosen):
        document = knowledge.documents[id]
        hasher.update(_digest_parts([id, document.title, *("\x1e".join(_key_of(support)) for support in document.opening)]))
    return hasher.hexdigest()


def _takes_part(name: str, type: str) -> bool:
    return type not in EXCLUDED_TYPES and any(character.isalpha() for character in name)


def _key_of(support: Support) -> tuple[str, str]:
    """Return a stable key: a chunk's id derives from its text, so an unchanged passage keeps its summaries."""
    return support.document_id, support.chunk_id


def _digest_parts(parts: Iterable[str]) -> bytes:
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).digest()
