"""Selection of themes over a hierarchy: invariants over random trees, and typical cases."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.retrieval.themes.rating import ThemeSelection, ancestors, select_themes

PARENTS: dict[str, str | None] = {"root": None, "left": "root", "right": "root", "leaf": "left", "other": None}


@dataclass(frozen=True)
class Candidate:
    id: str
    score: float
    tokens: int


Tree = tuple[list[Candidate], dict[str, str | None]]


def select(candidates: Sequence[Candidate], parents: Mapping[str, str | None], budget: int, limit: int) -> ThemeSelection:
    scores, tokens = {each.id: each.score for each in candidates}, {each.id: each.tokens for each in candidates}
    return select_themes(scores, parents, tokens.__getitem__, budget_tokens=budget, limit=limit)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Return candidates of a random forest. Some of their ancestors are not candidates."""
    count = draw(st.integers(0, 24))
    parents: dict[str, str | None] = {}
    for number in range(count):
        above = draw(st.one_of(st.none(), st.integers(0, number - 1))) if number else None
        parents[f"t{number}"] = None if above is None else f"t{above}"
    scores = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5, 0.75, 1.0])
    made = [Candidate(id, draw(scores), draw(st.integers(1, 40))) for id in parents if draw(st.integers(0, 4))]
    return made, parents


@given(trees(), st.integers(0, 200), st.integers(0, 12), st.integers(0, 1_000))
def test_what_is_chosen(tree: Tree, budget: int, limit: int, seed: int) -> None:
    candidates, parents = tree
    chosen = select(candidates, parents, budget, limit)
    by_id = {each.id: each for each in candidates}
    above = {id: set(ancestors(id, parents)) for id in by_id}
    assert len(chosen.ids) == len(set(chosen.ids)) <= limit
    assert not [(a, b) for a in chosen.ids for b in chosen.ids if a in above[b]]
    assert chosen.tokens == sum(by_id[id].tokens for id in chosen.ids) <= budget
    scores = [by_id[id].score for id in chosen.ids]
    assert scores == sorted(scores, reverse=True)
    # Every theme that could still be taken is taken.
    if len(chosen.ids) < limit:
        for id in set(by_id) - set(chosen.ids):
            related = any(other in above[id] or id in above[other] for other in chosen.ids)
            assert related or by_id[id].tokens > budget - chosen.tokens
    # A theme is only left out for a relative that is at least as good.
    for id in set(by_id) - set(chosen.ids):
        kin = [by_id[other].score for other in chosen.ids if other in above[id] or id in above[other]]
        # Or because it exceeded the rest of the budget.
        assert not kin or max(kin) >= by_id[id].score or chosen.too_large
    shuffled = list(candidates)
    random.Random(seed).shuffle(shuffled)
    assert select(shuffled, parents, budget, limit) == chosen


def choose(*given: tuple[str, float, int], budget: int = 100, limit: int = 10) -> tuple[str, ...]:
    return select([Candidate(*each) for each in given], PARENTS, budget, limit).ids


def test_a_branch_and_a_better_relative() -> None:
    assert choose(("root", 0.6, 10), ("left", 0.8, 10), ("right", 0.3, 10)) == ("left", "right")

    assert choose(("root", 0.9, 10), ("left", 0.8, 10), ("leaf", 0.7, 10), ("other", 0.1, 10)) == ("root", "other")

    assert choose(("root", 0.5, 10), ("leaf", 0.6, 10)) == ("leaf",)

    selection = select([Candidate("root", 0.9, 80), Candidate("other", 0.5, 30), Candidate("x", 0.4, 20)], PARENTS, 100, 10)
    assert (selection.ids, selection.tokens, selection.too_large) == (("root", "x"), 100, 1)

    assert list(ancestors("a", {"a": "b", "b": "c", "c": "a"})) == ["b", "c"]


def test_tokens_are_counted_only_of_themes_that_may_be_taken() -> None:
    counted: list[str] = []

    def tokens(id: str) -> int:
        counted.append(id)
        return 10

    scores = {"left": 0.9, "root": 0.8, "other": 0.7, "right": 0.6}
    assert select_themes(scores, PARENTS, tokens, budget_tokens=100, limit=2).ids == ("left", "other") == tuple(counted)
