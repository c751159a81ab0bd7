"""Measures index upkeep of the embedded vector store on seeded synthetic vectors: before, during and after a build.

The vectors come from overlapping topics (a latent space of 96 dimensions whose variance falls as 1/n, 2,000 topics), not from a
model. They have 384 dimensions, and BM25 terms drawn by Zipf's law. Tenants: one with 75 % of the points, one with 15 %, one with
7 %, which is below the threshold, and tenants of 50 points for the rest. The truth is a scan in numpy.

Writes ``results/index_upkeep.json`` and ``.md``. Absolute times are reported. Asserted: recall@10 after the build ≥ .98 for
tenants that are searched by graph, and identical legs for those below the threshold; no point is lost or left over; less CPU
time (median) for a dense search of the largest tenant.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import report
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from agentic_rag_backend.stores.vector.base import Collection, IndexState, Legs, NodeKind, VectorPoint, VectorSearch
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.edge.upkeep import UpkeepOptions

DIMENSIONS = 384
QUERIES = 200
SHARES = {"largest": 0.75, "middle": 0.15, "below": 0.07}
SMALL = 50
CHUNKS = Collection.CHUNKS
MIN_RECALL = 0.98
OPTIONS = UpkeepOptions(min_points=20_000, first_look_s=3600.0)
"""The first automatic check is after an hour, because the benchmark starts the run itself."""


class Topics:
    """A reproducible source of vectors."""

    def __init__(self, seed: int) -> None:
        self._draw = np.random.default_rng(seed)
        self._scale = 1 / np.sqrt(np.arange(1, 97, dtype=np.float32))
        self._centres = self._draw.normal(size=(2_000, 96)).astype(np.float32)
        self._spread = self._draw.normal(size=(96, DIMENSIONS)).astype(np.float32)

    def vectors(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` unit vectors."""
        topics = self._centres[self._draw.integers(0, len(self._centres), count)]
        latent = (topics + 0.8 * self._draw.normal(size=topics.shape)) * self._scale
        found = latent @ self._spread + 0.1 * self._draw.normal(size=(count, DIMENSIONS))
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)

    def texts(self, count: int) -> list[str]:
        """Return ``count`` texts of 40 words."""
        words = np.minimum(self._draw.zipf(1.2, size=(count, 40)), 60_000)
        return [" ".join(f"w{number}" for number in row) for row in words]


@dataclass
class Sample:
    """A tenant, its points and its queries."""

    name: str
    tenant: TenantId
    ids: list[str]
    vectors: NDArray[np.float32]
    queries: NDArray[np.float32]
    truth: list[set[str]] = field(default_factory=list)

    def find_truth(self) -> None:
        """Scan for the ten nearest of each query."""
        nearest = np.argsort(-(self.queries @ self.vectors.T), axis=1)[:, :10]
        self.truth = [{self.ids[index] for index in row} for row in nearest]


