"""Rerankers by a model: `cross_encoder` and `http` score passages, `llm` orders lists, `late_interaction` compares words.

Sun et al., "Is ChatGPT good at search? Investigating large language models as re-ranking agents", EMNLP 2023 (RankGPT): a window
slides over the candidates from the last to the first, so that good ones rise through several windows.

Khattab and Zaharia, "ColBERT: efficient and effective passage search via contextualized late interaction over BERT", SIGIR 2020.
The bundled encoder was not trained for it, but its word pieces are compared in their context all the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ModelUnavailable, RerankerUnavailable
from agentic_rag_backend.models.embedding.base import TokenEncoder, Vectors
from agentic_rag_backend.models.llm.base import INTEGER, list_of, object_of, objects_in
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.rerank.base import Reranking, passage_of
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, number_in


class ScoredByModel:
    """Takes the model's scores.

    Args:
        scorer: None if the deployment has none.
        remedy: how to configure one.
    """

    def __init__(self, scorer: PassageScorer | None, *, remedy: str) -> None:
        self._scorer = scorer
        self._remedy = remedy

    def check(self) -> None:
        """See `Reranker`."""
        self._model.check()

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the model's score of each candidate."""
        model = self._model
        scores = await model.score(query.text, [passage_of(hit) for hit in candidates], account)
        return Reranking(
            scores={hit.id: score for hit, score in zip(candidates, scores, strict=True)}, details={"model": model.name}
        )

    async def try_out(self) -> str:
        """Call the model with one passage. Return a description of it."""
        model = self._model
        await model.score("Does the reranker work?", ["It works."], UsageAccount())
        return f"{model.name} responds"

    @property
    def _model(self) -> PassageScorer:
        if self._scorer is None:
            raise RerankerUnavailable(self._remedy)
        return self._scorer


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


TokenVectors = NDArray[np.float16]
OWN_SHARE = 0.5
"""Share of the strategy's score ÷ the best score. The rest is the share of MaxSim."""


class TokenVectorCache:
    """Word piece vectors of passages, the least recently used ones dropped. The vectors are kept as float16.

    A chunk's id names its tenant and its text, so that no tenant can find out the texts of another by the time of a search.

    Args:
        max_bytes: bound of all vectors together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[str, str], TokenVectors] = OrderedDict()
        self.size_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: tuple[str, str]) -> TokenVectors | None:
        """Return the vectors of a chunk's id and text."""
        vectors = self._held.get(key)
        self.hits += vectors is not None
        self.misses += vectors is None
        if vectors is not None:
            self._held.move_to_end(key)
        return vectors

    def put(self, key: tuple[str, str], vectors: TokenVectors) -> None:
        """Keep vectors. Vectors that are larger than the whole cache are not kept."""
        if key in self._held or vectors.nbytes > self._max_bytes:
            return
        self._held[key] = vectors
        self.size_bytes += vectors.nbytes
        while self.size_bytes > self._max_bytes:
            self.size_bytes -= self._held.popitem(last=False)[1].nbytes


class LateInteraction:
    """Scores passages by MaxSim and the strategy's score.

    Args:
        encoder: gives the vectors of word pieces.
        cache: keeps those of passages.
    """

    def __init__(self, encoder: TokenEncoder, cache: TokenVectorCache) -> None:
        self._encoder = encoder
        self.cache = cache

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the score of each candidate."""
        texts = [passage_of(hit) for hit in candidates]
        keys = [(hit.id, text) for hit, text in zip(candidates, texts, strict=True)]
        cached = [self.cache.get(key) for key in keys]
        missing_numbers = [number for number, vectors in enumerate(cached) if vectors is None]
        question_vectors, *passage_vectors = await self._encoder.encode_tokens(
            [query.text, *(texts[number] for number in missing_numbers)]
        )
        for number, vectors in zip(missing_numbers, passage_vectors, strict=True):
            cached[number] = small = vectors.astype(np.float16)
            self.cache.put(keys[number], small)
        best = max((hit.score for hit in candidates), default=0.0)
        own_share = OWN_SHARE if best else 0.0  # texts that no strategy found have no score
        similar = [max_sim(question_vectors, vectors) if vectors is not None else 0.0 for vectors in cached]
        scores = {
            hit.id: own_share * hit.score / (best or 1.0) + (1 - own_share) * value
            for hit, value in zip(candidates, similar, strict=True)
        }
        return Reranking(scores=scores, details={"encoded": len(missing_numbers)})


def max_sim(question: Vectors, passage: TokenVectors) -> float:
    """Return the mean, over the word pieces of the question, of the greatest cosine with one of the passage, in [0, 1].

    Args:
        question: unit rows, shape (word pieces, dimensions).
        passage: unit rows, shape (word pieces, dimensions).
    """
    if not len(question) or not len(passage):
        return 0.0
    cosines = question.astype(np.float32) @ passage.astype(np.float32).T
    return float(np.clip(cosines.max(axis=1).mean(), 0.0, 1.0))
