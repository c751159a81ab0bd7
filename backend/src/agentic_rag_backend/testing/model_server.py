"""A model server for tests: OpenAI-compatible HTTP on a loopback port, scripted by the model's name.

    with ModelServer() as server:
        model = OpenAIModel(api_key="any", base_url=server.base_url, model="cite+latency-200ms", …)
        …
        assert server.stats().models["cite+latency-200ms"].calls == 1

`testing.model_behaviour` lists the names. Replies can also be recorded, by prompt hash or by a matcher; a recorded reply
takes the place of the text, while latency, faults and streaming stay as the name says. It counts calls, tokens and the
most requests at once, in all, per model and per prompt: `stats`, ``GET /_stats``; `reset`, ``POST /_reset`` start again.
Routes: ``/v1/chat/completions`` (streamed or not), ``/v1/embeddings``, ``/v1/models``. ``python -m
agentic_rag_backend.testing.model_server --port 9000`` runs it by itself. It listens on 127.0.0.1 only and asks for no key.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import math
import socket
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

import uvicorn

from agentic_rag_backend.domain.words import words
from agentic_rag_backend.testing.model_behaviour import active, count_tokens, parse_name, prompt_hash, write

Reply = str | Callable[[str], str]
"""A recorded reply, or what makes one from the prompt's text."""
Matcher = tuple[Callable[[str], bool], Reply]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_START_S = 10.0
_EMBEDDING_DIMENSIONS = 64


@dataclass(slots=True)
class Counts:
    """What one model, or all, were asked. ``failures`` counts the scripted faults, by kind."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failures: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Stats:
    """Counts since the start or the last reset. ``prompts`` is by prompt hash; ``most_at_once`` the highest concurrency."""

    total: Counts = field(default_factory=Counts)
    models: dict[str, Counts] = field(default_factory=dict)
    prompts: dict[str, int] = field(default_factory=dict)
    embedded_texts: int = 0
    in_flight: int = 0
    most_at_once: int = 0
    cancelled: int = 0
    """Requests whose sender went away before the end."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request and the way to answer it."""

    model: str
    kinds: Mapping[str, float]
    request: Mapping[str, Any]
    receive: _Receive
    send: _Send


