"""A rerank endpoint over HTTP, in the form of Cohere or Jina. Other servers, such as vLLM, have the same forms."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import orjson

from agentic_rag_backend.breaker import Breaker
from agentic_rag_backend.domain.usage import UsageAccount, read_reported
from agentic_rag_backend.errors import ModelRateLimited, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models.endpoint import (
    OUTAGES,
    Attempt,
    ModelUnreachable,
    ReplyTooLong,
    bound_reply,
    outcome_of,
    reason_of,
)
from agentic_rag_backend.models.llm.retries import FailedAttempt, RetryVerdict, decide_retry, error_for_status, retry_after_s
from agentic_rag_backend.models.model_health import Health
from agentic_rag_backend.telemetry.metrics import Outcome

PURPOSE = "rerank"
Api = Literal["cohere", "jina"]


@dataclass(frozen=True, slots=True)
class RerankForm:
    """The form of an API: fields of requests in addition to the common ones, and the tokens that a reply reports."""

    extra: Mapping[str, Any]
    tokens: Callable[[Mapping[str, Any]], object]


def _make_reader(*path: str) -> Callable[[Mapping[str, Any]], object]:
    def read_member(reply: Mapping[str, Any]) -> object:
        value: Any = reply
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    return read_member


FORMS: Mapping[Api, RerankForm] = {
    # Cohere charges for searches, and reports tokens for information.
    "cohere": RerankForm({}, _make_reader("meta", "tokens", "input_tokens")),
    "jina": RerankForm({"return_documents": False}, _make_reader("usage", "total_tokens")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """Address of an endpoint. ``url`` is the whole address of its route. ``timeout_s`` bounds a call, with all its retries."""

    url: str
    api: Api
    model: str
    api_key: str | None = None
    timeout_s: float = 10.0


class HttpScorer:
    """Sends the question and the passages in one request. A failed request is repeated within the time limit."""

    def __init__(self, address: EndpointAddress) -> None:
        self._address = address
        headers = {"authorization": f"Bearer {address.api_key}"} if address.api_key else {}
        self._client = httpx2.AsyncClient(
            headers=headers, timeout=address.timeout_s, event_hooks={"response": [bound_reply]}, follow_redirects=False
        )
        self._breaker = Breaker(OUTAGES)
        self.health = Health(self._ping_server)

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._address.model

    def check(self) -> None:
        """See `PassageScorer`."""
        self._breaker.check_state()

    async def score(self, question: str, passages: Sequence[str], account: UsageAccount) -> Sequence[float]:
        """See `PassageScorer`."""
        address, form = self._address, FORMS[self._address.api]
        body = {
            "model": address.model,
            "query": question,
            "documents": list(passages),
            "top_n": len(passages),
            **form.extra,
        }
        content = orjson.dumps(body)
        deadline = asyncio.get_running_loop().time() + address.timeout_s
        with self._breaker.watch_call():
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._score_passages(content, len(passages), deadline, account)
            except TimeoutError:
                raise ModelUnavailable(f"the reranker {self.name!r} did not answer within {address.timeout_s:g} s") from None

    async def close(self) -> None:
        """Release connections."""
        await self.health.close()
        await self._client.aclose()

    async def _score_passages(self, content: bytes, count: int, deadline: float, account: UsageAccount) -> list[float]:
        """Return the scores of the first attempt that succeeds."""
        attempt = 1
        while True:
            counted_attempt = Attempt(self.name, PURPOSE, account, self.health)
            with counted_attempt.watch_failure():
                reply, failure = await self._attempt_request(content)
                scores = scores_in(reply, count) if failure is None else []
            if failure is None:
                tokens = FORMS[self._address.api].tokens(reply)
                counted_attempt.end_attempt("ok", prompt_tokens=read_reported(tokens) or 0)
                return scores
            counted_attempt.end_attempt(outcome_of(failure))
            left_s = deadline - asyncio.get_running_loop().time()
            # random() spreads retries. It is not used for secrets.
            decision = decide_retry(failure, attempt=attempt, left_s=left_s, jitter=random.random())  # noqa: S311
            if decision.verdict is not RetryVerdict.RETRY:
                raise self._given_up(failure, decision.verdict, attempt, decision.retry_after_s)
            await asyncio.sleep(decision.pause_s)
            attempt += 1

    async def _attempt_request(self, content: bytes) -> tuple[Mapping[str, Any], FailedAttempt | None]:
        """Return the reply of one request, or its failure.

        Raises:
            ModelReplyInvalid: the reply is not a JSON object.
        """
        try:
            response = await self._client.post(self._address.url, content=content, headers={"content-type": "application/json"})
        except ReplyTooLong as error:
            raise ModelReplyInvalid(f"the reranker {self.name!r} answered with {error}") from None
        except httpx2.HTTPError:
            return {}, FailedAttempt(None)
        if response.status_code != 200:
            return {}, FailedAttempt(response.status_code, retry_after_s(response.headers))
        try:
            reply = orjson.loads(response.content)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise ModelReplyInvalid(f"the reranker {self.name!r} did not answer with a JSON object")
        return reply, None

    def _given_up(self, failure: FailedAttempt, verdict: RetryVerdict, attempts: int, wait_s: float | None) -> ModelUnavailable:
        message = f"the reranker {self.name!r} failed at attempt {attempts}: {reason_of(failure)}"
        if verdict is RetryVerdict.RATE_LIMITED:
            return ModelRateLimited(message, retry_after_s=wait_s)
        kind = error_for_status(failure.status)
        return (ModelUnreachable if kind is ModelUnavailable and attempts > 1 else kind)(message)

    async def _ping_server(self, timeout_s: float) -> Outcome:
        """Return whether the server answers at all. The request costs nothing."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._client.head(self._address.url)
        except (httpx2.HTTPError, TimeoutError):
            return "unavailable"
        return "ok"


def scores_in(reply: Mapping[str, Any], count: int) -> list[float]:
    """Return the scores of a reply by the place of their passage.

    Some servers answer with logits. If a score is outside [0, 1], all are mapped by the logistic function.

    Raises:
        ModelReplyInvalid: the reply does not have one score for each of the ``count`` passages.
    """
    results = reply.get("results")
    scores: dict[int, float] = {}
    for item in results if isinstance(results, list) else []:
        index, score = (item.get("index"), item.get("relevance_score")) if isinstance(item, dict) else (None, None)
        if isinstance(index, int) and isinstance(score, int | float) and math.isfinite(score) and 0 <= index < count:
            scores[index] = float(score)
    if len(scores) < count:
        raise ModelReplyInvalid(f"the reranker scored {len(scores)} of {count} passages")
    if not all(0 <= score <= 1 for score in scores.values()):
        scores = {index: 1 / (1 + math.exp(-max(-500.0, min(500.0, score)))) for index, score in scores.items()}
    return [scores[index] for index in range(count)]
