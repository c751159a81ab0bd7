"""Converts knowledge to rows and back: functions without a database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from agentic_rag_backend.domain.graph import (
    Community,
    Direction,
    DocumentKnowledge,
    Entity,
    GraphEdge,
    Mention,
    NameUse,
    Naming,
    OtherName,
    Relationship,
    RelationshipSupport,
    StatedFact,
    Support,
    normalise_name,
)
from agentic_rag_backend.domain.size_limits import make_storable
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.graph.base import HeldVersion

Row = dict[str, Any]

EDGE_STATEMENTS: Mapping[Direction, Sequence[str]] = {
    "any": ("edges_from", "edges_to"),
    "out": ("edges_from",),
    "in": ("edges_to",),
}
"""The statements that read an entity's relationships in each direction. Both engines use the same names."""


def check_scope(knowledge: DocumentKnowledge) -> None:
    """Refuse knowledge with supports of another document or version.

    Raises:
        InvalidRequest: names the first such support.
    """
    of = (knowledge.document_id, knowledge.version)
    supports = [mention.support for mention in knowledge.mentions]
    supports += [sentence.support for sentence in knowledge.relationship_supports]
    for support in supports:
        if (support.document_id, support.version) != of:
            raise InvalidRequest(
                f"knowledge of document {of[0]} version {of[1]} names a passage of"
                f" document {support.document_id} version {support.version}"
            )


def entity_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per entity."""
    scope = tenant.value
    return [
        {"tenant": scope, "id": entity.id, "name": make_storable(entity.name), "type": make_storable(entity.type)}
        for entity in knowledge.entities
    ]


def name_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per entity and name. The rows serve as names and as supports of names.

    A main name has a type and no ``main``. An alias has no type, and the name of which it is an alias as ``main``. An editor's
    name has neither.
    """
    return [
        {
            "tenant": tenant.value,
            "document": knowledge.document_id,
            "version": knowledge.version,
            "entity": entity.id,
            "name": make_storable(name.name),
            "normalised": normalise_name(name.name),
            "main": make_storable(name.full),
            "type": make_storable(name.type),
            "description": make_storable(name.description),
            "assigned": "" if name.assigned == entity.id else name.assigned,
            "mark": name.mark,
        }
        for entity in knowledge.entities
        for name in _names(entity)
    ]


def _names(entity: Entity) -> Iterator[OtherName]:
    """Yield the distinct names of an entity, the main name first."""
    main = OtherName(entity.name, "", entity.type, entity.description, entity.assigned, entity.mark)
    yield main
    details = {name.name: name for name in entity.other_names}
    for alias in dict.fromkeys(entity.aliases):
        if alias != entity.name:
            yield details.get(alias, replace(main, name=alias, full=entity.name, type="", description=""))


def mention_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per mention."""
    scope, document, version = tenant.value, knowledge.document_id, knowledge.version
    return [
        {
            "tenant": scope,
            "document": document,
            "version": version,
            "chunk": mention.support.chunk_id,
            "entity": mention.entity_id,
            "count": mention.count,
            "about": int(mention.about),
        }
        for mention in knowledge.mentions
    ]


def relationship_rows(tenant: TenantId, knowledge: DocumentKnowledge, supports: Sequence[Row]) -> list[Row]:
    """Return one row per relationship that has ``supports`` (see `support_rows`). Without any, it would never be removed."""
    supported = {row["relationship"] for row in supports}
    return [
        {
            "tenant": tenant.value,
            "id": relationship.id,
            "source": relationship.source_id,
            "target": relationship.target_id,
            "relation": make_storable(relationship.relation),
        }
        for relationship in knowledge.relationships
        if relationship.id in supported
    ]


def support_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per sentence. A passage that supports a relationship without a sentence has start = end = 0."""
    relationships = {relationship.id: relationship for relationship in knowledge.relationships}
    sentences = list(knowledge.relationship_supports)
    pairs = {(sentence.relationship_id, sentence.support.chunk_id) for sentence in sentences}
    version_key = (knowledge.document_id, knowledge.version)
    sentences += [
        RelationshipSupport(relationship_id=relationship.id, support=support, fact=relationship.fact, start_char=0, end_char=0)
        for relationship in knowledge.relationships
        for support in relationship.supports
        if (support.document_id, support.version) == version_key and (relationship.id, support.chunk_id) not in pairs
    ]
    return [_support_row(tenant, sentence, relationships.get(sentence.relationship_id)) for sentence in sentences]


def _support_row(tenant: TenantId, sentence: RelationshipSupport, relationship: Relationship | None) -> Row:
    return {
        "tenant": tenant.value,
        "relationship": sentence.relationship_id,
        "document": sentence.support.document_id,
        "version": sentence.support.version,
        "chunk": sentence.support.chunk_id,
        "start": sentence.start_char,
        "end": sentence.end_char,
        "fact": make_storable(sentence.fact),
        "weight": relationship.weight if relationship else 1.0,
        "valid_at": _text(relationship.valid_at) if relationship else None,
        "invalid_at": _text(relationship.invalid_at) if relationship else None,
    }


def community_rows(tenant: TenantId, generation: int, communities: Sequence[Community]) -> tuple[list[Row], list[Row]]:
    """Return one row per community, and one row per member in the members' order.

    Raises:
        InvalidRequest: a community belongs to another generation.
    """
    rows, members = [], []
    for community in communities:
        if community.generation != generation:
            raise InvalidRequest(f"community {community.id} is of generation {community.generation}, not {generation}")
        key = {"tenant": tenant.value, "generation": generation}
        rows.append(
            {
                **key,
                "id": community.id,
                "level": community.level,
                "parent": community.parent_id,
                "fingerprint": community.fingerprint,
                "entity_count": community.entity_count,
            }
        )
        for position, entity in enumerate(community.entity_ids):
            members.append({**key, "community": community.id, "position": position, "entity": entity})
    return rows, members


