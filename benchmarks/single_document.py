"""Measures the cost of one document in a corpus: added, updated and deleted, from the call to the end of its job.

A corpus is a separate process on its own data folder, so that two can be measured in turn, and noise affects both alike.
``python single_document.py --corpus FOLDER`` is such a process. It takes commands as JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import CorpusPassage
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.ingestion.prepare.reading import IsolatedExtractor, IsolatedReader
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import JobEnding
from agentic_rag_testing.tracing import TraceCounts
from corpora import ingest
from report import make_settings, quiet

OPERATIONS = ("add", "update", "delete")
TENANT = "bench"
STAGES = {
    "read and chunk": "reader.read",
    "embed": "embedder.embed",
    "extract": "extractor.extract",
    "resolve names": "resolver.resolve",
    "write graph": "graph.write_document",
    "write vectors": "vectors.upsert",
    "flush vectors": "vectors.flush",
    "publish": "catalogue.documents.publish",
}
"""The method that does the work of each stage of an ingestion. Embedding and extraction of a document overlap."""
WHOLE = "whole document"
_OF_STAGES_ONLY = ("reader.", "extractor.", "resolver.")
"""Methods that call stores. They are not counted by method, because the store's time would count twice."""
SETTLED_S = 2.1
"""After this time without work a document is processed alone: no commit waits for others to join."""


