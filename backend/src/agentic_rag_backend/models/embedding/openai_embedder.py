"""An embedder behind any OpenAI-compatible endpoint, through the `openai` SDK.

As with the language model, the SDK's own retries are off and one `asyncio.timeout` bounds a whole call (see
`models.llm.retries`). Requests ask for floats as JSON numbers: many compatible servers lack the SDK's base64 default.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openai
import orjson
from numpy.typing import NDArray

from agentic_rag_backend.domain.usage import read_reported
from agentic_rag_backend.errors import ConfigurationError, ModelReplyInvalid
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.embedding.base import BusyClock, EmbedderStats, Vectors
from agentic_rag_backend.models.endpoint import Call, Endpoint
from agentic_rag_backend.models.model_health import Health

BATCH_TEXTS = 256
BATCH_BYTES = 256_000
"""UTF-8 bytes in one request. A token has at least one byte, and the service accepts 300,000 tokens."""
WINDOW_BYTES = 8_000
"""Maximum UTF-8 bytes of one window: below the models' limit of 8,191 tokens in every language."""

_NATIVE_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_SHORTENED = frozenset({"text-embedding-3-small", "text-embedding-3-large"})
"""Models that take a ``dimensions`` parameter."""


_NOT_FINITE = re.compile(rb"(?<=[\[,:\s])-?(?:NaN|Infinity|nan|inf)\b")
"""Numbers that Python's servers write although JSON does not have them."""


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """How texts are sent: prefixes of each question and each passage, and the maximum number of texts in one request."""

    question_prefix: str = ""
    passage_prefix: str = ""
    batch_size: int = BATCH_TEXTS


@dataclass(frozen=True, slots=True)
class ByteWindow:
    """A part of text number ``owner``, at most `WINDOW_BYTES` long."""

    owner: int
    text: str
    size_bytes: int


def windows_of(owner: int, text: str, prefix: str = "") -> list[ByteWindow]:
    """Return ``text`` in windows of ≤ `WINDOW_BYTES`, cut at white space if possible. One window for an empty text.

    Each window begins with ``prefix``.
    """
    remainder, windows = text, []
    limit = WINDOW_BYTES - len(prefix.encode())
    while len(remainder.encode()) > limit:
        head = remainder.encode()[:limit].decode(errors="ignore")
        cut = max(head.rfind(" "), head.rfind("\n")) + 1 or len(head)
        windows.append(ByteWindow(owner, prefix + remainder[:cut], len(remainder[:cut].encode())))
        remainder = remainder[cut:]
    if remainder or not windows:
        # Services refuse an empty input.
        windows.append(ByteWindow(owner, prefix + (remainder if remainder.strip() else "."), max(1, len(remainder.encode()))))
    return windows


def batches_of(windows: Sequence[ByteWindow], batch_size: int = BATCH_TEXTS) -> list[list[ByteWindow]]:
    """Return the windows in order, in batches of ≤ ``batch_size`` windows and ≤ `BATCH_BYTES`."""
    batches: list[list[ByteWindow]] = []
    size = 0
    for window in windows:
        window_bytes = len(window.text.encode())
        if not batches or len(batches[-1]) == batch_size or size + window_bytes > BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(window)
        size += window_bytes
    return batches


