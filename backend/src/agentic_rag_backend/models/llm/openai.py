"""A language model behind any OpenAI-compatible endpoint, through the `openai` SDK.

The SDK's own retries are off (`max_retries=0`): it obeys ``Retry-After`` up to two minutes and counts ``timeout`` per
attempt. Here one `asyncio.timeout` bounds the whole call, `retries.decide` says when to try again, and a ``Retry-After``
beyond what is left ends the call at once. Messages of errors name status and model, never the reply's body or the key.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.errors import ModelRateLimited, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models.llm.base import Message, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.models.llm.retries import Failure, Verdict, decide, retry_after_s
from agentic_rag_backend.models.llm.structured import read_object

_CHARACTERS_A_TOKEN = 4
"""Estimate used where a server counts no tokens."""
_REASONS = {401: "the key was refused", 403: "access was refused", 404: "no such model or route", 413: "the prompt is too long"}


@dataclass(frozen=True, slots=True)
class _Call:
    """One request to one model; ``deadline`` is on the loop's clock, ``failures`` are the attempts that went wrong so far."""

    request: ModelRequest
    model: str
    deadline: float
    failures: list[Failure] = field(default_factory=list)


class OpenAIModel:
    """Answers through ``base_url`` (None: OpenAI's own); see the port for limits and errors.

    Args:
        model: used where a request names none.
        timeout_s: seconds a whole call may take, queueing and retries included.
        max_concurrency: calls in flight at once; further ones wait within their time.
    """

    generative = True

    def __init__(self, *, api_key: str, base_url: str | None, model: str, timeout_s: float, max_concurrency: int) -> None:
        self._client = openai.AsyncOpenAI(api_key=api_key, base_url=base_url, max_retries=0, timeout=timeout_s)
        self._model = model
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(max_concurrency)
        self._refused: dict[str, set[str]] = {}

    @property
    def name(self) -> str:
        """The model used where a request names none."""
        return self._model

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply; with a schema, a first invalid reply is shown to the model with what is wrong."""
        call = self._call(request)
        try:
            async with asyncio.timeout_at(call.deadline), self._slots:
                if request.schema is None:
                    text, usage = await self._write(call, request.messages)
                    return ModelReply(text, usage, call.model)
                return await self._structured(call, request.schema)
        except TimeoutError as error:
            raise self._too_late(call) from error

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the reply as it is written. A failure before the first piece is retried, one after it is not."""
        call = self._call(request)
        try:
            # No timeout may span a yield: it would interrupt the reader's own work. Each step has the rest of it.
            async with asyncio.timeout_at(call.deadline):
                await self._slots.acquire()
        except TimeoutError as error:
            raise self._too_late(call) from error
        try:
            async with aclosing(self._streamed(call)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            self._slots.release()

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    def _call(self, request: ModelRequest) -> _Call:
        return _Call(request, request.model or self._model, asyncio.get_running_loop().time() + self._timeout_s)

    # --- one reply

    async def _structured(self, call: _Call, schema: Mapping[str, Any]) -> ModelReply:
        messages, usage, problem = call.request.messages, Usage(), ""
        for _ in range(2):
            text, spent = await self._write(call, messages)
            usage += spent
            try:
                return ModelReply(text, usage, call.model, read_object(text, schema))
            except ValueError as error:
                problem = str(error)
            asked = Message("user", f"That reply is not valid: {problem}. Write the JSON object again, and nothing else.")
            messages = (*call.request.messages, Message("assistant", text), asked)
        raise ModelReplyInvalid(f"model {call.model!r} twice wrote a reply that does not hold to the schema: {problem}")

    async def _write(self, call: _Call, messages: Sequence[Message]) -> tuple[str, Usage]:
        reply = await self._send(call, messages, stream=False)
        # A server that answers 200 with something else than JSON makes the SDK return that text.
        if not isinstance(reply, ChatCompletion) or not reply.choices:
            raise ModelUnavailable(f"model {call.model!r} answered something that is not a chat completion")
        text = reply.choices[0].message.content or ""
        counted = reply.usage
        return text, Usage(counted.prompt_tokens, counted.completion_tokens, 1) if counted else _estimate(messages, text)

    async def _send(self, call: _Call, messages: Sequence[Message], *, stream: bool) -> Any:
        """Make the request until it succeeds or `decide` ends it; drop parameters that this model refuses.

        Returns the completion, or the stream and its first chunk.
        """
        refused = self._refused.setdefault(call.model, set())
        attempt = 0
        while True:
            try:
                reply = await self._client.chat.completions.create(**_arguments(call, messages, refused, stream=stream))
                # The first piece is read here, so that a stream that breaks before it is tried again too.
                return (reply, await anext(reply, None)) if stream else reply
            except (openai.OpenAIError, ValueError) as error:
                parameter = _refused_parameter(error, call.request)
                if parameter is not None and parameter not in refused:
                    refused.add(parameter)
                    continue
                attempt += 1
                call.failures.append(_failure(error))
                await asyncio.sleep(self._pause_s(call, call.failures[-1], attempt))

    def _pause_s(self, call: _Call, failure: Failure, attempt: int) -> float:
        """Return how long to wait before trying again, or raise what the caller is told."""
        left_s = call.deadline - asyncio.get_running_loop().time()
        # random() spreads retries; nothing secret depends on it.
        decision = decide(failure, attempt=attempt, left_s=left_s, jitter=random.random())  # noqa: S311
        if decision.verdict is Verdict.RETRY:
            return decision.pause_s
        wait = decision.retry_after_s
        asked = f"; it asks to wait {wait:.3g} s" if wait is not None else ""
        left = f"{max(0.0, left_s):.3g} s of {self._timeout_s:g} s (LLM_TIMEOUT_S) were left"
        if decision.verdict is Verdict.RATE_LIMITED:
            raise ModelRateLimited(f"model {call.model!r} is rate limited{asked}; {left}", retry_after_s=wait) from None
        raise ModelUnavailable(
            f"model {call.model!r} failed at attempt {attempt}: {_reason(failure)}{asked}; {left}", retry_after_s=wait
        ) from None

    # --- streams

    async def _streamed(self, call: _Call) -> AsyncGenerator[ModelDelta, None]:
        messages = call.request.messages
        usage: Usage | None = None
        written: list[str] = []
        finished = False
        try:
            async with asyncio.timeout_at(call.deadline):
                chunks, chunk = await self._send(call, messages, stream=True)
            async with chunks:
                while chunk is not None:
                    if chunk.usage is not None:
                        usage = Usage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens, 1)
                    for choice in chunk.choices[:1]:
                        finished = finished or choice.finish_reason is not None
                        if choice.delta.content:
                            written.append(choice.delta.content)
                            yield ModelDelta(choice.delta.content)
                    chunk = await _next(chunks, call.deadline)
        except TimeoutError as error:
            raise self._too_late(call) from error
        except (openai.OpenAIError, ValueError) as error:
            raise ModelUnavailable(f"model {call.model!r} broke off its reply: {_reason(_failure(error))}") from None
        if not finished:
            raise ModelUnavailable(f"model {call.model!r} broke off its reply after {len(''.join(written))} characters")
        yield ModelDelta("", usage or _estimate(messages, "".join(written)))

    def _too_late(self, call: _Call) -> ModelUnavailable:
        before = f"; before that {_reason(call.failures[-1])}" if call.failures else ""
        return ModelUnavailable(f"model {call.model!r} did not answer within {self._timeout_s:g} s (LLM_TIMEOUT_S){before}")


