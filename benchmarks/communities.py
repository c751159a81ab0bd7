"""Measures the cost of communities: a full build, a build of an unchanged graph, and a build after one document changed.

Uses the examples, and the podcasts if the evaluation data is available. The scripted model server writes summaries. It answers at
once and counts, so the work around it is measured. Each step is followed by an incremental rebuild as a job; the communities with
changed fingerprints are listed in ``results/communities.json``.

``--scale`` also measures detection on a synthetic graph of 100,000 entities and 400,000 relationships (`community_scale.py`),
which takes many minutes; with ``--neo4j``, from a Neo4j too. ``--filled FOLDER`` takes the podcasts from a filled data folder,
and changes a copy of it.

Asserted: an unchanged graph causes no model call and takes at most a tenth of the full build's time; no step calls the model
more often than it changed fingerprints; memory of detection grows no faster than edges.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import report
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_passages
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.stores.catalogue.base import Matching
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_testing.models.process import ModelProcess
from community_scale import measure as measure_scale
from corpora import ingest
from report import make_settings

ROUNDS = 3
MAX_UNCHANGED = 0.10
MAX_MEMORY_GROWTH = 1.25
TENANT = "default"
STEPS = ("changed", "deleted", "added")
TITLE = "{entities:,} entities, {relationships:,} relationships, {communities:,} communities, modularity {modularity}"


@dataclass(frozen=True)
class Corpus:
    """A tenant's documents in an application, and the model that summarises them."""

    services: Container
    tenant: TenantId
    server: ModelProcess

    async def ended(self, job: Job) -> Job:
        """Wait for a job to succeed."""
        while not job.state.ended:
            await asyncio.sleep(0.02)
            job = await self.services.catalogue.jobs.job(self.tenant, job.id)
        if job.error is not None:
            raise SystemExit(f"a job of kind {job.kind.value} ended {job.state.value}: {job.error}")
        return job

    async def rebuild(self, mode: str = "incremental") -> dict[str, Any]:
        """Rebuild. Return time, model calls, and the differences from the previous generation."""
        before = await self._held()
        self.server.reset()
        started = time.perf_counter()
        job = await self.ended(await self.services.communities.request_rebuild(self.tenant, RebuildOptions(mode=mode)))
        seconds = time.perf_counter() - started
        after = await self._held()
        result = job.result or {}
        fresh = sorted(set(after.values()) - set(before.values()))
        return {
            "s": round(seconds, 3),
            "stages_ms": result["stages_ms"],
            "model_calls": self.server.stats().total.calls,
            "communities": len(after),
            "changed": len(fresh),
            "ids_kept": round(len(before.keys() & after.keys()) / len(before), 4) if before else None,
            "changed_communities": await self._names(fresh),
            "mode": result["mode"],
            **{name: result[name] for name in ("entities", "relationships", "modularity", "summaries_written")},
        }

    async def step(self, kind: str, passage: CorpusPassage) -> None:
        """Change, delete or add a document. After all three the corpus is as before."""
        if kind == "deleted":
            held = await self.services.catalogue.documents.documents(self.tenant, Matching(key=passage.id), limit=1)
            await self.ended(await self.services.ingestion.delete(self.tenant, held.items[0].id))
            return
        told = passage if kind == "added" else replace(passage, text=f"{passage.text} Since then, {passage.title} went on.")
        upload = Upload(content=told.text.encode(), media_type="text/plain", title=told.title or None, key=told.id)
        submitted = await self.services.ingestion.submit(self.tenant, upload)
        assert submitted.job is not None, "the document is the same as before"
        await self.ended(submitted.job)

    async def _held(self) -> dict[str, str]:
        pointer = await self.services.catalogue.communities.pointer(self.tenant)
        held = await self.services.graph.communities(self.tenant, pointer.generation)
        return {each.id: each.fingerprint for each in held}

    async def _names(self, fingerprints: Sequence[str]) -> list[str]:
        """Return the communities' names from their central entities. Their titles come from the scripted model."""
        summaries = await self.services.catalogue.communities.summaries(self.tenant, fingerprints)
        return sorted(", ".join(label.text for label in each.names) for each in summaries.values())


