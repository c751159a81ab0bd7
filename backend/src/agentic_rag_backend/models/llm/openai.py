"""A language model behind any OpenAI-compatible endpoint, through the `openai` SDK.

The SDK's own retries are off (`max_retries=0`): it obeys ``Retry-After`` up to two minutes and counts ``timeout`` per
attempt. Here one `asyncio.timeout` bounds the whole call and `retries.decide_retry` schedules the attempts. A ``Retry-After``
beyond the remaining time ends the call at once. Error messages name status and model, never the reply's body or the key.

Every message leaves here, so the tokens of chat templates are neutralised here, and restored in replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import openai
from openai import AsyncStream
from openai.types.chat import ChatCompletion

from agentic_rag_backend.errors import ModelInputRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.language.prompt_marks import restore_all, restore_marks
from agentic_rag_backend.models.endpoint import Attempt, Call, Endpoint, ModelStalled, end_stream, failure_of, reason_of
from agentic_rag_backend.models.llm.base import Message, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.models.llm.model_traits import Refusals
from agentic_rag_backend.models.llm.replies.completions import (
    FILTERED,
    Assembly,
    BrokenStream,
    estimated_usage,
    read_chunk,
    read_completion,
    read_whole_reply,
    usage_of,
)
from agentic_rag_backend.models.llm.replies.reply_reading import (
    RawReply,
    ReadObject,
    ReadReply,
    ReplyStream,
    read_structured_reply,
    read_text,
)
from agentic_rag_backend.models.llm.request_bodies import (
    SECOND_TEMPERATURE,
    Body,
    ModelRequestOptions,
    ModelTurn,
    build_body,
    first_turn,
    may_hide_opening,
)
from agentic_rag_backend.models.model_health import Health
from agentic_rag_backend.models.pace import tokens_in
from agentic_rag_backend.models.server_errors import overflow_of, refused_feature, reply_limit_of
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import count_mended_reply

MAX_CHARACTERS_PER_TOKEN = 32
"""Characters for each requested token after which a reply is cancelled: the server ignores the limit."""
_LEAST_BOUND = 64 * 1024
_MORE_REASONING = 4
"""Factor of the limit of tokens after a reply that was spent on reasoning, and the least addition."""
_LEAST_MORE = 4_096
_LEAST_REPLY = 64
_QUOTED_CHARACTERS = 8_000
"""Characters of an invalid reply that the model gets back with its error."""

_log = get_logger(__name__)


class OpenAIModel:
    """Answers through ``base_url`` (None: OpenAI's). The port describes limits and errors.

    Args:
        model: used if a request names none.
        timeout_s: time limit of a call in seconds, including retries, from the moment it is sent. See `models.pace`.
        max_concurrency: maximum number of concurrent calls. Further calls wait, questions before jobs.
        options: settings of every request.
    """

    generative = True

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        model: str,
        timeout_s: float,
        max_concurrency: int,
        options: ModelRequestOptions | None = None,
    ) -> None:
        self._endpoint = Endpoint(
            "model", api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_concurrency=max_concurrency
        )
        self._completions = self._endpoint.client.chat.completions  # which the SDK imports here, not during the first call
        self._model = model
        self._options = options or ModelRequestOptions()
        self._refusals = Refusals()

    @property
    def name(self) -> str:
        """The model that is used if a request names none."""
        return self._model

    @property
    def health(self) -> Health:
        """Whether the endpoint answers."""
        return self._endpoint.health

    def window(self, model: str | None = None) -> int | None:
        """Return the context window in tokens that the server stated for a model. None: not known."""
        return self._refusals.traits_of(model or self._model).window

    def limits(self) -> list[dict[str, Any]]:
        """Return what the server refuses, and the limits that it stated, for each model, as JSON values."""
        return self._refusals.describe()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the whole reply. With a schema, a first invalid reply is sent back to the model once with its error."""
        call = self._begin_call(request)
        async with self._endpoint.admit_call(call), self._endpoint.watch_call(call):
            if request.schema is not None:
                return await self._complete_structure(call, request)
            turn = self._first_turn(call, request)
            read_reply, _ = await self._write_reply(call, request, turn)
            if read_reply.spent_on_reasoning:
                self._endpoint.expect_first_piece(call)
                read_reply, _ = await self._write_reply(call, request, self._after_reasoning(call, turn, cut=read_reply.cut))
            return ModelReply(
                restore_marks(read_reply.text), call.account.usage, call.model, cut=read_reply.cut, mended=read_reply.mended
            )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the reply while the model writes it. A failure is retried only before the first piece.

        The reply is received at the speed of the model, whatever the speed of the reader, and its place is free at its end.
        `_most_characters` bounds what waits for the reader.
        """
        call, pieces = self._begin_call(request), asyncio.Queue[ModelDelta | None]()
        receiving = asyncio.create_task(self._receive_pieces(call, request, pieces))
        try:
            while (delta := await pieces.get()) is not None:
                yield delta
            await receiving
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)

    async def _receive_pieces(self, call: Call, request: ModelRequest, pieces: asyncio.Queue[ModelDelta | None]) -> None:
        """Put the pieces of a reply into a queue, and None at its end."""
        try:
            async with self._endpoint.admit_call(call), aclosing(self._stream_reply(call, request)) as deltas:
                async for delta in deltas:
                    pieces.put_nowait(delta)
        finally:
            pieces.put_nowait(None)

    async def close(self) -> None:
        """Release connections."""
        await self._endpoint.close()

    def _begin_call(self, request: ModelRequest) -> Call:
        purpose = request.prompt.partition("@")[0] or "other"
        call = self._endpoint.begin_call(request.model or self._model, purpose, request.account, timeout_s=request.timeout_s)
        call.prompt_tokens = tokens_in(sum(len(message.content) for message in request.messages))
        call.reply_tokens = request.max_tokens
        return call

    # --- turns

    def _first_turn(self, call: Call, request: ModelRequest) -> ModelTurn:
        return first_turn(call.model, request, self._options, self._refusals.traits_of(call.model))

    def _after_reasoning(self, call: Call, turn: ModelTurn, *, cut: bool) -> ModelTurn:
        """Return the turn after a reply of reasoning only.

        Reasoning that was cut off gets more room, which later calls of the model get at once. Reasoning that ended by itself
        would come again at the same temperature.
        """
        if not cut:
            return replace(turn, temperature=max(turn.temperature, SECOND_TEMPERATURE))
        extra_tokens = max((_MORE_REASONING - 1) * turn.tokens, _LEAST_MORE)
        traits = self._refusals.traits_of(call.model)
        traits.reasoning_tokens = min(traits.reasoning_tokens + extra_tokens, 4 * _LEAST_MORE)
        return replace(turn, tokens=turn.tokens + extra_tokens)

    # --- one reply

    async def _complete_structure(self, call: Call, request: ModelRequest) -> ModelReply:
        turn, problem, enlarged = self._first_turn(call, request), "", False
        tries = 0
        while tries < 2:
            read_reply, parsed = await self._write_reply(call, request, turn)
            if isinstance(parsed, ReadObject):
                mended = tuple(dict.fromkeys((*read_reply.mended, *parsed.mended)))
                value = restore_all(parsed.value)
                return ModelReply(restore_marks(read_reply.text), call.account.usage, call.model, value, parsed.cut, mended)
            if call.cut:
                raise self._endpoint.too_late(call)
            problem = parsed
            self._endpoint.expect_first_piece(call)
            if read_reply.spent_on_reasoning and not enlarged:
                turn, enlarged = self._after_reasoning(call, turn, cut=read_reply.cut), True
                continue
            tries += 1
            turn = _second_turn(request, turn, read_reply, problem)
        raise ModelReplyInvalid(f"model {call.model!r} twice wrote a reply that does not match the schema: {problem}")

    async def _write_reply(self, call: Call, request: ModelRequest, turn: ModelTurn) -> tuple[ReadReply, ReadObject | str]:
        """Return the text, and the parsed object or the error in it; without a schema the second value is empty."""
        reply, attempt = await self._send_request(call, request, turn, stream=False)
        with attempt.watch_failure():
            # For a reply of status 200 that is not JSON, the SDK returns the text.
            raw = read_completion(reply)
            if raw is None:
                raise ModelReplyInvalid(f"model {call.model!r} returned something other than a chat completion")
            usage = usage_of(reply) or estimated_usage(turn.messages, raw.content + raw.reasoning)
            raw = _limit_size(raw, _most_characters(turn))
            _check_filter(raw, call.model)
            parsed: ReadObject | str = ""
            if request.schema is None:
                read_reply = read_text(raw)
            else:
                read_reply, parsed = read_structured_reply(raw, request.schema, partial=request.partial)
        invalid = request.schema is not None and isinstance(parsed, str)
        attempt.end_attempt(
            "invalid" if invalid else "ok",
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )
        self._note_reply(call, read_reply, parsed.mended if isinstance(parsed, ReadObject) else ())
        return read_reply, parsed

    def _note_reply(self, call: Call, read_reply: ReadReply, mended: tuple[str, ...] = ()) -> None:
        """Count what was mended, and remember how the model reasons."""
        traits = self._refusals.traits_of(call.model)
        traits.unopened = traits.unopened or read_reply.unopened
        for kind in dict.fromkeys((*read_reply.mended, *mended)):
            count_mended_reply(call.model, kind)
            _log.debug("model_reply_mended", model=call.model, prompt=call.purpose, kind=kind)

    async def _send_request(self, call: Call, request: ModelRequest, turn: ModelTurn, *, stream: bool) -> tuple[Any, Attempt]:
        """Send the request until it succeeds or is given up. Leave out features that this model refuses.

        Returns the completion, or the stream and its first chunk, and the attempt, which the caller has to end.
        """
        create, traits = self._completions.create, self._refusals.traits_of(call.model)
        while True:
            self._refusals.current_features(call.model)  # which forgets old refusals
            # A structured reply is streamed as well, so that a slow model is told from one that hangs.
            pieces = stream or (request.schema is not None and "stream" not in traits.refused)
            body = build_body(call.model, request, turn, self._options, traits, stream=pieces)
            attempt = self._endpoint.begin_attempt(call)
            sent_at = asyncio.get_running_loop().time()
            try:
                with attempt.watch_failure():
                    reply = await create(**body.arguments)
                    if pieces and not stream:
                        return await self._assemble_reply(call, request, turn, reply, sent_at), attempt
                    # Read the first piece here, so that a stream that breaks before it is retried.
                    first_chunk = await anext(reply, None) if stream else None
                    if first_chunk is not None:
                        self._endpoint.extend_call(call, sent_at)
                    return ((reply, first_chunk) if stream else reply), attempt
            except BrokenStream:
                # A server or proxy whose streams break may still send whole replies.
                self._refusals.add_feature(call.model, "stream")
                _log.warning("model_stream_broken", model=call.model)
            except (openai.OpenAIError, ValueError) as error:
                if not await self._learn_from_error(call, error, body, turn):
                    await self._endpoint.pause_call(call, error)

    async def _learn_from_error(self, call: Call, error: Exception, body: Body, turn: ModelTurn) -> bool:
        """Return whether the request can be changed to what the error asks for. The change is remembered."""
        traits = self._refusals.traits_of(call.model)
        feature = refused_feature(error, body.sent)
        if feature is not None:
            self._refusals.add_feature(call.model, feature)
            _log.warning("model_feature_refused", model=call.model, feature=feature)
            return True
        limit = reply_limit_of(error)
        if limit is not None and limit < min(turn.tokens, traits.reply_tokens or turn.tokens):
            traits.reply_tokens = limit
            return True
        overflow = overflow_of(error)
        if overflow is None:
            return False
        window = overflow.window or await self._endpoint.listed_window(call)
        traits.window = window or traits.window
        tokens_left = (window or 0) - (overflow.prompt_tokens or window or 0)
        if turn.shortened or not max(_LEAST_REPLY, turn.tokens // 4) <= tokens_left < turn.tokens:
            return False
        turn.tokens, turn.shortened = tokens_left, True  # the prompt fits, and so does a shorter reply
        return True

    async def _assemble_reply(
        self, call: Call, request: ModelRequest, turn: ModelTurn, chunks: AsyncStream[Any], sent_at: float
    ) -> ChatCompletion:
        """Return the whole reply of a stream. A reply that ends too late is cut if the request uses a part of it.

        Raises:
            BrokenStream: the stream ended after it began, and before the reply ended.
        """
        completion = await read_whole_reply(chunks)
        if completion is not None:
            return completion
        assembly = Assembly()
        async with end_stream(chunks):
            try:
                while (chunk := await self._next_chunk(chunks, call)) is not None and assembly.size <= _most_characters(turn):
                    self._endpoint.extend_call(call, sent_at)
                    assembly.add(chunk)
            except ModelStalled:
                if not request.partial or not assembly.size:
                    raise
                call.cut = True
                return assembly.make_completion(cut=True)
            except (openai.OpenAIError, ValueError) as error:
                if assembly.size:
                    raise BrokenStream from error
                raise
        if assembly.size and not assembly.ended and assembly.size <= _most_characters(turn):
            raise BrokenStream
        self._endpoint.record_reply_size(call, tokens_in(assembly.size))
        return assembly.make_completion()

    # --- streams

    async def _stream_reply(self, call: Call, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        turn, last_ending, cut = self._first_turn(call, request), False, False
        while True:
            reply = ReplyStream(hold=self._refusals.traits_of(call.model).unopened or may_hide_opening(call.model))
            async with aclosing(self._stream_pieces(call, request, turn, reply)) as deltas:
                async for delta in deltas:
                    cut = cut or delta.cut
                    if delta.usage is None or last_ending or not reply.read_reply("length" if cut else None).spent_on_reasoning:
                        yield delta
                        last_ending = last_ending or delta.usage is not None
            if last_ending:
                return
            self._endpoint.expect_first_piece(call)
            turn, last_ending = self._after_reasoning(call, turn, cut=cut), True

    async def _stream_pieces(
        self, call: Call, request: ModelRequest, turn: ModelTurn, reply: ReplyStream
    ) -> AsyncGenerator[ModelDelta, None]:
        # No timeout spans a yield. Each step has the remaining time.
        async with self._endpoint.watch_call(call):
            (chunks, chunk), attempt = await self._send_request(call, request, turn, stream=True)
        usage, text_pieces, ending = None, list[str](), None
        try:
            with attempt.watch_failure():
                async with end_stream(chunks):
                    while chunk is not None and not reply.over:
                        usage = usage_of(chunk) or usage
                        piece = read_chunk(chunk)
                        ending = ending or piece.ending
                        text_pieces.append(piece.content + piece.reasoning)
                        for delta in reply.feed_piece(piece):
                            yield delta
                        if reply.size > _most_characters(turn):
                            raise ModelReplyInvalid(
                                f"model {call.model!r} wrote more than {_most_characters(turn)} characters; "
                                f"at most {turn.tokens} tokens were asked for"
                            )
                        self._endpoint.extend_call(call, call.began)
                        chunk = await self._next_chunk(chunks, call)
                if ending is None and not reply.over:
                    raise ModelUnavailable(f"model {call.model!r} broke off its reply after {reply.size} characters")
                _check_filter(RawReply("".join(text_pieces), ending=ending), call.model)
        except (openai.OpenAIError, ValueError) as error:
            raise ModelUnavailable(f"model {call.model!r} broke off its reply: {reason_of(failure_of(error))}") from None
        used = usage or estimated_usage(turn.messages, "".join(text_pieces))
        attempt.end_attempt("ok", prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens)
        for delta in reply.finish_reply():
            yield delta
        read_reply = reply.read_reply(ending)
        self._note_reply(call, read_reply)
        yield ModelDelta("", call.account.usage, cut=read_reply.cut)

    async def _next_chunk(self, chunks: Any, call: Call) -> Any:
        await asyncio.sleep(0)  # many pieces may have arrived at once: each has a turn of its own
        try:
            async with asyncio.timeout_at(call.deadline):
                return await anext(chunks, None)
        except TimeoutError:
            raise self._endpoint.too_late(call) from None


def _second_turn(request: ModelRequest, turn: ModelTurn, read_reply: ReadReply, problem: str) -> ModelTurn:
    """Return the turn that asks for a valid object: with a larger limit if the reply was cut off, otherwise with its error."""
    temperature = max(turn.temperature, SECOND_TEMPERATURE)
    if read_reply.cut:
        return replace(turn, temperature=temperature, tokens=2 * turn.tokens)
    correction = f"That reply is not valid: {problem}. Write the JSON object again, and nothing else."
    if not read_reply.text.strip():
        last_message = request.messages[-1]
        messages = (
            *request.messages[:-1],
            replace(last_message, content=f"{last_message.content}\n\nWrite the JSON object, and nothing else."),
        )
        return replace(turn, temperature=temperature, messages=messages)
    quoted = Message("assistant", read_reply.text[:_QUOTED_CHARACTERS])
    return replace(turn, temperature=temperature, messages=(*request.messages, quoted, Message("user", correction)))


def _most_characters(turn: ModelTurn) -> int:
    return max(_LEAST_BOUND, MAX_CHARACTERS_PER_TOKEN * turn.tokens)


def _limit_size(raw: RawReply, limit: int) -> RawReply:
    """Return a reply that is not longer than its limit, as a reply that was cut off there."""
    return raw if len(raw.content) <= limit else replace(raw, content=raw.content[:limit], ending="length")


def _check_filter(raw: RawReply, model: str) -> None:
    """Raise `ModelInputRefused` if a filter of the endpoint removed the reply."""
    if raw.ending == FILTERED and not raw.content.strip():
        raise ModelInputRefused(f"model {model!r}: a content filter of the endpoint refused the request")
