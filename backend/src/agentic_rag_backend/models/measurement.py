"""Measures the configured models: a language model's obedience, memory and speed, and an embedder's vectors and speed."""

from __future__ import annotations

import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelRequest

PROMPT_TOKENS = 3000
"""Estimated tokens of the long prompt, about as many as in the prompt of an answer."""
_REPLY_TOKENS = 200
_TIMEOUT_S = 600.0
"""Seconds for each call: a slow model is measured, not cut."""
_PROMPT = "doctor@2"
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "year": {"type": "integer", "minimum": 1, "maximum": 9999}},
    "required": ["city", "year"],
    "additionalProperties": False,
}
_SENTENCE = (
    "{number}. The keeper of lighthouse {number} noted the height of the tide twice a day in a book that nobody else read."
)


@dataclass(frozen=True, slots=True)
class LongPrompt:
    """Result of a prompt with a mark at its start.

    ``repeated``: whether the reply has the mark. ``sent_tokens`` is an estimate, ``read_tokens`` the server's count.
    """

    repeated: bool
    sent_tokens: int
    read_tokens: int


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second."""

    read_tps: float
    write_tps: float

    def predict_seconds(self, read_tokens: float, written_tokens: float) -> float:
        """Return the predicted time of a call."""
        return read_tokens / self.read_tps + written_tokens / self.write_tps


@dataclass(frozen=True, slots=True)
class _Timed:
    """A streamed reply. Times are in seconds: until the first piece, and from there to the end."""

    text: str
    usage: Usage
    first_s: float
    rest_s: float


class Measuring:
    """Calls of one model.

    Args:
        name: the model; None: the default of ``model``.
    """

    def __init__(self, model: LanguageModel, name: str | None = None) -> None:
        self._model = model
        self._name = name

    async def ask_for_object(self) -> float:
        """Return the seconds of a call with a schema.

        Raises:
            ModelUnavailable: the model failed, or its reply does not match the schema.
        """
        began = time.perf_counter()
        await self._model.complete(
            self._make_request("When and in which city was the United Nations founded? Reply in JSON.", _SCHEMA)
        )
        return time.perf_counter() - began

    async def read_and_write(self) -> tuple[LongPrompt, Speed]:
        """Send a long prompt with a mark at its start, then ask for a long reply.

        Raises:
            ModelUnavailable: the model failed.
        """
        mark = f"amber-{secrets.token_hex(3)}"
        count = PROMPT_TOKENS // estimate_tokens(_SENTENCE.format(number=100))
        lines = "\n".join(_SENTENCE.format(number=number) for number in range(1, count + 1))
        text = (
            f"The code word is {mark}.\n\n{lines}\n\nReply with the code word from the start of this message, and nothing else."
        )
        long = await self._time_call(text)
        written_times = await self._time_call("Write the numbers from one to one hundred in words, separated by commas.")
        tokens = written_times.usage.completion_tokens
        # A reply in one piece was written before its first piece arrived.
        write_s = (
            written_times.rest_s
            if written_times.rest_s > written_times.first_s / 10
            else written_times.first_s + written_times.rest_s
        )
        read_tps = long.usage.prompt_tokens / max(long.first_s, 1e-3)
        prompt = LongPrompt(mark in long.text, estimate_tokens(text), long.usage.prompt_tokens)
        return prompt, Speed(max(read_tps, 1e-3), max(tokens / max(write_s, 1e-3), 1e-3))

    async def _time_call(self, text: str) -> _Timed:
        began, first_at, usage, pieces = time.perf_counter(), None, Usage(), list[str]()
        async with aclosing(self._model.stream(self._make_request(text))) as deltas:
            async for delta in deltas:
                first_at = time.perf_counter() if first_at is None else first_at
                pieces.append(delta.text)
                usage = delta.usage or usage
        ended_at = time.perf_counter()
        first_at = ended_at if first_at is None else first_at
        return _Timed("".join(pieces), usage, first_at - began, ended_at - first_at)

    def _make_request(self, text: str, schema: dict[str, object] | None = None) -> ModelRequest:
        return ModelRequest(
            prompt=_PROMPT,
            messages=(Message("user", text),),
            schema=schema,
            model=self._name,
            max_tokens=_REPLY_TOKENS,
            timeout_s=_TIMEOUT_S,
        )


_SAME = 0.98
"""Least cosine of two vectors of one text."""
_DIFFERENT = 0.9999
"""Cosine of two different texts from which the vectors do not depend on the text."""
_PASSAGE = (
    "Lighthouse {number} stands on a rock north of the harbour. Its keeper noted the height of the tide twice a day, in summer "
    "and in winter, and sent the book to the office of the port in December. In the year {number} the lamp was replaced, because "
    "ships had reported that they saw its light too late in fog. The old lamp is kept in the museum of the town."
)


@dataclass(frozen=True, slots=True)
class EmbedderMeasurement:
    """One batch of passages. ``question_s`` is the time of one question."""

    dimensions: int
    batch: int
    batch_s: float
    question_s: float
    tokens: int

    @property
    def passages_per_s(self) -> float:
        """Passages of this size that are embedded in a second."""
        return self.batch / max(self.batch_s, 1e-3)


async def measure_embedder(embedder: Embedder, *, batch: int) -> EmbedderMeasurement:
    """Embed a question and ``batch`` passages (at least 2) of about 80 tokens.

    Raises:
        ModelUnavailable: the embedder failed.
        ModelReplyInvalid: its vectors are not finite, have another length, or do not depend on the text.
    """
    passages = [_PASSAGE.format(number=number) for number in range(1, batch + 1)]
    began = time.perf_counter()
    await embedder.embed_query("When was the lamp of the lighthouse replaced?")
    question_s = time.perf_counter() - began
    began = time.perf_counter()
    vectors = await embedder.embed(passages)
    batch_s = time.perf_counter() - began
    (alone,), (unrelated_vector,) = (
        await embedder.embed(passages[-1:]),
        await embedder.embed(["An invoice for nine kilograms of flour."]),
    )
    if float(alone @ vectors[-1]) < _SAME:
        raise ModelReplyInvalid("a passage has another vector in a batch than alone: the order of the vectors may be wrong")
    if float(alone @ unrelated_vector) > _DIFFERENT:
        raise ModelReplyInvalid("two different texts have the same vector")
    tokens = sum(map(estimate_tokens, passages))
    return EmbedderMeasurement(vectors.shape[1], batch, batch_s, question_s, tokens)
