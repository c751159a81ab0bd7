"""Contents of a folder, read from its files in a form that can be compared between folders, and data that should not exist."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdrant_edge import EdgeShard, ScrollRequest

from agentic_rag_backend.domain.filters import filterable_fields
from agentic_rag_backend.stores.vector.base import Collection, NodeKind
from agentic_rag_backend.stores.vector.conditions import TAGS, tags_of
from agentic_rag_backend.stores.vector.edge.folder import read_pointer

Rows = list[tuple[Any, ...]]

ORPHANS = {
    "results that nobody needs": """
        SELECT p.document_id, p.version, p.ordinal FROM prepared_chunks p LEFT JOIN documents d
        ON d.tenant_id = p.tenant_id AND d.id = p.document_id
        WHERE d.id IS NULL OR d.deleted_at IS NOT NULL OR p.version < d.current_version""",
    "visible chunks without results": """
        SELECT c.document_id, c.version, c.ordinal FROM chunks c JOIN documents d
        ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.current_version = c.version LEFT JOIN prepared_chunks p
        ON p.tenant_id = c.tenant_id AND p.document_id = c.document_id AND p.version = c.version AND p.ordinal = c.ordinal
        WHERE p.ordinal IS NULL""",
    "chunks of no visible version": """
        SELECT c.document_id, c.version, c.ordinal FROM chunks c LEFT JOIN documents d
        ON d.tenant_id = c.tenant_id AND d.id = c.document_id AND d.current_version = c.version AND d.deleted_at IS NULL
        WHERE d.id IS NULL""",
    "texts of no chunk": "SELECT chunk_id FROM chunk_texts WHERE chunk_id NOT IN (SELECT chunk_id FROM chunks)",
    "versions that nobody sees": """
        SELECT v.document_id, v.version, v.state FROM document_versions v LEFT JOIN documents d
        ON d.tenant_id = v.tenant_id AND d.id = v.document_id AND d.current_version = v.version AND d.deleted_at IS NULL
        WHERE d.id IS NULL""",
    "tombstones": "SELECT id FROM documents WHERE deleted_at IS NOT NULL",
    "documents not ready": "SELECT id, key, state FROM documents WHERE state <> 'ready'",
    "keys twice": "SELECT key FROM documents GROUP BY key HAVING count(*) > 1",
    "nodes of another tree": """
        SELECT n.generation, n.id FROM raptor_nodes n LEFT JOIN raptor_pointers p
        ON p.tenant_id = n.tenant_id AND p.generation = n.generation WHERE p.generation IS NULL""",
    "children of no node": """
        SELECT l.generation, l.node_id FROM raptor_links l LEFT JOIN raptor_nodes n
        ON n.tenant_id = l.tenant_id AND n.generation = l.generation AND n.id = l.node_id WHERE n.id IS NULL""",
    "summaries of no node": """
        SELECT s.fingerprint FROM raptor_summaries s LEFT JOIN raptor_nodes n
        ON n.tenant_id = s.tenant_id AND n.fingerprint = s.fingerprint WHERE n.id IS NULL""",
    "nodes without a summary": """
        SELECT n.id FROM raptor_nodes n LEFT JOIN raptor_summaries s ON s.tenant_id = n.tenant_id
        AND s.fingerprint = n.fingerprint AND s.prompt_version = n.prompt_version AND s.model = n.model
        WHERE s.fingerprint IS NULL""",
    "changes that were not delivered": "SELECT topic, subject FROM outbox",
    "jobs not ended": "SELECT id, kind, state FROM jobs WHERE state IN ('queued', 'running')",
    "workflows not ended": """
        SELECT id, claimant FROM workflows WHERE finished_us IS NULL""",
}


def inspected(folder: Path, tenant: str) -> dict[str, Any]:
    """Return ``{state, orphans, counts}`` of a closed folder. ``state`` identifies all data by words, never by random ids."""
    catalogue, graph = _open(folder / "catalogue.db"), _open(folder / "graph.db")
    names = dict(_rows(graph, "SELECT id, name FROM entities"))  # type: ignore[var-annotated]
    relationships = _rows(graph, "SELECT id, source_id, relation, target_id FROM relationships")
    held = Held(
        catalogue=catalogue,
        graph=graph,
        points={collection: _points(folder, collection) for collection in Collection},
        names=names,
        facts={row[0]: _fact(names, row) for row in relationships},
    )
    state = {**_documents(held), **_knowledge(held), "tree": _tree(held), **_vectors(held)}
    orphans = {**_graph_orphans(held), **_vector_orphans(held), **_blob_orphans(held, folder / "blobs", tenant)}
    orphans |= _tree_orphans(held) | {what: _rows(catalogue, query) for what, query in ORPHANS.items()}
    counts = {name: len(value) if isinstance(value, list) else value for name, value in state.items()}
    catalogue.close()
    graph.close()
    return {"state": state, "orphans": {what: found for what, found in orphans.items() if found}, "counts": counts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The stores of a folder: databases, points, and words for the graph's ids."""

    catalogue: sqlite3.Connection
    graph: sqlite3.Connection
    points: Mapping[Collection, list[dict[str, Any]]]
    names: Mapping[str, str]
    facts: Mapping[str, str]

    def plain_nodes(self) -> list[dict[str, Any]]:
        """Return the points of nodes that belong neither to communities nor to the tree."""
        return [each for each in self.points[Collection.NODES] if not each["generation"] and each["kind"] != NodeKind.RAPTOR]

    def tree_nodes(self) -> list[dict[str, Any]]:
        return [point for point in self.points[Collection.NODES] if point["kind"] == NodeKind.RAPTOR]

    def community_nodes(self) -> list[dict[str, Any]]:
        return [point for point in self.points[Collection.NODES] if point["generation"]]

    def mentions(self) -> Rows:
        return _rows(self.graph, "SELECT document_id, version, chunk_id, entity_id, count, about FROM mentions")

    def supports(self) -> Rows:
        query = "SELECT document_id, version, chunk_id, relationship_id, fact, weight FROM relationship_supports"
        return _rows(self.graph, query)

    def keys(self) -> dict[str, str]:
        return dict(_rows(self.catalogue, "SELECT id, key FROM documents"))

    def texts(self) -> dict[str, str]:
        return dict(_rows(self.catalogue, "SELECT chunk_id, text FROM chunk_texts"))


