from __future__ import annotations

import math

import pytest

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.vector.conditions import presence_tag, read_tag, tags_of, value_tag


def test_values_that_python_holds_equal_share_a_tag_and_others_do_not() -> None:
    assert value_tag("a", 1) == value_tag("a", 1.0)
    assert value_tag("a", 0) == value_tag("a", -0.0)
    assert value_tag("a", 2**53) == value_tag("a", float(2**53)) != value_tag("a", 2**53 + 1)
    distinct = [True, 1, "1", "true", False, 0, "", "0", None, 1.5, math.inf, "inf"]
    assert len({value_tag("a", value) for value in distinct}) == len(distinct)
    assert value_tag("a", math.nan) is value_tag("a", [1]) is value_tag("a", {}) is None


def test_keys_cannot_imitate_one_another() -> None:
    assert value_tag('a", "b', "c") != value_tag("a", 'b", "c')
    assert presence_tag("a") not in {value_tag("a", value) for value in ("", None, "a")}


@pytest.mark.parametrize("value", ["Straße", "a\x00b", "\ud800", 10**30, 0.1, True, None, math.inf])
def test_tags_can_be_read_back(value: object) -> None:
    tag = value_tag("ключ.[0]", value)
    assert tag is not None
    assert tag.isascii()
    assert read_tag(tag) == ("ключ.[0]", [value])
    assert read_tag(presence_tag("x")) == ("x", [])


def test_lists_have_a_tag_an_item_and_absent_fields_none() -> None:
    tags = tags_of({"labels": ["a", "b", "a"], "none": None, "empty": [], "object": {"a": 1}})
    assert tags == [presence_tag("labels"), value_tag("labels", "a"), value_tag("labels", "b"), presence_tag("object")]


@pytest.mark.parametrize("fields", [{"when": object()}, {"tags": [b"x"]}, {1: "x"}])
def test_what_is_not_json_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="metadata"):
        tags_of(fields)
