"""Writes small models of pairs: an ONNX model and its tokenizer. An output is the sum of the weights of words.

The files have the form of exported models. A cross-encoder has the inputs ``input_ids``, ``attention_mask`` and
``token_type_ids``, and one output. A reader has no ``token_type_ids`` (like RoBERTa), and three outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from agentic_rag_backend.models.facts_files import READER_FACTS_FILE, ReaderFacts, written_reader_facts

_SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]")
_FLOAT, _INT64 = 1, 7
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def write_cross_encoder(folder: Path, weights: Mapping[str, float]) -> Path:
    """Write ``model.onnx`` and ``tokenizer.json`` into ``folder``, and return it.

    Args:
        weights: of words, in lower case. Other words weigh nothing.
    """
    vocabulary = _vocabulary(weights)
    table = np.array([weights.get(word, 0.0) for word in vocabulary], dtype=np.float32)
    return _written(folder, vocabulary, _model(_score_nodes(), table, _INPUTS))


def write_reader(folder: Path, weights: Mapping[str, Sequence[float]], *, bias: Sequence[float], facts: ReaderFacts) -> Path:
    """Write ``model.onnx``, ``tokenizer.json`` and ``reader.json`` into ``folder``, and return it.

    Args:
        weights: of words of premise and claim, in lower case: a number for each output. Other words weigh nothing.
        bias: a number for each output.
    """
    vocabulary = _vocabulary(weights)
    rows = {"[CLS]": bias, **weights}
    table = np.array([rows.get(word, [0.0] * len(bias)) for word in vocabulary], dtype=np.float32)
    _written(folder, vocabulary, _model(_label_nodes(), table, _INPUTS[:2]))
    (folder / READER_FACTS_FILE).write_bytes(written_reader_facts(facts))
    return folder


def _vocabulary(words: Iterable[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate((*_SPECIAL, *words))}


def _written(folder: Path, vocabulary: Mapping[str, int], model: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
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


def _score_nodes() -> tuple[bytes, ...]:
    """Return nodes that sum the weights of the word pieces with token type 1."""
    return (
        _node("Gather", ("weights", "input_ids"), "weighed"),
        _node("Cast", ("token_type_ids",), "of_passage", _integer("to", _FLOAT)),
        _node("Mul", ("weighed", "of_passage"), "counted"),
        _node("ReduceSum", ("counted", "axes"), "logits"),
    )


def _label_nodes() -> tuple[bytes, ...]:
    """Return nodes that sum the rows of all word pieces."""
    return (
        _node("Gather", ("weights", "input_ids"), "weighed"),
        _node("ReduceSum", ("weighed", "axes"), "logits", _integer("keepdims", 0)),
    )


def _model(nodes: Sequence[bytes], table: np.ndarray, inputs: Sequence[str]) -> bytes:
    """Return a ``ModelProto`` (onnx.proto) of nodes with the constants ``weights`` and ``axes``."""
    graph = (
        b"".join(_field(1, node) for node in nodes)
        + _field(2, "cross-encoder")
        + _field(5, _tensor("weights", table, _FLOAT))
        + _field(5, _tensor("axes", np.array([1], dtype=np.int64), _INT64))
        + b"".join(_field(11, _value(name, _INT64)) for name in inputs)
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