class Corpus:
    """A process that holds a corpus; a context manager.

    Args:
        folder: its data folder.
        traced: whether steps and methods are counted, which costs a few percent of the time.
        settings: further fields of `Settings`.
    """

    def __init__(self, folder: Path, *, traced: bool = False, settings: Mapping[str, Any] | None = None) -> None:
        command = [sys.executable, str(Path(__file__)), "--corpus", str(folder), "--settings", json.dumps(settings or {})]
        self._command = [*command, "--traced"] if traced else command

    def __enter__(self) -> Corpus:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.communicate(timeout=60)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Run a command: ``fill`` with passages, or ``add``, ``update`` or ``delete`` with one passage."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"do": do, **values}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"the process of a corpus ended in {do!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def fill(self, passages: Sequence[CorpusPassage]) -> dict[str, Any]:
        """Add passages and return the cost."""
        return self.ask("fill", passages=[asdict(passage) for passage in passages])

    def step(self, operation: str, passage: CorpusPassage) -> dict[str, Any]:
        """Add, update or delete one document. After all three the corpus is as before."""
        changed = replace(passage, text=f"{passage.text} Since then, {passage.title} has been described anew.")
        return self.ask(operation, passage=asdict(changed if operation == "update" else passage))


def compare(large: Corpus, small: Corpus, passages: Sequence[CorpusPassage]) -> dict[str, dict[str, float]]:
    """Run a round of each passage in both corpora in turn. Return medians in ms, and large ÷ small, by operation."""
    times: dict[str, dict[Corpus, list[float]]] = {name: {large: [], small: []} for name in OPERATIONS}
    for number, passage in enumerate(passages):
        for name in OPERATIONS:
            for corpus in (large, small) if number % 2 else (small, large):
                times[name][corpus].append(corpus.step(name, passage)["ms"])
    rows = {}
    for name, by_corpus in times.items():
        of_large, of_small = median(by_corpus[large]), median(by_corpus[small])
        pairs = zip(by_corpus[large], by_corpus[small], strict=True)
        rows[name] = {
            "large_ms": round(of_large, 1),
            "small_ms": round(of_small, 1),
            "ratio": round(of_large / of_small, 3),
            "median_of_ratios": round(median(one / other for one, other in pairs), 3),
        }
    return rows


def costs(corpus: Corpus, passages: Sequence[CorpusPassage]) -> dict[str, dict[str, dict[str, float]]]:
    """Return, by operation and kind of count, the medians over rounds of some passages in a traced corpus."""
    found: dict[str, dict[str, list[Mapping[str, float]]]] = {name: defaultdict(list) for name in OPERATIONS}
    for passage in passages:
        for operation in OPERATIONS:
            for kind, counts in corpus.step(operation, passage)["counts"].items():
                found[operation][kind].append(counts)
    return {operation: {kind: _medians(rows) for kind, rows in by_kind.items()} for operation, by_kind in found.items()}


def _medians(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = sorted({name for row in rows for name in row})
    return {name: round(median(row.get(name, 0) for row in rows), 2) for name in names}


Counts = Mapping[str, Mapping[str, float]]


def growing(small: Counts, large: Counts, *, factor: float, least: Mapping[str, float]) -> list[tuple[str, str, float, float]]:
    """Return (kind, name, small corpus, large corpus) of counts that grow by more than ``factor`` and by ``least``."""
    return [
        (kind, name, small[kind].get(name, 0), value)
        for kind, bound in least.items()
        for name, value in sorted(large[kind].items(), key=lambda item: -item[1])
        if value > factor * small[kind].get(name, 0) and value - small[kind].get(name, 0) > bound
    ]


# --- the process of a corpus


async def _serve(settings: Settings, trace: TraceCounts | None) -> None:
    async with open_container(settings) as services:
        if trace is not None:
            _watch(trace, services)
        found = await services.tenants.by_name(TENANT)
        tenant = (found or await services.tenants.create(TENANT)).id
        ids: dict[str, str] = {}
        ended = _Ended(services)
        worked_at = time.perf_counter()
        answer: dict[str, Any]
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            if command["do"] == "fill":
                answer = await ingest(services, tenant, [CorpusPassage(**passage) for passage in command["passages"]])
                if trace is not None:
                    trace.take()
            else:
                passage = CorpusPassage(**command["passage"])
                await asyncio.sleep(worked_at + SETTLED_S - time.perf_counter())
                if trace is not None:
                    trace.take()
                started = time.perf_counter()
                job = await _begin(services, tenant, command["do"], passage, ids)
                await ended.wait(job.id)
                answer = {"ms": (time.perf_counter() - started) * 1000}
                job = await services.catalogue.jobs.job(tenant, job.id)
                if job.error is not None:
                    raise SystemExit(f"{command['do']} ended {job.state.value}: {job.error}")
                if trace is not None:
                    answer["counts"] = _with_stages(trace.take(), answer["ms"])
            worked_at = time.perf_counter()
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def _with_stages(counts: dict[str, dict[str, float]], whole_ms: float) -> dict[str, dict[str, float]]:
    """Return the counts with the milliseconds of each stage as a further kind, ``stages``."""
    spent = counts["ms"]
    stages = {stage: spent.get(method, 0.0) for stage, method in STAGES.items()} | {WHOLE: whole_ms}
    kept = {name: ms for name, ms in spent.items() if not name.startswith(_OF_STAGES_ONLY)}
    return {**counts, "ms": kept, "stages": stages}


class _Ended:
    """Reports the end of a job without polling the catalogue, which would count as work."""

    def __init__(self, services: Container) -> None:
        self._jobs: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        jobs_kind, documents_kind = type(services.catalogue.jobs), type(services.catalogue.documents)
        finish, publish = jobs_kind.finish, documents_kind.publish

        async def noted(jobs: Any, tenant: TenantId, job_id: str, *args: Any, **kwargs: Any) -> Any:
            try:
                return await finish(jobs, tenant, job_id, *args, **kwargs)
            finally:
                self._jobs[job_id].set()

        async def shown(documents: Any, *args: Any, ending: JobEnding | None = None, **kwargs: Any) -> Any:
            try:
                return await publish(documents, *args, ending=ending, **kwargs)
            finally:
                if ending is not None:  # the job of a first version ends when the document becomes visible
                    self._jobs[ending.job_id].set()

        jobs_kind.finish = noted
        documents_kind.publish = shown

    async def wait(self, job_id: str) -> None:
        """Return when the job has ended."""
        await self._jobs[job_id].wait()
        del self._jobs[job_id]


async def _begin(services: Container, tenant: TenantId, do: str, passage: CorpusPassage, ids: dict[str, str]) -> Job:
    if do == "delete":
        return await services.ingestion.delete(tenant, ids.pop(passage.id))
    upload = Upload(content=passage.text.encode(), media_type="text/plain", title=passage.title, key=passage.id)
    submitted = await services.ingestion.submit(tenant, upload)
    ids[passage.id] = submitted.document.id
    assert submitted.job is not None
    return submitted.job


def _watch(trace: TraceCounts, services: Container) -> None:
    watched: dict[str, Callable[[], object]] = {
        "catalogue.documents": lambda: services.catalogue.documents,
        "catalogue.jobs": lambda: services.catalogue.jobs,
        "graph": lambda: services.graph,
        "vectors": lambda: services.vectors,
        "blobs": lambda: services.blobs,
        "embedder": lambda: services.embedder,
        "queue": lambda: services.queue,
    }
    for name, found in watched.items():
        trace.watch_methods(name, found())
    kinds: Mapping[str, type[Any]] = {"reader": IsolatedReader, "extractor": IsolatedExtractor, "resolver": Resolver}
    for name, kind in kinds.items():
        trace.watch_methods(name, object.__new__(kind))  # only its class is used


def main() -> None:
    """Serve one corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--traced", action="store_true")
    chosen = parser.parse_args()
    quiet()
    trace = TraceCounts() if chosen.traced else None
    settings = make_settings(
        **{"data_dir": chosen.corpus, "community_auto_rebuild": False, **json.loads(chosen.settings)},
    )
    with trace.watching_sqlite() if trace is not None else nullcontext():
        asyncio.run(_serve(settings, trace))


if __name__ == "__main__":
    main()
