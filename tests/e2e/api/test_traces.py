"""Traces of OpenTelemetry, as a collector receives them from the process that serves the HTTP API."""

from __future__ import annotations

import gzip
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.e2e.api.conftest import Client, Template, serving, settings_for

from agentic_rag_backend.container import open_container
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.telemetry import tracing
from agentic_rag_backend.telemetry.tracing import ATTRIBUTES, GEN_AI, TraceSettings, record_traces

QUESTION = "Who leads the Harbour Authority?"
TRACE = "11112222333344445555666677778888"
PARENT = "aaaabbbbccccdddd"


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    name: str
    id: str
    parent: str
    trace: str
    failed: bool
    attributes: dict[str, Any]


@dataclass(slots=True)
class Collector:
    """An OTLP collector that keeps the spans that arrive."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
                    ids = (span.span_id.hex(), span.parent_span_id.hex(), span.trace_id.hex())
                    self.spans.append(ReceivedSpan(span.name, *ids, span.status.code == 2, attributes))

    def named(self, beginning: str) -> list[ReceivedSpan]:
        """Return the spans whose name begins so."""
        return [span for span in self.spans if span.name.startswith(beginning)]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    yield collector
    server.shutdown()
    server.server_close()


@asynccontextmanager
async def _traced(folder: Path, template: Template, collector: Collector, **more: Any) -> AsyncIterator[Client]:
    """A client of a server whose spans have arrived at the collector when the block ends."""
    with record_traces(TraceSettings(exporter="otlp", endpoint=collector.url, **more)):
        async with open_container(settings_for(folder)) as container, serving(container) as http:
            yield template.client(http)


async def test_a_request_its_search_its_stores_and_its_jobs_are_spans(
    folder: Path, template: Template, collector: Collector
) -> None:
    async with _traced(folder, template, collector) as client:
        await client.upload("The Quillmark Guild repairs clocks.", key="guild")
        headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
        answer = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": "hybrid"}, headers=headers)
        await client.get("/jobs/unknown")
    (request,) = collector.named("POST /api/v1/answers")
    assert (request.trace, request.parent, request.failed) == (TRACE, PARENT, False)
    assert request.attributes[ATTRIBUTES["route"]] == "/api/v1/answers"
    assert request.attributes[ATTRIBUTES["status"]] == 200
    assert request.attributes[ATTRIBUTES["tenant"]] == client.caller.tenant_id
    (written,) = collector.named("answer")
    (search,) = collector.named("search hybrid")
    assert (written.parent, search.parent) == (request.id, written.id)
    assert search.attributes[ATTRIBUTES["results"]] == 4
    stores = [span for span in collector.named("vectors search") if span.parent == search.id]
    assert stores
    assert all(span.attributes[ATTRIBUTES["operation"]] == "search" for span in stores)
    assert any(span.trace == TRACE for span in collector.named("catalogue hydrate"))
    jobs = collector.named("job ingest")
    assert {span.parent for span in collector.named("graph write_document")} & {span.id for span in jobs}
    missing = collector.named("GET /api/v1/jobs/{job_id}")[-1]
    assert (missing.attributes[ATTRIBUTES["status"]], missing.failed) == (404, False)
    texts = {str(value) for span in collector.spans for value in span.attributes.values()}
    assert not any(QUESTION in text or answer["answer"] in text or "Quillmark" in text for text in texts)


async def test_questions_and_answers_are_recorded_only_if_that_is_switched_on(
    folder: Path, template: Template, collector: Collector
) -> None:
    async with _traced(folder, template, collector, content=True) as client:
        answer = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": "hybrid"})
    (written,) = collector.named("answer")
    assert written.attributes[ATTRIBUTES["question"]] == QUESTION
    assert written.attributes[ATTRIBUTES["answer"]] == answer["answer"]


async def test_a_share_of_none_records_nothing_that_the_caller_does_not_ask_for(
    folder: Path, template: Template, collector: Collector
) -> None:
    async with _traced(folder, template, collector, share=0.0) as client:
        await client.data("POST", "/search", json={"query": QUESTION})
        await client.get("/tenants/me", headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
    assert {span.trace for span in collector.spans} == {TRACE}


async def test_a_model_call_has_the_names_of_the_conventions(collector: Collector) -> None:
    from agentic_rag_backend.telemetry.metrics import ModelCall

    with record_traces(TraceSettings(exporter="otlp", endpoint=collector.url)):
        tracing.record_model_call(
            ModelCall(model="m", purpose="answer", outcome="ok", input_tokens=7, output_tokens=2, duration_s=1)
        )
        tracing.record_model_call(ModelCall(model="e", purpose="embedding", outcome="rate_limited", duration_s=0.5))
    chat, embeddings = collector.named("chat m") + collector.named("embeddings e")
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        GEN_AI["purpose"]: "answer",
    }
    assert (chat.failed, embeddings.failed, embeddings.attributes["error.type"]) == (False, True, "rate_limited")


async def test_an_error_is_recorded_by_its_name_without_its_message(collector: Collector) -> None:
    with (
        record_traces(TraceSettings(exporter="otlp", endpoint=collector.url)),
        pytest.raises(ValueError, match="secret"),
        tracing.start_span("work"),
    ):
        raise ValueError("the secret of a document")
    (span,) = collector.spans
    assert (span.failed, span.attributes) == (True, {"error.type": "ValueError"})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with (
        pytest.raises(
            ConfigurationError, match=r"needs the extra 'telemetry'.*the module 'opentelemetry.sdk.resources' is missing"
        ),
        record_traces(TraceSettings(exporter="otlp")),
    ):
        pass


async def test_without_an_exporter_stores_are_not_wrapped() -> None:
    store = object()
    with record_traces(TraceSettings()):
        assert not tracing.is_recording()
        assert tracing.trace_store(store, "vectors") is store
