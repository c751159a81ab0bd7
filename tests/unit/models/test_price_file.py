"""Prices of models: the file MODEL_PRICES, and the cost of calls."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.prices import ModelPrice, PriceTable
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.price_file import MAX_BYTES, read_prices

PRICES = PriceTable("EUR", {"m": ModelPrice(Decimal("0.15"), Decimal("0.6")), "free": ModelPrice(Decimal(0))})


def _file(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_yaml_and_json_have_the_same_exact_prices(tmp_path: Path) -> None:
    yaml = _file(tmp_path, "currency: EUR\nmodels:\n  m: {input: 0.15, output: 0.60}\n  free: {input: 0}\n")
    assert read_prices(yaml) == PRICES
    json = _file(tmp_path, '{"currency": "EUR", "models": {"m": {"input": 1.5e-1, "output": 0.6}, "free": {"input": 0}}}')
    assert read_prices(json) == PRICES


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("models: {m: {input: -1}}", "models.m.input must be at least 0"),
        ("models: {m: {input: 2000000}}", "models.m.input must be at most 1000000"),
        ("models: {m: {input: .nan}}", "models.m.input"),
        ("models: {m: {output: 1}}", "models.m.input is required"),
        ("models: {m: {input: 1, prompt: 2}}", "models.m.prompt is not known here"),
        ("models: {m: {input: 1}, m: {input: 2}}", "names 'm' twice"),
        ("models: [m]", "models must be an object"),
        ("currency: euro\nmodels: {}", "currency must match"),
        ("", "the file must be an object"),
        ("models: {m: {input: 1}", "is not YAML or JSON"),
        ("[" * 10_000, "is not YAML or JSON"),
        ("#" * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
    ],
    ids=lambda value: value[:30],
)
def test_a_wrong_file_stops_the_start(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_prices(_file(tmp_path, text))
    assert named in caught.value.message
    assert "MODEL_PRICES" in caught.value.message
    assert len(caught.value.message) < 600


def test_a_missing_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_prices(tmp_path / "none.yaml")


def test_an_unknown_price_is_no_cost_instead_of_0() -> None:
    assert PRICES.price_usage("m", Usage(1_000_000, 500_000, 1)).cost == 0.45
    assert PRICES.price_usage("free", Usage(10, 10, 1)).cost == 0
    assert PRICES.price_usage("other", Usage(10, 10, 1)).cost is None
    assert PRICES.price_usage("M", Usage(10, 10, 1)).cost is None
    assert PRICES.price_usage("m", Usage(0, 0, 1)).cost is None, "a reply without its number of tokens"
    assert PRICES.price_usage("m", Usage(0, 0, 1, 1)).cost == 0, "a failed call"
    assert PRICES.price_usage("other", Usage()).cost == 0, "no call"
    mixed = PRICES.price_usage("m", Usage(10, 10, 1)) + PRICES.price_usage("other", Usage(10, 10, 1))
    assert mixed.cost is None
    assert mixed.cost_nanos == 7_500


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(0, 10**6)), max_size=20))
def test_the_cost_of_a_sum_is_the_sum_of_costs(calls: list[tuple[int, int]]) -> None:
    usages = [Usage(prompt, completion, 1) for prompt, completion in calls]
    apart = sum((PRICES.price_usage("m", usage) for usage in usages), Usage())
    together = PRICES.price_usage("m", sum(usages, Usage()))
    assert apart == together
    assert apart.cost_nanos == together.cost_nanos