class OpenAIEmbedder:
    """Embeds through ``base_url`` (None: OpenAI's).

    Args:
        dimensions: length of the vectors. None: the default of a known model.
        timeout_s: time limit of one request in seconds, including retries.
        max_concurrency: maximum number of concurrent requests.
        texts: prefixes and batch size.

    Raises:
        ConfigurationError: the model's dimension is neither given nor known.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None,
        model: str,
        dimensions: int | None,
        timeout_s: float,
        max_concurrency: int,
        texts: RequestTexts | None = None,
    ) -> None:
        native = _NATIVE_DIMENSIONS.get(model)
        if dimensions is None and native is None:
            raise ConfigurationError(f"set EMBEDDING_DIMENSIONS: the vector length of {model!r} (EMBEDDING_MODEL) is not known")
        self._dimensions = dimensions or native or 0
        self._shortened = model in _SHORTENED and dimensions not in (None, native)
        self._model = model
        self._texts = texts or RequestTexts()
        self._endpoint = Endpoint(
            "embedder", api_key=api_key, base_url=base_url, timeout_s=timeout_s, max_concurrency=max_concurrency
        )
        self._clock = BusyClock()

    @property
    def fingerprint(self) -> str:
        """Identity of model, dimension and prefix of passages. An endpoint reveals no more."""
        prefix = self._texts.passage_prefix
        suffix = f"-{hashlib.sha256(prefix.encode()).hexdigest()[:8]}" if prefix else ""
        return f"openai-{self._model}-{self._dimensions}{suffix}"

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def stats(self) -> EmbedderStats:
        """Return the counters since the start."""
        return self._clock.read_stats()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: float32, shape (len(texts), dimensions), unit rows, in order. Long texts in windows, pooled.

        Raises:
            ModelRateLimited: still limited at the time limit, or Retry-After exceeds it.
            ModelInputRefused: the service refuses these texts.
            ModelRefused: it refuses every request.
            ModelReplyInvalid: the reply lacks vectors, or has vectors that were not requested.
            ModelUnavailable: any other failure of the service or the connection.
        """
        prefix = self._texts.passage_prefix
        windows = [window for owner, text in enumerate(texts) for window in windows_of(owner, text, prefix)]
        batches = batches_of(windows, self._texts.batch_size)
        tasks = [asyncio.ensure_future(self._embed_batch(batch)) for batch in batches]
        try:
            parts = await asyncio.gather(*tasks)
        finally:
            for task in tasks:  # after a failure, the other requests are useless
                task.cancel()
        self._clock.add_counts(texts=len(texts), windows=len(windows))
        return self._pool_vectors(len(texts), batches, parts)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one question: float32, shape (dimensions,)."""
        windows = windows_of(0, text[: self.query_characters(text)], self._texts.question_prefix)
        batches = batches_of(windows, self._texts.batch_size)
        parts = []
        for batch in batches:
            call = self._begin_call()
            async with self._endpoint.admit_call(call), self._endpoint.watch_call(call):
                parts.append(await self._send_batch(call, batch))
        self._clock.add_counts(queries=1)
        row: NDArray[np.float32] = self._pool_vectors(1, batches, parts)[0]
        return row

    @property
    def languages(self) -> tuple[str, ...] | None:
        """None: the model of an endpoint may read any language."""
        return None

    def query_characters(self, text: str) -> int:
        """Return how many characters of ``text`` one window holds."""
        limit = WINDOW_BYTES - len(self._texts.question_prefix.encode())
        return len(text.encode()[:limit].decode(errors="ignore"))

    def query_tokens(self, text: str) -> int:
        """Return the estimated tokens of the part of a question that is embedded."""
        return estimate_tokens(self._texts.question_prefix + text[: self.query_characters(text)])

    async def close(self) -> None:
        """Release connections."""
        await self._endpoint.close()

    @property
    def health(self) -> Health:
        """Whether the endpoint answers."""
        return self._endpoint.health

    def _begin_call(self) -> Call:
        return self._endpoint.begin_call(self._model, "embedding")

    async def _embed_batch(self, batch: Sequence[ByteWindow]) -> Vectors:
        call = self._begin_call()
        async with self._endpoint.admit_call(call):
            with self._clock:
                async with self._endpoint.watch_call(call):
                    return await self._send_batch(call, batch)

    def _pool_vectors(self, count: int, batches: Sequence[Sequence[ByteWindow]], parts: Sequence[Vectors]) -> Vectors:
        """Return each text's mean over its windows, weighted by their length, at length 1."""
        totals = np.zeros((count, self._dimensions), dtype=np.float32)
        for batch, vectors in zip(batches, parts, strict=True):
            weights = np.array([[window.size_bytes] for window in batch], dtype=np.float32)
            np.add.at(totals, [window.owner for window in batch], vectors * weights)
        result: Vectors = totals / np.maximum(np.linalg.norm(totals, axis=1, keepdims=True), np.float32(1e-12))
        return result

    async def _send_batch(self, call: Call, batch: Sequence[ByteWindow]) -> Vectors:
        """Return the unit vectors of one batch."""
        arguments: dict[str, Any] = {"model": self._model, "input": [window.text for window in batch], "encoding_format": "float"}
        if self._shortened:
            arguments["dimensions"] = self._dimensions
        while True:
            attempt = self._endpoint.begin_attempt(call)
            try:
                with attempt.watch_failure():
                    # The SDK's parsing visits every number in Python: 6 ms per text of 1,536 dimensions, on the event loop.
                    reply = await self._endpoint.client.embeddings.with_raw_response.create(**arguments)
                    reply_value = self._load_json(reply.http_response.content)
                    vectors = self._check_reply(reply_value, len(batch))
            except (openai.OpenAIError, ValueError) as error:
                await self._endpoint.pause_call(call, error)
            else:
                attempt.end_attempt("ok", prompt_tokens=_tokens_of(reply_value))
                return vectors

    def _load_json(self, content: bytes) -> Any:
        """Return the JSON value of a reply.

        Raises:
            ModelReplyInvalid: it has numbers that JSON does not have.
            ValueError: it is no JSON, for example because it was cut off.
        """
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            word = _NOT_FINITE.search(content)
            if word is None:
                raise
            raise ModelReplyInvalid(
                f"embedder {self._model!r} returned a vector with {word[0].decode()}: the model computed a value that is not a "
                "number; restart its server, or use another model or precision"
            ) from None

    def _check_reply(self, reply: Any, count: int) -> Vectors:
        """Return the reply's vectors in the order of the request, at length 1."""
        try:
            unnumbered = all("index" not in row for row in reply["data"])
            rows = reply["data"] if unnumbered else sorted(reply["data"], key=lambda row: row["index"])
            numbers = [*range(len(rows))] if unnumbered else [row["index"] for row in rows]
            lengths = {len(row["embedding"]) for row in rows}
        except (KeyError, TypeError, AttributeError):
            raise ModelReplyInvalid(f"embedder {self._model!r} returned something other than vectors") from None
        if numbers != list(range(count)):
            raise ModelReplyInvalid(
                f"embedder {self._model!r} answered {len(rows)} vectors for {count} texts, or numbered them wrongly"
            )
        if lengths != {self._dimensions}:
            raise ModelReplyInvalid(
                f"embedder {self._model!r} answered vectors of length {sorted(lengths)}, "
                f"not {self._dimensions} (EMBEDDING_DIMENSIONS)"
            )
        try:
            with np.errstate(over="ignore"):
                vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (TypeError, ValueError):
            raise ModelReplyInvalid(
                f"embedder {self._model!r} returned a vector with values that are not numbers, which servers send instead of "
                "NaN: the fault is the model's"
            ) from None
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not (norms > 0).all():
            raise ModelReplyInvalid(
                f"embedder {self._model!r} returned a vector that is zero or not finite: the fault is the model's"
            )
        result: Vectors = vectors / norms
        return result


def _tokens_of(reply: Any) -> int:
    """Return the tokens that the service reports. 0 if it reports none."""
    usage = reply.get("usage") if isinstance(reply, dict) else None
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return read_reported(count) or 0
