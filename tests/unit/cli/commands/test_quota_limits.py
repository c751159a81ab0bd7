"""Limits on the command line."""

from __future__ import annotations

import pytest

from agentic_rag_backend.cli.commands.quota_commands import read_limits
from agentic_rag_backend.errors import InvalidRequest


def test_limits_are_numbers_or_none() -> None:
    assert read_limits(["chunks=none", "documents=5", "cost_per_day=0.25"]) == {
        "chunks": None,
        "documents": 5,
        "cost_per_day": 0.25,
    }
    assert read_limits([]) == {}


@pytest.mark.parametrize("pair", ["chunks", "pages=5", "chunks=many", "=5", "chunks="])
def test_other_texts_are_refused(pair: str) -> None:
    with pytest.raises(InvalidRequest, match="chunks"):
        read_limits([pair])