def to_entities(rows: Iterable[Sequence[Any]], names: Iterable[Sequence[Any]], descriptions: Mapping[str, str]) -> list[Entity]:
    """Return entities in the order of ``rows``. Aliases are sorted, so that they do not depend on the order of writes."""
    by_id: dict[str, list[str]] = {}
    for entity_id, name in names:
        by_id.setdefault(entity_id, []).append(name)
    return [
        Entity(
            id=entity_id,
            name=name,
            type=kind,
            aliases=tuple(sorted(alias for alias in by_id.get(entity_id, ()) if alias != name)),
            description=descriptions.get(entity_id, ""),
        )
        for entity_id, name, kind in rows
    ]


def to_mentions(rows: Iterable[Sequence[Any]]) -> list[Mention]:
    """Return mentions in the order of ``rows``. Mentions in one chunk share a support object."""
    mentions = []
    support = Support("", 0, "")
    for document, version, chunk, entity, count, about in rows:
        if chunk != support.chunk_id or version != support.version or document != support.document_id:
            support = Support(document, version, chunk)
        mentions.append(Mention(entity, support, count, bool(about)))
    return mentions


def to_naming(row: Sequence[Any]) -> Naming:
    """Return the name of one row."""
    document, version, entity, name, entity_name, entity_type, full, kind, description, assigned, mark = row
    return Naming(
        document_id=document,
        version=version,
        entity_id=entity,
        name=name,
        entity_name=entity_name,
        entity_type=entity_type,
        said=OtherName(name, full, kind, description, assigned, mark),
    )


def to_name_use(row: Sequence[Any]) -> NameUse:
    """Return the use of one row."""
    document, version, entity, name, main, type_, description, assigned = row
    return NameUse(
        document_id=document,
        version=version,
        entity_id=entity,
        name=name,
        main=main,
        type=type_,
        description=description,
        assigned_id=assigned or entity,
    )


def use_order(use: NameUse) -> tuple[str, int, str, str]:
    """Return the key by which uses of a name are sorted."""
    return use.document_id, use.version, use.entity_id, use.name


def to_relationships(records: Iterable[Sequence[Any]]) -> Iterator[Relationship]:
    """Yield relationships from grouped rows: one of the sentences, the widest validity, and the weight.

    Of several sentences, the first in alphabetical order is the fact: ids are random, and documents come in any order. The weight
    is the sum over the documents of the largest weight in any version.
    """
    for _, group in groupby(records, key=itemgetter(0)):
        passages = list(group)
        identifier, source, target, relation, *_, fact, weight, valid_at, invalid_at = passages[0]
        if len(passages) > 1:
            weights: dict[str, float] = {}
            for row in passages:
                weights[row[4]] = max(weights.get(row[4], 0.0), row[8])
            weight = round(sum(weights.values()), 3)
            fact = min(row[7] for row in passages)
            valid_at = min((row[9] for row in passages if row[9] is not None), default=None)
            invalid_at = max((row[10] for row in passages if row[10] is not None), default=None)
        yield Relationship(
            id=identifier,
            source_id=source,
            target_id=target,
            relation=relation,
            fact=fact,
            weight=weight,
            valid_at=_moment(valid_at),
            invalid_at=_moment(invalid_at),
            supports=tuple(Support(*passage) for passage in dict.fromkeys(row[4:7] for row in passages)),
        )


def to_versions(records: Iterable[Sequence[Any]]) -> list[HeldVersion]:
    """Return versions, ordered, from rows ``(what, document, version, names, mentions, sentences)``.

    One row has the counts that were written for a version. The other rows, summed, have the counts that exist.
    """
    expected: dict[tuple[str, int], tuple[int, ...]] = {}
    totals: dict[tuple[str, int], tuple[int, ...]] = {}
    for what, document, version, *counts in records:
        if what == "written":
            expected[document, version] = tuple(counts)
        else:
            before = totals.get((document, version), (0, 0, 0))
            totals[document, version] = tuple(count + more_count for count, more_count in zip(before, counts, strict=True))
    keys = sorted({*expected, *totals})
    return [HeldVersion(*key, whole=expected.get(key) == totals.get(key, (0, 0, 0))) for key in keys]


def to_sentence(row: Sequence[Any]) -> StatedFact:
    """Return the sentence of one row."""
    identifier, document, version, chunk, fact, start, end, weight, valid_at, invalid_at = row
    return StatedFact(
        relationship_id=identifier,
        support=Support(document, version, chunk),
        fact=fact,
        start_char=start,
        end_char=end,
        weight=weight,
        valid_at=_moment(valid_at),
        invalid_at=_moment(invalid_at),
    )


def to_edges(records: Iterable[Sequence[Any]], limit: int) -> dict[str, list[GraphEdge]]:
    """Return the edges of each entity, heaviest first, from rows ``(entity, id, source, target, relation, weight)``.

    Rows of a relationship that begins and ends at the same entity may come twice.
    """
    edges: dict[str, dict[str, GraphEdge]] = {}
    for entity, *edge in records:
        edges.setdefault(entity, {})[edge[0]] = GraphEdge(*edge)
    return {
        entity: sorted(edges_of_entity.values(), key=lambda edge: (edge.weight, edge.id), reverse=True)[:limit]
        for entity, edges_of_entity in edges.items()
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _text(moment: datetime | None) -> str | None:
    """Return a UTC text of fixed width, which sorts like the time. A time without zone counts as UTC."""
    if moment is None:
        return None
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.isoformat(timespec="microseconds")
