"""Rearranges a quantised encoder so that the word vectors of a text are looked up before they are dequantised, not after.

Exported models dequantise the whole table (``Cast``, then ``Mul`` by a scale for each row) and take the rows of the text from the
result (``Gather``). ONNX Runtime computes the first part once for each session and keeps it: 47 MB of float32 instead of 12 MB of
int8. Taking the rows first multiplies the same numbers, those of the text alone, so results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.models.embedding.onnx.onnx_graph import OnnxGraph, OnnxNode, rewrite_model


def looked_up_first(model: bytes) -> bytes:
    """Return the serialised model with its tables looked up first; the same object if it has none, or cannot be read."""
    return rewrite_model(model, _find_lookups)


def _find_lookups(graph: OnnxGraph) -> Mapping[int, Sequence[OnnxNode]]:
    """Return the steps in place of each ``Cast``, ``Mul`` and ``Gather`` of a table."""
    instead: dict[int, Sequence[OnnxNode]] = {}
    for position, node in graph.nodes.items():
        table = graph.find_dequantiser(node.inputs[0]) if node.operator == "Gather" and node.of_first_axis else None
        if table is None or not graph.is_used_once(*table):
            continue
        cast, scaled = (graph.nodes[step] for step in table)
        if _is_scaled_by_row(cast, scaled, graph):
            instead |= {**dict.fromkeys(table, ()), position: _make_steps(cast, scaled, node)}
    return instead


def _is_scaled_by_row(cast: OnnxNode, scaled: OnnxNode, graph: OnnxGraph) -> bool:
    table, scale = graph.tensors.get(cast.inputs[0]), graph.tensors.get(scaled.inputs[1])
    return table is not None and scale is not None and len(table.shape) == 2 and scale.shape == (table.shape[0], 1)


def _make_steps(cast: OnnxNode, scaled: OnnxNode, gather: OnnxNode) -> Sequence[OnnxNode]:
    """Return the nodes that take the rows of the table and their scales, and then cast and multiply them."""
    index, (result,) = gather.inputs[1], gather.outputs
    rows, numbers, scales = (f"{result}/{part}" for part in ("rows", "numbers", "scales"))
    return (
        replace(gather, inputs=(cast.inputs[0], index), outputs=(rows,)),
        replace(cast, inputs=(rows,), outputs=(numbers,)),
        replace(gather, inputs=(scaled.inputs[1], index), outputs=(scales,), name=f"{gather.name}/scales"),
        replace(scaled, inputs=(numbers, scales), outputs=(result,)),
    )
