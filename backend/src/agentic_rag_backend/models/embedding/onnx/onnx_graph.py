"""Reads and rewrites the graph of an ONNX model.

A model is a protocol buffer (``onnx.proto``). Two levels of its fields are all that is needed here, so they are read directly;
the ``onnx`` package would be another 40 MB to install.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

# Numbers of the fields of ModelProto, OperatorSetIdProto, GraphProto, NodeProto, AttributeProto and TensorProto.
_GRAPH, _OPERATOR_SET = 7, 8
_DOMAIN, _VERSION = 1, 2
_NODE, _INITIALIZER, _OUTPUT = 1, 5, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR, _NODE_ATTRIBUTE = 1, 2, 3, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_FLOAT, _ATTRIBUTE_INTEGER, _ATTRIBUTE_INTEGERS, _ATTRIBUTE_TYPE = 1, 2, 3, 8, 20
_TENSOR_DIMENSION, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_LOCATION = 1, 2, 8, 14
_VALUE_NAME = 1
INT8 = 3
"""``TensorProto.INT8``."""

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
"""Wire types."""


class _Field(NamedTuple):
    number: int
    value: Any
    """An int, or a memoryview of bytes."""
    whole: memoryview
    """The unchanged bytes of the field."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and type of an initializer, a constant of the model."""

    shape: tuple[int, ...]
    type: int


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A step of a model."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    attributes: tuple[memoryview, ...] = ()
    rest: tuple[memoryview, ...] = ()
    """Fields that are kept as they were written, the attributes among them."""

    @property
    def of_first_axis(self) -> bool:
        """Whether it has no attribute but ``axis=0``, the default."""
        attributes = [
            {field.number: field.value for field in _read_fields(attribute_message)} for attribute_message in self.attributes
        ]
        return all(
            attribute_fields.get(_ATTRIBUTE_NAME) == b"axis" and not attribute_fields.get(_ATTRIBUTE_INTEGER)
            for attribute_fields in attributes
        )

    def write_message(self) -> bytes:
        """Return the node as a serialised ``NodeProto``."""
        texts = [(_NODE_INPUT, name) for name in self.inputs] + [(_NODE_OUTPUT, name) for name in self.outputs]
        texts += [(_NODE_NAME, self.name), (_NODE_OPERATOR, self.operator)]
        return b"".join([*(message_field(number, text.encode()) for number, text in texts), *self.rest])


@dataclass(frozen=True)
class OnnxGraph:
    """The nodes of a graph by their position among its fields, in the order of computation, and its constants by name."""

    nodes: Mapping[int, OnnxNode]
    tensors: Mapping[str, Tensor]
    outputs: Sequence[str]
    operator_set: int = 0
    """Version of the standard operators."""

    def find_dequantiser(self, value: str) -> tuple[int, int] | None:
        """Return the positions of the ``Cast`` and the ``Mul`` that compute ``value`` from quantised numbers, if these do."""
        scaling = self.find_maker(value, "Mul")
        casting = self.find_maker(self.nodes[scaling].inputs[0], "Cast") if scaling is not None else None
        return (casting, scaling) if casting is not None and scaling is not None else None

    def is_used_once(self, *positions: int) -> bool:
        """Return whether each result of these nodes has one use."""
        return all(self._used[name] == 1 for position in positions for name in self.nodes[position].outputs)

    def find_maker(self, value: str, operator: str) -> int | None:
        """Return the position of the node that computes ``value``, if it has this operator."""
        position = self._made.get(value)
        return position if position is not None and self.nodes[position].operator == operator else None

    def products_behind(self, value: str) -> tuple[set[int], set[str]]:
        """Return the positions of the matrix products that ``value`` is computed from, and the operators in between."""
        products: set[int] = set()
        between: set[str] = set()
        values, visited = [value], {value}
        while values:
            position = self._made.get(values.pop())
            if position is None:
                continue
            node = self.nodes[position]
            if node.operator == "MatMul":
                products.add(position)
                continue
            between.add(node.operator)
            values += (name for name in node.inputs if name not in visited)
            visited.update(node.inputs)
        return products, between

    @cached_property
    def _made(self) -> Mapping[str, int]:
        """The position of the node that computes each value."""
        return {name: position for position, node in self.nodes.items() for name in node.outputs}

    @cached_property
    def _used(self) -> Counter[str]:
        """How often each value is used, as an input or a result."""
        return Counter([*(name for node in self.nodes.values() for name in node.inputs), *self.outputs])


Rule = Callable[[OnnxGraph], Mapping[int, Sequence[OnnxNode]]]
"""Returns the nodes that replace others, by position. No node: the other is dropped."""


def list_operators(model: bytes) -> frozenset[str]:
    """Return the operators of a serialised ``ModelProto``; none if it cannot be read."""
    try:
        graphs = [part.value for part in _read_fields(memoryview(model)) if part.number == _GRAPH]
        return frozenset(
            _read_node(field.value).operator for graph in graphs for field in _read_fields(graph) if field.number == _NODE
        )
    except (ValueError, IndexError, TypeError):
        return frozenset()  # the runtime reports the model's error


def rewrite_model(model: bytes, rule: Rule) -> bytes:
    """Return the model rewritten by ``rule``; the same object if nothing changes, or if it cannot be read.

    Args:
        model: a serialised ``ModelProto``.
    """
    try:
        parts = list(_read_fields(memoryview(model)))
        (graph,) = (part for part in parts if part.number == _GRAPH)
        changed = _rewrite_graph(list(_read_fields(graph.value)), rule, _read_version(parts))
    except (ValueError, IndexError, TypeError):
        return model  # the runtime reports the model's error
    if changed is None:
        return model
    return b"".join(message_field(_GRAPH, changed) if part is graph else part.whole for part in parts)


