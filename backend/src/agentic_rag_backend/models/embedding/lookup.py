"""Rearranges a quantised encoder so that the word vectors of a text are looked up before they are dequantised, not after.

Exported models dequantise the whole table (``Cast``, then ``Mul`` by a scale for each row) and take the rows of the text from the
result (``Gather``). ONNX Runtime computes the first part once for each session and keeps it: 47 MB of float32 instead of 12 MB of
int8. Taking the rows first multiplies the same numbers, those of the text alone, so results are the same to the bit.

A model is a protocol buffer (``onnx.proto``). Two levels of its fields are all that is needed here, so they are read directly;
the ``onnx`` package would be another 40 MB to install.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

# Numbers of the fields of ModelProto, GraphProto, NodeProto, AttributeProto and TensorProto.
_GRAPH = 7
_NODE, _INITIALIZER, _OUTPUT = 1, 5, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE = 1, 2, 3, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INTEGER = 1, 3
_TENSOR_DIMENSION, _TENSOR_NAME, _TENSOR_LOCATION = 1, 8, 14
_VALUE_NAME = 1

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""Wire types."""


class _Field(NamedTuple):
    number: int
    value: Any
    """An int, or a memoryview of bytes."""
    whole: memoryview
    """The unchanged bytes of the field."""


@dataclass(frozen=True, slots=True)
class _OnnxNode:
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str
    attributes: tuple[memoryview, ...]
    rest: tuple[memoryview, ...]
    """Fields that are kept as they were written, the attributes among them."""

    @property
    def of_first_axis(self) -> bool:
        """Whether it has no attribute but ``axis=0``, the default."""
        attributes = [{field.number: field.value for field in _fields(each)} for each in self.attributes]
        return all(each.get(_ATTRIBUTE_NAME) == b"axis" and not each.get(_ATTRIBUTE_INTEGER) for each in attributes)

    def written(self) -> bytes:
        texts = [(_NODE_INPUT, each) for each in self.inputs] + [(_NODE_OUTPUT, each) for each in self.outputs]
        texts += [(_NODE_NAME, self.name), (_NODE_OPERATOR, self.operator)]
        return b"".join([*(_written(number, text.encode()) for number, text in texts), *self.rest])


def looked_up_first(model: bytes) -> bytes:
    """Return the model with its tables looked up first; the same object if it has none, or cannot be read.

    Args:
        model: a serialised ``ModelProto``.
    """
    try:
        parts = list(_fields(memoryview(model)))
        (graph,) = (part for part in parts if part.number == _GRAPH)
        rearranged = _rearranged(list(_fields(graph.value)))
    except (ValueError, IndexError, TypeError):
        return model  # the runtime reports the model's error
    if rearranged is None:
        return model
    return b"".join(_written(_GRAPH, rearranged) if part is graph else part.whole for part in parts)


def _rearranged(graph: Sequence[_Field]) -> bytes | None:
    """Return the graph with the steps in place of each ``Cast``, ``Mul`` and ``Gather`` of a table; None if it has none."""
    nodes = {place: _node(field.value) for place, field in enumerate(graph) if field.number == _NODE}
    tables = dict(_table(field.value) for field in graph if field.number == _INITIALIZER)
    if any(shape is None for shape in tables.values()):
        return None  # weights in other files are found from the model's own, which bytes in memory are not
    made = {name: place for place, node in nodes.items() for name in node.outputs}
    used = Counter(name for node in nodes.values() for name in node.inputs)
    used.update(_text(field.value, _VALUE_NAME) for field in graph if field.number == _OUTPUT)
    instead: dict[int, Sequence[_OnnxNode]] = {}
    for place, node in nodes.items():
        scaling = made.get(node.inputs[0]) if node.operator == "Gather" else None
        casting = made.get(nodes[scaling].inputs[0]) if scaling is not None and nodes[scaling].operator == "Mul" else None
        if scaling is None or casting is None or nodes[casting].operator != "Cast":
            continue
        cast, scaled = nodes[casting], nodes[scaling]
        only_here = used[cast.outputs[0]] == used[scaled.outputs[0]] == 1
        if only_here and node.of_first_axis and _scaled_by_row(cast, scaled, tables):
            instead |= {casting: (), scaling: (), place: _steps(cast, scaled, node)}
    if not instead:
        return None
    pieces: list[bytes | memoryview] = []
    for place, field in enumerate(graph):
        pieces += [_written(_NODE, step.written()) for step in instead[place]] if place in instead else [field.whole]
    return b"".join(pieces)