class ModelServer:
    """The server, in a thread of its own; a context manager.

    Args:
        replies: prompt hash (`prompt_hash`) → reply.
        matchers: (predicate on the prompt's text, reply) pairs, tried in order after ``replies``.
        port: 0 picks a free one.
    """

    def __init__(self, *, replies: Mapping[str, Reply] | None = None, matchers: Sequence[Matcher] = (), port: int = 0) -> None:
        self.replies: dict[str, Reply] = dict(replies or {})
        self.matchers: list[Matcher] = list(matchers)
        self._stats = Stats()
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", port))
        # Accepted sockets inherit it; otherwise small pieces of a stream wait 40 ms for the reader's acknowledgement.
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
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    @property
    def base_url(self) -> str:
        """What an OpenAI client is given as ``base_url``."""
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
        with self._lock:
            kept = self._stats
            return Stats(
                _copied(kept.total),
                {name: _copied(counts) for name, counts in kept.models.items()},
                dict(kept.prompts),
                kept.embedded_texts,
                kept.in_flight,
                kept.most_at_once,
                kept.cancelled,
            )

    def reset(self) -> None:
        """Forget all counts, also those that end faults such as ``status-500x2``."""
        with self._lock:
            self._stats = Stats(in_flight=self._stats.in_flight)

    # --- HTTP

    async def _app(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        method, path = scope["method"], scope["path"]
        if (method, path) == ("GET", "/_stats"):
            await _json(send, 200, asdict(self.stats()))
        elif (method, path) == ("POST", "/_reset"):
            self.reset()
            await _json(send, 200, {})
        elif (method, path) == ("GET", "/v1/models"):
            names = sorted({*self.stats().models, "echo", "cite"})
            await _json(send, 200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
        elif method == "POST" and path in ("/v1/chat/completions", "/v1/embeddings"):
            await self._post(path, receive, send)
        else:
            await _error(send, 404, f"no route {method} {path}")

    async def _post(self, path: str, receive: _Receive, send: _Send) -> None:
        try:
            request = json.loads(await _body(receive))
            model = request["model"]
        except (ValueError, KeyError, TypeError):
            await _error(send, 400, "the body must be a JSON object with a model")
            return
        with self._lock:
            self._stats.in_flight += 1
            self._stats.most_at_once = max(self._stats.most_at_once, self._stats.in_flight)
            counts = self._stats.models.setdefault(model, Counts())
            call, counts.calls, self._stats.total.calls = counts.calls, counts.calls + 1, self._stats.total.calls + 1
        ended = False

        def end() -> None:
            nonlocal ended
            with self._lock:
                self._stats.in_flight -= not ended
                ended = True

        async def counted(message: MutableMapping[str, Any]) -> None:
            # Before the last byte: a caller that has its answer may send the next request at once.
            if message["type"] == "http.response.body" and not message.get("more_body"):
                end()
            await send(message)

        try:
            kinds = active(parse_name(model), call)
            if kinds.get("latency") and await _left_within(kinds["latency"], receive):
                with self._lock:
                    self._stats.cancelled += 1
                return
            exchange = _Exchange(model, kinds, request, receive, counted)
            if not await self._failed(exchange):
                await (self._chat if path.endswith("completions") else self._embed)(exchange)
        finally:
            end()

    async def _failed(self, exchange: _Exchange) -> bool:
        """Answer with the fault the name asks for, if any."""
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        wants_schema = request.get("response_format", {}).get("type") == "json_schema"
        if "drop" in kinds:
            self._count_failure(model, "drop")
            await send(_start(200, [(b"content-length", b"1000")]))  # and nothing more: uvicorn closes the connection
        elif "rate-limited" in kinds:
            self._count_failure(model, "429")
            seconds = kinds["rate-limited"]
            await _error(send, 429, "rate limited", headers=[(b"retry-after", f"{seconds:g}".encode())])
        elif "status" in kinds:
            self._count_failure(model, str(int(kinds["status"])))
            await _error(send, int(kinds["status"]), "scripted failure")
        elif "json-object-only" in kinds and wants_schema:
            self._count_failure(model, "400")
            await _error(send, 400, "response_format json_schema is not supported")
        else:
            return False
        return True

    async def _chat(self, exchange: _Exchange) -> None:
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        messages = request.get("messages", [])
        digest = prompt_hash(messages)
        prompt = "\n\n".join(str(message.get("content") or "") for message in messages)
        recorded = self._recorded(digest, prompt)
        if recorded is None and "recorded" in kinds:
            self._count_failure(model, "404")
            await _error(send, 404, f"no reply is recorded for prompt {digest}")
            return
        wanted = request.get("response_format", {}).get("json_schema", {}).get("schema")
        text = write(kinds, messages, wanted) if recorded is None else recorded
        tokens = count_tokens(prompt), count_tokens(text)
        self._count(model, digest, *tokens)
        usage = None if "no-usage" in kinds else _usage(*tokens)
        if request.get("stream"):
            asked = (request.get("stream_options") or {}).get("include_usage")
            await self._stream(exchange, _pieces(text), usage if asked else None)
            return
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
        await _json(send, 200, reply if usage is None else {**reply, "usage": usage})

    async def _stream(self, exchange: _Exchange, pieces: Sequence[str], usage: Mapping[str, int] | None) -> None:
        send, kinds = exchange.send, exchange.kinds
        cut = "cut-stream" in kinds or "short-stream" in kinds
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": exchange.model}
        await send(_start(200, [(b"content-type", b"text/event-stream")]))
        gone = asyncio.ensure_future(_disconnected(exchange.receive))
        try:
            for piece in pieces[: len(pieces) // 2] if cut else pieces:
                await _event(send, {**base, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                await asyncio.sleep(kinds.get("slow-stream", 0.0))
                if gone.done():
                    with self._lock:
                        self._stats.cancelled += 1
                    return
        finally:
            gone.cancel()
        if cut:
            kind = "cut-stream" if "cut-stream" in kinds else "short-stream"
            self._count_failure(exchange.model, kind)
            if kind == "short-stream":
                await send({"type": "http.response.body", "body": b""})
            return  # without the end of the body, uvicorn closes the connection
        await _event(send, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if usage is not None:
            await _event(send, {**base, "choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _embed(self, exchange: _Exchange) -> None:
        model, kinds, request, send = exchange.model, exchange.kinds, exchange.request, exchange.send
        given = request.get("input", [])
        texts = [given] if isinstance(given, str) else list(given)
        size = int(request.get("dimensions") or _EMBEDDING_DIMENSIONS)
        tokens = sum(count_tokens(text) for text in texts)
        self._count(model, hashlib.sha256(json.dumps(texts).encode()).hexdigest(), tokens, 0, embedded=len(texts))
        if "broken-json" in kinds:
            await _raw(send, 200, b'{"data": [')
            return
        vectors = [embed_text(text, size) for text in texts[: len(texts) // 2 if "wrong-schema" in kinds else None]]
        packed = request.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": _base64(vector) if packed else vector}
            for index, vector in enumerate([] if "empty" in kinds else vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        await _json(send, 200, {"object": "list", "model": model, "data": data, "usage": usage})

    # --- counting

    def _recorded(self, digest: str, prompt: str) -> str | None:
        reply = self.replies.get(digest)
        if reply is None:
            reply = next((reply for matches, reply in self.matchers if matches(prompt)), None)
        return reply(prompt) if callable(reply) else reply

    def _count(self, model: str, digest: str, read: int, written: int, *, embedded: int = 0) -> None:
        with self._lock:
            self._stats.prompts[digest] = self._stats.prompts.get(digest, 0) + 1
            self._stats.embedded_texts += embedded
            for counts in (self._stats.total, self._stats.models.setdefault(model, Counts())):
                counts.prompt_tokens += read
                counts.completion_tokens += written

    def _count_failure(self, model: str, kind: str) -> None:
        with self._lock:
            for counts in (self._stats.total, self._stats.models.setdefault(model, Counts())):
                counts.failures[kind] = counts.failures.get(kind, 0) + 1


def embed_text(text: str, dimensions: int) -> list[float]:
    """Return a unit vector in which texts that share words are near each other; equal in every process."""
    vector = [0.0] * dimensions
    for word in words(text):
        digest = hashlib.sha256(word.form.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 if digest[4] % 2 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def _copied(counts: Counts) -> Counts:
    return Counts(counts.calls, counts.prompt_tokens, counts.completion_tokens, dict(counts.failures))


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


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


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A scriptable OpenAI-compatible model server, on loopback only.")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one")
    with ModelServer(port=parser.parse_args(arguments).port) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
