"""GraphML 1.0, as Gephi, yEd, Cytoscape and NetworkX read it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from agentic_rag_backend.knowledge.graph_files.base import ExportedEntity, times_of
from agentic_rag_backend.knowledge.visible.facts import VisibleFact

MEDIA_TYPE = "application/graphml+xml"
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

    media_type = MEDIA_TYPE

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
