"""``doctor --model`` and ``doctor --embedder``: measure the configured models, and compare with the limits."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.errors import AgenticRagError

if TYPE_CHECKING:
    from agentic_rag_backend.models.llm.base import LanguageModel
    from agentic_rag_backend.models.measurement import LongPrompt, Speed
    from agentic_rag_backend.settings import Settings

_EXTRACTION = (600, 400)
"""Tokens read and written for one chunk; see the table of costs in docs/guide/language-model.md."""
_SUMMARY = (550, 300)
_ANSWER = (600, 250)
"""Tokens of an answer: the instructions without the evidence, and the reply."""
_SPARE = 1.2
"""Factor between a measured time and a limit that is recommended for it."""
_BUNDLED_BATCH = 64


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check."""

    name: str
    ok: bool
    detail: str


@dataclass(slots=True)
class Measurements:
    """Checks of models, and the figures behind them by model."""

    checks: list[Check] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


async def measure_models(settings: Settings, *, model: bool, embedder: bool) -> Measurements:
    """Measure the language models and the embedder of the settings, without opening any store."""
    measurements = Measurements()
    if model:
        await _measure_language_models(measurements, settings)
    if embedder:
        await _measure_embedder(measurements, settings)
    return measurements


async def _measure_language_models(measurements: Measurements, settings: Settings) -> None:
    if settings.llm == "extractive":
        measurements.checks.append(Check("model", False, "LLM=extractive calls no model; set LLM=openai to measure one"))
        return
    names = dict.fromkeys(name for name in (settings.llm_model, settings.llm_fast_model) if name)
    try:
        async with _open_model(settings) as language_model:
            for name in names:
                await _measure_language_model(measurements, settings, language_model, name)
    except AgenticRagError as error:
        measurements.checks.append(_report_error("model", error))


@asynccontextmanager
async def _open_model(settings: Settings) -> AsyncIterator[LanguageModel]:
    from agentic_rag_backend.container.adapters import open_endpoint_model

    model = open_endpoint_model(settings)
    try:
        yield model
    finally:
        await model.close()


async def _measure_language_model(
    measurements: Measurements, settings: Settings, language_model: LanguageModel, name: str
) -> None:
    from agentic_rag_backend.models.measurement import Measuring

    measuring = Measuring(language_model, name)
    try:
        schema_s = await measuring.ask_for_object()
        measurements.checks.append(Check(f"{name}: schema", True, f"an object that matches, within {schema_s:.1f} s"))
    except AgenticRagError as error:
        schema_s = None
        measurements.checks.append(_report_error(f"{name}: schema", error))
    try:
        prompt, speed = await measuring.read_and_write()
    except AgenticRagError as error:
        measurements.checks.append(_report_error(f"{name}: window", error))
        return
    measurements.checks += [_check_window(name, prompt), _check_speed(name, speed), *_check_work(name, settings, speed)]
    measurements.figures[name] = {"schema_s": schema_s, **asdict(prompt), **asdict(speed)}


def _check_window(name: str, prompt: LongPrompt) -> Check:
    sent_text = f"about {prompt.sent_tokens:,} tokens; the server counted {prompt.read_tokens:,}"
    if prompt.repeated:
        return Check(f"{name}: window", True, f"the start of a long prompt was read ({sent_text})")
    remedy = "enlarge the server's window (Ollama: OLLAMA_CONTEXT_LENGTH), or set LLM_CONTEXT_TOKENS to the tokens that it reads"
    return Check(
        f"{name}: window",
        False,
        f"the start of a long prompt was not repeated: it was cut off or ignored ({sent_text}); {remedy}",
    )


def _check_speed(name: str, speed: Speed) -> Check:
    return Check(f"{name}: speed", True, f"reads {speed.read_tps:,.0f} and writes {speed.write_tps:,.1f} tokens a second")


def _check_work(name: str, settings: Settings, speed: Speed) -> list[Check]:
    """Return the predicted times of typical calls, compared with their limits."""
    from agentic_rag_backend.answering.service import FALLBACK_SHARE
    from agentic_rag_backend.models.pace import MOST

    longest_s = MOST * settings.llm_timeout_s
    checks = []
    for work, tokens in (("extraction from a chunk", _EXTRACTION), ("summary of a community", _SUMMARY)):
        needed_s = speed.predict_seconds(*tokens)
        checks.append(_compare_speeds(f"{name}: {work}", needed_s, longest_s, _advise_timeout(needed_s, MOST)))
    prompt_tokens, reply_tokens = _ANSWER
    needed_s = speed.predict_seconds(prompt_tokens + settings.answer_context_tokens, reply_tokens)
    advice = (
        f"{_advise_timeout(needed_s, FALLBACK_SHARE)} (it raises REQUEST_TIMEOUT_S unless that is set), or lower "
        f"ANSWER_CONTEXT_TOKENS ({settings.answer_context_tokens:,}); LLM_PROFILE=local does both"
    )
    return [
        *checks,
        _compare_speeds(f"{name}: answer", needed_s, min(longest_s, FALLBACK_SHARE * settings.request_timeout_s), advice),
    ]


def _advise_timeout(needed_s: float, share: float) -> str:
    advised_s = math.ceil(_SPARE * needed_s / share / 10) * 10
    return f"set LLM_TIMEOUT_S={advised_s}" if advised_s <= 600 else "use a faster model: no LLM_TIMEOUT_S is long enough"


def _compare_speeds(work: str, needed_s: float, limit_s: float, advice: str) -> Check:
    text = f"about {needed_s:,.1f} s of {limit_s:,.0f} s"
    return Check(work, needed_s <= limit_s, text if needed_s <= limit_s else f"{text}; {advice}")


async def _measure_embedder(measurements: Measurements, settings: Settings) -> None:
    from agentic_rag_backend.container.models import open_embedder
    from agentic_rag_backend.models.measurement import measure_embedder

    remote = settings.embedder == "openai"
    batch = max(2, settings.embedding_batch_size) if remote else _BUNDLED_BATCH
    try:
        embedder = open_embedder(settings)
        try:
            measured = await measure_embedder(embedder, batch=batch)
        finally:
            await embedder.close()
    except AgenticRagError as error:
        advice = f"; lower EMBEDDING_BATCH_SIZE ({batch}) or raise LLM_TIMEOUT_S" if error.code == "model_timeout" else ""
        measurements.checks.append(_report_error("embedder", error, advice))
        return
    rate = measured.passages_per_s
    measurements.checks += [
        Check("embedder: vectors", True, f"{embedder.fingerprint}; {measured.dimensions} dimensions, finite, in order"),
        Check(
            "embedder: speed",
            True,
            f"a question in {measured.question_s:.2f} s; {measured.batch} passages in {measured.batch_s:.1f} s: "
            f"{rate:,.0f} passages, {rate * measured.tokens / measured.batch:,.0f} tokens a second; "
            f"10,000 chunks take about {10_000 / rate / 60:,.0f} min",
        ),
    ]
    measurements.figures["embedder"] = {**asdict(measured), "passages_per_s": rate}


def _report_error(name: str, error: AgenticRagError, advice: str = "") -> Check:
    return Check(name, False, f"{error.code}: {error.message}{advice}")
