"""The table of fingerprints behaves like a dictionary and needs less memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.sources.fingerprints import FingerprintTable, hash_content


@given(st.lists(st.tuples(st.integers(1, 2**64 - 1) | st.integers(1, 5).map(lambda n: n << 32), st.integers(0, 2**32 - 1))))
def test_it_holds_the_first_number_of_each(entries: list[tuple[int, int]]) -> None:
    table, model = FingerprintTable(), dict[int, int]()
    for key, number in entries:
        assert table.store_first(key, number) == model.get(key)
        model.setdefault(key, number)
    assert len(table) == len(model)
    assert all(table.find_number(key) == number for key, number in model.items())


def test_it_grows_and_loses_nothing() -> None:
    table = FingerprintTable()
    keys = [hash_content(str(number).encode()) for number in range(5000)]
    assert [table.store_first(key, number) for number, key in enumerate(keys)] == [None] * 5000
    assert [table.find_number(key) for key in keys] == list(range(5000))
    assert table.find_number(hash_content(b"another")) is None
    assert table.find_number(0) is None
    assert (table.store_first(0, 7), table.find_number(0)) == (None, 7)
