"""Writes a small cross-encoder: an ONNX model and its tokenizer, whose score is the sum of the weights of a passage's words.

The files have the form of exported models: inputs ``input_ids``, ``attention_mask`` and ``token_type_ids``, one logit per pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

_SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]")
_FLOAT, _INT64 = 1, 7
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(folder: Path, weights: Mapping[str, float]) -> Path:
    """Write ``model.onnx`` and ``tokenizer.json`` into ``folder``, and return it.

    Args:
        weights: of words, in lower case. Other words weigh nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: number for number, word in enumerate((*_SPECIAL, *weights))}
    table = np.array([weights.get(word, 0.0) for word in vocabulary], dtype=np.float32)
    (folder / "model.onnx").write_bytes(_model(table))
    _tokenizer(vocabulary).save(str(folder / "tokenizer.json"))
    return folder


def _tokenizer(vocabulary: Mapping[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel(dict(vocabulary), unk_token="[UNK]"))  # noqa: S106 - a token of the vocabulary
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _model(table: np.ndarray) -> bytes:
    """Return a ``ModelProto`` (onnx.proto) that sums the weights of the word pieces with token type 1."""
    nodes = (
        _node("Gather", ("weights", "input_ids"), "weighed"),
        _node("Cast", ("token_type_ids",), "of_passage", _integer("to", _FLOAT)),
        _node("Mul", ("weighed", "of_passage"), "counted"),
        _node("ReduceSum", ("counted", "axes"), "logits"),
    )
    graph = (
        b"".join(_field(1, node) for node in nodes)
        + _field(2, "cross-encoder")
        + _field(5, _tensor("weights", table, _FLOAT))
        + _field(5, _tensor("axes", np.array([1], dtype=np.int64), _INT64))
        + b"".join(_field(11, _value(name, _INT64)) for name in _INPUTS)
        + _field(12, _value("logits", _FLOAT))
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _number(2, 17))


def _node(operator: str, inputs: tuple[str, ...], output: str, *attributes: bytes) -> bytes:
    parts = b"".join(_field(1, name) for name in inputs)
    return parts + _field(2, output) + _field(4, operator) + b"".join(_field(5, each) for each in attributes)


def _integer(name: str, value: int) -> bytes:
    return _field(1, name) + _number(3, value) + _number(20, 2)


def _tensor(name: str, values: np.ndarray, kind: int) -> bytes:
    shape = b"".join(_number(1, size) for size in values.shape)
    return shape + _number(2, kind) + _field(8, name) + _field(9, values.tobytes())


def _value(name: str, kind: int) -> bytes:
    sizes = b"".join(_field(1, _field(2, each)) for each in ("pairs", "pieces"))
    return _field(1, name) + _field(2, _field(1, _number(1, kind) + _field(2, sizes)))


# --- protocol buffers: https://protobuf.dev/programming-guides/encoding/


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, value: bytes | str) -> bytes:
    held = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(held)) + held
