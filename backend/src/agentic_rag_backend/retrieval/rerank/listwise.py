"""`llm`: a language model orders lists of passages.

Sun et al., "Is ChatGPT good at search? Investigating large language models as re-ranking agents", EMNLP 2023 (RankGPT): a window
slides over the candidates from the last to the first, so that good ones rise through several windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ModelUnavailable, RerankerUnavailable
from agentic_rag_backend.models.llm.schemas import INTEGER, list_of, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.rerank.passages import passage_of
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, number_in, objects_in

WINDOW = 20
STEP = 10
MAX_CALLS = 4
"""Default maximum number of model calls: enough for 50 candidates."""
MAX_RELEVANCE = 10
PASSAGE_CHARACTERS = 1_200
"""Characters of a passage that the model reads: about 300 tokens."""
_TOKENS_A_PASSAGE = 20
_SCHEMA = object_of({"ranking": list_of(object_of({"passage": INTEGER, "relevance": INTEGER}), WINDOW)})


@dataclass(frozen=True, slots=True)
class Judged:
    """A window in the model's order, and the relevance in [0, 1] that it gave to passages by their number."""

    order: tuple[int, ...]
    relevance: Mapping[int, float]


def windows_of(count: int, max_calls: int) -> list[range]:
    """Return the windows over ``count`` candidates, last window first, at most ``max_calls``.

    If more windows were needed, the last candidates are left out.
    """
    reach = min(count, WINDOW + STEP * (max_calls - 1))
    starts = [0, *range(reach - WINDOW, 0, -STEP)] if reach > WINDOW else [0]
    return [range(start, min(start + WINDOW, reach)) for start in sorted(starts, reverse=True)]


def judge_window(parsed: Mapping[str, object], window: Sequence[int]) -> Judged:
    """Return a reply's order of a window. Passages that it does not list follow in their order, and have no relevance.

    Args:
        window: numbers of the candidates, in the order in which the model read them as 1, 2, ….
    """
    relevance: dict[int, float] = {}
    for item in objects_in(parsed, "ranking"):
        passage_number = number_in(item, "passage", low=0, high=len(window) + 1)
        value = number_in(item, "relevance", low=0, high=MAX_RELEVANCE)
        if passage_number is not None and value is not None and 1 <= passage_number <= len(window):
            relevance.setdefault(window[int(passage_number) - 1], value / MAX_RELEVANCE)
    return Judged((*relevance, *(number for number in window if number not in relevance)), relevance)


def falling(order: Sequence[int], relevance: Mapping[int, float]) -> dict[int, float]:
    """Return scores that do not rise along the order: each number has its relevance, at most the one before. Unrated ones have 0.

    The model's order counts. A relevance that contradicts it is lowered.
    """
    scores: dict[int, float] = {}
    ceiling = 1.0
    for number in order:
        ceiling = min(ceiling, relevance.get(number, 0.0))
        scores[number] = ceiling
    return scores


class ListwiseRequestOptions(RequestOptions):
    max_calls: int = Field(
        MAX_CALLS,
        ge=1,
        le=10,
        description="maximum number of requests to the language model; each orders 20 passages",
    )


class Listwise:
    """Asks the fast model. ``options.max_calls`` bounds the calls."""

    def __init__(self, calls: StructuredCalls) -> None:
        self._calls = calls

    def check(self) -> None:
        """See `Reranker`."""
        if not self._calls.possible:
            raise RerankerUnavailable("reranker 'llm' requires a language model: set LLM=openai")

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return scores that fall in the model's order. Candidates beyond the last window have none."""
        options = query.rerank.options if query.rerank is not None else {}
        windows = windows_of(len(candidates), int(options.get("max_calls", MAX_CALLS)))
        order = list(range(windows[0].stop))
        relevance: dict[int, float] = {}
        for places in windows:
            window = order[places.start : places.stop]
            judgement = await self._judge(query.text, [candidates[number] for number in window], window, account)
            order[places.start : places.stop] = judgement.order
            relevance |= judgement.relevance
        scores = {candidates[number].id: score for number, score in falling(order, relevance).items()}
        return Reranking(scores=scores, details={"calls": len(windows), "read": len(order)})

    async def _judge(self, question: str, hits: Sequence[Hit], window: Sequence[int], account: UsageAccount) -> Judged:
        passages = "\n".join(
            fence("passage", passage_of(hit)[:PASSAGE_CHARACTERS], attributes={"id": number})
            for number, hit in enumerate(hits, 1)
        )
        values = {"passages": passages, "question": fence("question", question)}
        reply = await self._calls.ask(
            built_in("rerank"), values, _SCHEMA, max_tokens=100 + _TOKENS_A_PASSAGE * len(hits), account=account
        )
        if reply.parsed is None:
            raise ModelUnavailable(f"the language model did not order the passages: {reply.failure}")
        return judge_window(reply.parsed, window)
