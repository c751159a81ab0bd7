"""Values that texts give, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from agentic_rag_backend.language.values import find_moments, placed_amounts


def _read_amounts(text: str) -> list[Any]:
    return [amount for amount, _ in placed_amounts(text)]


def _agree(read: Callable[[str], list[Any]], one: str, other: str) -> bool:
    pairs = list(product(read(one), read(other)))
    assert pairs
    agreeing = any(value.agrees_with(another) for value, another in pairs)
    assert agreeing == any(another.agrees_with(value) for value, another in pairs)
    return agreeing


@pytest.mark.parametrize(
    ("read", "alike", "different"),
    [
        (
            find_moments,
            [
                ("on 3 March 2009", "in 2009"),
                ("on 3 March 2009", "on March 3rd, 2009"),
                ("on 3 March 2009", "2009-03-03"),
                ("on 3 March", "in March 2009"),
                ("from 1641 to 1643", "in 1642"),
                ("from 1914–18", "in 1916"),
                ("in the 1990s", "in 1994"),
                ("in the 19th century", "in 1843"),
            ],
            [("on 22 July 2023", "on 29 July 2023"), ("on 22 July", "on 29 July 2023"), ("in the 1990s", "in 2004")],
        ),
        (
            _read_amounts,
            [
                ("about 4 million people", "4.1 million people"),
                ("12 seats", "twelve seats"),
                ("about 30 seats", "29 seats"),
                ("over 40 guests", "48 guests"),
                ("4,000 eels", "4,012 eels"),
                ("41 metres high", "135 feet high"),
                ("41 metres high", "41 years old"),
            ],
            [
                ("5 million people", "4.1 million people"),
                ("4.5 million people", "4.6 million people"),
                ("12 seats", "fourteen seats"),
                ("at most twelve seats", "14 seats"),
                ("twenty-four seats", "twenty-five seats"),
                ("4,000 eels", "4,200 eels"),
                ("41 metres high", "48 metres high"),
                ("52% burned", "41 per cent burned"),
                ("$400", "500 dollars"),
            ],
        ),
    ],
    ids=["dates", "amounts"],
)
def test_values_agree_or_differ(
    read: Callable[[str], list[Any]], alike: list[tuple[str, str]], different: list[tuple[str, str]]
) -> None:
    assert [pair for pair in alike if not _agree(read, *pair)] == []
    assert [pair for pair in different if _agree(read, *pair)] == []


def test_dates_are_no_amounts() -> None:
    assert [amount.text for amount in _read_amounts("In 2009, on 4 May, 31 boats came.")] == ["31"]
