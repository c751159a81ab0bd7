"""Times and JSON as columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime, encode_json, options_from_json, options_to_json, plain

DIALECTS = [sqlite.dialect(), postgresql.dialect()]  # type: ignore[no-untyped-call]
NOON = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_times_are_utc(dialect: sqlite.dialect) -> None:  # type: ignore[valid-type]
    column = UtcDateTime()
    abroad = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    bound = column.process_bind_param(abroad, dialect)
    assert bound == NOON
    assert bound is not None
    assert bound.tzinfo is UTC
    read = [column.process_result_value(value, dialect) for value in (NOON.replace(tzinfo=None), abroad)]
    assert read == [NOON, NOON]
    assert {value.tzinfo for value in read if value is not None} == {UTC}
    assert column.process_bind_param(None, dialect) is column.process_result_value(None, dialect) is None
    with pytest.raises(ValueError, match="zone"):
        column.process_bind_param(NOON.replace(tzinfo=None), dialect)


@pytest.mark.parametrize("value", [{}, [], 0, "", {"a": [1, None, {"b": "ä\u2028"}]}, 1.5])
def test_json_comes_back(value: object) -> None:
    column = Json()
    assert column.process_result_value(column.process_bind_param(value, DIALECTS[0]), DIALECTS[0]) == value


def test_json_has_no_form_for_everything() -> None:
    assert encode_json({"a": float("nan")}) == '{"a":null}'
    assert plain({"a": (1, 2)}) == {"a": [1, 2]}
    with pytest.raises(InvalidRequest, match="64"):
        encode_json({"a": 2**64})
    with pytest.raises(InvalidRequest):
        encode_json({"a": object()})


def test_options_come_back() -> None:
    options = ProcessingOptions(chunking=ChunkingOptions("recursive", 7, 3, "characters"), extraction="rules")
    assert options_from_json(options_to_json(options)) == options