def _read_version(parts: Sequence[_Field]) -> int:
    """Return the version of the standard operators, whose domain has no name."""
    sets = [{field.number: field.value for field in _read_fields(part.value)} for part in parts if part.number == _OPERATOR_SET]
    return max((int(operator_set.get(_VERSION, 0)) for operator_set in sets if not operator_set.get(_DOMAIN)), default=0)


def _rewrite_graph(fields: Sequence[_Field], rule: Rule, operator_set: int) -> bytes | None:
    tensors = dict(_read_tensor(field.value) for field in fields if field.number == _INITIALIZER)
    stored_here = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    if len(stored_here) < len(tensors):
        return None  # weights in other files are found from the model's own, which bytes in memory are not
    nodes = {position: _read_node(field.value) for position, field in enumerate(fields) if field.number == _NODE}
    outputs = [_read_text(field.value, _VALUE_NAME) for field in fields if field.number == _OUTPUT]
    instead = rule(OnnxGraph(nodes, stored_here, outputs, operator_set))
    if not instead:
        return None
    pieces: list[bytes | memoryview] = []
    for position, field in enumerate(fields):
        steps = instead.get(position)
        pieces += [field.whole] if steps is None else [message_field(_NODE, step.write_message()) for step in steps]
    return b"".join(pieces)


def _read_node(message: memoryview) -> OnnxNode:
    fields = list(_read_fields(message))

    def read_texts(number: int) -> tuple[str, ...]:
        return tuple(str(field.value, "utf-8") for field in fields if field.number == number)

    rewritten_fields = (_NODE_INPUT, _NODE_OUTPUT, _NODE_NAME, _NODE_OPERATOR)
    return OnnxNode(
        operator="".join(read_texts(_NODE_OPERATOR)),
        inputs=read_texts(_NODE_INPUT),
        outputs=read_texts(_NODE_OUTPUT),
        name="".join(read_texts(_NODE_NAME)),
        attributes=tuple(field.value for field in fields if field.number == _NODE_ATTRIBUTE),
        rest=tuple(field.whole for field in fields if field.number not in rewritten_fields),
    )


def _read_tensor(message: memoryview) -> tuple[str, Tensor | None]:
    """Return an initializer's name and shape; None for one whose numbers are in another file."""
    shape: list[int] = []
    type = 0
    elsewhere = False
    for field in _read_fields(message):
        if field.number == _TENSOR_DIMENSION:
            shape += [field.value] if isinstance(field.value, int) else _read_packed_ints(field.value)
        elif field.number == _TENSOR_TYPE:
            type = int(field.value)
        elsewhere |= field.number == _TENSOR_LOCATION and field.value != 0
    return _read_text(message, _TENSOR_NAME), None if elsewhere else Tensor(tuple(shape), type)


def _read_text(message: memoryview, number: int) -> str:
    return "".join(str(field.value, "utf-8") for field in _read_fields(message) if field.number == number)


# --- protocol buffers: https://protobuf.dev/programming-guides/encoding/


def _read_fields(message: memoryview) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        start = at
        key, at = _read_varint(message, at)
        kind = key & 7
        value: int | memoryview
        if kind == _VARINT:
            value, at = _read_varint(message, at)
        else:
            if kind == _BYTES:
                size, at = _read_varint(message, at)
            elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
                size = 8 if kind == _EIGHT_BYTES else 4
            else:
                raise ValueError(f"wire type {kind} is not used in models")
            value, at = message[at : at + size], at + size
            if at > len(message):
                raise ValueError("a field ends beyond its message")
        yield _Field(key >> 3, value, message[start:at])


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and the position of its end: seven bits a byte, the lowest first."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _read_packed_ints(message: memoryview) -> list[int]:
    values, at = list[int](), 0
    while at < len(message):
        value, at = _read_varint(message, at)
        values.append(value)
    return values


def message_field(number: int, value: bytes) -> bytes:
    """Return a serialised field of bytes, a text or a message."""
    return _write_varint(number << 3 | _BYTES) + _write_varint(len(value)) + value


def integer_field(number: int, value: int) -> bytes:
    """Return a serialised field of an integer of 64 bits."""
    return _write_varint(number << 3 | _VARINT) + _write_varint(value % 2**64)


def float_field(number: int, value: float) -> bytes:
    """Return a serialised field of a float of 32 bits."""
    return _write_varint(number << 3 | _FOUR_BYTES) + struct.pack("<f", value)


def _write_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def make_attribute(name: str, value: float | Sequence[int]) -> memoryview:
    """Return a serialised attribute of a node: an int, a float, or several ints."""
    if isinstance(value, int):
        parts = [integer_field(_ATTRIBUTE_INTEGER, value), integer_field(_ATTRIBUTE_TYPE, 2)]
    elif isinstance(value, float):
        parts = [float_field(_ATTRIBUTE_FLOAT, value), integer_field(_ATTRIBUTE_TYPE, 1)]
    else:
        parts = [*(integer_field(_ATTRIBUTE_INTEGERS, number) for number in value), integer_field(_ATTRIBUTE_TYPE, 7)]
    return memoryview(message_field(_NODE_ATTRIBUTE, message_field(_ATTRIBUTE_NAME, name.encode()) + b"".join(parts)))
