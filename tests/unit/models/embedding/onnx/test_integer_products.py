"""Products with int8 weights are computed in integers, with the same weights and scales."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx_models import FLOAT, INT8, attribute, data, node, number, tensor, value

from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.models.embedding.onnx.onnx_graph import list_operators
from agentic_rag_backend.models.embedding.onnx.onnx_sessions import with_float_products, with_integer_products

# Other processors add pairs of products in 16 bits. The encoder uses float32 there.
needs_exact_products = pytest.mark.skipif(not multiplies_exactly(), reason="the processor rounds sums of 8-bit products")
WEIGHTS = np.array([[1, -2, 3], [40, 50, -60], [127, -127, 0], [7, 8, 9]], dtype=np.int8)
SCALES = np.array([[0.5, 0.25, 2.0]], dtype=np.float32)
CAST, SCALE = node("Cast", "weights", "numbers", attribute("to", FLOAT)), node("Mul", "numbers scales", "floats")
PRODUCT, OTHER = node("MatMul", "x floats", "y"), node("MatMul", "x floats", "z")


BY_ROW, AS_A_WHOLE = 17, 12
"""Versions of the operators with which a factor of these weights, which are no square, has a scale for each row, or one."""


def model(
    *nodes: bytes,
    scales: np.ndarray = SCALES,
    weights: bytes = tensor("weights", WEIGHTS, INT8),
    more: bytes = b"",
    operators: int = BY_ROW,
) -> bytes:
    graph = b"".join(nodes) + data(2, "product") + weights + tensor("scales", scales, FLOAT)
    graph += value(11, "x", FLOAT, 2, 4) + value(12, "y", FLOAT, 2, 3) + more
    return number(1, 8) + data(7, graph) + data(8, data(1, "") + number(2, operators))


def answers(serialised: bytes, x: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(serialised, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, {"x": x})]


EXACT = {
    BY_ROW: np.array([[0, 1, -2, 127], [0.25, 0.5, -31.75, 0]], dtype=np.float32),
    AS_A_WHOLE: np.array([[0, 1, 2, 255], [3, 4, 5, 0]], dtype=np.float32),
}
"""Factors that are quantised without a loss: the scale is 1 / 127 of a row's largest number, or 1 / 255 of the range."""


@needs_exact_products
@pytest.mark.parametrize("operators", EXACT)
@pytest.mark.parametrize("scales", [SCALES, SCALES[0], SCALES[:, :1], SCALES[0, :1], SCALES[0, 0]])
def test_a_product_is_the_float_product_of_the_quantised_factor(scales: np.ndarray, operators: int) -> None:
    before = model(CAST, SCALE, PRODUCT, scales=scales, operators=operators)
    after = with_integer_products(before)
    assert b"MatMulInteger" in after
    assert (b"DynamicQuantizeLinear" in after) == (operators == AS_A_WHOLE)
    assert with_integer_products(after) is after
    x = EXACT[operators]
    np.testing.assert_allclose(answers(after, x)[0], answers(before, x)[0], rtol=1e-6)
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    x[1] *= 100
    steps = np.abs(x).max(axis=1, keepdims=True) / 127 if operators == BY_ROW else (x.max() - x.min()) / 255
    bound = steps / 2 * np.abs(WEIGHTS * np.broadcast_to(scales, (1, 3))).sum(axis=0) + 1e-4
    assert (np.abs(answers(after, x)[0] - answers(before, x)[0]) <= bound).all()


def test_a_row_of_zeros_stays_zeros() -> None:
    after = with_integer_products(model(CAST, SCALE, PRODUCT))
    np.testing.assert_array_equal(answers(after, np.zeros((2, 4), dtype=np.float32))[0], np.zeros((2, 3)))


@pytest.mark.parametrize(("operators", "step"), [(BY_ROW, b"QuantizeLinear"), (AS_A_WHOLE, b"DynamicQuantizeLinear")])
def test_products_of_one_factor_quantise_it_once(operators: int, step: bytes) -> None:
    before = model(CAST, SCALE, PRODUCT, OTHER, more=value(12, "z", FLOAT, 2, 3), operators=operators)
    after = with_integer_products(before)
    assert after.count(data(4, step)) == 1
    for one, other in zip(answers(after, EXACT[operators]), answers(before, EXACT[operators]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_weights_that_are_used_elsewhere_stay_floats_there() -> None:
    before = model(CAST, SCALE, PRODUCT, more=value(12, "floats", FLOAT, 4, 3))
    x = np.zeros((2, 4), dtype=np.float32)
    np.testing.assert_array_equal(answers(with_integer_products(before), x)[1], WEIGHTS * SCALES)


@pytest.mark.parametrize(("operator", "in_integers"), [("Softmax", False), ("Relu", True)])
def test_values_of_attention_stay_floats(operator: str, in_integers: bool) -> None:
    values, attention = node("MatMul", "x floats", "values"), node("Identity", "values", "these")
    shares, sums = node(operator, "scores", "shares"), node("MatMul", "shares these", "y")
    before = model(CAST, SCALE, values, attention, shares, sums, more=value(11, "scores", FLOAT, 2, 2))
    assert (with_integer_products(before) is not before) == in_integers


@pytest.mark.parametrize(
    "unlike",
    [
        pytest.param(model(CAST, SCALE, PRODUCT, scales=np.ones((4, 1), dtype=np.float32)), id="a scale for each row"),
        pytest.param(
            model(SCALE, PRODUCT, weights=tensor("numbers", WEIGHTS.astype(np.float32), FLOAT)), id="weights are floats"
        ),
        pytest.param(b"no model", id="no model"),
    ],
)
def test_another_model_is_left_as_it_is(unlike: bytes) -> None:
    assert with_integer_products(unlike) is unlike


def quantised(*, zero_points: bool) -> bytes:
    """Return a model with an integer product of its own."""
    product = node("MatMulInteger", "q weights z zero" if zero_points else "q weights", "sums")
    dynamic = data(1, b"".join([data(1, "x"), data(2, "q"), data(2, "s"), data(2, "z"), data(4, "DynamicQuantizeLinear")]))
    cast, scaled = node("Cast", "sums", "numbers", attribute("to", FLOAT)), node("Mul", "numbers s", "y")
    return model(dynamic, product, cast, scaled, more=tensor("zero", np.array([1, -2, 3], dtype=np.int8), INT8))


@needs_exact_products
@pytest.mark.parametrize("zero_points", [True, False])
def test_float_products_are_the_integer_products(zero_points: bool) -> None:
    before = quantised(zero_points=zero_points)
    after = with_float_products(before)
    assert list_operators(before) - list_operators(after) == {"MatMulInteger"}
    assert "MatMul" in list_operators(after)
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    np.testing.assert_allclose(answers(after, x)[0], answers(before, x)[0], rtol=1e-6)
    assert with_float_products(after) is after
    assert list_operators(b"no model") == frozenset()