async def _next(chunks: openai.AsyncStream[ChatCompletionChunk], deadline: float) -> ChatCompletionChunk | None:
    async with asyncio.timeout_at(deadline):
        return await anext(chunks, None)


def _arguments(call: _Call, messages: Sequence[Message], refused: Collection[str], *, stream: bool) -> dict[str, Any]:
    request = call.request
    sent = [{"role": message.role, "content": message.content} for message in messages]
    arguments: dict[str, Any] = {"model": call.model, "messages": sent, "stream": stream}
    if stream and "stream_options" not in refused:
        arguments["stream_options"] = {"include_usage": True}
    if "temperature" not in refused:
        arguments["temperature"] = request.temperature
    arguments["max_completion_tokens" if "max_tokens" in refused else "max_tokens"] = request.max_tokens
    if request.schema is not None and "response_format" in refused:
        rule = f"Answer with one JSON object that holds to this JSON Schema, and nothing else:\n{json.dumps(request.schema)}"
        arguments["messages"] = [{"role": "system", "content": rule}, *sent]
        arguments["response_format"] = {"type": "json_object"}
    elif request.schema is not None:
        described = {"name": request.prompt.partition("@")[0] or "reply", "schema": dict(request.schema), "strict": True}
        arguments["response_format"] = {"type": "json_schema", "json_schema": described}
    return arguments


def _refused_parameter(error: Exception, request: ModelRequest) -> str | None:
    """Return the parameter that an endpoint or model does not know and that can be left out, if that is the error."""
    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    if error.param in ("max_tokens", "temperature", "stream_options"):
        return error.param
    # Servers that lack JSON schemas say so in as many ways as there are servers.
    return "response_format" if request.schema is not None else None


def _failure(error: Exception) -> Failure:
    if isinstance(error, openai.APIStatusError):
        exhausted = error.status_code == 429 and error.code == "insufficient_quota"
        return Failure(error.status_code, retry_after_s(error.response.headers), exhausted)
    return Failure(None)


def _reason(failure: Failure) -> str:
    if failure.status is None:
        return "the connection failed"
    return f"HTTP {failure.status}" + (f" ({_REASONS[failure.status]})" if failure.status in _REASONS else "")


def _estimate(messages: Iterable[Message], text: str) -> Usage:
    read = sum(len(message.content) for message in messages)
    return Usage(-(-read // _CHARACTERS_A_TOKEN), -(-len(text) // _CHARACTERS_A_TOKEN), 1)
