"""A model server for tests: OpenAI-compatible HTTP on a loopback port, scripted by the model's name.

    with ModelServer() as server:
        model = OpenAIModel(api_key="any", base_url=server.base_url, model="cite+latency-200ms", …)
        …
        assert server.stats().models["cite+latency-200ms"].calls == 1

`models.behaviour` lists the names. Replies can also be recorded, by prompt hash or by a matcher; a recorded reply
takes the place of the text, while latency, faults and streaming stay as the name says. It counts calls, tokens and the
most requests at once, in all, per model, per prompt and per text: `stats`, ``GET /_stats``; `reset`, ``POST /_reset`` start
again. Routes: ``/v1/chat/completions`` (streamed or not), ``/v1/embeddings``, ``/v1/models``. It listens on 127.0.0.1 only
and asks for no key. `models.process` runs it as a process of its own, which outlives the product that asks it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn

from agentic_rag_backend.evaluation.datasets import evaluation_data
from agentic_rag_testing.models.behaviour import (
    Kinds,
    active,
    count_tokens,
    cut,
    fenced_passages,
    in_window,
    parse_name,
    prompt_hash,
    write,
)
from agentic_rag_testing.models.counts import Ledger, Stats
from agentic_rag_testing.models.quirks import WINDOW, Shape, refuse, schema_in, shape_reply
from agentic_rag_testing.models.recordings import load_recordings
from agentic_rag_testing.models.vectors import embed_text, hash_text, packed, with_floor

Reply = str | Callable[[str], str]
"""A recorded reply, or a function that makes one from the prompt's text."""
Matcher = tuple[Callable[[str], bool], Reply]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_START_S = 10.0
_EMBEDDING_DIMENSIONS = 64
_MAX_DIMENSIONS = 65_536
_BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[6]


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request and the way to answer it."""

    model: str
    kinds: Kinds
    request: Mapping[str, Any]
    receive: _Receive
    send: _Send


class ModelServer:
    """The server, in its own thread; a context manager.

    Args:
        replies: prompt hash (`prompt_hash`) → reply.
        matchers: (predicate on the prompt's text, reply) pairs, tried in order after ``replies``.
        port: 0 picks a free one.
        recordings: folder of the evaluation sets that ``recorded-NAME`` replays; None takes AGENTIC_RAG_EVAL_DATA, else
            ``shared/data`` next to the checkout.
    """

    def __init__(
        self,
        *,
        replies: Mapping[str, Reply] | None = None,
        matchers: Sequence[Matcher] = (),
        port: int = 0,
        recordings: Path | None = None,
    ) -> None:
        self.replies: dict[str, Reply] = dict(replies or {})
        self.matchers: list[Matcher] = list(matchers)
        self._recordings = recordings
        self._ledger = Ledger()
        self._socket = socket.create_server(("127.0.0.1", port))
        # Accepted sockets inherit it. Otherwise small pieces of a stream wait 40 ms for the reader's acknowledgement.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            log_config=None,
            log_level="critical",
            lifespan="off",
            ws="none",
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="model-server", daemon=True)

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self._socket.getsockname()[1])

    @property
    def base_url(self) -> str:
        """Return the ``base_url`` for an OpenAI client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        until = time.monotonic() + _START_S
        while not self._server.started:
            if time.monotonic() > until or not self._thread.is_alive():
                raise RuntimeError(f"the model server did not start within {_START_S:g} s")
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(_START_S)
        self._socket.close()

    def stats(self) -> Stats:
        """Return a copy of the counts."""
        return self._ledger.stats()

    def reset(self) -> None:
        """Reset all counts, including the counts that end faults such as ``status-500x2``."""
        self._ledger.reset()

    # --- HTTP

    async def _app(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        method, path = scope["method"], scope["path"]
        if (method, path) == ("GET", "/_stats"):
            await _json(send, 200, asdict(self.stats()))
        elif (method, path) == ("POST", "/_reset"):
            self.reset()
            await _json(send, 200, {})
        elif (method, path) == ("GET", "/v1/models"):
            names = sorted({*self._ledger.model_names(), "echo", "cite"})
            listed = [{"id": name, "object": "model", **_listed_window(name)} for name in names]
            await _json(send, 200, {"object": "list", "data": listed})
        elif method == "POST" and path in ("/v1/chat/completions", "/v1/embeddings"):
            await self._post(path, receive, send)
        else:
            await _error(send, 404, f"no route {method} {path}")

    async def _post(self, path: str, receive: _Receive, send: _Send) -> None:
        try:
            request = json.loads(await _body(receive))
            model = str(request["model"])
        except (ValueError, KeyError, TypeError):
            await _error(send, 400, "the body must be a JSON object with a model")
            return
        call = self._ledger.begin(model)
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._ledger.end()

        async def counted(message: MutableMapping[str, Any]) -> None:
            # Before the last byte: a caller may send its next request as soon as it has the response.
            if message["type"] == "http.response.body" and not message.get("more_body"):
                end()
            await send(message)

        try:
            kinds = active(parse_name(model), call)
            if kinds.number("latency") and await _left_within(kinds.number("latency"), receive):
                self._ledger.cancelled()
                return
            exchange = _Exchange(model, kinds, request, receive, counted)
            if not await self._failed(exchange):
                await (self._chat if path.endswith("completions") else self._embed)(exchange)
        finally:
            end()

    async def _failed(self, exchange: _Exchange) -> bool:
        """Answer with the fault in the model's name, if any."""
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        wants_schema = request.get("response_format", {}).get("type") == "json_schema"
        if "drop" in kinds:
            self._ledger.failed(model, "drop")
            await send(_start(200, [(b"content-length", b"1000")]))  # and no body: uvicorn closes the connection
        elif "rate-limited" in kinds:
            self._ledger.failed(model, "429")
            seconds = kinds.number("rate-limited")
            await _error(send, 429, "rate limited", headers=[(b"retry-after", f"{seconds:g}".encode())])
        elif "status" in kinds:
            status = int(kinds.number("status"))
            self._ledger.failed(model, str(status))
            await _error(send, status, "scripted failure")
        elif "poison" in kinds and _has_word(request, kinds.word("poison")):
            self._ledger.failed(model, "400")
            await _error(send, 400, f"the input is not accepted: it has the word {kinds.word('poison')}")
        elif "json-object-only" in kinds and wants_schema:
            self._ledger.failed(model, "400")
            await _error(send, 400, "response_format json_schema is not supported")
        elif (refusal := refuse(kinds.quirks, request, count_tokens(_prompt_of(request)))) is not None:
            self._ledger.failed(model, str(refusal.status))
            await _raw(send, refusal.status, json.dumps(refusal.body).encode())
        else:
            return False
        return True

    async def _chat(self, exchange: _Exchange) -> None:
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        messages = request.get("messages", [])
        if "window" in kinds:
            messages = in_window(messages, int(kinds.number("window")))
            request = {**request, "messages": messages}
        digest = prompt_hash(messages)
        prompt = _prompt_of(request)
        wanted = schema_in(request)
        try:
            recorded = await self._recorded(kinds, digest, prompt, wanted)
        except FileNotFoundError as error:
            await _error(send, 404, f"there are no recordings {kinds.word('recorded')!r}: {error}")
            return
        if recorded is None and "recorded" in kinds:
            self._ledger.failed(model, "404")
            await _error(send, 404, f"no reply is recorded for prompt {digest}")
            return
        text = write(kinds, messages, wanted) if recorded is None else recorded
        most = request.get("max_completion_tokens") or request.get("max_tokens")
        shape = shape_reply(kinds.quirks, text, structured=wanted is not None)
        if isinstance(shape.content, str) and most:
            text, shortened = cut(shape.content, int(most))
            shape = Shape(text, shape.more, "length" if shortened else shape.ending)
        ending = shape.ending or "stop"
        tokens = count_tokens(prompt), count_tokens(text)
        self._ledger.chatted(model, digest, tokens, fenced_passages(prompt))
        usage = None if "no-usage" in kinds else _usage(*tokens)
        if request.get("stream") and "no-stream" not in kinds:
            asked = (request.get("stream_options") or {}).get("include_usage")
            await self._stream(exchange, _deltas(shape), usage if asked else None, ending)
            return
        choice = {"index": 0, "finish_reason": ending, "message": {"role": "assistant", "content": shape.content, **shape.more}}
        reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
        await _json(send, 200, reply if usage is None else {**reply, "usage": usage})

    async def _stream(
        self, exchange: _Exchange, deltas: Sequence[Mapping[str, Any]], usage: Mapping[str, int] | None, ending: str
    ) -> None:
        send, kinds = exchange.send, exchange.kinds
        broken = "cut-stream" in kinds or "short-stream" in kinds
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": exchange.model}
        await send(_start(200, [(b"content-type", b"text/event-stream")]))
        gone = asyncio.ensure_future(_disconnected(exchange.receive))
        try:
            for delta in deltas[: len(deltas) // 2] if broken else deltas:
                await _event(send, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                await asyncio.sleep(kinds.number("slow-stream"))
                if gone.done():
                    self._ledger.cancelled()
                    return
        finally:
            gone.cancel()
        if broken:
            kind = "cut-stream" if "cut-stream" in kinds else "short-stream"
            self._ledger.failed(exchange.model, kind)
            if kind == "short-stream":
                await send({"type": "http.response.body", "body": b""})
            return  # without the end of the body, uvicorn closes the connection
        await _event(send, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": ending}]})
        if usage is not None:
            await _event(send, {**base, "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _embed(self, exchange: _Exchange) -> None:
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        given = request.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
        size = int(request.get("dimensions") or kinds.number("dimensions") or _EMBEDDING_DIMENSIONS)
        if not 1 <= size <= _MAX_DIMENSIONS or not all(isinstance(text, str) and text for text in texts):
            await _error(send, 400, f"input is one text or several, none empty, and dimensions are 1 to {_MAX_DIMENSIONS}")
            return
        tokens = sum(count_tokens(text) for text in texts)
        if "broken-json" in kinds:
            self._ledger.failed(model, "broken-json")
            await _raw(send, 200, b'{"data": [')
            return
        kept = 0 if "empty" in kinds else len(texts) // 2 if "wrong-schema" in kinds else len(texts)
        if kept < len(texts):
            self._ledger.failed(model, "empty" if "empty" in kinds else "wrong-schema")
        make = hash_text if "hashed" in kinds else embed_text
        floor = kinds.number("floor") / 100
        vectors = [with_floor(made, floor) if floor else made for made in (make(text, size) for text in texts[:kept])]
        self._ledger.embedded(model, texts[:kept], tokens)
        if "nan" in kinds and vectors:
            vectors[0] = [float("nan"), *vectors[0][1:]]
        in_base64 = request.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": packed(vector) if in_base64 else vector}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        await _json(send, 200, {"object": "list", "model": model, "data": data, "usage": usage})

    # --- recorded replies

    async def _recorded(self, kinds: Kinds, digest: str, prompt: str, schema: Mapping[str, Any] | None) -> str | None:
        reply = self.replies.get(digest)
        if reply is None:
            reply = next((reply for matches, reply in self.matchers if matches(prompt)), None)
        if reply is None and kinds.word("recorded"):
            folder = self._recordings or evaluation_data(_BESIDE_THE_CHECKOUT)
            if folder is None:
                raise FileNotFoundError("no evaluation data")
            recordings = await asyncio.to_thread(load_recordings, folder / kinds.word("recorded"))
            return recordings.reply(prompt, schema)
        return reply(prompt) if callable(reply) else reply


def _has_word(request: Mapping[str, Any], word: str) -> bool:
    given = request.get("input", [])
    texts = [given] if isinstance(given, str) else [str(text) for text in given]
    texts += [str(message.get("content") or "") for message in request.get("messages", [])]
    return any(word.casefold() in text.casefold() for text in texts)


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _listed_window(name: str) -> Mapping[str, int]:
    """Return the context window of a model whose server states it only in the list of models."""
    return {"max_model_len": WINDOW} if "quirk-ollama-context" in name.split("+") else {}


def _prompt_of(request: Mapping[str, Any]) -> str:
    return "\n\n".join(str(message.get("content") or "") for message in request.get("messages", []))


def _deltas(shape: Shape) -> list[Mapping[str, Any]]:
    """Return the pieces of a streamed reply: reasoning and other members first, then the text."""
    more: list[Mapping[str, Any]] = [
        {name: piece} for name, value in shape.more.items() if isinstance(value, str) for piece in _pieces(value)
    ]
    for call in shape.more.get("tool_calls", ()):
        pieces = _pieces(call["function"]["arguments"])
        more += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    parts = shape.content if isinstance(shape.content, list) else None
    if parts is not None:
        return [*more, *({"content": [part]} for part in parts)]
    return [*more, *({"content": piece} for piece in _pieces(str(shape.content or "")))]


def _pieces(text: str, size: int = 12) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


async def _left_within(seconds: float, receive: _Receive) -> bool:
    try:
        await asyncio.wait_for(_disconnected(receive), seconds)
    except TimeoutError:
        return False
    return True


async def _disconnected(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _start(status: int, headers: Sequence[tuple[bytes, bytes]]) -> MutableMapping[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


async def _raw(send: _Send, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    await send(_start(status, [(b"content-type", b"application/json"), *headers]))
    await send({"type": "http.response.body", "body": body})


async def _json(send: _Send, status: int, value: Any) -> None:
    await _raw(send, status, json.dumps(value).encode())


async def _error(send: _Send, status: int, message: str, *, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    body = {"error": {"message": message, "type": "scripted", "code": None, "param": None}}
    await _raw(send, status, json.dumps(body).encode(), headers)


async def _event(send: _Send, value: Mapping[str, Any]) -> None:
    await send({"type": "http.response.body", "body": f"data: {json.dumps(value)}\n\n".encode(), "more_body": True})


async def _body(receive: _Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
