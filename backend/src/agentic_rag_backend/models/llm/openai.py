"""A language model behind any OpenAI-compatible endpoint, through the `openai` SDK.

The SDK's own retries are off (`max_retries=0`): it obeys ``Retry-After`` up to two minutes and counts ``timeout`` per
attempt. Here one `asyncio.timeout` bounds the whole call and `retries.decide` schedules the attempts. A ``Retry-After``
beyond the remaining time ends the call at once. Error messages name status and model, never the reply's body or the key.

Every message leaves here, so the tokens of chat templates are neutralised here, and restored in replies.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import openai
from openai import AsyncStream
from openai.types.chat import ChatCompletion

from agentic_rag_backend.domain.text.prompt_marks import StreamRestorer, neutralise, restore, restore_all
from agentic_rag_backend.domain.text.tokens import estimate_tokens, text_tokens
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models.endpoint import Attempt, Call, Endpoint, ModelStalled, failure_of, reason_of
from agentic_rag_backend.models.health import Health
from agentic_rag_backend.models.llm.assembly import Assembly, unstreamed
from agentic_rag_backend.models.llm.base import Message, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.models.llm.structured import read_object
from agentic_rag_backend.models.pace import tokens_in

STREAM = "stream"
"""Parameter of a streamed reply. Some servers refuse it together with a schema."""
MAX_CHARACTERS_PER_TOKEN = 32
"""Characters for each requested token after which a reply is cancelled: the server ignores the limit."""
_LEAST_BOUND = 64 * 1024


class OpenAIModel:
    """Answers through ``base_url`` (None: OpenAI's). The port describes limits and errors.

    Args:
        model: used if a request names none.
        timeout_s: time limit of a call in seconds, including retries, from the moment it is sent. See `models.pace`.
        max_concurrency: maximum number of concurrent calls. Further calls wait, questions before jobs.
    """

    generative = True

    def __init__(self, *, api_key: str, base_url: str | None, model: str, timeout_s: float, max_concurrency: int) -> None:
        self._endpoint = Endpoint(
            "model", api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_concurrency=max_concurrency
        )
        self._completions = self._endpoint.client.chat.completions  # which the SDK imports here, not during the first call
        self._model = model
        self._refused: dict[str, set[str]] = {}

    @property
    def name(self) -> str:
        """The model that is used if a request names none."""
        return self._model

    @property
    def health(self) -> Health:
        """Whether the endpoint answers."""
        return self._endpoint.health

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. With a schema, a first invalid reply is sent back to the model once with its error."""
        call = self._call(request)
        async with self._endpoint.admitted(call), self._endpoint.watching(call):
            if request.schema is not None:
                return await self._structured(call, request, request.schema)
            text, _ = await self._write(call, request, request.messages)
            return ModelReply(text, call.account.usage, call.model)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the reply while the model writes it. A failure is retried only before the first piece."""
        call = self._call(request)
        async with self._endpoint.admitted(call), aclosing(self._streamed(call, request)) as deltas:
            async for delta in deltas:
                yield delta

    async def close(self) -> None:
        """Release connections."""
        await self._endpoint.close()

    def _call(self, request: ModelRequest) -> Call:
        purpose = request.prompt.partition("@")[0] or "other"
        call = self._endpoint.call(request.model or self._model, purpose, request.account, timeout_s=request.timeout_s)
        call.prompt_tokens = tokens_in(sum(len(message.content) for message in request.messages))
        call.reply_tokens = request.max_tokens
        return call

    # --- one reply

    async def _structured(self, call: Call, request: ModelRequest, schema: Mapping[str, Any]) -> ModelReply:
        messages, problem = request.messages, ""
        for _ in range(2):
            text, parsed = await self._write(call, request, messages)
            if isinstance(parsed, dict):
                return ModelReply(text, call.account.usage, call.model, parsed)
            if call.cut:
                raise self._endpoint.too_late(call)
            problem = parsed
            self._endpoint.expect(call)
            asked = Message("user", f"That reply is not valid: {problem}. Write the JSON object again, and nothing else.")
            messages = (*request.messages, Message("assistant", text), asked)
        raise ModelReplyInvalid(f"model {call.model!r} twice wrote a reply that does not match the schema: {problem}")

    async def _write(self, call: Call, request: ModelRequest, messages: Sequence[Message]) -> tuple[str, dict[str, Any] | str]:
        """Return the text, and the parsed object or the error in it; without a schema the second value is empty."""
        reply, attempt = await self._send(call, request, messages, stream=False)
        with attempt.watched():
            # For a reply of status 200 that is not JSON, the SDK returns the text.
            text = _text_of(reply)
            if text is None:
                raise ModelReplyInvalid(f"model {call.model!r} returned something other than a chat completion")
            usage = _counted(getattr(reply, "usage", None)) or _estimate(messages, text)
            parsed: dict[str, Any] | str = ""
            if len(text) > _most_characters(request):
                parsed = f"it has {len(text)} characters; at most {request.max_tokens} tokens were asked for"
            elif request.schema is not None:
                parsed = _read(text, request)
        invalid = request.schema is not None and isinstance(parsed, str)
        attempt.end(
            "invalid" if invalid else "ok",
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )
        return restore(text[: _most_characters(request)]), restore_all(parsed) if isinstance(parsed, dict) else parsed

    async def _send(self, call: Call, request: ModelRequest, messages: Sequence[Message], *, stream: bool) -> tuple[Any, Attempt]:
        """Send the request until it succeeds or is given up. Drop parameters that this model refuses.

        Returns the completion, or the stream and its first chunk, and the attempt, which the caller has to end.
        """
        refused = self._refused.setdefault(call.model, set())
        create = self._completions.create
        while True:
            attempt = self._endpoint.attempt(call)
            # A structured reply is streamed as well, so that a slow model is told from one that hangs.
            pieces = stream or (request.schema is not None and STREAM not in refused)
            sent_at = asyncio.get_running_loop().time()
            try:
                with attempt.watched():
                    reply = await create(**_arguments(call.model, request, messages, refused, stream=pieces))
                    if pieces and not stream:
                        return await self._assembled(call, request, reply, sent_at), attempt
                    # Read the first piece here, so that a stream that breaks before it is retried.
                    first = await anext(reply, None) if stream else None
                    if first is not None:
                        self._endpoint.arrived(call, sent_at)
                    return ((reply, first) if stream else reply), attempt
            except (openai.OpenAIError, ValueError) as error:
                parameter = _refused_parameter(error, request)
                if parameter is not None and parameter not in refused:
                    refused.add(parameter)
                    continue
                await self._endpoint.pause(call, error)

    async def _assembled(self, call: Call, request: ModelRequest, chunks: AsyncStream[Any], sent_at: float) -> ChatCompletion:
        """Return the whole reply of a stream. A reply that ends too late is cut if the request uses a part of it."""
        whole = await unstreamed(chunks)
        if whole is not None:
            return whole
        assembly = Assembly()
        async with chunks:
            try:
                while (chunk := await self._next(chunks, call)) is not None and assembly.size <= _most_characters(request):
                    self._endpoint.arrived(call, sent_at)
                    assembly.add(chunk)
            except ModelStalled:
                if not request.partial or not assembly.size:
                    raise
                call.cut = True
                return assembly.completion(cut=True)
        self._endpoint.written(call, tokens_in(assembly.size))
        return assembly.completion()

    # --- streams

    async def _streamed(self, call: Call, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        # No timeout may span a yield: it would interrupt the reader's own work. Each step has the remaining time.
        async with self._endpoint.watching(call):
            (chunks, chunk), attempt = await self._send(call, request, request.messages, stream=True)
        usage: Usage | None = None
        written, size, ending = list[str](), 0, None
        restorer = StreamRestorer()
        try:
            with attempt.watched():
                async with chunks:
                    while chunk is not None:
                        usage = _counted(getattr(chunk, "usage", None)) or usage
                        piece, ended = _piece_of(chunk)
                        ending = ending or ended
                        size += len(piece)
                        if size > _most_characters(request):
                            raise ModelReplyInvalid(
                                f"model {call.model!r} wrote more than {_most_characters(request)} characters; "
                                f"at most {request.max_tokens} tokens were asked for"
                            )
                        if piece:
                            written.append(piece)
                        if restored := restorer.feed(piece):
                            yield ModelDelta(restored)
                        self._endpoint.arrived(call, call.began)  # here, so that the reader's own work is no gap
                        chunk = await self._next(chunks, call)
                if ending is None:
                    raise ModelUnavailable(f"model {call.model!r} broke off its reply after {size} characters")
        except (openai.OpenAIError, ValueError) as error:
            raise ModelUnavailable(f"model {call.model!r} broke off its reply: {reason_of(failure_of(error))}") from None
        used = usage or _estimate(request.messages, "".join(written))
        attempt.end("ok", prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens)
        yield ModelDelta(restorer.finish(), call.account.usage, cut=ending == "length")

    async def _next(self, chunks: Any, call: Call) -> Any:
        try:
            async with asyncio.timeout_at(call.deadline):
                return await anext(chunks, None)
        except TimeoutError:
            raise self._endpoint.too_late(call) from None


def _text_of(reply: object) -> str | None:
    """Return the text of a completion. None if the reply is not a completion: the SDK does not check replies."""
    choices = reply.choices if isinstance(reply, ChatCompletion) else None
    if not isinstance(choices, list) or not choices:
        return None
    message = getattr(choices[0], "message", None)
    content = getattr(message, "content", None)
    return content if isinstance(content, str) else None if message is None or content is not None else ""


def _piece_of(chunk: object) -> tuple[str, str | None]:
    """Return the text of a piece of a stream, and why the reply ends with it; None if it goes on."""
    choices = getattr(chunk, "choices", None)
    if not isinstance(choices, list) or not choices:
        return "", None
    content = getattr(getattr(choices[0], "delta", None), "content", None)
    ending = getattr(choices[0], "finish_reason", None)
    return content if isinstance(content, str) else "", None if ending is None else str(ending)


def _counted(usage: object) -> Usage | None:
    """Return the token counts of a server, if it reports them."""
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    read, written = (count if isinstance(count, int) and count >= 0 else None for count in counts)
    return None if read is None or written is None else Usage(read, written)


def _most_characters(request: ModelRequest) -> int:
    return max(_LEAST_BOUND, MAX_CHARACTERS_PER_TOKEN * request.max_tokens)


def _read(text: str, request: ModelRequest) -> dict[str, Any] | str:
    """Return the object in a reply, or the error in it."""
    try:
        return read_object(text, request.schema or {}, partial=request.partial)
    except ValueError as error:
        return str(error)


def _arguments(
    model: str, request: ModelRequest, messages: Sequence[Message], refused: Collection[str], *, stream: bool
) -> dict[str, Any]:
    sent = [{"role": message.role, "content": neutralise(message.content)} for message in messages]
    arguments: dict[str, Any] = {"model": model, "messages": sent, "stream": stream}
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
    if error.param in ("max_tokens", "temperature", "stream_options", STREAM):
        return error.param
    # Servers without JSON schemas report this in different ways.
    return "response_format" if request.schema is not None else None


def _estimate(messages: Iterable[Message], text: str) -> Usage:
    return Usage(text_tokens(message.content for message in messages), estimate_tokens(text))