def _scaled_by_row(cast: _OnnxNode, scaled: _OnnxNode, tables: Mapping[str, tuple[int, ...] | None]) -> bool:
    table, scale = tables.get(cast.inputs[0]), tables.get(scaled.inputs[1])
    return table is not None and len(table) == 2 and scale == (table[0], 1)


def _steps(cast: _OnnxNode, scaled: _OnnxNode, gather: _OnnxNode) -> Sequence[_OnnxNode]:
    """Return the nodes that take the rows of the table and their scales, and then cast and multiply them."""
    index, (result,) = gather.inputs[1], gather.outputs
    rows, numbers, scales = (f"{result}/{each}" for each in ("rows", "numbers", "scales"))
    return (
        replace(gather, inputs=(cast.inputs[0], index), outputs=(rows,)),
        replace(cast, inputs=(rows,), outputs=(numbers,)),
        replace(gather, inputs=(scaled.inputs[1], index), outputs=(scales,), name=f"{gather.name}/scales"),
        replace(scaled, inputs=(numbers, scales), outputs=(result,)),
    )


def _node(message: memoryview) -> _OnnxNode:
    fields = list(_fields(message))

    def texts(number: int) -> tuple[str, ...]:
        return tuple(str(field.value, "utf-8") for field in fields if field.number == number)

    named = (_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR)
    return _OnnxNode(
        operator="".join(texts(_NODE_OPERATOR)),
        inputs=texts(_NODE_INPUT),
        outputs=texts(_NODE_OUTPUT),
        name="".join(texts(_NODE_NAME)),
        attributes=tuple(field.value for field in fields if field.number == _NODE_ATTRIBUTE),
        rest=tuple(field.whole for field in fields if field.number not in named),
    )


def _table(message: memoryview) -> tuple[str, tuple[int, ...] | None]:
    """Return an initializer's name and shape; None for a shape whose numbers are in another file."""
    shape: list[int] = []
    elsewhere = False
    for field in _fields(message):
        if field.number == _TENSOR_DIMENSION:
            shape += [field.value] if isinstance(field.value, int) else _packed(field.value)
        elsewhere |= field.number == _TENSOR_LOCATION and field.value != 0
    return _text(message, _TENSOR_NAME), None if elsewhere else tuple(shape)


def _text(message: memoryview, number: int) -> str:
    return "".join(str(field.value, "utf-8") for field in _fields(message) if field.number == number)


# --- protocol buffers: https://protobuf.dev/programming-guides/encoding/


def _fields(message: memoryview) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            if kind == _BYTES:
                size, at = _varint(message, at)
            elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
                size = 8 if kind == _EIGHT_BYTES else 4
            else:
                raise ValueError(f"wire type {kind} is not used in models")
            value, at = message[at : at + size], at + size
            if at > len(message):
                raise ValueError("a field ends beyond its message")
        yield _Field(key >> 3, value, message[start:at])


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and the position of its end: seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _packed(message: memoryview) -> list[int]:
    values, at = list[int](), 0
    while at < len(message):
        value, at = _varint(message, at)
        values.append(value)
    return values


def _written(number: int, value: bytes) -> bytes:
    size, prefix = len(value), bytearray([number << 3 | _BYTES])
    while size >= 0x80:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    prefix.append(size)
    return bytes(prefix) + value