async def upkeep(folder: Path, passages: Sequence[CorpusPassage], server: ModelProcess) -> dict[str, Any]:
    """Build the communities of a folder's documents, and rebuild them after a few changes."""
    settings = make_settings(
        data_dir=folder,
        community_auto_rebuild=False,
        llm="openai",
        extraction="rules",
        llm_model="echo",
        openai_base_url=server.base_url,
        openai_api_key="any",
    )
    async with open_container(settings) as services:
        found = await services.tenants.by_name(TENANT)
        tenant = (found or await services.tenants.create(TENANT)).id
        corpus = Corpus(services, tenant, server)
        if (await services.catalogue.documents.counts(tenant))["documents"] == 0:
            await ingest(services, tenant, passages)
        rows = {"full build": await corpus.rebuild("full"), "unchanged": await corpus.rebuild()}
        step = max(1, len(passages) // ROUNDS)
        for number, passage in enumerate(passages[step // 2 :: step][:ROUNDS], start=1):
            for kind in STEPS:
                await corpus.step(kind, passage)
                rows[f"one {kind} ({number})"] = await corpus.rebuild()
        return rows


def missed(name: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """Yield the assertions that fail."""
    full, unchanged = rows["full build"], rows["unchanged"]
    if unchanged["model_calls"] or unchanged["changed"]:
        yield f"{name}: an unchanged graph cost {unchanged['model_calls']} calls and changed {unchanged['changed']} communities"
    if unchanged["s"] > MAX_UNCHANGED * full["s"]:
        yield f"{name}: an unchanged graph took {unchanged['s'] / full['s']:.2f} of the full build"
    for step, row in rows.items():
        # An already filled folder may hold communities whose summaries were written without a model.
        most = row["communities"] if row is full else row["changed"]
        if row["model_calls"] > most:
            yield f"{name}, {step}: {row['model_calls']} calls, more than {most} communities to write"


def table(name: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures of a corpus as Markdown."""
    full = rows["full build"]
    head = ["step", "s", "÷ full", "model calls", "communities changed", "ids kept"]
    lines = [f"### {name}", "", TITLE.format(**full), "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for step, row in rows.items():
        share = f"{row['changed']} of {row['communities']}"
        kept = "–" if row["ids_kept"] is None else f"{row['ids_kept']:.3f}"
        lines.append(f"| {step} | {row['s']:.2f} | {row['s'] / full['s']:.3f} | {row['model_calls']} | {share} | {kept} |")
    return "\n".join(lines)


def scale_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures of large graphs as Markdown."""
    stages = ("read", "weigh", "digest", "detect", "detect again")
    head = ["entities / relationships", "communities", "modularity", *(f"{stage}, CPU s" for stage in stages), "MB", "kept again"]
    lines = ["### Large graphs", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, row in rows.items():
        times = " | ".join(f"{row['stages'][stage]['cpu_s']}" for stage in stages)
        memory = f"{row['most_mb'] - row['before_mb']:.0f}"
        lines.append(f"| {name} | {row['communities']:,} | {row['modularity']} | {times} | {memory} | {row['kept_again']} |")
    return "\n".join(lines)


def growth(rows: Mapping[str, Mapping[str, Any]]) -> float:
    """Return memory per edge of the largest graph ÷ that of the smallest, both in SQLite."""
    small, large = [row for name, row in rows.items() if name.startswith("sqlite")][:2]
    per_edge = [(row["most_mb"] - row["before_mb"]) / row["edges"] for row in (small, large)]
    return float(per_edge[1] / per_edge[0])


def examples() -> list[CorpusPassage]:
    """Return the examples as passages."""
    files = sorted((report.ROOT / "examples" / "corpus").iterdir())
    return [CorpusPassage(id=file.name, title=file.stem, text=file.read_text(encoding="utf-8")) for file in files]


def main() -> int:
    """Measure, and write ``results/communities.json`` and ``.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filled", type=Path, help="a data folder that holds the podcasts as its tenant 'default'")
    parser.add_argument("--only", choices=["examples", "podcasts"], help="one corpus")
    parser.add_argument("--scale", action="store_true", help="measure large graphs as well")
    parser.add_argument("--neo4j", action="store_true", help="with --scale: from a Neo4j, too")
    chosen = parser.parse_args()
    report.quiet()
    corpora = {"examples": examples()}
    if (data := report.data("only the examples are measured")) is not None:
        corpora["podcasts"] = list(load_passages(data / "podcasts" / "corpus.jsonl"))
    results: dict[str, Any] = {}
    tables: list[str] = []
    failures: list[str] = []
    for name, passages in corpora.items():
        if chosen.only in (None, name):
            with ModelProcess() as server, tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as made:
                folder = Path(made, "data")
                if name == "podcasts" and chosen.filled is not None:
                    shutil.copytree(chosen.filled, folder)
                results[name] = asyncio.run(upkeep(folder, passages, server))
            tables.append(table(name, results[name]))
            failures += missed(name, results[name])
    if chosen.scale:
        results["scale"] = measure_scale(100_000, 400_000, neo4j=chosen.neo4j)
        tables.append(scale_table(results["scale"]))
        if (grown := growth(results["scale"])) > MAX_MEMORY_GROWTH:
            failures.append(f"memory for an edge grew to {grown:.2f} times that of a quarter of the graph")
    return report.finish("communities", results, "\n\n".join(tables), failures)


if __name__ == "__main__":
    raise SystemExit(main())
