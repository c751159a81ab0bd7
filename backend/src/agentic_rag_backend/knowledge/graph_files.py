"""A tenant's visible graph as a file for other programs, written a batch at a time: entities, then relationships."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, edge_of
from agentic_rag_backend.stores.graph.base import KnowledgeStore


@dataclass(frozen=True, slots=True)
class ExportedEntity:
    """An entity, and the number of visible chunks that mention it."""

    entity: EntityRef
    mention_count: int


class GraphWriter(Protocol):
    """Writes one file. The parts are requested in the order of the methods; ``entities`` and ``facts`` as often as necessary."""

    media_type: str

    def begin(self) -> str:
        """Return the head of the file."""

    def entities(self, entities: Sequence[ExportedEntity]) -> str:
        """Return entities."""

    def between(self) -> str:
        """Return the text between the last entity and the first relationship."""

    def facts(self, facts: Sequence[VisibleFact]) -> str:
        """Return relationships."""

    def end(self) -> str:
        """Return the end of the file."""


def times_of(fact: VisibleFact) -> Mapping[str, str | None]:
    """Return the times of a relationship by name, as ISO 8601."""
    times = {
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        "created_at": fact.created_at,
        "expired_at": fact.expired_at,
    }
    return {name: None if time is None else time.isoformat() for name, time in times.items()}


GRAPHML_MEDIA_TYPE = "application/graphml+xml"
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no form for, such as most control characters and unpaired surrogates."""
_NODE: Mapping[str, str] = {"name": "string", "type": "string", "mention_count": "int"}
_EDGE: Mapping[str, str] = {
    "relation": "string",
    "fact": "string",
    "weight": "double",
    "valid_at": "string",
    "invalid_at": "string",
    "created_at": "string",
    "expired_at": "string",
    "chunk_ids": "string",
    "document_ids": "string",
}
"""Attributes and their types. Several ids are separated by spaces."""
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'


class GraphmlWriter:
    """`GraphWriter` of GraphML. A relationship is a directed edge whose id is the relationship's."""

    media_type = GRAPHML_MEDIA_TYPE

    def begin(self) -> str:
        """Return the declarations."""
        keys = [
            f'  <key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>\n'
            for of, attributes in (("node", _NODE), ("edge", _EDGE))
            for name, kind in attributes.items()
        ]
        return f'{_HEAD}{"".join(keys)}  <graph edgedefault="directed">\n'

    def entities(self, entities: Sequence[ExportedEntity]) -> str:
        """Return one node for each entity."""
        return "".join(
            f"    <node id={_quote_text(entity.entity.id)}>"
            + _write_data([("name", entity.entity.name), ("type", entity.entity.type), ("mention_count", entity.mention_count)])
            + "</node>\n"
            for entity in entities
        )

    def between(self) -> str:
        """Return nothing: nodes and edges follow one another."""
        return ""

    def facts(self, facts: Sequence[VisibleFact]) -> str:
        """Return one edge for each relationship."""
        return "".join(
            f"    <edge id={_quote_text(fact.id)} source={_quote_text(fact.source.id)} target={_quote_text(fact.target.id)}>"
            + _write_data((name, value) for name, value in _fact_attributes(fact).items() if value is not None)
            + "</edge>\n"
            for fact in facts
        )

    def end(self) -> str:
        """Return the end tags."""
        return "  </graph>\n</graphml>\n"


def _fact_attributes(fact: VisibleFact) -> Mapping[str, object]:
    return {
        "relation": fact.relation,
        "fact": fact.fact,
        "weight": fact.weight,
        **times_of(fact),
        "chunk_ids": " ".join(dict.fromkeys(passage.support.chunk_id for passage in fact.passages)),
        "document_ids": " ".join(dict.fromkeys(passage.support.document_id for passage in fact.passages)),
    }


def _write_data(values: Iterable[tuple[str, object]]) -> str:
    return "".join(f'<data key="{name}">{escape(_drop_illegal(value), {chr(13): "&#13;"})}</data>' for name, value in values)


def _quote_text(value: str) -> str:
    return quoteattr(_drop_illegal(value))


