"""Measures the tree over passages: the cost of building and updating it, and the results of searching it compared with `dense`.

Writes ``results/raptor.json`` and ``.md`` (``raptor-SET`` for a set other than MuSiQue, ``raptor-scale`` for ``--scale``).
Absolute
times are reported. Asserted: one more passage rewrites as many summaries as the tree has levels, an unchanged tree none, and
`raptor` finds no less in the first five than `dense`. ``--scale N`` builds a tree over N planted passages instead, whose
summaries
the scripted model server embeds: time by stage, and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import CorpusPassage, QuestionSet, load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import all_at, find_percentile, recall_at
from agentic_rag_backend.themes.raptor.build_options import BuildOptions
from agentic_rag_testing.models.process import ModelProcess
from corpora import ingest
from planted_passages import plant
from report import data, finish, make_settings, quiet

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "dense": ("dense", {}),
    "hybrid": ("hybrid", {}),
    "raptor collapsed": ("raptor", {}),
    "raptor leaves_first": ("raptor", {"order": "leaves_first"}),
    "raptor summaries only": ("raptor", {"levels": [1, 2, 3]}),
    "raptor levels": ("raptor", {"search": "levels"}),
}
NAMES = ("R@5", "R@10", "all@10", "themes")
"""For the last way: the share of the answering passages among those that represent the themes next to the results."""


async def build(services: Container, tenant: TenantId, **options: Any) -> dict[str, Any]:
    """Run a build. Return its result with its duration, and the CPU time of this process by stage as far as it was observed."""
    started, busy = time.perf_counter(), time.process_time()
    spent: dict[str, float] = {}
    job = await services.raptor.request_build(tenant, BuildOptions(**options))
    while not (job := await services.catalogue.jobs.job(tenant, job.id)).state.ended:
        await asyncio.sleep(0.05)
        since, busy = busy, time.process_time()
        spent[job.stage] = spent.get(job.stage, 0.0) + busy - since
    if job.result is None:
        raise SystemExit(f"the build ended {job.state.value}: {job.error}")
    kept = ("mode", "nodes", "levels", "nodes_changed", "summaries_written", "stages_ms")
    cpu_s = {stage or "queued": round(seconds, 1) for stage, seconds in spent.items()}
    return {"total_s": round(time.perf_counter() - started, 2), **{name: job.result[name] for name in kept}, "cpu_s": cpu_s}


async def ask_all(services: Container, tenant: TenantId, questions: QuestionSet) -> dict[str, dict[str, float]]:
    """Ask every question in every way in turn, so that noise affects all alike."""
    current = await services.tenants.get(tenant)
    times: dict[str, list[float]] = {name: [] for name in ASKED}
    scores: dict[str, list[tuple[float, ...]]] = {name: [] for name in ASKED}
    for labelled in questions.questions:
        for name, (strategy, options) in ASKED.items():
            query = Query(tenant=current, text=labelled.question, limit=20, options=options)
            started = time.perf_counter()
            found = await services.retrievers.get(strategy).retrieve(query)
            times[name].append((time.perf_counter() - started) * 1000)
            keys = list(dict.fromkeys(str(hit.visible.document_key) for hit in found.hits))
            gold = labelled.gold
            shown = [id for theme in found.themes for id in theme.representatives]
            held = await services.catalogue.documents.hydrate(tenant, shown) if shown else {}
            themes = [str(held[id].document_key) for id in dict.fromkeys(shown) if id in held]
            found_in_themes = recall_at(themes, gold, len(themes))
            scores[name].append((recall_at(keys, gold, 5), recall_at(keys, gold, 10), all_at(keys, gold, 10), found_in_themes))
    return {
        name: {
            **{metric: round(sum(row[n] for row in scores[name]) / len(scores[name]), 3) for n, metric in enumerate(NAMES)},
            "p50_ms": round(find_percentile(times[name], 0.5), 2),
            "p95_ms": round(find_percentile(times[name], 0.95), 2),
        }
        for name in ASKED
    }


async def measure(questions: QuestionSet) -> dict[str, Any]:
    """Measure a set of questions in a new data folder."""
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
        async with open_container(settings) as services:
            tenant = (await services.tenants.create("asked")).id
            results: dict[str, Any] = {"ingestion": await ingest(services, tenant, questions.passages[:-1])}
            results["full"] = await build(services, tenant)
            results["unchanged"] = await build(services, tenant)
            last: CorpusPassage = questions.passages[-1]
            await ingest(services, tenant, [last])
            results["one more"] = await build(services, tenant)
            for name, row in results.items():
                print(name, row, flush=True)
            results["search"] = await ask_all(services, tenant, questions)
            return results


async def scale(count: int, endpoint: str) -> dict[str, Any]:
    """Build a tree over planted passages, and again without a change."""
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(
            data_dir=Path(data_dir),
            community_auto_rebuild=False,
            embedder="openai",
            embedding_model="hashed+dimensions-384",
            embedding_dimensions=384,
            openai_base_url=endpoint,
            openai_api_key="any",
            search_cache_mb=0,
            embedding_cache_mb=0,
        )
        async with open_container(settings) as services:
            tenant = (await services.tenants.create("planted")).id
            await plant(services, tenant, count)
            before_mb, busy = _peak_mb(), time.process_time()
            results: dict[str, Any] = {"chunks": count, "before_mb": before_mb, "full": await build(services, tenant)}
            results |= {"cpu_s": round(time.process_time() - busy, 1), "peak_mb": _peak_mb()}
            results["unchanged"] = await build(services, tenant)
            await plant(services, tenant, 1, first=count)
            results["one more"] = await build(services, tenant)
            return results


def _peak_mb() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def failures(results: dict[str, Any]) -> list[str]:
    """Return the asserted ratios that are not met."""
    missed = []
    height = len(results["full"]["levels"])
    if results["one more"]["summaries_written"] > height + 1:
        missed.append(f"one more passage rewrote {results['one more']['summaries_written']} summaries of {height} levels")
    if results["unchanged"]["summaries_written"]:
        missed.append(f"an unchanged tree had {results['unchanged']['summaries_written']} summaries written")
    found, dense = results["search"]["raptor collapsed"]["R@5"], results["search"]["dense"]["R@5"]
    if found < dense:
        missed.append(f"raptor R@5 {found} is below dense {dense}")
    return missed


def markdown(results: dict[str, Any]) -> str:
    """Return the tables."""
    lines = [f"| search | {' | '.join(NAMES)} | p50 ms | p95 ms |", "|---" * (len(NAMES) + 3) + "|"]
    for name, figures in results["search"].items():
        lines.append(f"| {name} | " + " | ".join(str(value) for value in figures.values()) + " |")
    lines += ["", "| build | seconds | nodes by level | changed | summaries written |", "|---|---|---|---|---|"]
    for name in ("full", "unchanged", "one more"):
        row = results[name]
        levels = ", ".join(str(count) for count in row["levels"].values())
        lines.append(f"| {name} | {row['total_s']} | {levels} | {row['nodes_changed']} | {row['summaries_written']} |")
    return "\n".join(lines)


def scale_markdown(results: dict[str, Any]) -> str:
    """Return the table of a large tree."""
    stages = results["full"]["stages_ms"]
    lines = [f"| {results['chunks']} passages | " + " | ".join(stages) + " | in all |", "|---" * (len(stages) + 2) + "|"]
    for name in ("full", "unchanged", "one more"):
        row = results[name]
        spent = [row["stages_ms"].get(stage, 0) / 1000 for stage in stages]
        lines.append(f"| {name}, s | " + " | ".join(f"{each:.2f}" for each in spent) + f" | {row['total_s']} |")
    row = results["full"]
    cpu = [row["cpu_s"].get(stage, 0) for stage in stages]
    lines.append("| full, s of CPU time | " + " | ".join(str(each) for each in cpu) + f" | {results['cpu_s']} |")
    memory = f"peak {results['peak_mb']} MB, {results['before_mb']} MB before the build"
    lines += ["", f"{results['full']['nodes']} nodes, {results['one more']['nodes_changed']} of one passage more; {memory}."]
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="musique", help="the set of questions")
    parser.add_argument("--scale", type=int, help="build over so many planted passages instead")
    chosen = parser.parse_args()
    quiet()
    if chosen.scale:
        with ModelProcess() as server:
            scaled = asyncio.run(scale(chosen.scale, server.base_url))
        return finish("raptor-scale", scaled, scale_markdown(scaled), [])
    folder = data()
    if folder is None:
        return 0
    results = asyncio.run(measure(load_question_set(folder / chosen.set)))
    name = "raptor" if chosen.set == "musique" else f"raptor-{chosen.set}"
    return finish(name, results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
