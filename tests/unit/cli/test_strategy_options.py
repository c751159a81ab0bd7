"""``--option NAME=VALUE`` of ``search`` and ``ask``."""

from __future__ import annotations

import pytest

from agentic_rag_backend.cli.options import SearchOptions, parse_options
from agentic_rag_backend.errors import InvalidRequest


def test_values_are_json_or_text() -> None:
    texts = ["base=graph", "passages=3", 'weights={"dense": 0.5}', "x=a=b", " y =true", "empty="]
    assert parse_options(texts) == {
        "base": "graph",
        "passages": 3,
        "weights": {"dense": 0.5},
        "x": "a=b",
        "y": True,
        "empty": "",
    }
    options = SearchOptions(synthetic_questions=True, option=["base=dense"])
    assert options.as_body()["options"] == {"synthetic_questions": True, "base": "dense"}
    assert SearchOptions().as_body()["options"] == {}


@pytest.mark.parametrize("text", ["base", "=graph", " =1", ""])
def test_an_option_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="--option must be NAME=VALUE"):
        parse_options([text])
