"""The check of integer products runs the product that it says, on any processor."""

from __future__ import annotations

import pytest

from agentic_rag_backend.models.embedding.onnx import exactness


def test_small_numbers_are_multiplied_exactly_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactness, "_LARGEST", (3, 2))
    assert exactness.multiplies_exactly.__wrapped__()


def test_another_sum_counts_as_inexact(monkeypatch: pytest.MonkeyPatch) -> None:
    model = exactness._make_product()
    monkeypatch.setattr(exactness, "_make_product", lambda: model)
    monkeypatch.setattr(exactness, "_LARGEST", (3, 2))  # the model multiplies by 127
    assert not exactness.multiplies_exactly.__wrapped__()
