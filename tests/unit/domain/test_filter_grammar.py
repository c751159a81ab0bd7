from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.filter_grammar import (
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_OPTIONS,
    MAX_TEXT,
    parse_filter,
)
from agentic_rag_backend.domain.filters import And, Comparison, LinkCondition, Not, Or, matches_filter
from agentic_rag_backend.errors import InvalidRequest

SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
KEYS = st.sampled_from(["and", "or", "not", "eq", "ne", "in", "nin", "gt", "lte", "contains", "exists", "missing", "default"])
JSON = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
FIELDS: Mapping[str, Any] = {
    "author": "Mara Venn",
    "year": 2020,
    "draft": False,
    "tags": ["tidal", "Museum"],
    "empty": [],
    "none": None,
    "document_id": "d1",
    "key": "k1",
    "title": "Annual Report",
}


def nested(depth: int) -> dict[str, Any]:
    return {"a": 1} if depth <= 1 else {"not": nested(depth - 1)}


def test_what_filters_say() -> None:
    for value, parsed in [
        (None, None),
        ({}, None),
        ({"author": "Mara"}, Comparison("author", "eq", "Mara")),
        ({"metadata.author": "Mara"}, Comparison("author", "eq", "Mara")),
        ({"year": [2019, 2020]}, Comparison("year", "in", (2019, 2020))),
        ({"year": {"gte": 2019, "lt": 2021}}, And((Comparison("year", "gte", 2019), Comparison("year", "lt", 2021)))),
        ({"year": {"gt": 1, "default": 3}}, Comparison("year", "gt", 1, 3)),
        ({"year": {"gt": 1, "default": None}}, Comparison("year", "gt", 1)),
        ({"title": {"prefix": "Annual"}}, Comparison("title", "prefix", "Annual")),
        ({"key": {"prefix": "reports/"}}, Comparison("key", "prefix", "reports/")),
        ({"entity": "Mara Venn"}, LinkCondition("entity", "eq", ("Mara Venn",))),
        ({"entity": ["Mara", "Tidal Array"]}, LinkCondition("entity", "in", ("Mara", "Tidal Array"))),
        ({"entity_type": {"nin": ["person"]}}, LinkCondition("entity_type", "nin", ("person",))),
        ({"community": {"missing": False}}, LinkCondition("community", "exists")),
        ({"not": {"community": "c1"}}, Not(LinkCondition("community", "eq", ("c1",)))),
        ({"metadata.entity": "Mara"}, Comparison("entity", "eq", "Mara")),
        ({"metadata.language": "de"}, Comparison("language", "eq", "de")),
        ({"metadata.source": "web"}, Comparison("source", "eq", "web")),
        ({"confidence": {"gte": 0.5}}, Comparison("confidence", "gte", 0.5, 1.0)),
        ({"confidence": {"gte": 0.5, "default": 0.2}}, Comparison("confidence", "gte", 0.5, 0.2)),
        ({"a": {"exists": True}}, Comparison("a", "exists")),
        ({"a": {"exists": False}}, Comparison("a", "missing")),
        ({"a": {"missing": False}}, Comparison("a", "exists")),
        ({"not": {"a": 1}}, Not(Comparison("a", "eq", 1))),
        ({"or": [{"a": 1}, {"b": 2}]}, Or((Comparison("a", "eq", 1), Comparison("b", "eq", 2)))),
        ({"and": [{"a": 1}]}, And((Comparison("a", "eq", 1),))),
        ({"a": 1, "b": True}, And((Comparison("a", "eq", 1), Comparison("b", "eq", True)))),
        ({"metadata.tenant_id": "x"}, Comparison("tenant_id", "eq", "x")),
        ({"metadata.metadata.a": "x"}, Comparison("metadata.a", "eq", "x")),
        ({"a": MAX_INTEGER}, Comparison("a", "eq", MAX_INTEGER)),
    ]:
        assert parse_filter(value) == parsed


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"like": "x"}}, "unknown filter operator 'like'"),
        ({"a": {}}, "has no operator"),
        ({"a": {"default": 1}}, "has no operator"),
        ({"a": None}, "got null"),
        ({"a": float("nan")}, "finite"),
        ({"a": float("inf")}, "finite"),
        ({"a": MAX_INTEGER + 1}, str(MAX_INTEGER)),
        ({"a": -MAX_INTEGER - 1}, str(MAX_INTEGER)),
        ({"a": []}, "1 to 100 values; got 0"),
        ({"a": {"in": "x"}}, "takes a list"),
        ({"a": {"nin": list(range(MAX_OPTIONS + 1))}}, f"1 to {MAX_OPTIONS} values; got {MAX_OPTIONS + 1}"),
        ({"a": {"in": [[1]]}}, "must be text"),
        ({"a": {"eq": [1]}}, "must be text"),
        ({"a": {"eq": {"x": 1}}}, "must be text"),
        ({"a": {"contains": 5}}, "'contains' takes text"),
        ({"a": {"exists": 1}}, "takes true or false"),
        ({"a": {"missing": "yes"}}, "takes true or false"),
        ({"a": {"gt": 1, "default": []}}, "must be text"),
        ({"a": "x" * (MAX_TEXT + 1)}, f"at most {MAX_TEXT} characters; got {MAX_TEXT + 1}"),
        ({"x" * (MAX_TEXT + 1): 1}, f"got {MAX_TEXT + 1}"),
        ({"": 1}, "got 0"),
        ({"metadata.": 1}, "got 0"),
        ({"tenant_id": "t"}, "tenant_id: cannot be filtered on"),
        ({"group_id": "t"}, "cannot be filtered on"),
        ({"visible": True}, "cannot be filtered on"),
        ({"version": 1}, "cannot be filtered on"),
        ({"generation": 1}, "cannot be filtered on"),
        ({"kind": "chunk"}, "cannot be filtered on"),
        ({"_hidden": 1}, "cannot be filtered on"),
        ({"or": [{"not": {"tenant_id": "t"}}]}, "cannot be filtered on"),
        ({"and": []}, "takes a list of filters"),
        ({"or": {"a": 1}}, "takes a list of filters"),
        ({"or": [{}]}, "at least one field"),
        ({"not": {}}, "at least one field"),
        ({"not": [{"a": 1}]}, "must be an object"),
        ({"and": [5]}, "must be an object"),
        (nested(MAX_DEPTH + 1), f"at most {MAX_DEPTH} deep"),
        ({f"f{number}": 1 for number in range(MAX_COMPARISONS + 1)}, f"at most {MAX_COMPARISONS} comparisons; got 51"),
        ([], "must be an object"),
        (0, "must be an object"),
        ("", "must be an object"),
        (False, "must be an object"),
        ("author", "must be an object"),
        ([{"a": 1}], "must be an object"),
        ({"year": [None]}, 'got null. For absent fields, write {"missing": true}'),
        ({"year": {"ne": None}}, "got null"),
        ({"title": {"prefix": 5}}, "'prefix' takes text; got 5"),
        ({"title": {"prefix": ["a"]}}, "must be text"),
        ({"year": {"gt": True}}, "'gt' takes text or a number; got True"),
        ({"year": {"lte": False}}, "'lte' takes text or a number; got False"),
        ({"entity": 5}, "compared with text that is not blank; got 5"),
        ({"entity": " "}, "compared with text that is not blank"),
        ({"entity": {}}, "has no operator"),
        ({"entity": []}, "list of 1 to 100"),
        ({"entity": {"contains": "x"}}, "write 'metadata.entity'"),
        ({"entity": {"eq": "x", "default": "y"}}, "takes the operators eq, ne, in, nin, exists, missing"),
        ({"community": {"exists": 1}}, "takes true or false"),
        ({"entity_type": {"in": ["person"] * 101}}, "1 to 100"),
    ],
)
def test_what_filters_must_not_say(value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_filter(value)
    assert message in error.value.message
    assert len(error.value.message) < 300


@pytest.mark.parametrize("written", [{"entity": "Mara"}, {"or": [{"a": 1}, {"not": {"community": {"exists": True}}}]}])
def test_filters_of_documents_have_no_fields_of_passages(written: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="only searches and answers") as refused:
        parse_filter(written, of_documents=True)
    assert refused.value.field in {"entity", "community"}
    assert parse_filter({"metadata.entity": "Mara", "source": "web"}, of_documents=True) is not None


def test_which_documents_pass() -> None:
    for written, held, holds in [
        ({"language": "de"}, {"language": "de"}, True),
        ({"language": "de"}, {"language": "de-AT"}, True),
        ({"language": "de"}, {"language": "den"}, False),
        ({"language": "de-AT"}, {"language": "de"}, False),
        ({"language": "en"}, {}, True),
        ({"language": "de"}, {}, False),
        ({"language": {"ne": "de"}}, {"language": "de-AT"}, False),
        ({"language": {"ne": "de"}}, {}, True),
        ({"language": {"nin": ["de", "fr"]}}, {"language": "fr"}, False),
        ({"language": ["fr", "de"]}, {"language": ["it", "de-CH"]}, True),
        ({"language": {"prefix": "d"}}, {"language": "da"}, True),
        ({"language": {"exists": True}}, {}, False),
        ({"source": "web"}, {"source": "web"}, True),
        ({"source": "a/b.md"}, {"key": "a/b.md"}, True),
        ({"source": "a/b.md"}, {"key": "a/b.md", "source": "web"}, False),
        ({"source": {"prefix": "a/"}}, {"key": "a/b.md"}, True),
        ({"source": {"ne": "web"}}, {"key": "a"}, True),
        ({"source": {"ne": "web"}}, {}, False),
        ({"source": {"exists": True}}, {"key": "a"}, True),
        ({"source": {"missing": True}}, {}, True),
        ({"source": {"eq": "none", "default": "none"}}, {}, True),
        ({"source": {"eq": "none", "default": "none"}}, {"key": "a"}, False),
        ({"title": {"prefix": "Ann"}}, {"title": "Annual"}, True),
        ({"title": {"prefix": "ann"}}, {"title": "Annual"}, False),
        ({"tags": {"prefix": "tid"}}, {"tags": ["x", "tidal"]}, True),
        ({"tags": {"prefix": "tid"}}, {"tags": 5}, False),
        ({"year": {"missing": True}}, {"year": [None]}, True),
        ({"year": {"exists": True}}, {"year": [None, 1]}, True),
        ({"year": {"ne": 1}}, {"year": [None]}, False),
    ]:
        parsed = parse_filter(written)
        assert parsed is not None
        assert matches_filter(parsed, held) is holds


def test_the_limits_themselves_are_allowed() -> None:
    assert parse_filter(nested(MAX_DEPTH)) is not None
    assert parse_filter({f"f{number}": 1 for number in range(MAX_COMPARISONS)}) is not None
    assert parse_filter({"a": list(range(MAX_OPTIONS))}) is not None
    assert parse_filter({"a" * MAX_TEXT: "x" * MAX_TEXT}) is not None


@given(JSON)
def test_any_json_is_a_filter_or_refused(value: Any) -> None:
    try:
        parsed = parse_filter(value)
    except InvalidRequest as error:
        assert error.message  # noqa: PT017 - either outcome is valid, others are not
    else:
        assert (parsed is None) == (value is None or value == {})
        assert parsed is None or matches_filter(parsed, FIELDS) in {True, False}


def test_a_value_nested_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    for value in ({"a": deep}, {"a": {"eq": deep}}, {"and": deep}, deep):
        with pytest.raises(InvalidRequest):
            parse_filter(value)


NUMBERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le,
}  # fmt: skip


