"""Validation of structured replies against their schema."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.llm.replies.reply_reading import read_object
from agentic_rag_testing.models.behaviour import instance

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "rating": {"type": "number", "minimum": 0, "maximum": 10},
        "kind": {"enum": ["a", "b"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 2},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "done": {"type": "boolean"},
    },
    "required": ["name", "rating", "parts"],
    "additionalProperties": False,
    "$defs": {"part": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
}
GOOD = {"name": "x", "rating": 1, "parts": [{"n": 1}]}


def test_good_objects_are_read() -> None:
    assert read_object(json.dumps(GOOD), SCHEMA).value == GOOD
    assert read_object(f"```json\n{json.dumps(GOOD)}\n```", SCHEMA).value == GOOD
    read = read_object(json.dumps({**GOOD, "note": None, "done": True, "kind": "b"}), SCHEMA)
    assert (read.value["kind"], read.value["note"], read.mended) == ("b", None, ())


def test_bad_objects_are_named() -> None:
    for text, message in [
        ('{"name": ', "not JSON"),
        ("[1]", "must be a JSON object, not list"),
        ("[" * 100_000, "not JSON"),
        (json.dumps({"name": "x", "rating": 1}), "$.parts is missing"),
        (json.dumps({**GOOD, "rating": 11}), "$.rating must be between 0 and 10, not 11"),
        (json.dumps({**GOOD, "rating": True}), "$.rating must be of type number, not bool"),
        (json.dumps({**GOOD, "name": ""}), "$.name must have 1 to 200 characters, not 0"),
        (json.dumps({**GOOD, "parts": []}), "$.parts must have 1 to 2 items, not 0"),
        (json.dumps({**GOOD, "parts": [{"n": "x"}]}), "$.parts[0].n must be of type integer, not str"),
        (json.dumps({**GOOD, "kind": "c"}), "$.kind must be one of ['a', 'b']"),
        (json.dumps({**GOOD, "note": [3]}), "$.note must be of type string, not list"),
        (json.dumps({"extra": 3}), "$.extra is not asked for"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            read_object(text, SCHEMA)


LISTS = {
    "type": "object",
    "properties": {name: {"type": "array", "items": {"type": "object"}} for name in "ab"},
    "required": ["a", "b"],
}


def test_an_object_that_is_cut_off_keeps_the_whole_items_of_its_lists() -> None:
    whole: dict[str, Any] = {"a": [{"x": ["]", {"y": '}"\\'}]}, {"x": 2}], "b": [{}]}
    text = json.dumps(whole)
    kept = {}
    for end in range(len(text)):
        try:
            found = read_object(text[:end], LISTS, partial=True).value
        except ValueError:
            assert end <= text.index("}]}") + 2, "the first item is not whole"
            continue
        assert found["a"] == whole["a"][: len(found["a"])]
        assert found["b"] in ([], whole["b"])
        kept[len(found["a"]), len(found["b"])] = end
    assert kept.keys() == {(1, 0), (2, 0), (2, 1)}
    with pytest.raises(ValueError, match="not JSON"):
        read_object(text[:-3], LISTS)
    with pytest.raises(ValueError, match=re.escape("[0] must be of type object")):
        read_object('{"a": [1, {"x": 2}, ', LISTS, partial=True)
    with pytest.raises(ValueError, match="not JSON"):
        read_object('{"a": [{' + '"\\"' * 20_000, LISTS, partial=True)


@given(st.text())
def test_the_scripted_instance_holds_to_the_schema(text: str) -> None:
    assert read_object(json.dumps(instance(SCHEMA, text=text or "x")), SCHEMA).mended == ()
