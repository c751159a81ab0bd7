"""Converts knowledge to nodes and relationships of Graphiti's schema, and back: functions without a database.

The parameters match ``queries/*.cypher``. ADR 15 describes the graph's schema and its reasons.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Community, DocumentKnowledge, NameUse, Naming, community_point_id
from agentic_rag_backend.domain.size_limits import make_storable
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.graph import graph_rows

Row = dict[str, Any]

MAX_NAME_BYTES = 4_000
"""In UTF-8. Names are indexed together with ids, and an index entry has at most 8,167 bytes."""
ENTITY = "Entity"
_SEPARATOR = "\t"
_CONTROL = re.compile(r"[\x00-\x1f]")
_LABEL = re.compile(r"[a-z][a-z0-9_]*\Z")
_OWN_LABELS = frozenset(
    {ENTITY, "Episodic", "Chunk", "Community", "Theme", "ThemeRecord", "Document", "DocumentVersion", "EntityName"}
    | {"Saga", "Tenant", "SchemaVersion", "Deployment"}
)
"""Labels that no entity type may have."""


def graph_uuid(tenant: TenantId, identifier: str) -> str:
    """Return the ``uuid`` of a tenant's item with that id. It differs between tenants.

    If the id is a UUID, applying the function twice returns the id. Graphiti finds by uuid regardless of the group, so another
    tenant's id must lead nowhere.
    """
    try:
        number = uuid.UUID(identifier)
    except ValueError:
        return stable_id("graph", tenant, make_storable(identifier))
    if str(number) != identifier:
        return stable_id("graph", tenant, make_storable(identifier))
    return str(uuid.UUID(int=number.int ^ _mask(tenant)))


@lru_cache(maxsize=1024)
def _mask(tenant: TenantId) -> int:
    return uuid.UUID(stable_id("graph-mask", tenant)).int


def version_prefix(document_id: str, version: int | None = None) -> str:
    """Return the prefix of the positions of a document's items, or of those of one version.

    Positions sort like (document, version, …): the separator sorts before any character of an id.

    Raises:
        InvalidRequest: the id holds a control character.
    """
    if _CONTROL.search(document_id):
        raise InvalidRequest(f"a document's id holds a control character: {document_id!r}")
    head = document_id + _SEPARATOR
    return head if version is None else f"{head}{version:019}{_SEPARATOR}"


def version_range(document_id: str, *, up_to_version: int, above: int) -> Row:
    """Return the bounds of the positions of versions > ``above`` and ≤ ``up_to_version``: from (inclusive) and to (exclusive)."""
    document = version_prefix(document_id)
    return {"from": f"{document}{max(above, -1) + 1:019}", "to": f"{document}{up_to_version + 1:019}"}


def split_position(position: str, parts: int) -> list[str]:
    """Return the parts of a position. The last part may contain separators."""
    return position.split(_SEPARATOR, parts - 1)


def version_row(tenant: TenantId, knowledge: DocumentKnowledge) -> Row:
    """Return the parameters of a version, with the chunks that support its knowledge.

    Raises:
        InvalidRequest: an id holds a control character.
    """
    document, version = knowledge.document_id, knowledge.version
    chunks = dict.fromkeys(knowledge.chunk_ids)
    chunks |= dict.fromkeys(mention.support.chunk_id for mention in knowledge.mentions)
    chunks |= dict.fromkeys(sentence.support.chunk_id for sentence in knowledge.relationship_supports)
    chunks |= dict.fromkeys(
        support.chunk_id
        for relationship in knowledge.relationships
        for support in relationship.supports
        if (support.document_id, support.version) == (document, version)
    )
    for chunk in chunks:
        if _CONTROL.search(chunk):
            raise InvalidRequest(f"a chunk's id holds a control character: {chunk!r}")
    return {
        "document": document,
        "document_uuid": graph_uuid(tenant, document),
        "version": version,
        "version_uuid": version_uuid(tenant, document, version),
        "title": make_storable(knowledge.title),
        "prefix": version_prefix(document, version),
        "chunks": [{"id": chunk, "uuid": graph_uuid(tenant, chunk)} for chunk in sorted(chunks)],
    }


def version_uuid(tenant: TenantId, document_id: str, version: int) -> str:
    """Return the uuid of a version's node."""
    return stable_id("graph-version", tenant, document_id, version)


def entity_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per entity, with ``labels`` in Graphiti's form."""
    return [
        {**row, "uuid": graph_uuid(tenant, row["id"]), "labels": [ENTITY, *type_labels(row["type"])]}
        for row in graph_rows.entity_rows(tenant, knowledge)
    ]


