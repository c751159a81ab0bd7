"""Rewrites a quantised encoder so that products with its weights are computed in integers.

Exported models store weights as int8 and convert them to float32 (``Cast``, then ``Mul`` by a scale for each column) before a
float product (``MatMul``). The rewritten model quantises the other factor to uint8 instead, with one scale and zero point for
all of its numbers (``DynamicQuantizeLinear``), multiplies integers (``MatMulInteger``) and scales the result. The weights and
their scales stay the same.

The scale depends on all numbers of a run. A run must therefore have one text, so that a vector depends on its text alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.models.embedding.onnx_graph import INT8, OnnxGraph, OnnxNode, rewritten


def with_integer_products(model: bytes) -> bytes:
    """Return the serialised model with integer products; the same object if it has no int8 weights, or cannot be read."""
    return rewritten(model, _products)


def _products(graph: OnnxGraph) -> Mapping[int, Sequence[OnnxNode]]:
    """Return the steps in place of each ``Cast``, ``Mul`` and ``MatMul`` of int8 weights."""
    instead: dict[int, Sequence[OnnxNode]] = {}
    quantised: set[str] = set()
    for position, node in graph.nodes.items():
        weights = graph.dequantised(node.inputs[1]) if node.operator == "MatMul" else None
        if weights is None:
            continue
        cast, scaled = (graph.nodes[step] for step in weights)
        if not _is_scaled_by_column(cast, scaled, graph):
            continue
        instead[position] = _steps(cast, scaled, node, quantise=node.inputs[0] not in quantised)
        quantised.add(node.inputs[0])
        if graph.is_used_once(*weights):
            instead |= dict.fromkeys(weights, ())
    return instead


def _is_scaled_by_column(cast: OnnxNode, scaled: OnnxNode, graph: OnnxGraph) -> bool:
    weights, scale = graph.tensors.get(cast.inputs[0]), graph.tensors.get(scaled.inputs[1])
    if weights is None or scale is None or weights.type != INT8 or len(weights.shape) != 2:
        return False
    columns = weights.shape[1]
    return scale.shape in {(), (1,), (1, 1), (columns,), (1, columns)}


def _steps(cast: OnnxNode, scaled: OnnxNode, product: OnnxNode, *, quantise: bool) -> Sequence[OnnxNode]:
    factor, (result,) = product.inputs[0], product.outputs
    integers, scale, zero_point = (f"{factor}/{part}" for part in ("uint8", "scale", "zero_point"))
    sums, numbers, scales = (f"{result}/{part}" for part in ("int32", "float32", "scale"))
    steps = (
        replace(product, operator="MatMulInteger", inputs=(integers, cast.inputs[0], zero_point), outputs=(sums,)),
        replace(cast, inputs=(sums,), outputs=(numbers,), name=f"{product.name}/cast"),
        replace(scaled, inputs=(scale, scaled.inputs[1]), outputs=(scales,), name=f"{product.name}/scale"),
        replace(scaled, inputs=(numbers, scales), outputs=(result,), name=f"{product.name}/scaled"),
    )
    if not quantise:
        return steps
    return (OnnxNode("DynamicQuantizeLinear", (factor,), (integers, scale, zero_point), f"{factor}/quantise"), *steps)


def with_float_products(model: bytes) -> bytes:
    """Return a model whose own integer products are computed in float32; the same object if it has none, or cannot be read.

    The quantised numbers stay the same, so the results are equal up to rounding on a processor that multiplies exactly.
    """
    return rewritten(model, _float_products)


def _float_products(graph: OnnxGraph) -> Mapping[int, Sequence[OnnxNode]]:
    """Return the steps in place of each ``MatMulInteger`` and the ``Cast`` of its result to float32."""
    instead: dict[int, Sequence[OnnxNode]] = {}
    for position, cast in graph.nodes.items():
        product = graph.maker(cast.inputs[0], "MatMulInteger") if cast.operator == "Cast" else None
        if product is not None and graph.is_used_once(product):
            instead[product] = tuple(_float_steps(graph.nodes[product], cast))
            instead[position] = ()
    return instead


def _float_steps(product: OnnxNode, cast: OnnxNode) -> Iterator[OnnxNode]:
    (result,) = cast.outputs
    factors = []
    for number, factor in enumerate(product.inputs[:2]):
        name = f"{result}/{number}"
        yield replace(cast, inputs=(factor,), outputs=(name,), name=name)
        zero_point = "".join(product.inputs[number + 2 : number + 3])
        if zero_point:
            zero, centred = f"{name}/zero_point", f"{name}/centred"
            yield replace(cast, inputs=(zero_point,), outputs=(zero,), name=zero)
            yield OnnxNode("Sub", (name, zero), (centred,), centred)
            name = centred
        factors.append(name)
    yield replace(product, operator="MatMul", inputs=tuple(factors), outputs=(result,))
