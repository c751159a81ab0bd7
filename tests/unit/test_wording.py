"""Users never see pydantic's wording: its kinds of errors have our messages, and values are shortened."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticKnownError, core_schema

from agentic_rag_backend.api import schemas
from agentic_rag_backend.api.responses.error_responses import install_error_handlers
from agentic_rag_backend.api.schemas.base import Body
from agentic_rag_backend.wording import describe_value, message_of, shorten_line

NASTY = "\x07\u202e\x1b[31m\n"
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**9,
    2**70,
    -0.5,
    1.5,
    float("inf"),
    "",
    " ",
    "yesterday",
    "\x00",
    "\ud800",
    NASTY + "x" * 20_000,
    [],
    [1] * 1_000,
    [NASTY],
    {},
    {NASTY * 200: 1},
    {"a": {"b": [1]}},
)


def bodies() -> list[type[BaseModel]]:
    """Return every model of a request's body."""
    for module in pkgutil.iter_modules(schemas.__path__):
        importlib.import_module(f"{schemas.__name__}.{module.name}")
    waiting, found = [Body], []
    while waiting:
        waiting += waiting[0].__subclasses__()
        found.append(waiting.pop(0))
    return found[1:]  # type: ignore[return-value]


def problems(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield pydantic's errors for every field with every invalid value, alone, and for invalid bodies."""
    wrong: list[Any] = [*VALUES, {NASTY * 99: 1}]
    for name, field in model.model_fields.items():
        wrong += [{field.alias or name: value} for value in VALUES]
        wrong += [{field.alias or name: [value]} for value in VALUES]
        wrong += [{field.alias or name: [{inner: value}]} for value in VALUES for inner in ("role", "content")]
        wrong += [{field.alias or name: {inner: value}} for value in VALUES for inner in ("low", "chunk_size", "unit", "preset")]
    for value in wrong:
        try:
            model.model_validate(value)
        except ValidationError as error:
            yield from error.errors(include_url=False)  # type: ignore[misc]


async def test_every_bad_value_of_every_body_is_answered_in_our_words() -> None:
    app = FastAPI()
    install_error_handlers(app)
    answer: Any = app.exception_handlers[RequestValidationError]
    request = Request({"type": "http"})
    kinds: set[str] = set()
    for model in bodies():
        for item in problems(model):
            problem = json.loads((await answer(request, RequestValidationError([item]))).body)
            (shown,) = problem["errors"]
            kinds.add(item["type"])
            assert shown["message"].startswith(("must", "is", "chunk", "overlap", "give", "name", "it ", "a ")), (
                item["type"],
                shown,
            )
            assert shown["message"] != "is not valid", item["type"]
            assert "is not valid" not in shown["message"], item["type"]
            if item["type"] != "value_error":
                assert item["msg"] not in problem["detail"], shown
            assert len(json.dumps(shown)) < 1_500, item["type"]
            assert len(problem["detail"]) < 700
            for text in (problem["detail"], shown["field"], shown["message"], str(shown.get("value", ""))):
                assert text.isprintable(), (item["type"], text)
    assert len(kinds) >= 14, kinds


def test_every_kind_that_pydantic_has_is_said_without_its_words() -> None:
    context = dict.fromkeys(
        ("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "max_digits", "decimal_places", "whole_digits"), 3
    ) | {"field_type": "List", "actual_length": 9}
    kinds = set(get_args(core_schema.ErrorType)) - {"value_error", "assertion_error"}
    assert len(kinds) > 90
    for kind in kinds:
        try:
            theirs = PydanticKnownError(kind, context).message()
        except (TypeError, KeyError):  # it needs more than these limits
            theirs = "Input should"
        ours = message_of({"type": kind, "msg": theirs, "ctx": context})
        assert ours.startswith(("must", "is ")), kind
        assert theirs not in ours, kind


def test_messages_of_errors() -> None:
    for problem, words in [
        ({"type": "less_than_equal", "msg": "", "ctx": {"le": 100}}, "must be at most 100"),
        ({"type": "string_too_short", "msg": "", "ctx": {"min_length": 1}}, "must have at least 1 character"),
        ({"type": "too_long", "msg": "", "ctx": {"max_length": 20}}, "must have at most 20 items"),
        ({"type": "literal_error", "msg": "", "ctx": {"expected": "'a' or 'b'"}}, "must be 'a' or 'b'"),
        ({"type": "value_error", "msg": "Value error, must not be blank"}, "must not be blank"),
        ({"type": "a kind of tomorrow", "msg": "Input should be tomorrow"}, "is not valid"),
        ({"type": "less_than_equal", "msg": ""}, "must be at most ?"),
    ]:
        assert message_of(problem) == words


def test_values_in_messages() -> None:
    for value, shown in [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (2**70, "a number beyond 64 bits"),
        ("abc", "'abc'"),
        ("x" * 50, f"'{'x' * 40}…' (50 characters)"),
        ("a\x07b\u202e", r"'a\x07b\u202e'"),
        ([1, 2], "a list of 2"),
        ({"a": 1}, "an object"),
        (b"x", "something else"),
    ]:
        assert describe_value(value) == shown


def test_half_of_a_surrogate_pair_is_escaped() -> None:
    assert shorten_line("\ud800", 9) == r"\ud800"
