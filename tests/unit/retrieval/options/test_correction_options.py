"""The `corrective` of a request: its forms, defaults and limits."""

from __future__ import annotations

import pytest

from agentic_rag_backend.domain.query import Correction
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.model import resolve_correction
from agentic_rag_backend.retrieval.registry import CORRECTABLE


def test_forms() -> None:
    for value, expected in [
        (None, None),
        (False, None),
        (True, Correction(threshold=0.7, attempts=2, min_relevant=1, max_calls=4)),
        ({}, Correction()),
        ({"min_relevant": 3, "max_refinement_attempts": 0}, Correction(min_relevant=3, attempts=0)),
        ({"relevance_threshold": 0.2, "max_calls": 9}, Correction(threshold=0.2, max_calls=9)),
    ]:
        assert resolve_correction(value, "graph", CORRECTABLE) == expected


def test_bad_values_are_named() -> None:
    for value, strategy, message in [
        ("yes", "graph", "corrective must be true, false or an object; got 'yes'"),
        (1, "graph", "corrective must be true, false or an object; got 1"),
        ({"threshold": 0.2}, "graph", "corrective has no option 'threshold'; it has relevance_threshold, "),
        ({"relevance_threshold": 2}, "graph", "corrective.relevance_threshold must be a number from 0 to 1; got 2"),
        ({"min_relevant": 0}, "graph", "corrective.min_relevant must be an integer from 1 to 10; got 0"),
        ({"max_calls": True}, "graph", "corrective.max_calls must be an integer from 1 to 32; got True"),
        (True, "community", "got the strategy 'community'"),
        (True, "corrective", "got the strategy 'corrective'"),
    ]:
        with pytest.raises(InvalidRequest) as refused:
            resolve_correction(value, strategy, CORRECTABLE)
        assert message in str(refused.value)


def test_every_strategy_that_returns_chunks_can_be_corrected() -> None:
    assert {"auto", "dense", "hyde", "fusion", "agentic"} <= CORRECTABLE
    assert CORRECTABLE.isdisjoint({"community", "global", "corrective"})
