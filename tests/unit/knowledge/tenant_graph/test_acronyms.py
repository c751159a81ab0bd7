"""The index of names by acronym agrees with the comparison of one name, and takes time and memory in proportion to the names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cpu_time import cpu_s
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.tenant_graph import graph
from agentic_rag_backend.knowledge.tenant_graph.graph import Acronyms, Names

WORDS = st.sampled_from(
    ["alpha", "beta", "of", "the", "a", "and", "b-c", "x-ray", "new", "éa", "ébène", "(dog)", "42", "7up", "-", "&", "north"]
)
NAMES = st.sets(st.lists(WORDS, min_size=1, max_size=5).map(" ".join), max_size=12)


@given(names=NAMES, short=st.text("ABNTXO4É", min_size=2, max_size=4))
def test_the_index_agrees_with_the_comparison_of_each_name(names: set[str], short: str) -> None:
    if not (short[0].isalpha() and short.isascii()):
        return
    fitting = sorted(name for name in names if name[0] == short[0].lower() and is_acronym_of(short, name.split()))
    assert list(Acronyms(names).names(short)) == fitting


@given(settled=NAMES, changed=NAMES, removed=NAMES)
def test_changed_and_removed_names_take_precedence(settled: set[str], changed: set[str], removed: set[str]) -> None:
    changes = dict.fromkeys(changed, (2,)) | dict.fromkeys(removed, ())
    names = Names(dict.fromkeys(settled, (1,)), changes)
    expected = {**dict.fromkeys(settled, (1,)), **changes}
    assert {name: names.get(name) for name in expected} == {name: entities or None for name, entities in expected.items()}
    fitting = {name: names[name] for name in names if name[0] == "a" and is_acronym_of("AB", name.split())}
    assert dict(names.expand_abbreviation("AB")) == fitting


def test_a_name_of_many_small_words_has_a_bounded_number_of_acronyms() -> None:
    long = " ".join("abcdefgh"[number % 8] for number in range(200))
    index = Acronyms([f"{long} {number}" for number in range(20)])
    list(index.names("AB"))
    assert len(index._positions) <= 20 * 512


def test_the_number_of_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_MOST_ENTRIES", 10)
    assert len(list(Acronyms([f"alpha beta{number}" for number in range(40)]).names("AB"))) == 10


def test_names_of_one_acronym_cost_in_proportion_to_their_number() -> None:
    def seconds(count: int, naming: Callable[[int], str]) -> float:
        names = [naming(number) for number in range(count)]
        return cpu_s(lambda: list(Acronyms(names).names("AB")))

    for naming in (lambda number: f"alpha beta{number}", lambda number: f"a{number} b c d e f g h {number}"):
        assert seconds(1_600, naming) < 12 * seconds(400, naming)
