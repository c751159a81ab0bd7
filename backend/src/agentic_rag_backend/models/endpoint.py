"""An OpenAI-compatible endpoint, which the language model and the embedder share.

Every request is counted once, including failed ones: for `telemetry.metrics`, for the caller's account, and for the endpoint's
health. A circuit breaker per model makes calls fail fast while the model is down.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import httpx2
import openai

from agentic_rag_backend.breaker import Breaker, Outages
from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import (
    ModelBusy,
    ModelInputRefused,
    ModelRateLimited,
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    PromptTooLong,
)
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.models.llm.retries import FailedAttempt, RetryVerdict, decide_retry, error_for_status, retry_after_s
from agentic_rag_backend.models.model_health import Health
from agentic_rag_backend.models.pace import GAP_SHARE, ModelSlots, Pace
from agentic_rag_backend.models.server_errors import overflow_of
from agentic_rag_backend.telemetry.metrics import ModelCall, Outcome, count_model_call
from agentic_rag_backend.telemetry.tracing import record_model_call

_REASONS = {401: "the key was refused", 403: "access was refused", 404: "no such model or route", 413: "the prompt is too long"}
MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Maximum size of one reply, streamed or not. The largest batch of embeddings takes a third of it."""
_GRACE_S = 0.5
"""Seconds that the reader of a stream has after the deadline to return what it has."""
_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")
"""Names of the context window in lists of models: vLLM, LM Studio, Together and OpenRouter, Groq."""
_NOT_LISTED = frozenset({404, 405, 501})
"""Statuses of a server without a list of models. The server is reachable."""
_OUTCOMES: dict[str, Outcome] = {
    "model_rate_limited": "rate_limited",
    "model_refused": "refused",
    "model_input_refused": "refused",
    "prompt_too_long": "refused",
    "model_reply_invalid": "invalid",
    "model_timeout": "cancelled",  # by us: the endpoint answers
}


class ModelUnreachable(ModelUnavailable):
    """The model could not be reached at several attempts in a row, as opposed to a model that does not answer in time."""


class ModelStalled(ModelTimeout):
    """The model began its reply in time, but did not end it."""


OUTAGES = Outages(ModelUnavailable, ModelUnreachable, answered=(ModelRateLimited, ModelRefused, ModelReplyInvalid, ModelStalled))


class ReplyTooLong(httpx2.ReadError):
    """A reply is larger than any valid reply."""


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of a reply, limited to `MAX_REPLY_BYTES`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, chunks = 0, aiter(self._stream)
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    raise ReplyTooLong(f"more than {MAX_REPLY_BYTES} bytes")
                yield chunk
                if self._closed:
                    return
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()

    async def aclose(self) -> None:
        self._closed = True
        await self._stream.aclose()