class LoopGaps:
    """Measures gaps of the event loop: wall-clock time, and the CPU time that this process uses meanwhile."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.longest_cpu_s = 0.0

    async def watch(self) -> None:
        """Wake every 2 ms until cancelled."""
        while True:
            before, used = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.002)
            self.longest_s = max(self.longest_s, time.perf_counter() - before - 0.002)
            self.longest_cpu_s = max(self.longest_cpu_s, time.process_time() - used)


def samples(points: int, topics: Topics) -> Iterator[Sample]:
    """Yield the tenants, with as many small ones as necessary."""
    sizes = {name: round(points * share) for name, share in SHARES.items()}
    rest = points - sum(sizes.values())
    sizes |= {f"small {number}": SMALL for number in range(rest // SMALL)}
    for number, (name, size) in enumerate(sizes.items()):
        tenant = TenantId(f"t_{number:032x}")
        ids = [str(uuid.UUID(int=(number << 64) + index)) for index in range(size)]
        yield Sample(name, tenant, ids, topics.vectors(size), topics.vectors(QUERIES if size > SMALL else 5))


def points_of(sample: Sample, topics: Topics, start: int, count: int) -> list[VectorPoint]:
    """Return points ``start`` to ``start + count`` of a tenant, ten per document."""
    return [
        VectorPoint(
            id=sample.ids[index],
            kind=NodeKind.CHUNK,
            dense=sample.vectors[index],
            text=text,
            document_id=f"d{index // 10}",
            version=1,
            title=f"Document {index // 10}",
            metadata={"year": 1990 + index % 30},
        )
        for index, text in zip(range(start, min(start + count, len(sample.ids))), topics.texts(count), strict=False)
    ]


async def fill(store: EdgeVectorStore, held: list[Sample], topics: Topics) -> float:
    """Write all points and return the seconds."""
    started = time.perf_counter()
    for sample in held:
        for start in range(0, len(sample.ids), 2_000):
            await store.upsert(sample.tenant, CHUNKS, points_of(sample, topics, start, 2_000))
    await store.flush()
    return time.perf_counter() - started


async def ask(store: EdgeVectorStore, sample: Sample) -> dict[str, Any]:
    """Run each query and return times, recall and legs."""
    times: dict[str, list[float]] = {"dense": [], "hybrid": [], "dense_cpu": [], "hybrid_cpu": []}
    legs: list[Legs] = []
    for kind, text in (("dense", None), ("hybrid", "w3 w40 w500 w7000 w12 w81")):
        for query in sample.queries:
            started, used = time.perf_counter(), time.process_time()
            search = VectorSearch(kind=NodeKind.CHUNK, dense=query, text=text, limit=50)
            (found,) = await store.search(sample.tenant, CHUNKS, [search])
            times[kind].append((time.perf_counter() - started) * 1000)
            times[f"{kind}_cpu"].append((time.process_time() - used) * 1000)
            if kind == "dense":
                legs.append(found)
            await asyncio.sleep(0)
    hits = [len({hit.id for hit in found.dense[:10]} & truth) for found, truth in zip(legs, sample.truth, strict=True)]
    told = {f"{kind}_p{rank}_ms": round(find_percentile(times[kind], rank / 100), 2) for kind in times for rank in (50, 95)}
    return {"vectors": len(sample.ids), "recall_at_10": float(np.mean(hits) / 10), **told, "legs": legs}


async def work(store: EdgeVectorStore, largest: Sample, topics: Topics, during: list[float]) -> int:
    """Search, add, change and delete points until cancelled. Return the number of points at the end."""
    number = 0
    expected = len(largest.ids)
    try:
        while True:
            started = time.perf_counter()
            query = largest.queries[number % QUERIES]
            await store.search(largest.tenant, CHUNKS, [VectorSearch(kind=NodeKind.CHUNK, dense=query, limit=50)])
            during.append((time.perf_counter() - started) * 1000)
            added = [
                VectorPoint(
                    id=str(uuid.UUID(int=(1 << 120) + number * 8 + index)), kind=NodeKind.CHUNK, dense=vector, text="w9 w10"
                )
                for index, vector in enumerate(topics.vectors(8))
            ]
            await store.upsert(largest.tenant, CHUNKS, added)
            expected += len(added)
            await store.update_metadata(largest.tenant, f"d{number}", {"year": 2020}, title="Changed", key=None, up_to_version=9)
            # From the end, which the changes do not affect.
            expected -= await store.delete(largest.tenant, CHUNKS, [largest.ids[-1 - number]])
            number += 1
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return expected


def disk_mb(folder: Path) -> int:
    """Return the allocated disk space below ``folder``, in MB."""
    blocks = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # Files are created and removed while an index is built.
            with contextlib.suppress(FileNotFoundError):
                blocks += Path(place, name).stat().st_blocks
    return round(blocks * 512 / 1e6)


def memory_mb() -> int:
    """Return the memory of this process, in MB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return round(int(line.split()[1]) * 1024 / 1e6)


async def replaced(store: EdgeVectorStore, folder: Path, largest: Sample, topics: Topics) -> dict[str, Any]:
    """Build the index while the store is in use."""
    gaps = LoopGaps()
    during: list[float] = []
    phases: dict[str, Any] = {}
    watching = asyncio.create_task(gaps.watch())
    working = asyncio.create_task(work(store, largest, topics, during))
    peak_mb = 0
    started = time.perf_counter()
    running = asyncio.create_task(store.upkeep.run(CHUNKS))
    while not running.done():
        (chunks, _) = await store.indexes()
        if chunks.state is not IndexState.IDLE:
            phases.setdefault(chunks.state.value, time.perf_counter() - started)
        peak_mb = max(peak_mb, disk_mb(folder))
        await asyncio.sleep(0.2)
    run = await running
    working.cancel()
    expected = await working
    watching.cancel()
    if run.failure is not None:
        raise SystemExit(run.failure)
    held = await store.count(largest.tenant, CHUNKS)
    return {
        "seconds": round(run.seconds, 1),
        "gap_told_s": round(run.gap_s, 3),
        "gap_seen_s": round(gaps.longest_s, 3),
        "gap_cpu_s": round(gaps.longest_cpu_s, 3),
        "phases_began_s": {name: round(at, 2) for name, at in phases.items()},
        "p95_during_ms": round(find_percentile(during, 0.95), 2),
        "searches_during": len(during),
        "points_expected": expected,
        "points_held": held,
        "disk_peak_mb": peak_mb,
        "child_peak_mb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6),
    }


