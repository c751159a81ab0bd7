"""Fills an empty Neo4j with documents' knowledge, with the result of `Neo4jGraphStore.write_document`, a hundred times as fast.

Nothing is looked up before it is written: every row is created once (`CREATE`), in batches of thousands. Data that the store
derives from rows (an edge's first sentence, a chunk's edges, a version's counts) is derived here. Only the schema parts that find
nodes exist; the store creates the indexes of relationships over all data when it is opened. The rows are the store's own.
``tests/integration/neo4j/test_direct_writes.py`` checks that both give the same graph.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph import graph_rows, neo4j_schema, nodes
from agentic_rag_backend.stores.graph.bolt import Neo4jConnections, Transaction

Row = dict[str, Any]

_BATCH = 10_000
"""Maximum rows per transaction."""

_STATEMENTS = {
    "tenant": "UNWIND $rows AS row CREATE (:Tenant {group_id: $tenant, writes: row.writes, revision: row.revision})",
    "versions": """
        UNWIND $rows AS row
        CREATE (d:Document {uuid: row.document_uuid, group_id: $tenant, id: row.document, name: row.title,
            created_at: datetime()})
        CREATE (v:DocumentVersion {uuid: row.version_uuid, group_id: $tenant, document_id: row.document, version: row.version,
            names: row.names, mentions: row.mentions, sentences: row.sentences, created_at: datetime()})
        CREATE (d)-[:HAS_VERSION]->(v)""",
    "chunks": """
        UNWIND $rows AS row
        MATCH (d:Document {uuid: row.document}) USING INDEX SEEK d:Document(uuid)
        MATCH (v:DocumentVersion {uuid: row.version}) USING INDEX SEEK v:DocumentVersion(uuid)
        CREATE (c:Episodic:Chunk {uuid: row.uuid, group_id: $tenant, name: row.title, source: 'text',
            source_description: row.id, content: '', entity_edges: row.edges, created_at: datetime(), valid_at: datetime()})
        CREATE (d)-[:HAS_CHUNK]->(c)
        CREATE (v)-[:HOLDS]->(c)""",
    "entities": """
        UNWIND $rows AS row
        CREATE (e:$(row.labels) {uuid: row.uuid, group_id: $tenant, id: row.id, name: row.name, type: row.type,
            labels: row.labels, summary: '', description: '', created_at: datetime()})""",
    "names": """
        UNWIND $rows AS row
        MATCH (e:Entity {uuid: row.entity}) USING INDEX SEEK e:Entity(uuid)
        CREATE (e)-[:NAMED]->(:EntityName {uuid: row.uuid, group_id: $tenant, name: row.name, normalised: row.normalised})""",
    "calls": """
        UNWIND $rows AS row
        MATCH (v:DocumentVersion {uuid: row.version}) USING INDEX SEEK v:DocumentVersion(uuid)
        MATCH (n:EntityName {uuid: row.uuid}) USING INDEX SEEK n:EntityName(uuid)
        CREATE (v)-[:CALLS {group_id: $tenant, position: row.position, main: row.main, type: row.type,
            description: row.description, assigned: row.assigned, mark: row.mark}]->(n)""",
    "mentions": """
        UNWIND $rows AS row
        MATCH (c:Episodic {uuid: row.chunk}) USING INDEX SEEK c:Episodic(uuid)
        MATCH (e:Entity {uuid: row.entity}) USING INDEX SEEK e:Entity(uuid)
        CREATE (c)-[:MENTIONS {uuid: row.uuid, group_id: $tenant, position: row.position, count: row.count, about: row.about,
            created_at: datetime()}]->(e)""",
    "statements": """
        UNWIND $rows AS row
        MATCH (a:Entity {uuid: row.source}) USING INDEX SEEK a:Entity(uuid)
        MATCH (c:Episodic {uuid: row.chunk}) USING INDEX SEEK c:Episodic(uuid)
        CREATE (c)-[s:STATES {uuid: row.uuid, group_id: $tenant, edge: row.edge, position: row.position, end: row.end,
            fact: row.fact, weight: row.weight}]->(a)
        SET s.valid_at = row.valid_at, s.invalid_at = row.invalid_at""",
    "relationships": """
        UNWIND $rows AS row
        MATCH (a:Entity {uuid: row.source}) USING INDEX SEEK a:Entity(uuid)
        MATCH (b:Entity {uuid: row.target}) USING INDEX SEEK b:Entity(uuid)
        CREATE (a)-[r:RELATES_TO {uuid: row.uuid, group_id: $tenant, id: row.id, name: row.name, fact: row.fact,
            episodes: row.episodes, source_node_uuid: row.source, target_node_uuid: row.target, weight: row.weight,
            created_at: datetime()}]->(b)""",
}
"""Ordered so that each statement refers to rows of earlier ones."""


@dataclass
class _Seen:
    """Items of earlier documents by uuid, which are created once. Edges are created when all their supports are known."""

    entities: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    relationships: dict[str, Row] = field(default_factory=dict)
    stated: defaultdict[str, list[tuple[str, str, str, float]]] = field(default_factory=lambda: defaultdict(list))

    def edges(self) -> list[Row]:
        """Return the relationships with the data derived from their supports. The first support gives the fact."""
        found = []
        for uuid_, row in self.relationships.items():
            said = sorted(self.stated[uuid_])
            episodes = list(dict.fromkeys(chunk for _, _, chunk, _ in said))
            weights: dict[str, float] = {}
            for position, _, _, weight in said:
                document = nodes.split_position(position, 2)[0]
                weights[document] = max(weights.get(document, 0.0), weight)
            weight = round(sum(weights.values()), 3)
            found.append({**row, "fact": said[0][1], "episodes": episodes, "weight": weight})
        return found


async def _run(transaction: Transaction, statement: str, values: Mapping[str, Any]) -> Any:
    return await transaction.run(statement, values)


async def fill(connections: Neo4jConnections, tenant: TenantId, documents: Iterable[DocumentKnowledge]) -> None:
    """Write documents of one version each, whose chunks are their own and whose relationships have no validity.

    If it is interrupted, the tenant must be removed: the graph is unusable.
    """

    async def create(name: str, found: Sequence[Row]) -> None:
        for first in range(0, len(found), _BATCH):
            values = {"tenant": tenant.value, "rows": found[first : first + _BATCH]}
            await connections.write(partial(_run, statement=_STATEMENTS[name], values=values))

    script = files(neo4j_schema.__package__).joinpath("migrations", neo4j_schema.STEPS[0]).read_text(encoding="utf-8")
    for statement in neo4j_schema.statements(script):
        if "FOR (n:" in statement and "IS UNIQUE" in statement:
            await connections.define(statement)
    seen, documents_written = _Seen(), 0
    for knowledge in documents:
        documents_written += 1
        for name, found in _rows(tenant, knowledge, seen).items():
            await create(name, found)
    await create("relationships", seen.edges())
    await create("tenant", [{"writes": documents_written, "revision": str(uuid.uuid4())}])


def _rows(tenant: TenantId, knowledge: DocumentKnowledge, seen: _Seen) -> dict[str, list[Row]]:
    """Return the rows of each statement for a document, in order. Relationships are recorded in ``seen``."""
    version = nodes.version_row(tenant, knowledge)
    supports = graph_rows.support_rows(tenant, knowledge)
    names, mentions = nodes.name_rows(tenant, knowledge), nodes.mention_rows(tenant, knowledge)
    statements = nodes.statement_rows(tenant, supports)
    for row in nodes.relationship_rows(tenant, knowledge, supports):
        seen.relationships.setdefault(row["uuid"], row)
    edges: defaultdict[str, set[str]] = defaultdict(set)
    for row in statements:
        row["source"] = seen.relationships[row["edge"]]["source"]
        seen.stated[row["edge"]].append((row["position"], row["fact"], row["chunk"], row["weight"]))
        edges[row["chunk"]].add(row["edge"])
    held = {"document": version["document_uuid"], "version": version["version_uuid"]}
    told = {"id": version["document"], "title": version["title"]}
    chunks = [{**held, **told, "uuid": row["uuid"], "edges": sorted(edges[row["uuid"]])} for row in version.pop("chunks")]
    counts = {"names": len(names), "mentions": len(mentions), "sentences": len(statements)}
    return {
        "versions": [{**version, **counts}],
        "chunks": chunks,
        "entities": _fresh(nodes.entity_rows(tenant, knowledge), seen.entities),
        "names": _fresh(names, seen.names),
        "calls": [{**row, "version": version["version_uuid"]} for row in names],
        "mentions": mentions,
        "statements": statements,
    }


def _fresh(found: Iterable[Row], seen: set[str]) -> list[Row]:
    """Return the rows that no earlier document had, and record them."""
    fresh = {row["uuid"]: row for row in found if row["uuid"] not in seen}
    seen.update(fresh)
    return list(fresh.values())
