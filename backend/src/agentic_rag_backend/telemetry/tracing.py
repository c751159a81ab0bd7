"""Traces of OpenTelemetry: requests, jobs, searches, answers, store calls and model calls as spans.

Nothing is recorded unless `record_traces` runs, and a span costs about a microsecond then. Names of attributes are in one place:
`ATTRIBUTES` for our own, `GEN_AI` for the conventions of generative models, which are still called "development".

Spans have no text of documents, questions and answers unless the setting OTEL_TRACES_CONTENT is on.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import structlog

from agentic_rag_backend.errors import AgenticRagError, ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, SpanKind, Tracer

    from agentic_rag_backend.telemetry.metrics import ModelCall

Exporter = Literal["none", "otlp", "console"]
Kind = Literal["internal", "server", "client", "consumer"]
AttributeValue = str | int | float | bool
Store = TypeVar("Store")

ATTRIBUTES: Mapping[str, str] = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "error": "error.type",
    "operation": "db.operation.name",
    "tenant": "agentic_rag.tenant",
    "door": "agentic_rag.door",
    "request_id": "agentic_rag.request_id",
    "job": "agentic_rag.job",
    "attempt": "agentic_rag.attempt",
    "strategy": "agentic_rag.strategy",
    "results": "agentic_rag.results",
    "cache": "agentic_rag.cache",
    "grounded": "agentic_rag.grounded",
    "question": "agentic_rag.question",
    "answer": "agentic_rag.answer",
}
"""Names of attributes in traces, by their names in this program."""
GEN_AI: Mapping[str, str] = {
    "operation": "gen_ai.operation.name",
    "model": "gen_ai.request.model",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "purpose": "agentic_rag.purpose",
}
"""Names of attributes of model calls."""
CONTENT = frozenset({"question", "answer"})
"""Attributes that have text of users and documents."""
_EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """Where traces go.

    Args:
        endpoint: address of an OTLP collector. None: that of the exporter's own variables, http://localhost:4318.
        share: share in [0, 1] of traces that are recorded. A caller's decision in ``traceparent`` has priority.
        content: whether spans have questions and answers.
    """

    exporter: Exporter = "none"
    endpoint: str | None = None
    service_name: str = "agentic-rag-backend"
    share: float = 1.0
    content: bool = False


@dataclass(frozen=True, slots=True)
class _Recorder:
    tracer: Tracer
    kinds: Mapping[Kind, SpanKind]
    content: bool


_recorder: _Recorder | None = None


class RunningSpan:
    """A span to which attributes can be added. Without a recorder, it does nothing."""

    def __init__(self, recorder: _Recorder | None = None, span: Span | None = None) -> None:
        self._recorder = recorder
        self._span = span

    def set(self, **attributes: AttributeValue | None) -> None:
        """Add attributes by their names in `ATTRIBUTES`. None is left out, and so is content unless it is recorded."""
        if self._recorder is None or self._span is None:
            return
        for name, value in attributes.items():
            if value is not None and (self._recorder.content or name not in CONTENT):
                self._span.set_attribute(ATTRIBUTES[name], value)

    def fail(self, code: str) -> None:
        """Mark the work as failed."""
        if self._span is not None:
            _set_error(self._span, code)

    def rename(self, name: str) -> None:
        """Change the name, when more is known about the work."""
        if self._span is not None:
            self._span.update_name(name)

    @property
    def trace_id(self) -> str | None:
        """The id of the trace, 32 hex digits. None: it is not recorded."""
        context = self._span.get_span_context() if self._span is not None else None
        return f"{context.trace_id:032x}" if context is not None and context.trace_flags.sampled else None


_NO_SPAN = RunningSpan()


def is_recording() -> bool:
    """Return whether this process records traces."""
    return _recorder is not None


@contextmanager
def start_span(
    name: str, kind: Kind = "internal", *, headers: Mapping[str, str] | None = None, **attributes: AttributeValue | None
) -> Iterator[RunningSpan]:
    """Record the body as a span. An exception that leaves it is the span's error, by its code or class and without its message.

    Args:
        headers: of a request, whose ``traceparent`` the span continues.
        attributes: by their names in `ATTRIBUTES`.
    """
    recorder = _recorder
    if recorder is None:
        yield _NO_SPAN
        return
    from opentelemetry import propagate

    context = propagate.extract(headers) if headers is not None else None
    with recorder.tracer.start_as_current_span(
        name, context, recorder.kinds[kind], record_exception=False, set_status_on_exception=False
    ) as span:
        running = RunningSpan(recorder, span)
        running.set(**attributes)
        try:
            yield running
        except BaseException as error:
            _set_error(span, error.code if isinstance(error, AgenticRagError) else type(error).__name__)
            raise


def record_model_call(call: ModelCall) -> None:
    """Record a request to a model that has ended."""
    recorder = _recorder
    if recorder is None:
        return
    now = time.time_ns()
    operation = "embeddings" if call.purpose == _EMBEDDING else "chat"
    values: dict[str, AttributeValue] = {
        "operation": operation,
        "model": call.model,
        "purpose": call.purpose,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
    }
    span = recorder.tracer.start_span(
        f"{operation} {call.model}",
        kind=recorder.kinds["client"],
        attributes={GEN_AI[name]: value for name, value in values.items()},
        start_time=now - int((call.duration_s or 0.0) * 1e9),
    )
    if call.outcome != "ok":
        _set_error(span, call.outcome)
    span.end(now)


def _set_error(span: Span, code: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR)
    span.set_attribute(ATTRIBUTES["error"], code)


def trace_store(store: Store, name: str) -> Store:
    """Return the store, whose calls are spans. While this process records no traces, it is the store itself."""
    return store if _recorder is None else cast("Store", _TracedStore(store, name))


class _TracedStore:
    def __init__(self, store: Any, name: str) -> None:
        self._store = store
        self._name = name

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._store, method)
        if not inspect.iscoroutinefunction(call):
            return call
        traced = trace_calls(call, f"{self._name} {method}", method)
        setattr(self, method, traced)
        return traced


def trace_calls(call: Callable[..., Any], name: str, operation: str) -> Callable[..., Any]:
    """Return a coroutine function whose calls are spans ``name``."""

    @wraps(call)
    async def call_in_span(*args: Any, **kwargs: Any) -> Any:
        with start_span(name, "client", operation=operation):
            return await call(*args, **kwargs)

    return call_in_span


@contextmanager
def record_traces(settings: TraceSettings) -> Iterator[None]:
    """Record traces while the body runs, and export the rest of them at its end.

    Raises:
        ConfigurationError: the packages of the extra ``telemetry`` are not installed.
    """
    global _recorder
    if settings.exporter == "none":
        yield
        return
    try:
        provider = _open_provider(settings)
    except ImportError as error:
        raise ConfigurationError(
            f"OTEL_TRACES_EXPORTER={settings.exporter} needs the extra 'telemetry' (docs/guide/first-steps.md): "
            f"the module {error.name!r} is missing"
        ) from error
    from opentelemetry.trace import SpanKind

    kinds: Mapping[Kind, SpanKind] = {
        "internal": SpanKind.INTERNAL,
        "server": SpanKind.SERVER,
        "client": SpanKind.CLIENT,
        "consumer": SpanKind.CONSUMER,
    }
    _recorder = _Recorder(provider.get_tracer("agentic_rag_backend"), kinds, settings.content)
    try:
        yield
    finally:
        _recorder = None
        provider.shutdown()


def _open_provider(settings: TraceSettings) -> Any:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    resource = Resource.create({SERVICE_NAME: settings.service_name})
    provider = TracerProvider(resource=resource, sampler=ParentBased(TraceIdRatioBased(settings.share)))
    provider.add_span_processor(BatchSpanProcessor(_open_exporter(settings)))
    return provider


def _open_exporter(settings: TraceSettings) -> SpanExporter:
    if settings.exporter == "console":
        import sys

        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    endpoint = settings.endpoint
    return OTLPSpanExporter(endpoint=None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces")


def bind_trace_id(span: RunningSpan) -> None:
    """Add the id of a recorded trace to the log events of the current context."""
    if span.trace_id is not None:
        structlog.contextvars.bind_contextvars(trace_id=span.trace_id)
