from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_models import FLOAT, INT8, INT64, attribute, data, node, number, tensor, value

from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, locate_file
from agentic_rag_backend.models.embedding.onnx.onnx_sessions import looked_up_first

# --- the smallest model that looks words up in a quantised table, in the format of onnx.proto

ROWS, COLUMNS = 5, 4
TABLE = np.arange(-10, 10, dtype=np.int8).reshape(ROWS, COLUMNS)
SCALES = np.array([[0.5], [0.25], [3.0], [1.7], [0.1]], dtype=np.float32)


CAST, SCALE, TAKE = (
    node("Cast", "table", "numbers", attribute("to", FLOAT)),
    node("Mul", "numbers scales", "words"),
    node("Gather", "words ids", "found", attribute("axis", 0)),
)


def model(
    *nodes: bytes,
    tables: bytes = tensor("table", TABLE, INT8) + tensor("scales", SCALES, FLOAT),
    more: bytes = b"",
    shape: tuple[int, ...] = (2, COLUMNS),
) -> bytes:
    graph = b"".join(nodes) + data(2, "words") + tables + value(11, "ids", INT64, 2) + value(12, "found", FLOAT, *shape) + more
    return number(1, 8) + data(7, graph) + data(8, data(1, "") + number(2, 17))


def answer(serialised: bytes, name: str = "found") -> np.ndarray:
    session = onnxruntime.InferenceSession(serialised, providers=["CPUExecutionProvider"])
    return np.asarray(session.run([name], {"ids": np.array([3, 1], dtype=np.int64)})[0])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attributes", [(), (attribute("axis", 0),)])
def test_rows_are_taken_before_they_are_dequantised_and_are_the_same(packed: bool, attributes: tuple[bytes, ...]) -> None:
    tables = tensor("table", TABLE, INT8, packed=packed) + tensor("scales", SCALES, FLOAT, packed=packed)
    before = model(CAST, SCALE, node("Gather", "words ids", "found", *attributes), tables=tables)
    after = looked_up_first(before)
    assert after != before
    np.testing.assert_array_equal(answer(after), answer(before))
    np.testing.assert_array_equal(answer(after), (TABLE.astype(np.float32) * SCALES)[[3, 1]])
    assert looked_up_first(after) is after


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param(model(CAST, SCALE, TAKE, more=value(12, "words", FLOAT, ROWS, COLUMNS)), id="the whole table is shown"),
        pytest.param(
            model(CAST, SCALE, TAKE, node("Mul", "words words", "squares"), more=value(12, "squares", FLOAT, ROWS, COLUMNS)),
            id="the whole table is used elsewhere",
        ),
        pytest.param(
            model(CAST, SCALE, node("Gather", "words ids", "found", attribute("axis", 1)), shape=(ROWS, 2)),
            id="columns are taken",
        ),
        pytest.param(
            model(CAST, SCALE, TAKE, tables=tensor("table", TABLE, INT8) + tensor("scales", SCALES[:1], FLOAT)),
            id="one scale for all",
        ),
        pytest.param(
            model(CAST, SCALE, TAKE, tables=tensor("table", TABLE, INT8) + tensor("scales", SCALES[:4].T, FLOAT)),
            id="a scale for each column",
        ),
    ],
)
def test_a_model_of_another_kind_is_left_as_it_is(unlike: bytes) -> None:
    assert looked_up_first(unlike) is unlike
    assert answer(unlike).size


def test_a_model_with_weights_in_other_files_is_left_to_the_runtime() -> None:
    elsewhere = tensor("table", TABLE, INT8, more=data(13, data(1, "location") + data(2, "w")) + number(14, 1))
    assert looked_up_first(apart := model(CAST, SCALE, TAKE, tables=elsewhere + tensor("scales", SCALES, FLOAT))) is apart


@given(st.binary(max_size=60))
def test_bytes_that_are_no_model_come_back(noise: bytes) -> None:
    assert looked_up_first(noise) is noise


@given(st.data())
def test_a_damaged_model_is_still_for_the_runtime_to_refuse(drawn: st.DataObject) -> None:
    damaged = bytearray(model(CAST, SCALE, TAKE))
    damaged[drawn.draw(st.integers(0, len(damaged) - 1))] = drawn.draw(st.integers(0, 255))
    assert isinstance(looked_up_first(bytes(damaged)), bytes)


def test_the_bundled_encoder_computes_the_same_bits() -> None:
    stored = Path(locate_file(MODEL_FILE, None).path).read_bytes()
    after = looked_up_first(stored)
    assert after is not stored
    ids = np.array([[101, 4937, 2938, 1996, 13523, 102]] * 2)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    one, other = (
        onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"]).run(None, feeds)[0] for each in (stored, after)
    )
    np.testing.assert_array_equal(one, other)