async def bound_reply(response: httpx2.Response) -> None:
    """Limit the size of replies. A hook of the HTTP client."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream)


@contextlib.asynccontextmanager
async def end_stream(chunks: openai.AsyncStream[Any]) -> AsyncIterator[None]:
    """Close the stream of a reply, read to its end or not, and end its generators.

    The SDK closes only the response. It leaves the generators that read it to the garbage collector, which may run in any thread
    while the event loop closes the same generators.
    """
    try:
        async with chunks:
            yield
    finally:
        with contextlib.suppress(openai.OpenAIError, ValueError):
            async for _ in chunks:  # what has arrived: the response is closed
                await asyncio.sleep(0)


class Attempt:
    """One request to a model. Creating it counts it as sent; `end_attempt` records its outcome."""

    def __init__(self, model: str, purpose: str, account: UsageAccount, health: Health) -> None:
        self._model, self._purpose, self._account, self._health = model, purpose, account, health
        self._began = time.perf_counter()
        self._ended = False
        self._actor = current_actor()
        account.add_usage(Usage(calls=1))

    def end_attempt(self, outcome: Outcome, *, prompt_tokens: int = 0, completion_tokens: int = 0, answers: bool = False) -> None:
        """Record the outcome. Only the first call counts.

        Args:
            answers: whether the outcome shows that the endpoint works, although this request failed.
        """
        if self._ended:
            return
        self._ended = True
        self._health.note_outcome("ok" if answers else outcome)
        call = ModelCall(
            model=self._model,
            purpose=self._purpose,
            outcome=outcome,
            input_tokens=prompt_tokens,
            output_tokens=completion_tokens,
            duration_s=time.perf_counter() - self._began,
        )
        count_model_call(call)
        record_model_call(call)
        charge = self._actor.charge_call(call)
        failed = int(outcome != "ok")
        self._account.add_usage(Usage(prompt_tokens, completion_tokens, 0, failed, charge.cost_nanos, charge.unpriced_calls))

    @contextlib.contextmanager
    def watch_failure(self) -> Iterator[None]:
        """Record a failed attempt if the body fails. If the body succeeds, the caller must call `end_attempt`."""
        try:
            yield
        except (openai.OpenAIError, ValueError) as error:
            failure = failure_of(error)
            self.end_attempt(outcome_of(failure), answers=error_for_status(failure.status) is ModelInputRefused)
            raise
        except ModelUnavailable as error:
            self.end_attempt(_OUTCOMES.get(error.code, "unavailable"))
            raise
        except BaseException:
            self.end_attempt("cancelled")
            raise


@dataclass(slots=True)
class Call:
    """One call of a model, which may take several attempts. Times are those of the event loop's clock.

    Args:
        timeout_s: its configured time limit, from the moment it is sent.
        prompt_tokens: estimated size of its prompt; 0: a call whose reply is not streamed.
        reply_tokens: maximum size of its reply.
    """

    model: str
    purpose: str
    timeout_s: float
    account: UsageAccount = field(default_factory=UsageAccount)
    prompt_tokens: float = 0.0
    reply_tokens: float = 0.0
    failures: list[FailedAttempt] = field(default_factory=list)
    """Number of failed attempts."""
    began: float = math.inf
    """Time at which it got its place."""
    deadline: float = math.inf
    ends_at: float = math.inf
    """Time after which even a reply that keeps arriving is cut."""
    first_piece_at: float | None = None
    cut: bool = False
    """Whether its reply was cut at the deadline."""
    clock: asyncio.Timeout | None = None

    def extend_deadline(self, deadline: float) -> None:
        """Move the deadline, at most to ``ends_at``."""
        self.deadline = min(deadline, self.ends_at)
        if self.clock is not None:
            self.clock.reschedule(self.deadline + _GRACE_S)


class Endpoint:
    """One endpoint and its state.

    Args:
        noun: name of its models in messages: model or embedder.
        base_url: None for OpenAI's.
        timeout_s: time limit of a call in seconds, including retries, from the moment it is sent.
        max_concurrency: maximum number of concurrent calls. Further calls wait for their turn.
    """

    def __init__(self, noun: str, *, api_key: str, base_url: str | None, timeout_s: float, max_concurrency: int) -> None:
        self.client = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            max_retries=0,
            timeout=None,  # of one attempt; the call's own clock limits all of them
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [bound_reply]}),
        )
        self.timeout_s = timeout_s
        # The SDK imports resources at their first use. Later, that would hold up the event loop for a tenth of a second.
        _ = (self.client.models, self.client.chat.completions, self.client.embeddings)
        self.health = Health(self._ping_server)
        self._noun = noun
        self._breakers: dict[str, Breaker] = {}
        self._slots = ModelSlots(max_concurrency)
        self._paces: dict[str, Pace] = {}

    async def close(self) -> None:
        """Release connections."""
        await self.health.close()
        await self.client.close()

    def begin_call(
        self, model: str, purpose: str, account: UsageAccount | None = None, *, timeout_s: float | None = None
    ) -> Call:
        """Begin a call. ``timeout_s`` None: the endpoint's."""
        return Call(model, purpose, self.timeout_s if timeout_s is None else timeout_s, UsageAccount(account))

    def begin_attempt(self, call: Call) -> Attempt:
        """Count a request as sent."""
        return Attempt(call.model, call.purpose, call.account, self.health)

    def pace_of(self, model: str) -> Pace:
        """Return the measured speed of a model."""
        return self._paces.setdefault(model, Pace())

    @contextlib.asynccontextmanager
    async def admit_call(self, call: Call) -> AsyncIterator[None]:
        """Wait for a place, and hold it. Then the call's clock starts.

        A job waits without a limit. A request waits until its time is over, or as long as the call may last if that is unknown.

        Raises:
            QuotaExceeded: the tenant may use no more tokens. A job waits instead.
            ModelUnavailable: the model was just found to be down.
            ModelBusy: no place was free in time.
        """
        await current_actor().admit_model_call()
        self._breaker_of(call.model).check_state()
        loop = asyncio.get_running_loop()
        queued_at, until = loop.time(), None if current_actor().job else current_actor().ends_at or loop.time() + call.timeout_s
        async with contextlib.AsyncExitStack() as slot:
            try:
                async with asyncio.timeout_at(until):
                    await slot.enter_async_context(self._slots.hold_slot())
            except TimeoutError:
                waited_s = loop.time() - queued_at
                raise ModelBusy(
                    f"{self._name_model(call)} was busy with other calls for {waited_s:.3g} s (LLM_MAX_CONCURRENCY)"
                ) from None
            self._start_clock(call)
            yield

    def _start_clock(self, call: Call) -> None:
        """Start the clock of a call."""
        who, pace, now = current_actor(), self.pace_of(call.model), asyncio.get_running_loop().time()
        call.began = call.ends_at = now
        call.ends_at += (
            pace.whole_s(call.prompt_tokens, call.reply_tokens, call.timeout_s) if call.prompt_tokens else call.timeout_s
        )
        if not who.job and who.ends_at is not None and who.ends_at > now:
            call.ends_at = min(call.ends_at, who.ends_at)
        self.expect_first_piece(call)

    def expect_first_piece(self, call: Call) -> None:
        """Set the deadline for the first piece of a reply."""
        now, limit_s, call.first_piece_at = asyncio.get_running_loop().time(), call.timeout_s, None
        if call.prompt_tokens:
            limit_s = self.pace_of(call.model).first_piece_s(call.prompt_tokens, call.timeout_s, patient=current_actor().job)
        call.extend_deadline(now + limit_s)

    def extend_call(self, call: Call, sent_at: float) -> None:
        """Move the deadline, because a piece of a reply has arrived."""
        now = asyncio.get_running_loop().time()
        if call.first_piece_at is None:
            call.first_piece_at = now
            self.pace_of(call.model).note_read(call.prompt_tokens, now - sent_at)
        call.extend_deadline(now + GAP_SHARE * call.timeout_s)

    def record_reply_size(self, call: Call, tokens: float) -> None:
        """Record the size of a reply that has just ended."""
        if call.first_piece_at is not None:
            self.pace_of(call.model).note_reply(tokens, asyncio.get_running_loop().time() - call.first_piece_at)

    @contextlib.asynccontextmanager
    async def watch_call(self, call: Call) -> AsyncIterator[None]:
        """Limit the body to the call's time. Its outcome opens or closes the circuit.

        Raises:
            ModelUnavailable: the circuit is open.
            ModelTimeout: the time is over.
        """
        with self._breaker_of(call.model).watch_call():
            try:
                async with asyncio.timeout_at(call.deadline) as call.clock:
                    yield
            except TimeoutError:
                raise self.too_late(call) from None
            finally:
                call.clock = None

    async def pause_call(self, call: Call, error: Exception) -> None:
        """Wait until the call may be retried.

        Raises:
            PromptTooLong: the request does not fit in the context window.
            ModelUnavailable: the call may not be retried; the error gives the reason.
        """
        overflow = overflow_of(error)
        if overflow is not None:
            window_text = f" of {overflow.window} tokens" if overflow.window else ""
            raise PromptTooLong(
                f"{self._name_model(call)} refused a prompt that does not fit in its context window{window_text}",
                window=overflow.window,
            ) from None
        if isinstance(error.__cause__, ReplyTooLong):
            raise ModelReplyInvalid(f"{self._name_model(call)} answered with {error.__cause__}") from None
        call.failures.append(failure_of(error))
        left_s = call.deadline - asyncio.get_running_loop().time()
        # random() spreads retries. It is not used for secrets.
        jitter = random.random()  # noqa: S311
        decision = decide_retry(call.failures[-1], attempt=len(call.failures), left_s=left_s, jitter=jitter)
        if decision.verdict is not RetryVerdict.RETRY:
            self._give_up(call, decision.verdict, decision.retry_after_s, left_s)
        await asyncio.sleep(decision.pause_s)
        if call.first_piece_at is not None:  # the reply broke off
            self.expect_first_piece(call)

    def too_late(self, call: Call) -> ModelTimeout:
        """Return the error of a call that exceeded its time."""
        limit_s = call.deadline - call.began
        if call.first_piece_at is not None:
            return ModelStalled(
                f"{self._name_model(call)} began its reply, but did not end it within {limit_s:.3g} s{self._describe_limit(call)}"
            )
        self.pace_of(call.model).note_late(call.prompt_tokens, limit_s)
        before = f"; before that {reason_of(call.failures[-1])}" if call.failures else ""
        return ModelTimeout(f"{self._name_model(call)} did not answer within {limit_s:.3g} s{self._describe_limit(call)}{before}")

    def _describe_limit(self, call: Call) -> str:
        return " (LLM_TIMEOUT_S)" if call.timeout_s == self.timeout_s else ""

    async def listed_window(self, call: Call) -> int | None:
        """Return the context window in tokens that the list of models states. None: it states none."""
        try:
            async with asyncio.timeout_at(call.deadline):
                model_list = (await self.client.models.with_raw_response.list()).http_response.json()
        except (openai.OpenAIError, ValueError, TimeoutError):
            return None
        models = model_list.get("data") if isinstance(model_list, dict) else None
        for model in models if isinstance(models, list) else ():
            if isinstance(model, dict) and model.get("id") == call.model:
                windows = (model.get(name) for name in _WINDOW_FIELDS)
                return next((window for window in windows if isinstance(window, int) and window > 0), None)
        return None

    def _give_up(self, call: Call, verdict: RetryVerdict, wait_s: float | None, left_s: float) -> NoReturn:
        failure = call.failures[-1]
        retry_text = f"; it asks to wait {wait_s:.3g} s" if wait_s is not None else ""
        time_left = f"{max(0.0, left_s):.3g} s of {call.deadline - call.began:.3g} s{self._describe_limit(call)} were left"
        if verdict is RetryVerdict.RATE_LIMITED:
            raise ModelRateLimited(
                f"{self._name_model(call)} is rate limited{retry_text}; {time_left}", retry_after_s=wait_s
            ) from None
        kind = error_for_status(failure.status)
        if kind is ModelUnavailable and len(call.failures) > 1:
            kind = ModelUnreachable
        raise kind(
            f"{self._name_model(call)} failed at attempt {len(call.failures)}: {reason_of(failure)}{retry_text}; {time_left}",
            retry_after_s=wait_s,
        ) from None

    def _name_model(self, call: Call) -> str:
        return f"{self._noun} {call.model!r}"

    def _breaker_of(self, model: str) -> Breaker:
        return self._breakers.setdefault(model, Breaker(OUTAGES))

    async def _ping_server(self, timeout_s: float) -> Outcome:
        """Request the list of models, which costs no tokens. Return the outcome."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.client.with_options(timeout=timeout_s).models.with_raw_response.list()
        except openai.APIStatusError as error:
            return "ok" if error.status_code in _NOT_LISTED else outcome_of(failure_of(error))
        except (openai.OpenAIError, ValueError, TimeoutError):
            return "unavailable"
        return "ok"


def failure_of(error: Exception) -> FailedAttempt:
    """Return an attempt's failure in the form that `retries.decide_retry` takes."""
    if isinstance(error, openai.APIStatusError):
        exhausted = error.status_code == 429 and error.code == "insufficient_quota"
        return FailedAttempt(error.status_code, retry_after_s(error.response.headers), exhausted)
    return FailedAttempt(None)


def outcome_of(failure: FailedAttempt) -> Outcome:
    """Return the outcome under which a failed attempt is counted."""
    if failure.status == 429:
        return "rate_limited"
    return "refused" if issubclass(error_for_status(failure.status), ModelRefused) else "unavailable"


def reason_of(failure: FailedAttempt) -> str:
    """Return a description of a failure."""
    if failure.status is None:
        return "the connection failed"
    return f"HTTP {failure.status}" + (f" ({_REASONS[failure.status]})" if failure.status in _REASONS else "")
