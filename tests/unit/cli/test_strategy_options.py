"""``--option NAME=VALUE`` of ``search`` and ``ask``."""

from __future__ import annotations

import pytest

from agentic_rag_backend.cli.commands.search import options_of
from agentic_rag_backend.errors import InvalidRequest


def test_values_are_json_or_text() -> None:
    given = ["base=graph", "passages=3", 'weights={"dense": 0.5}', "x=a=b", " y =true", "empty="]
    assert options_of(None, given) == {
        "base": "graph",
        "passages": 3,
        "weights": {"dense": 0.5},
        "x": "a=b",
        "y": True,
        "empty": "",
    }
    assert options_of(True, ["base=dense"]) == {"synthetic_questions": True, "base": "dense"}
    assert options_of(None, None) == options_of(None) == {}


@pytest.mark.parametrize("given", ["base", "=graph", " =1", ""])
def test_an_option_without_a_name_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequest, match="--option must be NAME=VALUE"):
        options_of(None, [given])