def _documents(held: Held) -> dict[str, Any]:
    keys, texts = held.keys(), held.texts()
    faces = _rows(held.catalogue, "SELECT key, state, title, current_version, latest_version, chunk_count FROM documents")
    places = _rows(held.catalogue, "SELECT document_id, version, chunk_id, ordinal, start_char, end_char FROM chunks")
    jobs = Counter(_rows(held.catalogue, "SELECT kind, state FROM jobs"))
    receipts = _rows(held.catalogue, "SELECT json_extract(result, '$.removed') FROM jobs WHERE kind = 'delete'")
    return {
        "documents": _sorted(faces),
        "chunks": _sorted([keys.get(d, d), v, texts.get(c, c), *rest] for d, v, c, *rest in places),
        "jobs": _sorted([*row, count] for row, count in jobs.items()),
        "receipts": _sorted(receipts),
    }


def _knowledge(held: Held) -> dict[str, Any]:
    keys, texts, graph = held.keys(), held.texts(), held.graph

    def said(document: str, version: int, chunk: str) -> list[Any]:
        return [keys.get(document, document), version, texts.get(chunk, chunk)]

    entities = _rows(graph, "SELECT id, name, type FROM entities")
    return {
        "entities": _sorted([*row, *_aliases(graph, id)] for id, *row in entities),
        "mentions": _sorted([*said(d, v, c), held.names[e], count, about] for d, v, c, e, count, about in held.mentions()),
        "supports": _sorted([*said(d, v, c), held.facts[r], fact, weight] for d, v, c, r, fact, weight in held.supports()),
        "communities": _communities(graph, held.catalogue, held.names),
    }


def _tree(held: Held) -> list[Any]:
    """Return each node's level, the texts of all passages below it, and its summary with its writer."""
    texts = held.texts()
    children: dict[str, list[str]] = {}
    for node, child in _rows(held.catalogue, "SELECT node_id, child_id FROM raptor_links"):
        children.setdefault(node, []).append(child)

    def below(id: str) -> set[str]:
        return {text for child in children[id] for text in below(child)} if id in children else {texts.get(id, id)}

    told = """SELECT n.id, n.level, n.model, s.summary FROM raptor_nodes n JOIN raptor_summaries s ON s.tenant_id = n.tenant_id
        AND s.fingerprint = n.fingerprint AND s.prompt_version = n.prompt_version AND s.model = n.model"""
    return _sorted([level, sorted(below(id)), *rest] for id, level, *rest in _rows(held.catalogue, told))


def _tree_orphans(held: Held) -> dict[str, list[Any]]:
    """A node without statements, whose passages were all deleted, has no vector until the next build."""
    points = [point["id"] for point in held.tree_nodes()]
    wanted = {
        id
        for (id,) in _rows(
            held.catalogue,
            """SELECT n.point_id FROM raptor_nodes n LEFT JOIN raptor_summaries s ON s.tenant_id = n.tenant_id
            AND s.fingerprint = n.fingerprint AND s.prompt_version = n.prompt_version AND s.model = n.model
            WHERE s.fingerprint IS NULL OR s.summary <> '' OR s.findings <> '[]'""",
        )
    }
    return {
        "vectors of no tree": sorted(set(points) - wanted),
        "parts of a tree without a vector": sorted(wanted - set(points)),
    }


def _vectors(held: Held) -> dict[str, Any]:
    keys, texts = held.keys(), held.texts()
    return {
        "chunk vectors": _sorted(
            [keys.get(point["document_id"]), point["version"], texts.get(point["id"]), point["dense"]]
            for point in held.points[Collection.CHUNKS]
        ),
        "node vectors": _sorted(
            [*(["fact", held.facts[point["id"]]] if point["id"] in held.facts else ["?", point["id"]]), point["dense"]]
            for point in held.plain_nodes()
        ),
        "community vectors": len(held.community_nodes()),
    }