def _drop_illegal(value: object) -> str:
    """Return a value as text that XML can carry: other characters become U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", str(value))


NODE_LINK_MEDIA_TYPE = "application/json"


class NodeLinkWriter:
    """`GraphWriter` of JSON, one node or edge a line. An edge's ``key`` is the relationship's id."""

    media_type = NODE_LINK_MEDIA_TYPE

    def __init__(self) -> None:
        self._first = True

    def begin(self) -> str:
        """Return the beginning of the object."""
        return '{"directed": true, "multigraph": true, "graph": {}, "nodes": ['

    def entities(self, entities: Sequence[ExportedEntity]) -> str:
        """Return one object for each entity."""
        return self._write_lines(
            {
                "id": entity.entity.id,
                "name": entity.entity.name,
                "type": entity.entity.type,
                "mention_count": entity.mention_count,
            }
            for entity in entities
        )

    def between(self) -> str:
        """Return the end of the list of nodes and the beginning of the list of edges."""
        self._first = True
        return '\n], "edges": ['

    def facts(self, facts: Sequence[VisibleFact]) -> str:
        """Return one object for each relationship."""
        return self._write_lines(map(_build_edge, facts))

    def end(self) -> str:
        """Return the end of the object."""
        return "\n]}\n"

    def _write_lines(self, objects: Iterable[Mapping[str, object]]) -> str:
        lines = []
        for item in objects:
            # Escaped to ASCII, so that an unpaired surrogate of a document cannot make the file invalid.
            lines.append(f"{'' if self._first else ','}\n{json.dumps(item)}")
            self._first = False
        return "".join(lines)


def _build_edge(fact: VisibleFact) -> Mapping[str, object]:
    return {
        "source": fact.source.id,
        "target": fact.target.id,
        "key": fact.id,
        "relation": fact.relation,
        "fact": fact.fact,
        "weight": fact.weight,
        **times_of(fact),
        "passages": [
            {"chunk_id": passage.support.chunk_id, "document_id": passage.support.document_id} for passage in fact.passages
        ],
    }


_ENTITIES_PER_BATCH = 200

WRITERS: dict[str, type[GraphWriter]] = {"graphml": GraphmlWriter, "json": NodeLinkWriter}
"""The formats by name."""


class GraphExport:
    """Writes the graph that a tenant may see.

    Args:
        graphs: the tenants' graphs in memory.
        graph: the record of relationships.
    """

    def __init__(self, graphs: TenantGraphs, graph: KnowledgeStore, facts: FactReader) -> None:
        self._graphs = graphs
        self._store = graph
        self._facts = facts

    async def stream(self, tenant: Tenant, format: str, *, as_of: datetime | None = None) -> AsyncGenerator[str, None]:
        """Yield the parts of a file in a format of `WRITERS`. Entities and relationships are ordered by id.

        A document that changes during the export may appear in its older or its newer version, or without relationships.

        Args:
            as_of: only relationships that held at this time; None: now.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        graph = await self._graphs.graph(tenant)
        writer = WRITERS[format]()
        yield writer.begin()
        numbers = await asyncio.to_thread(_by_id, graph)
        for start in range(0, len(numbers), _ENTITIES_PER_BATCH):
            yield writer.entities(_export_entity(graph, numbers[start : start + _ENTITIES_PER_BATCH]))
        yield writer.between()
        moment = as_of or datetime.now(UTC)
        async with aclosing(self._store.all_relationships(tenant.id)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                facts = await self._facts.read(tenant.id, graph, [edge_of(part) for part in batch], moment=moment)
                if facts:
                    yield writer.facts(list(facts.values()))
        yield writer.end()


def _by_id(graph: TenantGraph) -> Sequence[int]:
    numbers: list[int] = np.flatnonzero(graph.document_frequency > 0).tolist()
    return sorted(numbers, key=graph.entity_texts.ids.__getitem__)


def _export_entity(graph: TenantGraph, numbers: Sequence[int]) -> list[ExportedEntity]:
    return [ExportedEntity(graph.entity(number), int(graph.document_frequency[number])) for number in numbers]
