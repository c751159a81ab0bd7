"""Listwise reranking by a language model: windows, replies, budget and counting."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.query import Hit, Query, Rerank
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ModelUnavailable, RerankerUnavailable
from agentic_rag_backend.models.llm.base import ExtractiveModel
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.retrieval.rerank.scored import STEP, WINDOW, Listwise, falling, judge_window, windows_of
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_testing.models.server import ModelServer

Asking = Callable[[Callable[[str], str]], Listwise]


@given(count=st.integers(1, 200), calls=st.integers(1, 10))
def test_windows_slide_from_the_last_candidates_to_the_first(count: int, calls: int) -> None:
    windows = windows_of(count, calls)
    assert len(windows) <= calls
    assert windows[-1].start == 0
    assert all(0 < len(each) <= WINDOW for each in windows)
    reached = sorted({number for each in windows for number in each})
    assert reached == list(range(min(count, WINDOW + STEP * (calls - 1))))
    for later, earlier in pairwise(windows):
        assert earlier.stop >= later.start + min(STEP, len(later)), "the best of a window rise into the next"


def test_a_reply_orders_its_window_whatever_it_contains() -> None:
    reply = {
        "ranking": [
            {"passage": 2, "relevance": 9},
            {"passage": 7, "relevance": 5},
            {"passage": 2, "relevance": 1},
            {"passage": "1", "relevance": 5},
            {"passage": 1, "relevance": 99},
            "nothing",
        ]
    }
    found = judge_window(reply, [10, 11, 12])
    assert found.order == (11, 10, 12)
    assert found.relevance == {11: 0.9, 10: 1.0}
    assert judge_window({}, [10, 11]).order == (10, 11)


def test_scores_fall_along_the_order() -> None:
    assert falling([3, 1, 2, 0], {3: 0.5, 1: 0.9, 2: 0.2}) == {3: 0.5, 1: 0.5, 2: 0.2, 0: 0.0}


@pytest.fixture
async def asking(server: ModelServer) -> AsyncIterator[Asking]:
    """Return a function that makes a reranker whose model replies with a function of the prompt."""
    server.reset()
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="any", timeout_s=20, max_concurrency=2)

    def make(reply: Callable[[str], str]) -> Listwise:
        server.matchers = [(lambda text: "<passage id=" in text, reply)]
        return Listwise(StructuredCalls(model))

    yield make
    await model.close()


def best_is(id: str) -> Callable[[str], str]:
    """Return a model that prefers the passage about ``id``, and keeps the others in their order."""

    def reply(prompt: str) -> str:
        passages = prompt.split("<passage id=")[1:]
        numbers = sorted(range(len(passages)), key=lambda number: f"text of {id}" not in passages[number])
        return json.dumps(
            {"ranking": [{"passage": number + 1, "relevance": 8 - bool(place)} for place, number in enumerate(numbers)]}
        )

    return reply


async def test_the_best_of_many_rises_through_the_windows(
    asking: Asking, query: Callable[..., Query], hit: Callable[..., Hit]
) -> None:
    hits = [hit(f"c{number:02}", 1 - number / 100) for number in range(45)]
    account = UsageAccount()
    made = await asking(best_is("c44")).rerank(query(rerank=Rerank(name="llm", candidates=45)), hits, account)
    assert next(iter(made.scores)) == "c44"
    assert list(made.scores.values()) == sorted(made.scores.values(), reverse=True)
    assert made.details == {"calls": 4, "read": 45}
    assert account.usage.calls == 4
    assert account.usage.prompt_tokens > 1000


async def test_the_number_of_calls_is_bounded(asking: Asking, query: Callable[..., Query], hit: Callable[..., Hit]) -> None:
    hits = [hit(f"c{number:02}", 1 - number / 100) for number in range(45)]
    account = UsageAccount()
    asked = query(rerank=Rerank(name="llm", candidates=45, options={"max_calls": 1}))
    made = await asking(best_is("c19")).rerank(asked, hits, account)
    assert (next(iter(made.scores)), len(made.scores), account.usage.calls) == ("c19", 20, 1)


async def test_a_useless_reply_is_an_error_and_is_counted(
    asking: Asking, query: Callable[..., Query], hit: Callable[..., Hit]
) -> None:
    account = UsageAccount()
    with pytest.raises(ModelUnavailable, match="model_reply_invalid"):
        await asking(lambda _: "no JSON").rerank(query(), [hit("a"), hit("b")], account)
    assert account.usage.calls == account.usage.failed_calls > 0


async def test_without_a_model_it_is_unavailable() -> None:
    model = ExtractiveModel()
    with pytest.raises(RerankerUnavailable, match="LLM=openai"):
        Listwise(StructuredCalls(model)).check()