def _graph_orphans(held: Held) -> dict[str, list[Any]]:
    visible = set(_rows(held.catalogue, "SELECT id, current_version FROM documents WHERE deleted_at IS NULL"))
    names = _rows(held.graph, "SELECT document_id, version, name FROM entity_supports")
    return {
        "mentions of no visible version": [row for row in held.mentions() if row[:2] not in visible],
        "supports of no visible version": [row for row in held.supports() if row[:2] not in visible],
        "names of no visible version": [row for row in names if row[:2] not in visible],
    }


def _vector_orphans(held: Held) -> dict[str, list[Any]]:
    shown = {id for (id,) in _rows(held.catalogue, "SELECT chunk_id FROM chunks")}
    chunks = [point["id"] for point in held.points[Collection.CHUNKS]]
    nodes = [point["id"] for point in held.plain_nodes()]
    generations = [generation for (generation,) in _rows(held.catalogue, "SELECT generation FROM community_pointers")]
    told = _rows(held.graph, "SELECT DISTINCT generation FROM communities")
    return {
        "vectors of no chunk": [id for id in chunks if id not in shown],
        "chunks without a vector": sorted(shown - set(chunks)),
        "labels that filters have and the catalogue has not": _strange_labels(held),
        "points twice": sorted(id for id, count in Counter(chunks + nodes).items() if count > 1),
        "vectors of no node": [id for id in nodes if id not in held.facts],
        "nodes without a vector": sorted(set(held.facts) - set(nodes)),
        "generations": [point["id"] for point in held.community_nodes() if [point["generation"]] != generations]
        + [row for row in told if list(row) != generations],
    }


def _strange_labels(held: Held) -> list[Any]:
    """Return the points of visible documents whose filterable fields differ from the catalogue."""
    rows = _rows(held.catalogue, "SELECT id, key, title, metadata FROM documents WHERE deleted_at IS NULL")
    wanted = {
        id: set(tags_of(filterable_fields(json.loads(told), document_id=id, key=key, title=title)))
        for id, key, title, told in rows
    }
    points = [point for point in held.points[Collection.CHUNKS] if point["document_id"] in wanted]
    return [
        [point["id"], sorted(set(point["tags"]) ^ wanted[point["document_id"]])]
        for point in points
        if set(point["tags"]) != wanted[point["document_id"]]
    ]


def _blob_orphans(held: Held, blobs: Path, tenant: str) -> dict[str, list[Any]]:
    originals = {f"{tenant}/{key}" for (key,) in _rows(held.catalogue, "SELECT blob_key FROM document_versions")}
    files = {str(path.relative_to(blobs)) for path in blobs.rglob("*") if path.is_file()}
    return {
        "originals of no document": sorted(files - originals),
        "documents without original": sorted(originals - files),
    }


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path)


def _rows(connection: sqlite3.Connection, query: str, *bound: Any) -> Rows:
    return connection.execute(query, bound).fetchall()


def _sorted(rows: Any) -> list[Any]:
    return sorted((list(row) for row in rows), key=repr)


def _fact(names: Mapping[str, str], row: tuple[Any, ...]) -> str:
    _, source, relation, target = row
    return f"{names[source]} –{relation}→ {names[target]}"


def _aliases(graph: sqlite3.Connection, entity: str) -> list[str]:
    return sorted(name for (name,) in _rows(graph, "SELECT name FROM entity_names WHERE entity_id = ?", entity))


def _communities(graph: sqlite3.Connection, catalogue: sqlite3.Connection, names: Mapping[str, str]) -> list[Any]:
    texts = "(SELECT group_concat(json_extract(value, '$.text')) FROM json_each(names))"
    told = dict(_rows(catalogue, f"SELECT fingerprint, {texts} || ': ' || summary FROM community_summaries"))  # type: ignore[var-annotated]
    found = []
    for id, level, fingerprint in _rows(graph, "SELECT id, level, fingerprint FROM communities"):
        members = _rows(graph, "SELECT entity_id FROM community_members WHERE community_id = ?", id)
        found.append([level, sorted(names.get(member, member) for (member,) in members), told.get(fingerprint, "")])
    return _sorted(found)


def _points(folder: Path, collection: Collection) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for home in [record.parent for record in (folder / "vectors").glob("*/fingerprint.json")]:
        # Index upkeep may have replaced the first shard.
        shard = EdgeShard.load(str(home / read_pointer(home)[collection].name))
        offset = None
        while True:
            records, offset = shard.scroll(ScrollRequest(offset=offset, limit=1000, with_payload=True, with_vector=True))
            found.extend(_point(record) for record in records)
            if offset is None:
                break
        shard.close()
    return found


def _point(record: Any) -> dict[str, Any]:
    payload = record.payload or {}
    vectors = record.vector if isinstance(record.vector, dict) else {}
    told = {name: payload.get(name) for name in ("document_id", "version", "generation")}
    kind = payload["scope"][0].rpartition("/")[2]
    return {"id": payload["id"], "kind": kind, **told, "tags": payload.get(TAGS, []), "dense": "dense" in vectors}