@given(st.sampled_from(sorted(NUMBERS)), st.integers(-3, 3), st.integers(-3, 3))
def test_numbers_compare_as_in_arithmetic(name: str, held: int, value: int) -> None:
    parsed = parse_filter({"n": {name: value}})
    assert parsed is not None
    assert matches_filter(parsed, {"n": held}) is NUMBERS[name](held, value)


@given(st.lists(st.integers(0, 4), max_size=3), st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_a_list_holds_what_any_of_its_items_is(held: list[int], options: list[int]) -> None:
    inside, outside = parse_filter({"n": options}), parse_filter({"n": {"nin": options}})
    assert inside is not None
    assert outside is not None
    assert matches_filter(inside, {"n": held}) is bool(set(held) & set(options))
    assert matches_filter(outside, {"n": held}) is (bool(held) and not set(held) & set(options))


def test_what_passes() -> None:
    for value, passes in [
        ({"author": "Mara Venn"}, True),
        ({"author": "mara venn"}, False),
        ({"author": {"contains": "mara"}}, True),
        ({"tags": {"contains": "MUSE"}}, True),
        ({"tags": "tidal"}, True),
        ({"tags": {"ne": "tidal"}}, False),
        ({"tags": {"eq": "tidal", "ne": "Museum"}}, False),
        ({"year": {"gte": 2020, "lte": 2020}}, True),
        ({"year": {"gt": "2019"}}, False),
        ({"year": 2020.0}, True),
        ({"draft": False}, True),
        ({"draft": 0}, False),
        ({"draft": {"lt": 1}}, False),
        ({"unknown": 1}, False),
        ({"unknown": {"ne": 1}}, False),
        ({"unknown": {"nin": [1]}}, False),
        ({"unknown": {"ne": 1, "default": 2}}, True),
        ({"not": {"unknown": 1}}, True),
        ({"unknown": {"missing": True}}, True),
        ({"empty": {"exists": True}}, False),
        ({"none": {"exists": True}}, False),
        ({"year": {"exists": True}}, True),
        ({"confidence": {"gte": 0.9}}, True),
        ({"confidence": {"lt": 0.9}}, False),
        ({"document_id": "d1", "key": "k1", "title": {"contains": "report"}}, True),
        ({"document_id": "d1", "key": "k2"}, False),
        ({"or": [{"key": "k2"}, {"year": 2020}]}, True),
        ({"and": [{"key": "k2"}, {"year": 2020}]}, False),
        ({"year": {"gt": 2000}, "not": {"draft": True}, "or": [{"author": "x"}, {"tags": ["Museum"]}]}, True),
    ]:
        parsed = parse_filter(value)
        assert parsed is not None
        assert matches_filter(parsed, FIELDS) is passes


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ({"rating": {"gt": 1}, "n": {"in": "x"}}, "n", "n: 'in' takes a list of 1 to 100 values; got 'x'"),
        ({"or": [{"a": 1}, {"not": {"z": {"prefix": 2}}}]}, "or[1].not.z", "z: 'prefix' takes text; got 2"),
        ({"tenant_id": "t"}, "tenant_id", "tenant_id: cannot be filtered on; "),
        ({"a": {"gt": True}}, "a", "a: 'gt' takes text or a number; got True"),
        ({"a": "x" * 600}, "a", "a: a filter's text may have at most 512 characters; got 600"),
        ({"": 1}, "''", "'': a filter's field must have 1 to 512 characters; got 0"),
        ({"entity": {}}, "entity", "entity: has no operator; it takes eq, "),
        ({"not": {"or": []}}, "not.or", "'or' takes a list of filters; got []"),
        (nested(6), "not.not.not.not.not", "not: filters may be nested at most 5 deep; got {'a': 1} inside 5 others"),
        ({"and": [{"a": 1}, 5]}, "and[1]", "and[1]: a filter must be an object"),
        ({"b\n" + "x" * 200: {"like": 1}}, "b\\n" + "x" * 98 + "…", "unknown filter operator 'like'"),
    ],
)
def test_the_error_names_the_place_of_the_value(value: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_filter(value)
    assert refused.value.field == field
    assert message in refused.value.message
