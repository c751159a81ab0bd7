"""Whether this processor multiplies integers exactly.

Processors without an instruction for products of 8-bit integers with sums of 32 bits (x86 without VNNI) add each pair of products
in 16 bits, where large sums saturate: https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html
"""

from __future__ import annotations

import functools

import numpy as np
import onnxruntime

from agentic_rag_backend.models.embedding.onnx.onnx_graph import INT8, OnnxNode, integer_field, message_field

_SIZE = 64
"""Rows and columns of both factors."""
_UINT8, _INT32 = 2, 6
_LARGEST = 255, 127
_IR_VERSION, _OPERATOR_SET = 8, 13


@functools.cache
def multiplies_exactly() -> bool:
    """Return whether a product of the largest numbers of 8 bits is exact, as the runtime computes it here."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(_make_product(), options, providers=["CPUExecutionProvider"])
    (product,) = session.run(None, {"numbers": np.full((_SIZE, _SIZE), _LARGEST[0], dtype=np.uint8)})
    return bool((product == _LARGEST[0] * _LARGEST[1] * _SIZE).all())


def _make_product() -> bytes:
    """Return a serialised model that multiplies its input by a matrix of the largest int8."""
    weights = np.full((_SIZE, _SIZE), _LARGEST[1], dtype=np.int8)
    tensor = [integer_field(1, _SIZE), integer_field(1, _SIZE), integer_field(2, INT8), message_field(8, b"weights")]
    graph = [
        message_field(1, OnnxNode("MatMulInteger", ("numbers", "weights"), ("product",)).write_message()),
        message_field(2, b"product"),
        message_field(5, b"".join([*tensor, message_field(9, weights.tobytes())])),
        message_field(11, _describe_matrix(b"numbers", _UINT8)),
        message_field(12, _describe_matrix(b"product", _INT32)),
    ]
    operators = message_field(8, integer_field(2, _OPERATOR_SET))
    return integer_field(1, _IR_VERSION) + message_field(7, b"".join(graph)) + operators


def _describe_matrix(name: bytes, type: int) -> bytes:
    """Return a ``ValueInfoProto`` of a matrix of `_SIZE` rows and columns."""
    shape = message_field(1, integer_field(1, _SIZE)) * 2
    tensor = integer_field(1, type) + message_field(2, shape)
    return message_field(1, name) + message_field(2, message_field(1, tensor))
