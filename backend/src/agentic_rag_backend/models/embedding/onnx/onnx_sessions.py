"""Sessions of ONNX Runtime for encoders, whose graphs are rewritten to compute in integers and to look words up first.

Exported models dequantise the whole table (``Cast``, then ``Mul`` by a scale for each row) and take the rows of the text from the
result (``Gather``). ONNX Runtime computes the first part once for each session and keeps it: 47 MB of float32 instead of 12 MB of
int8. Taking the rows first multiplies the same numbers, those of the text alone, so results are the same to the bit.

Exported models store weights as int8 and convert them to float32 (``Cast``, then ``Mul`` by a scale for each column) before a
float product (``MatMul``). The rewritten model quantises the other factor to uint8 instead, multiplies integers
(``MatMulInteger``) and scales the result. The weights and their scales stay the same.

The factors of attention share one scale and zero point (``DynamicQuantizeLinear``). In the factors of feed-forward layers, a few
word pieces have numbers that are many times larger than all others. There, each row has a scale of its own, as in
https://arxiv.org/abs/2206.01861 (ZeroQuant). The values of attention stay float products, because no Softmax lessens their error.
ADR 52 has the measured errors and times of each choice.

A scale depends on all numbers of a run. A run must therefore have one text, so that a vector depends on its text alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as failures

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.memory import give_back
from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.models.embedding.onnx.onnx_graph import INT8, OnnxGraph, OnnxNode, make_attribute, rewrite_model


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


_BY_ROW = range(13, 18)
"""Versions of the standard operators in which `_by_row` is written. For others, every factor has one scale."""
_MIDDLE, _LARGEST = 128.0, 127.0
_UINT8 = 2


def with_integer_products(model: bytes) -> bytes:
    """Return the serialised model with integer products; the same object if it has no int8 weights, or cannot be read."""
    return rewrite_model(model, _find_products)


def _find_products(graph: OnnxGraph) -> Mapping[int, Sequence[OnnxNode]]:
    """Return the steps in place of each ``Cast``, ``Mul`` and ``MatMul`` of int8 weights."""
    instead: dict[int, Sequence[OnnxNode]] = {}
    quantised: set[str] = set()
    in_floats = _values_of_attention(graph)
    for position, node in graph.nodes.items():
        weights = graph.find_dequantiser(node.inputs[1]) if node.operator == "MatMul" else None
        if weights is None or position in in_floats:
            continue
        cast, scaled = (graph.nodes[step] for step in weights)
        if not _is_scaled_by_column(cast, scaled, graph):
            continue
        rows, columns = graph.tensors[cast.inputs[0]].shape
        by_row = rows != columns and graph.operator_set in _BY_ROW
        quantise = _by_row if by_row else _as_a_whole
        before = () if node.inputs[0] in quantised else quantise(node.inputs[0])
        instead[position] = (*before, *_make_product(cast, scaled, node, by_row=by_row))
        quantised.add(node.inputs[0])
        if graph.is_used_once(*weights):
            instead |= dict.fromkeys(weights, ())
    return instead


def _values_of_attention(graph: OnnxGraph) -> set[int]:
    """Return the positions of the products that compute the values of attention, which are multiplied by a ``Softmax``."""
    positions: set[int] = set()
    for node in graph.nodes.values():
        if node.operator == "MatMul" and "Softmax" in graph.products_behind(node.inputs[0])[1]:
            positions |= graph.products_behind(node.inputs[1])[0]
    return positions


def _is_scaled_by_column(cast: OnnxNode, scaled: OnnxNode, graph: OnnxGraph) -> bool:
    weights, scale = graph.tensors.get(cast.inputs[0]), graph.tensors.get(scaled.inputs[1])
    if weights is None or scale is None or weights.type != INT8 or len(weights.shape) != 2:
        return False
    columns = weights.shape[1]
    return scale.shape in {(), (1,), (1, 1), (columns,), (1, columns)}


def _as_a_whole(factor: str) -> Sequence[OnnxNode]:
    """Return the steps that quantise a factor with one scale and zero point."""
    outputs = f"{factor}/uint8", f"{factor}/scale", f"{factor}/zero_point"
    return (OnnxNode("DynamicQuantizeLinear", (factor,), outputs, f"{factor}/quantise"),)


def _by_row(factor: str) -> Sequence[OnnxNode]:
    """Return the steps that quantise each row of a factor by its largest absolute number, which becomes 127, around 128."""

    def make_step(operator: str, inputs: Sequence[str], output: str, **attributes: float | Sequence[int]) -> OnnxNode:
        names = tuple(name if name == factor else f"{factor}/{name}" for name in inputs)
        attributes_written = tuple(make_attribute(name, value) for name, value in attributes.items())
        return OnnxNode(operator, names, (f"{factor}/{output}",), f"{factor}/{output}", rest=attributes_written)

    return (
        make_step("Abs", (factor,), "absolute"),
        make_step("ReduceMax", ("absolute",), "largest_of_rows", axes=(-1,), keepdims=0),
        make_step("Constant", (), "rows", value_ints=(-1,)),
        make_step("Reshape", ("largest_of_rows", "rows"), "largest"),
        make_step("Constant", (), "share", value_float=1 / _LARGEST),
        make_step("Mul", ("largest", "share"), "scales"),
        make_step("Constant", (), "middle", value_float=_MIDDLE),
        make_step("Cast", ("middle",), "zero_point", to=_UINT8),
        make_step("Sub", ("scales", "scales"), "zeros"),
        make_step("Add", ("zeros", "middle"), "middles"),
        make_step("Cast", ("middles",), "zero_points", to=_UINT8),
        make_step("QuantizeLinear", (factor, "scales", "zero_points"), "uint8", axis=-2),
        make_step("Constant", (), "scale", value_float=1.0),
        make_step("Constant", (), "second", value_ints=(1,)),
        make_step("Unsqueeze", ("scales", "second"), "scale_of_row"),
    )


def _make_product(cast: OnnxNode, scaled: OnnxNode, product: OnnxNode, *, by_row: bool) -> Sequence[OnnxNode]:
    """Return the integer product and its scaling. The runtime computes the last three steps as one, for a single scale."""
    factor, (result,) = product.inputs[0], product.outputs
    integers, scale, zero_point = (f"{factor}/{part}" for part in ("uint8", "scale", "zero_point"))
    sums, numbers, scales, scaled_columns = (f"{result}/{part}" for part in ("int32", "float32", "scale", "scaled_columns"))
    columns = scaled_columns if by_row else result
    steps = (
        replace(product, operator="MatMulInteger", inputs=(integers, cast.inputs[0], zero_point), outputs=(sums,)),
        replace(cast, inputs=(sums,), outputs=(numbers,), name=f"{product.name}/cast"),
        replace(scaled, inputs=(scale, scaled.inputs[1]), outputs=(scales,), name=f"{product.name}/scale"),
        replace(scaled, inputs=(numbers, scales), outputs=(columns,), name=f"{product.name}/scaled"),
    )
    if not by_row:
        return steps
    return (*steps, replace(scaled, inputs=(columns, f"{factor}/scale_of_row"), outputs=(result,), name=f"{product.name}/rows"))


def with_float_products(model: bytes) -> bytes:
    """Return a model whose own integer products are computed in float32; the same object if it has none, or cannot be read.

    The quantised numbers stay the same, so the results are equal up to rounding on a processor that multiplies exactly.
    """
    return rewrite_model(model, _float_products)


def _float_products(graph: OnnxGraph) -> Mapping[int, Sequence[OnnxNode]]:
    """Return the steps in place of each ``MatMulInteger`` and the ``Cast`` of its result to float32."""
    instead: dict[int, Sequence[OnnxNode]] = {}
    for position, cast in graph.nodes.items():
        product = graph.find_maker(cast.inputs[0], "MatMulInteger") if cast.operator == "Cast" else None
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


Arithmetic = Literal["float32", "int8"]
_LOAD_FAILURES = (failures.Fail, failures.InvalidArgument, failures.InvalidGraph, failures.InvalidProtobuf, failures.NoModel)


class NoIntegerWeights(ConfigurationError):
    """A model has no int8 weights that can be multiplied as integers."""


def possible_arithmetic(arithmetic: Arithmetic | None) -> Arithmetic:
    """Return the arithmetic to try; "int8" for None, if this processor multiplies exactly.

    Raises:
        ConfigurationError: "int8" is required, and this processor multiplies inexactly.
    """
    if arithmetic == "float32" or multiplies_exactly():
        return arithmetic or "int8"
    if arithmetic is None:
        return "float32"
    raise ConfigurationError(
        "EMBEDDING_ARITHMETIC=int8 is impossible on this processor, which multiplies integers of 8 bits inexactly (x86 without"
        " VNNI does); set EMBEDDING_ARITHMETIC=float32"
    )


def open_sessions(
    path: Path, cores: int, arithmetic: Arithmetic
) -> tuple[onnxruntime.InferenceSession, onnxruntime.InferenceSession]:
    """Return a session on one thread and one on all cores. On a single core both are the same.

    A model's own integer products are computed in float32 if this processor multiplies inexactly: slower, but the same vectors.

    Raises:
        NoIntegerWeights: the model has no int8 weights for ``arithmetic``.
        ConfigurationError: the file is no model.
    """
    stored = path.read_bytes()
    rearranged = looked_up_first(stored)
    if not multiplies_exactly():
        rearranged = with_float_products(rearranged)
    if arithmetic == "int8":
        integers = with_integer_products(rearranged)
        if integers is rearranged:
            raise NoIntegerWeights(f"EMBEDDING_ARITHMETIC=int8 needs a model with int8 weights; {path} has none")
        rearranged = integers
    # From bytes, the runtime cannot load weights in separate files. So a model that is not rearranged is loaded from its path.
    model = str(path) if rearranged is stored else rearranged
    del stored, rearranged
    try:
        single_session = open_session(model, 1)
        return single_session, open_session(model, cores) if cores > 1 else single_session
    except _LOAD_FAILURES as error:
        raise ConfigurationError(f"{path} is not a model that onnxruntime {onnxruntime.__version__} reads: {error}") from error
    finally:
        del model
        give_back()  # the temporary memory of loading: 70 MB in small pieces


def open_session(model: str | bytes, threads: int) -> onnxruntime.InferenceSession:
    """Return a session of a model, given by its path or its bytes."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads must not spin: the rest of the pipeline needs the cores (measured: same time, half the CPU).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # The session keeps the bytes to load them again with another provider; there is no other provider.
    session._model_bytes = None
    return session
