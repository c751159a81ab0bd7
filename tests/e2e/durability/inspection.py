"""What a folder holds, read from its files: comparable between folders, and everything that should not be there."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from qdrant_edge import EdgeShard, ScrollRequest

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
    "jobs not ended": "SELECT id, kind, state FROM jobs WHERE state IN ('queued', 'running')",
    "workflows not ended": """
        SELECT workflow_uuid, status FROM workflow_status WHERE status NOT IN ('SUCCESS', 'ERROR', 'CANCELLED')""",
}


def inspected(folder: Path, tenant: str) -> dict[str, Any]:
    """Return ``{state, orphans, counts}`` of a closed folder; ``state`` names everything by words, never by random ids."""
    catalogue, graph = _open(folder / "catalogue.db"), _open(folder / "graph.db")
    points = {name: _points(folder, name) for name in ("chunks", "nodes")}
    keys = dict(_rows(catalogue, "SELECT id, key FROM documents"))
    visible = set(_rows(catalogue, "SELECT id, current_version FROM documents WHERE deleted_at IS NULL"))
    texts = dict(_rows(catalogue, "SELECT chunk_id, text FROM chunk_texts"))
    names = dict(_rows(graph, "SELECT id, name FROM entities"))
    relationships = _rows(graph, "SELECT id, source_id, relation, target_id FROM relationships")
    facts = {row[0]: _fact(names, row) for row in relationships}
    generations = [row[0] for row in _rows(catalogue, "SELECT generation FROM community_pointers")]
    nodes = {id: ["fact", fact] for id, fact in facts.items()}

    def said(row: tuple[Any, ...]) -> list[Any]:
        document, version, chunk, *rest = row
        return [keys.get(document, document), version, texts.get(chunk, chunk), *rest]

    mentions = _rows(graph, "SELECT document_id, version, chunk_id, entity_id, count, about FROM mentions")
    supports = _rows(graph, "SELECT document_id, version, chunk_id, relationship_id, fact, weight FROM relationship_supports")
    orphans: dict[str, list[Any]] = {what: _rows(catalogue, query) for what, query in ORPHANS.items()}
    orphans["mentions of no visible version"] = [row for row in mentions if row[:2] not in visible]
    orphans["supports of no visible version"] = [row for row in supports if row[:2] not in visible]
    orphans["names of no visible version"] = [
        row for row in _rows(graph, "SELECT document_id, version, name FROM entity_supports") if row[:2] not in visible
    ]
    shown = set(_rows(catalogue, "SELECT chunk_id FROM chunks"))
    orphans["vectors of no chunk"] = [point["id"] for point in points["chunks"] if (point["id"],) not in shown]
    orphans["chunks without a vector"] = sorted({id for (id,) in shown} - {point["id"] for point in points["chunks"]})
    plain = [point for point in points["nodes"] if not point["generation"]]
    orphans["vectors of no node"] = [point["id"] for point in plain if point["id"] not in nodes]
    orphans["nodes without a vector"] = sorted(set(nodes) - {point["id"] for point in plain})
    orphans["generations"] = [
        point["id"] for point in points["nodes"] if point["generation"] and [point["generation"]] != generations
    ] + [row for row in _rows(graph, "SELECT DISTINCT generation FROM communities") if list(row) != generations]
    originals = {f"{tenant}/{key}" for (key,) in _rows(catalogue, "SELECT blob_key FROM document_versions")}
    files = {str(path.relative_to(folder / "blobs")) for path in (folder / "blobs").rglob("*") if path.is_file()}
    orphans["originals of no document"] = sorted(files - originals)
    orphans["documents without original"] = sorted(originals - files)

    faces = _rows(catalogue, "SELECT key, state, title, current_version, latest_version, chunk_count FROM documents")
    places = _rows(catalogue, "SELECT document_id, version, chunk_id, ordinal, start_char, end_char FROM chunks")
    jobs = Counter(_rows(catalogue, "SELECT kind, state FROM jobs"))
    state = {
        "documents": _sorted(faces),
        "chunks": _sorted(said(row) for row in places),
        "entities": _sorted([*row, *_aliases(graph, id)] for id, *row in _rows(graph, "SELECT id, name, type FROM entities")),
        "mentions": _sorted([*said((d, v, c)), names[e], count, about] for d, v, c, e, count, about in mentions),
        "supports": _sorted([*said((d, v, c)), facts[r], fact, weight] for d, v, c, r, fact, weight in supports),
        "chunk vectors": _sorted(
            [keys.get(point["document_id"]), point["version"], texts.get(point["id"]), point["dense"]]
            for point in points["chunks"]
        ),
        "node vectors": _sorted([*nodes.get(point["id"], ["?", point["id"]]), point["dense"]] for point in plain),
        "communities": _communities(graph, catalogue, names),
        "community vectors": sum(1 for point in points["nodes"] if point["generation"]),
        "jobs": _sorted([*row, count] for row, count in jobs.items()),
    }
    counts = {name: len(value) if isinstance(value, list) else value for name, value in state.items()}
    catalogue.close()
    graph.close()
    return {"state": state, "orphans": {what: found for what, found in orphans.items() if found}, "counts": counts}


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path)


def _rows(connection: sqlite3.Connection, query: str, *bound: Any) -> Rows:
    return connection.execute(query, bound).fetchall()


def _sorted(rows: Any) -> list[Any]:
    return sorted((list(row) for row in rows), key=repr)


def _fact(names: dict[str, str], row: tuple[Any, ...]) -> str:
    _, source, relation, target = row
    return f"{names[source]} –{relation}→ {names[target]}"


def _aliases(graph: sqlite3.Connection, entity: str) -> list[str]:
    return sorted(name for (name,) in _rows(graph, "SELECT name FROM entity_names WHERE entity_id = ?", entity))


def _communities(graph: sqlite3.Connection, catalogue: sqlite3.Connection, names: dict[str, str]) -> list[Any]:
    told = dict(_rows(catalogue, "SELECT fingerprint, name || ': ' || summary FROM community_summaries"))
    found = []
    for id, level, fingerprint in _rows(graph, "SELECT id, level, fingerprint FROM communities"):
        members = _rows(graph, "SELECT entity_id FROM community_members WHERE community_id = ?", id)
        found.append([level, sorted(names.get(member, member) for (member,) in members), told.get(fingerprint, "")])
    return _sorted(found)


def _points(folder: Path, collection: str) -> list[dict[str, Any]]:
    homes = [record.parent for record in (folder / "vectors").glob("*/fingerprint.json")]
    found: list[dict[str, Any]] = []
    for home in homes:
        shard = EdgeShard.load(str(home / collection))
        offset = None
        while True:
            records, offset = shard.scroll(ScrollRequest(offset=offset, limit=1000, with_payload=True, with_vector=True))
            for record in records:
                payload = record.payload or {}
                vectors = record.vector if isinstance(record.vector, dict) else {}
                found.append(
                    {
                        "id": payload["id"],
                        "document_id": payload.get("document_id"),
                        "version": payload.get("version"),
                        "generation": payload.get("generation"),
                        "dense": "dense" in vectors,
                    }
                )
            if offset is None:
                break
        shard.close()
    return found