async def measure(points: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return every figure."""
    topics = Topics(seed)
    held = list(samples(points, topics))
    asked = held[:4]
    for sample in asked:
        sample.find_truth()
    store = await EdgeVectorStore.open(folder, dimensions=DIMENSIONS, embedder_fingerprint="synthetic", upkeep=OPTIONS)
    try:
        results: dict[str, Any] = {"points": points, "written_s": round(await fill(store, held, topics), 1)}
        results["memory_before_mb"], results["disk_before_mb"] = memory_mb(), disk_mb(folder)
        before = {sample.name: await ask(store, sample) for sample in asked}
        # A second index of unchanged points, so that recall is measured on the vectors of the scan.
        first = await store.upkeep.run(CHUNKS)
        if first.failure is not None:
            raise SystemExit(first.failure)
        after = {sample.name: await ask(store, sample) for sample in asked}
        results["memory_after_mb"], results["disk_after_mb"] = memory_mb(), disk_mb(folder)
        results["idle"] = {"seconds": round(first.seconds, 1), "gap_told_s": round(first.gap_s, 3)}
        results["worked_with"] = await replaced(store, folder, held[0], topics)
    finally:
        await store.close()
    for name in before:
        legs_before, legs_after = before[name].pop("legs"), after[name].pop("legs")
        after[name]["same_legs"] = legs_before == legs_after
    return {**results, "before": before, "after": after}


def table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows = [
        "| tenant | recall@10 | dense: CPU ms p50 / p95 before | after | hybrid: CPU ms p50 / p95 before | after "
        "| dense: ms by the clock p50 / p95 before | after |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, before in results["before"].items():
        after = results["after"][name]
        times = [
            f"{figures[f'{kind}_p50_ms']} / {figures[f'{kind}_p95_ms']}"
            for kind in ("dense_cpu", "hybrid_cpu", "dense")
            for figures in (before, after)
        ]
        rows.append(f"| {name} | {after['recall_at_10']:.4f} | " + " | ".join(times) + " |")
    rest = {name: value for name, value in results.items() if name not in ("before", "after")}
    return "\n".join(
        [f"# Index upkeep, {results['points']:,} points", "", *rows, "", "```json", json.dumps(rest, indent=2), "```"]
    )


def missed(results: dict[str, Any]) -> list[str]:
    """Return the assertions that fail."""
    found = []
    for name, after in results["after"].items():
        by_graph = SHARES.get(name, 0.0) * results["points"] > OPTIONS.min_points
        if by_graph and after["recall_at_10"] < MIN_RECALL:
            found.append(f"recall@10 of {name}: {after['recall_at_10']:.4f}, at least {MIN_RECALL}")
        if not by_graph and not after["same_legs"]:
            found.append(f"the legs of {name}, which is below the threshold, changed")
    worked_with = results["worked_with"]
    if worked_with["points_expected"] != worked_with["points_held"]:
        found.append(f"points: {worked_with['points_held']:,}, not {worked_with['points_expected']:,}")
    if results["after"]["largest"]["dense_cpu_p50_ms"] >= results["before"]["largest"]["dense_cpu_p50_ms"]:
        found.append("the CPU time of the largest tenant's dense search did not fall")
    return found


def main() -> int:
    """Measure and report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--points", type=int, default=200_000)
    options.add_argument("--seed", type=int, default=7)
    chosen = options.parse_args()
    report.quiet()
    with tempfile.TemporaryDirectory(prefix="index-upkeep-") as folder:
        results = asyncio.run(measure(chosen.points, chosen.seed, Path(folder)))
    return report.finish("index_upkeep", results, table(results), missed(results))


if __name__ == "__main__":
    sys.exit(main())
