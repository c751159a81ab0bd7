"""JSON in the node-link form, which NetworkX (``node_link_graph(data, edges="edges")``) and D3 read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from agentic_rag_backend.knowledge.graph_files.base import ExportedEntity, times_of
from agentic_rag_backend.knowledge.visible.facts import VisibleFact

MEDIA_TYPE = "application/json"


class NodeLinkWriter:
    """`GraphWriter` of JSON, one node or edge a line. An edge's ``key`` is the relationship's id."""

    media_type = MEDIA_TYPE

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
