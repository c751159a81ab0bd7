"""Themes rated by a cheap model: from the roots down, within a number of calls, and with failures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_models import Unstreamed

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.llm.base import ModelReply, ModelRequest
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls
from agentic_rag_backend.retrieval.themes.rating import MAX_PER_CALL, RatedTheme, Ratings, ThemeRater

PARENTS: dict[str, str | None] = {"root": None, "left": "root", "right": "root", "leaf": "left", "other": None, "under": "other"}


class Model(Unstreamed):
    """Gives each theme the relevance that a test sets. Records the themes of each call."""

    generative = True

    def __init__(self, relevance: Mapping[str, object], *, error: Exception | None = None) -> None:
        self.relevance, self.error = relevance, error
        self.shown: list[list[str]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        user = request.messages[-1].content
        names = dict(re.findall(r'<theme id="(\d+)" name="(\w+)"', user))
        self.shown.append(list(names.values()))
        if self.error is not None:
            raise self.error
        ratings = [
            {"theme": int(number), "relevance": self.relevance[name]} for number, name in names.items() if name in self.relevance
        ]
        return ModelReply("", Usage(10, 5, 1), self.name, {"ratings": [*ratings, {"theme": 99, "relevance": 5}, "nonsense"]})


async def rate(model: Model, ids: Sequence[str] = tuple(PARENTS), *, calls: int = 5) -> tuple[Ratings, Spending]:
    spending = Spending(calls)
    themes = [RatedTheme(id, id, f"About {id}.", 0.5) for id in ids]
    return await ThemeRater(StructuredCalls(model)).rate("What?", themes, PARENTS, spending), spending


async def test_what_is_below_a_theme_of_no_use_is_not_looked_at() -> None:
    model = Model({"root": 3, "other": 0, "left": 5, "right": 0, "leaf": 1})
    ratings, spending = await rate(model)
    assert [sorted(names) for names in model.shown] == [["other", "root"], ["left", "right"], ["leaf"]]
    assert set(ratings.scores) == {"root", "left", "leaf"}
    assert ratings.scores["left"] > ratings.scores["root"] > ratings.scores["leaf"]
    assert (ratings.dropped, ratings.unrated, spending.begun, spending.usage.calls) == (3, 0, 3, 3)


async def test_without_calls_left_the_rest_stays_behind_what_is_rated() -> None:
    ratings, spending = await rate(Model({"root": 1, "other": 0}), calls=1)
    assert spending.begun == 1
    assert set(ratings.scores) == {"root", "left", "right", "leaf"}
    assert ratings.unrated == 3
    assert ratings.scores["root"] > max(ratings.scores[id] for id in ("left", "right", "leaf"))


async def test_a_model_that_fails_drops_nothing() -> None:
    model = Model({}, error=ModelReplyInvalid("no JSON"))
    ratings, spending = await rate(model)
    assert set(ratings.scores) == set(PARENTS)
    assert set(ratings.scores.values()) == {0.25}
    assert spending.failures == ["model_reply_invalid"] * 3


async def test_many_themes_take_more_calls() -> None:
    ids = [f"t{number}" for number in range(MAX_PER_CALL + 1)]
    model = Model(dict.fromkeys(ids, 2))
    _, spending = await rate(model, ids, calls=2)
    assert [len(names) for names in model.shown] == [MAX_PER_CALL, 1]
    model = Model(dict.fromkeys(ids, 2))
    ratings, spending = await rate(model, ids, calls=1)
    assert (spending.begun, ratings.unrated) == (1, 1)


@pytest.mark.parametrize("relevance", [None, "5", True, float("nan")])
async def test_what_is_no_number_is_no_rating(relevance: object) -> None:
    ratings, _ = await rate(Model({"root": relevance}), ["root"])
    assert ratings.unrated == 1


@given(
    st.dictionaries(st.sampled_from(sorted(PARENTS)), st.one_of(st.floats(-2, 9), st.just(None), st.just("x"))), st.integers(0, 6)
)
async def test_scores_are_shares_and_calls_are_bounded(relevance: dict[str, Any], calls: int) -> None:
    model = Model(relevance)
    ratings, spending = await rate(model, calls=calls)
    assert all(0 <= score <= 1 for score in ratings.scores.values())
    assert len(model.shown) == spending.begun <= calls
    assert len(ratings.scores) + ratings.dropped == len(PARENTS)