def name_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per name of an entity.

    Raises:
        InvalidRequest: a name is longer than `MAX_NAME_BYTES`.
    """
    prefix = version_prefix(knowledge.document_id, knowledge.version)
    names = graph_rows.name_rows(tenant, knowledge)
    for row in names:
        size = len(row["name"].encode())
        if size > MAX_NAME_BYTES:
            raise InvalidRequest(f"a name has {size} bytes; the graph store keeps names of up to {MAX_NAME_BYTES}")
    return [
        {
            "entity": graph_uuid(tenant, row["entity"]),
            "uuid": stable_id("graph-name", tenant, row["entity"], row["name"]),
            "name": row["name"],
            "normalised": row["normalised"],
            "main": row["main"],
            "type": row["type"],
            "description": row["description"],
            "assigned": row["assigned"],
            "mark": row["mark"],
            "position": f"{prefix}{row['entity']}{_SEPARATOR}{row['name']}",
        }
        for row in names
    ]


def mention_rows(tenant: TenantId, knowledge: DocumentKnowledge) -> list[Row]:
    """Return one row per mention."""
    prefix = version_prefix(knowledge.document_id, knowledge.version)
    positions = [f"{prefix}{mention_of.support.chunk_id}{_SEPARATOR}{mention_of.entity_id}" for mention_of in knowledge.mentions]
    return [
        {
            "uuid": stable_id("graph-mention", tenant, position),
            "chunk": graph_uuid(tenant, mention.support.chunk_id),
            "entity": graph_uuid(tenant, mention.entity_id),
            "position": position,
            "count": mention.count,
            "about": mention.about,
        }
        for mention, position in zip(knowledge.mentions, positions, strict=True)
    ]


def relationship_rows(tenant: TenantId, knowledge: DocumentKnowledge, supports: Sequence[Row]) -> list[Row]:
    """Return one row per relationship that has a row in ``supports`` (of `rows.support_rows`)."""
    return [
        {
            "uuid": graph_uuid(tenant, row["id"]),
            "id": row["id"],
            "source": graph_uuid(tenant, row["source"]),
            "target": graph_uuid(tenant, row["target"]),
            "name": row["relation"],
        }
        for row in graph_rows.relationship_rows(tenant, knowledge, supports)
    ]


def statement_rows(tenant: TenantId, supports: Iterable[Row]) -> list[Row]:
    """Return one row per sentence of ``supports`` (see `rows.support_rows`)."""
    statements = []
    for row in supports:
        edge = graph_uuid(tenant, row["relationship"])
        sort_key = (f"{version_prefix(row['document'], row['version'])}{row['chunk']}", f"{row['start']:019}", edge)
        position = _SEPARATOR.join(sort_key)
        statements.append(
            {
                **{name: row[name] for name in ("end", "fact", "weight", "valid_at", "invalid_at")},
                "uuid": stable_id("graph-statement", tenant, position),
                "edge": edge,
                "chunk": graph_uuid(tenant, row["chunk"]),
                "position": position,
            }
        )
    return statements


def community_rows(tenant: TenantId, generation: int, communities: Sequence[Community]) -> tuple[list[Row], list[Row]]:
    """Return one row per community, and one row per member that may have a node.

    Raises:
        InvalidRequest: a community belongs to another generation.
    """
    records, members = [], []
    for row, community in zip(graph_rows.community_rows(tenant, generation, communities)[0], communities, strict=True):
        uuid = graph_uuid(tenant, theme_id(community.id, generation))
        entities = {entity: graph_uuid(tenant, entity) for entity in community.entity_ids}
        records.append({**row, "uuid": uuid, "entity_ids": list(community.entity_ids), "leading": list(entities.values())[:3]})
        members += [
            {"community": uuid, "entity": entity, "uuid": stable_id("graph-member", uuid, entity)} for entity in entities.values()
        ]
    return records, members


def theme_id(community_id: str, generation: int) -> str:
    """Return the id of a community in one generation. The community's own id is the same in all generations."""
    try:
        return community_point_id(community_id, generation)
    except ValueError:
        return stable_id("graph-theme", community_id, generation)


def to_mention_row(position: str, count: int, about: bool) -> tuple[Any, ...]:
    """Return the row for `rows.to_mentions`."""
    document, version, chunk, entity = split_position(position, 4)
    return document, int(version), chunk, entity, count, about


def to_naming(position: str, entity_name: str, entity_type: str, *details: str) -> Naming:
    """Return the name at one position. ``said`` are full name, type, description, and the effect of edits."""
    document, version, entity, name = split_position(position, 4)
    return graph_rows.to_naming((document, int(version), entity, name, entity_name, entity_type, *details))


def to_name_use(position: str, main: str, type_: str, description: str, assigned: str) -> NameUse:
    """Return the use of a name at one position."""
    document, version, entity, name = split_position(position, 4)
    return graph_rows.to_name_use((document, int(version), entity, name, main, type_, description, assigned))


def to_support_row(identifier: str, source: str, target: str, relation: str, position: str, *sentence: Any) -> tuple[Any, ...]:
    """Return the row for `rows.to_relationships`. ``sentence`` is fact, weight and validity."""
    document, version, chunk, _ = split_position(position, 4)
    return identifier, source, target, relation, document, int(version), chunk, *sentence


def to_sentence_row(identifier: str, position: str, fact: str, end: int, *validity: Any) -> tuple[Any, ...]:
    """Return the row for `rows.to_sentence`. ``validity`` is weight, start and end."""
    document, version, chunk, start, _ = split_position(position, 5)
    return identifier, document, int(version), chunk, fact, int(start), end, *validity


def type_labels(kind: str) -> list[str]:
    """Return the node label of an entity type, such as ``Person`` for "person". Empty if the type makes no safe label."""
    words = kind.strip().lower().replace(" ", "_").replace("-", "_")
    if len(words) > 64 or _LABEL.match(words) is None:
        return []
    label = "".join(word.capitalize() for word in words.split("_"))
    return [] if label in _OWN_LABELS else [label]
