"""JSON bodies: a body that is too large is refused before a parser creates objects from it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from cpu_time import cpu_s
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.api.requests import bodies
from agentic_rag_backend.api.requests.bodies import MAX_DEPTH, MAX_VALUES, load_json
from agentic_rag_backend.errors import InvalidRequest

MIB = 1024 * 1024
BOMBS = {
    "objects": lambda size: b'{"z": [' + b"{}," * (size // 3) + b"{}]}",
    "lists": lambda size: b"[" * size,
    "numbers": lambda size: b"[" + b"1," * (size // 2) + b"1]",
    "strings": lambda size: b"[" + b'"",' * (size // 3) + b'""]',
    "quotes": lambda size: b'"' * size,
    "keys": lambda size: b"{" + b",".join(b'"%d":1' % number for number in range(size // 12)) + b"}",
    "behind an escape": lambda size: b'["\\\\", "\\"", ' + b"{}," * (size // 3) + b"{}]",
}
LONG = {
    "text": lambda size: b'{"text": "' + b"a, [b] {c} " * (size // 11) + b'"}',
    "escaped quotes": lambda size: b'{"text": "' + b'\\"' * (size // 2) + b'"}',
    "escaped backslashes": lambda size: b'{"text": "' + b"\\\\" * (size // 2) + b'"}',
    "an open string": lambda size: b'{"text": "' + b'\\"' * (size // 2),
    "spaces": lambda size: b'{"text": "a"' + b" " * size + b"}",
    "digits": lambda size: b'{"a": ' + b"1" * size + b"}",
    "a fraction": lambda size: b'{"a": 0.' + b"1" * size + b"}",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_what_holds_too_many_values_reaches_no_parser(monkeypatch: pytest.MonkeyPatch, bomb: Any) -> None:
    def parse(*_: Any, **__: Any) -> None:
        raise AssertionError("a parser was asked")

    monkeypatch.setattr(bodies.orjson, "loads", parse)  # type: ignore[attr-defined]
    monkeypatch.setattr(bodies.json, "loads", parse)  # type: ignore[attr-defined]
    with pytest.raises(InvalidRequest, match=str(MAX_VALUES)):
        load_json(bomb(MIB))


@pytest.mark.parametrize("long", [*LONG.values(), *BOMBS.values()], ids=[*LONG, *BOMBS])
def test_the_cost_grows_with_the_bytes_and_no_faster(long: Any) -> None:
    def cost(size: int) -> float:
        raw = long(size)

        def read() -> None:
            with suppress(InvalidRequest):
                load_json(raw)

        return cpu_s(read)

    # Quadratic work would take 64 times as long, not 8. Constant work is in both.
    assert cost(8 * MIB) < 24 * cost(MIB) + 0.01


def test_as_many_values_and_levels_as_are_allowed() -> None:
    assert len(load_json(json.dumps([0] * (MAX_VALUES - 2)))) == MAX_VALUES - 2
    nested: Any = []
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    assert load_json(json.dumps(nested)) == nested
    with pytest.raises(InvalidRequest, match=f"{MAX_DEPTH}.*{MAX_DEPTH + 1}"):
        load_json(json.dumps([nested]))


TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_whatever_is_json_is_read_as_it_is(value: Any, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert load_json(raw) == json.loads(raw)


@given(st.binary(max_size=400) | st.text(alphabet='"\\[]{},:0aué', max_size=400).map(str.encode))
def test_any_bytes_are_a_value_or_a_problem(raw: bytes) -> None:
    with suppress(InvalidRequest):
        assert load_json(raw) == json.loads(raw)
