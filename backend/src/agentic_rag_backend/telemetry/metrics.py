"""Counters and histograms of this process, which ``GET /metrics`` returns.

Every label has a bounded number of values: routes are templates, and a name that comes from outside (a model, a purpose) counts
as ``other`` once `_Names` is full. No label names a tenant.

The table of all metrics is in ``docs/guide/operations.md``; a test compares it with the served metrics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

OTHER = "other"
MAX_NAMES = 50
"""Maximum models, and maximum purposes, with their own label."""

REGISTRY = CollectorRegistry()
"""Registry of the metrics in this module."""

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_http_requests = Counter(
    "agentic_rag_http_requests",
    "HTTP requests that were answered, by route template and status.",
    ["method", "route", "status", "door"],
    registry=REGISTRY,
)
_http_duration = Histogram(
    "agentic_rag_http_request_duration_seconds",
    "Seconds from the request's head to the end of the response; of a stream, to its first byte.",
    ["method", "route", "door"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_model_calls = Counter(
    "agentic_rag_model_calls",
    "Requests to language and embedding models, each attempt counted.",
    ["model", "purpose", "outcome"],
    registry=REGISTRY,
)
_model_tokens = Counter(
    "agentic_rag_model_tokens",
    "Tokens that models read (input) and wrote (output).",
    ["model", "purpose", "direction"],
    registry=REGISTRY,
)
_model_duration = Histogram(
    "agentic_rag_model_call_duration_seconds",
    "Seconds of one request to a model.",
    ["model", "purpose"],
    buckets=_SECONDS,
    registry=REGISTRY,
)

_mended_replies = Counter(
    "agentic_rag_model_mended_replies",
    "Replies of language models that were read after a change, by what was changed.",
    ["model", "kind"],
    registry=REGISTRY,
)

_first_sentence = Histogram(
    "agentic_rag_answer_first_sentence_seconds",
    "Seconds from a question to the first checked sentence of its answer.",
    ["model"],
    buckets=_SECONDS,
    registry=REGISTRY,
)

_search_duration = Histogram(
    "agentic_rag_search_duration_seconds",
    "Seconds of a search, by strategy. Searches inside another strategy are counted, too.",
    ["strategy"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
_answers = Counter(
    "agentic_rag_answers",
    "Answers to questions, by strategy. A refusal says that the documents do not answer.",
    ["strategy", "outcome"],
    registry=REGISTRY,
)
_jobs_ended = Counter("agentic_rag_jobs_ended", "Jobs that this process ended.", ["kind", "state"], registry=REGISTRY)
_job_duration = Histogram(
    "agentic_rag_job_duration_seconds",
    "Seconds from the request of a job to its end, by kind.",
    ["kind"],
    buckets=(0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400),
    registry=REGISTRY,
)
ProcessCollector(registry=REGISTRY)

_cache_uses = Counter(
    "agentic_rag_cache_uses",
    "Uses of the caches of questions' vectors, of search results, of themes and of sentences' vectors.",
    ["cache", "outcome"],
    registry=REGISTRY,
)
_longest_turn = Gauge(
    "agentic_rag_event_loop_longest_turn_seconds",
    "CPU seconds of the longest turn of the event loop in the last two minutes.",
    registry=REGISTRY,
)
_long_turns = Counter(
    "agentic_rag_event_loop_long_turns",
    "Turns of the event loop that took 0.1 s of CPU or more.",
    registry=REGISTRY,
)
_cache_bytes = Gauge("agentic_rag_cache_bytes", "Bytes that a cache holds.", ["cache"], registry=REGISTRY)

RESULTS_CACHE = "results"
EMBEDDINGS_CACHE = "embeddings"
THEMES_CACHE = "themes"
PASSAGES_CACHE = "passages"
SENTENCES_CACHE = "sentences"

CacheUse = Literal["hit", "shared", "miss"]
Outcome = Literal["ok", "rate_limited", "refused", "invalid", "unavailable", "cancelled"]


class _Names:
    """Keeps the first `MAX_NAMES` names and maps further names to `OTHER`."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def bound_name(self, name: str) -> str:
        with self._lock:
            if name in self._known:
                return name
            if len(self._known) >= MAX_NAMES:
                return OTHER
            self._known.add(name)
            return name


_models, _purposes = _Names(), _Names()


def count_mended_reply(model: str, kind: str) -> None:
    """Count a reply that was mended, such as ``removed reasoning``. ``kind`` is a constant of `models.llm`."""
    _mended_replies.labels(_models.bound_name(model), kind).inc()


def observe_first_sentence(model: str, duration_s: float) -> None:
    """Record the time to the first checked sentence of an answer. A refusal has none."""
    _first_sentence.labels(_models.bound_name(model)).observe(duration_s)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def count_request(method: str, route: str, status: int, duration_s: float, *, door: str = "api") -> None:
    """Count an answered request; ``route`` is a template, ``status`` is 0 if the caller disconnected.

    ``door`` is one of the names of `api.doors.door_names`.
    """
    method_name = method if method in _METHODS else OTHER
    _http_requests.labels(method_name, route, str(status), door).inc()
    _http_duration.labels(method_name, route, door).observe(duration_s)


def observe_search(strategy: str, duration_s: float) -> None:
    """Record the time of a search. ``strategy`` is a registered name."""
    _search_duration.labels(strategy).observe(duration_s)


def count_answer(strategy: str, *, grounded: bool) -> None:
    """Count an answer. ``strategy`` is a registered name."""
    _answers.labels(strategy, "answered" if grounded else "refused").inc()


def count_ended_job(kind: str, state: str, duration_s: float) -> None:
    """Count a job that has ended, and its time since it was requested."""
    _jobs_ended.labels(kind, state).inc()
    _job_duration.labels(kind).observe(max(0.0, duration_s))


def count_cache_use(cache: str, outcome: CacheUse) -> None:
    """Count a use of a cache; ``shared``: an equal concurrent request did the work."""
    _cache_uses.labels(cache, outcome).inc()


def set_cache_bytes(cache: str, size_bytes: int) -> None:
    """Record the size of a cache."""
    _cache_bytes.labels(cache).set(size_bytes)


@contextmanager
def show_longest_turn(longest_s: Callable[[], float]) -> Iterator[None]:
    """Read the longest turn of the event loop from a function whenever the metrics are read."""
    _longest_turn.set_function(longest_s)
    try:
        yield
    finally:
        _longest_turn.set_function(lambda: 0.0)


def count_long_turn() -> None:
    """Count a turn of the event loop that took too long."""
    _long_turns.inc()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request that was sent to a model, with any outcome.

    Args:
        model: its name as the request gave it.
        purpose: such as the prompt's name without its version, or ``embedding``.
        duration_s: None if it was not measured.
    """

    model: str
    purpose: str
    outcome: Outcome
    input_tokens: int = 0
    output_tokens: int = 0
    duration_s: float | None = None


def count_model_call(call: ModelCall) -> None:
    """Count a request to a model, its tokens and its time. Safe in any thread."""
    model, purpose = _models.bound_name(call.model), _purposes.bound_name(call.purpose)
    _model_calls.labels(model, purpose, call.outcome).inc()
    for direction, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
        if tokens:
            _model_tokens.labels(model, purpose, direction).inc(tokens)
    if call.duration_s is not None:
        _model_duration.labels(model, purpose).observe(call.duration_s)
