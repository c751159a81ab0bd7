"""Drift: its follow-up questions, the number of calls, the merging of passages, and partial failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_passages import hit_of, theme_of
from scripted_models import Unstreamed

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable, StoreUnavailable
from agentic_rag_backend.models.llm.base import ModelReply, ModelRequest
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls
from agentic_rag_backend.retrieval.themes.drift import (
    ASKED_WEIGHT,
    SEEN_WEIGHT,
    Drift,
    DriftOptions,
    follow_ups_of_themes,
    merge_hits,
)
from agentic_rag_backend.retrieval.themes.finder import FoundThemes, ThemeSearch
from agentic_rag_backend.stores.catalogue.base import GenerationPointer

Ask = Callable[..., Query]
MakeHit = Callable[..., Hit]


def theme(name: str, score: float = 0.4, keywords: tuple[str, ...] = ("pots", "gear")) -> ThemeHit:
    return theme_of(name, score, summary=f"About {name}.", keywords=keywords)


class Finder:
    """Finds the themes that a test sets, or fails."""

    def __init__(self, *themes: ThemeHit, error: Exception | None = None) -> None:
        self.themes, self.error = themes, error
        self.searches: list[ThemeSearch] = []

    async def find(self, query: Query, search: ThemeSearch, spending: Spending | None = None) -> FoundThemes:
        self.searches.append(search)
        if self.error is not None:
            raise self.error
        return FoundThemes(self.themes, GenerationPointer(generation=1, stale=False), {"chosen": len(self.themes)})


class Local:
    """Finds a hit named after the question. Fails for texts in ``fails``."""

    def __init__(self, hit: MakeHit, fails: Mapping[str, Exception] | None = None) -> None:
        self.hit, self.fails = hit, fails or {}
        self.asked: list[Query] = []

    async def retrieve(self, query: Query) -> Retrieval:
        self.asked.append(query)
        if query.text in self.fails:
            raise self.fails[query.text]
        return Retrieval(
            hits=(self.hit(query.text), self.hit("shared", 0.5)),
            relevance=0.9 if len(self.asked) > 1 else 0.6,
            trace=Trace(strategy="hybrid", methods_used=("dense", "sparse")),
        )


class Model(Unstreamed):
    generative = True

    def __init__(self, reply: Mapping[str, Any] | Exception, *, generative: bool = True) -> None:
        self.reply, self.generative = reply, generative
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        return ModelReply("", Usage(10, 5, 1), self.name, self.reply)


def drift(finder: Finder, local: Local, model: Model) -> Drift:
    return Drift(cast("Any", finder), local, StructuredCalls(model), DriftOptions())


ASKED = {"answer": "Gear is lost.", "follow_ups": [{"question": "Who pays?"}, {"question": "Who pays?"}, {"question": " "}, "x"]}


async def test_the_model_is_asked_once_and_its_questions_and_sketch_are_searched(query: Ask, hit: MakeHit) -> None:
    model, local = Model(ASKED), Local(hit)
    found = await drift(Finder(theme("Gear")), local, model).retrieve(query("What of gear?", limit=10))
    assert [asked.text for asked in local.asked] == ["What of gear?", "Who pays?", "Gear is lost."]
    assert [each.id for each in found.hits] == ["What of gear?", "Who pays?", "Gear is lost.", "shared"]
    assert [each.score for each in found.hits] == [1.0, ASKED_WEIGHT, ASKED_WEIGHT, 0.5]
    assert found.usage == Usage(10, 5, 1)
    assert len(model.requests) == 1
    assert found.themes == (theme("Gear"),)
    assert found.trace.details["follow_ups"] == ["Who pays?"]
    assert found.trace.details["asked_by"] == "model"
    # Results of follow-up questions are no evidence that the question can be answered.
    assert found.relevance == 0.6
    assert not found.trace.fallback_used
    # The sketch is a search text only and is not shown.
    assert "Gear is lost." not in str(found.trace)


async def test_without_a_model_the_question_is_seen_from_each_theme(query: Ask, hit: MakeHit) -> None:
    model, local = Model({}, generative=False), Local(hit)
    themes = [theme("A"), theme("B", keywords=()), theme("C"), theme("D", keywords=("d",))]
    found = await drift(Finder(*themes), local, model).retrieve(query("What?", limit=10))
    assert found.trace.details["follow_ups"] == ["pots gear", "B", "d"]
    assert [each.score for each in found.hits if each.id == "What? B"] == [SEEN_WEIGHT]
    assert (model.requests, found.usage, found.trace.fallback_used) == ([], Usage(), False)
    assert found.trace.details["asked_by"] == "themes"


async def test_a_model_that_fails_leaves_the_themes_own_questions_and_a_flag(query: Ask, hit: MakeHit) -> None:
    found = await drift(Finder(theme("Gear")), Local(hit), Model(ModelUnavailable("away"))).retrieve(query("What?"))
    assert found.trace.details["follow_ups"] == ["pots gear"]
    assert found.trace.fallback_reason == "follow-up questions failed: model_unavailable"
    assert found.trace.fallback_used


@pytest.mark.parametrize("options", [{"follow_ups": 0}, {"follow_ups": 2}])
async def test_follow_ups_are_bounded(query: Ask, hit: MakeHit, options: Mapping[str, Any]) -> None:
    local = Local(hit)
    reply = {"answer": "", "follow_ups": [{"question": f"Question {number}?"} for number in range(9)]}
    await drift(Finder(theme("Gear")), local, Model(reply)).retrieve(query("What?", options=options))
    assert len(local.asked) == 1 + options["follow_ups"]
    assert all(not asked.options for asked in local.asked)


async def test_a_follow_up_that_fails_does_not_take_the_rest_with_it(query: Ask, hit: MakeHit) -> None:
    local = Local(hit, {"Who pays?": StoreUnavailable("away")})
    found = await drift(Finder(theme("Gear")), local, Model(ASKED)).retrieve(query("What?", limit=10))
    assert "Gear is lost." in [each.id for each in found.hits]
    assert found.trace.fallback_reason == "1 of 2 follow-up searches failed: store_unavailable"


async def test_without_themes_the_passages_answer_and_say_so(query: Ask, hit: MakeHit) -> None:
    model = Model(ASKED)
    found = await drift(Finder(error=StoreUnavailable("away")), Local(hit), model).retrieve(query("What?"))
    assert [each.id for each in found.hits] == ["What?", "shared"]
    assert found.trace.fallback_reason == "the themes failed: store_unavailable"
    assert model.requests == []


async def test_the_questions_own_search_must_not_fail(query: Ask, hit: MakeHit) -> None:
    local = Local(hit, {"What?": StoreUnavailable("away")})
    with pytest.raises(StoreUnavailable):
        await drift(Finder(theme("Gear")), local, Model(ASKED)).retrieve(query("What?"))


def test_long_questions_are_cut_before_they_are_seen_from_a_theme() -> None:
    assert all(len(text) < 500 for text in follow_ups_of_themes("x" * 8000, [theme("A")], 3).follow_ups)


SCORES = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 1)), max_size=8, unique_by=lambda each: each[0])


@given(own=SCORES, followed=st.lists(SCORES, max_size=4), weight=st.sampled_from([0.5, 0.8]))
def test_merging(own: list[tuple[str, float]], followed: list[list[tuple[str, float]]], weight: float) -> None:
    first, lists = [hit_of(*each) for each in own], [[hit_of(*each) for each in one] for one in followed]
    found = merge_hits(first, lists, weight=weight)
    ids = [each.id for each in found]
    assert len(ids) == len(set(ids)) == len({id for each in (own, *followed) for id, _ in each})
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    for each in found:
        scores = [score for id, score in own if id == each.id]
        scores += [weight * score for one in followed for id, score in one if id == each.id]
        assert each.score == max(scores)
    other_way = merge_hits(first, lists[::-1], weight=weight)
    assert {(each.id, each.score) for each in other_way} == {(each.id, each.score) for each in found}, "only ties differ"
