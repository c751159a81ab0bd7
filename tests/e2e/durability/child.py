"""Processes that can be killed: a process that has imported everything, and its children, which run one scenario each.

The first process reads scenarios as lines of JSON and forks for each, so that a child needs no imports. A scenario is
``{folder, steps, settings?, kill?, kill_after_s?, result?}``. Its steps request only work that is not done yet, so the same steps
finish the work of a killed child. With ``index``, it builds and swaps the vectors' indexes meanwhile; with ``watched``, it
records
the trees that a reader sees. ``kill {target, call, when, containing?}`` ends the child by SIGKILL before or after the n-th call
(of
those whose arguments contain a text) of a store's method; no product code is involved. With ``result``, the child waits for all
jobs, closes, and writes the contents of the stores and the times of its progress to that path.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import ChunkingOptions, Document, ProcessingOptions
from agentic_rag_backend.domain.evaluation import EvaluationCase, GoldItem, RunPlan
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tuning import Parameter, TuningPlan
from agentic_rag_backend.evaluation.evaluation_runs import EvaluationRuns
from agentic_rag_backend.evaluation.pair_judge import PairJudge
from agentic_rag_backend.evaluation.question_asking import Asker
from agentic_rag_backend.evaluation.tuning.candidate_scores import CandidateMeasurer
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.blob.base import BlobStore
from agentic_rag_backend.stores.catalogue.base import (
    CommunityCatalogue,
    DocumentCatalogue,
    JobCatalogue,
    Outbox,
    RunCatalogue,
    TreeCatalogue,
    TuningCatalogue,
)
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.telemetry.event_loop import WatchedLoop
from agentic_rag_backend.themes.raptor.build_options import BuildOptions

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures"))
from inspection import inspected
from programs import fork_servers_of_workers, keep_priority
from remembered_vectors import remember_vectors
from watched_loops import watched_turns

TENANT = TenantId("t_" + "d0" * 16)
STORES: Mapping[str, type] = {
    "blobs": BlobStore,
    "documents": DocumentCatalogue,
    "jobs": JobCatalogue,
    "communities": CommunityCatalogue,
    "trees": TreeCatalogue,
    "runs": RunCatalogue,
    "tuning": TuningCatalogue,
    "outbox": Outbox,
    "graph": SqliteGraphStore,
    "vectors": EdgeVectorStore,
    "queue": JobQueue,
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(kill: Mapping[str, Any]) -> None:
    """Make the process die at a call of a store's method, or inside the transaction that records and enqueues a job."""
    store, method = kill["target"].split(".")
    calls = 0

    def due(*arguments: Any) -> bool:
        nonlocal calls
        # The text of many vectors takes long, and the watchdog of the event loop would see it.
        with np.printoptions(override_repr=lambda vectors: "vectors"):
            calls += not kill["containing"] or kill["containing"] in repr(arguments)
        return calls == kill["call"]  # type: ignore[no-any-return]

    original = getattr(STORES[store], method)
    if kill["when"] == "in transaction":

        def enqueuer(self: JobQueue, name: str) -> Any:
            enqueue = original(self, name)

            def enqueue_and_die(*arguments: Any) -> None:
                enqueue(*arguments)
                if due():
                    die()

            return enqueue_and_die

        setattr(STORES[store], method, enqueuer)
        return

    @functools.wraps(original)
    async def fatal(*arguments: Any, **options: Any) -> Any:
        now = due(arguments, options)
        if now and kill["when"] == "before":
            die()
        result = await original(*arguments, **options)
        if now:
            die()
        return result

    setattr(STORES[store], method, fatal)


Shown = set[tuple[int, tuple[str, ...]]]
"""Generation, and nodes with their children, of each tree that a reader has seen."""


async def run(scenario: Mapping[str, Any], shown: Shown) -> dict[str, float]:
    """Run the scenario's steps, and wait for all jobs. Return the seconds until the stores were open, and until the end."""
    began = time.perf_counter()
    settings = Settings(
        data_dir=Path(scenario["folder"]),
        _env_file=None,
        community_auto_rebuild=False,
        job_polling_interval_s=0.02,
        **scenario.get("settings", {}),
    )
    async with AsyncExitStack() as stack:
        container = await stack.enter_async_context(open_container(settings))
        stack.enter_context(watched_turns())
        if await container.catalogue.tenants.tenant_by_name("acme") is None:
            await container.catalogue.tenants.create("acme", tenant_id=TENANT)
        opened = time.perf_counter()
        for step in scenario["steps"]:
            if step.get("index"):
                await asyncio.gather(carry_out(container, step), index(container))
            elif step.get("watched"):
                await watched(container, carry_out(container, step), shown)
            else:
                await carry_out(container, step)
        return {"opened_s": opened - began, "done_s": time.perf_counter() - began}


async def carry_out(container: Container, step: Mapping[str, Any]) -> None:
    if "evaluate" in step:
        await evaluate(container, step["evaluate"])
    elif "tune" in step:
        await tune(container, step["tune"])
    else:
        await take(container, step)
    await everything_ended(container)


async def watched(container: Container, work: Coroutine[Any, Any, None], shown: Shown) -> None:
    """Do ``work``, and list and search the tree continuously. A search that finds no summary is a gap."""
    tenant = await container.tenants.get(TENANT)
    question = Query(tenant=tenant, text="Who works for the Harbour Office?", limit=5)
    task = asyncio.ensure_future(work)
    ended = False
    while not ended:
        ended = task.done()
        listed = (await container.raptor.list(TENANT, limit=1000)).items
        found = await container.retrievers.get("raptor").retrieve(question)
        (generation,) = {each.generation for each in listed}
        shown.add((generation, tuple(sorted(" ".join((each.id, *each.children)) for each in listed))))
        if not found.themes:
            raise RuntimeError("a search found no summary of the tree")
        await asyncio.sleep(0.2)
    await task


async def index(container: Container) -> None:
    """Build every collection's index and swap it in."""
    if not isinstance(container.vectors, EdgeVectorStore):
        raise TypeError("only the embedded store looks after an index")
    for collection in Collection:
        built = await container.vectors.upkeep.run(collection)
        if built.failure is not None:
            raise RuntimeError(f"the index of {collection} was not built: {built.failure}")


async def take(container: Container, step: Mapping[str, Any]) -> None:
    """Request all work that is not done yet."""
    if "rebuild" in step or "tree" in step:
        jobs = await container.catalogue.jobs.jobs(TENANT, limit=100)
        if sum(job.kind == "rebuild" for job in jobs.items) < step.get("rebuild", 0):
            await container.communities.request_rebuild(TENANT)
        if sum(job.kind == "raptor" for job in jobs.items) < step.get("tree", 0):
            await container.raptor.request_build(TENANT, BuildOptions(**step.get("options", {})))
        return
    held = {document.key: document for document in await documents(container)}
    for key in step.get("delete", ()):
        if key in held:
            await container.ingestion.delete(TENANT, held[key].id)
    for key in step.get("chunk_again", ()):
        newest = await container.catalogue.documents.version(TENANT, held[key].id, held[key].latest_version)
        if newest.options.chunking != cut(step["chunk_size"]):
            await container.ingestion.chunk_again(TENANT, held[key].id, cut(step["chunk_size"]))
    for key, metadata in step.get("label", {}).items():
        if key in held and {name: held[key].metadata.get(name) for name in metadata} != metadata:
            await container.ingestion.update(TENANT, held[key].id, fields=metadata)
    options = ProcessingOptions(chunking=cut(step["chunk_size"])) if "chunk_size" in step else ProcessingOptions()
    for key, text in step.get("put", {}).items():
        upload = Upload(content=text.encode(), file_name=key if "." in key else f"{key}.md", key=key, options=options)
        await container.ingestion.submit(TENANT, upload)


async def evaluate(container: Container, step: Mapping[str, Any]) -> None:
    """Request a run unless there is one, and log every question that is asked."""
    ask = Asker.ask

    def note(case: EvaluationCase, name: str) -> None:
        with Path(step["log"]).open("a", encoding="utf-8") as log:
            log.write(f"{case.id} {name}\n")

    async def logged(self: Asker, caller: Any, plan: Any, configuration: Any, case: EvaluationCase, evidence: Any) -> Any:
        note(case, configuration["name"])
        outcome, text = await ask(self, caller, plan, configuration, case, evidence)
        return outcome, f"{configuration['name']}: {text}"

    async def choose(_: PairJudge, case: EvaluationCase, texts: tuple[str, str], _account: Any) -> str:
        note(case, f"judge {texts[0].partition(':')[0]}")
        return "1"

    Asker.ask = logged  # type: ignore[method-assign]
    PairJudge._ask = choose  # type: ignore[method-assign, assignment]
    EvaluationRuns._check_judge = lambda *_: None  # type: ignore[method-assign] # a model would be needed, which is not asked here
    if (await container.catalogue.evaluation_runs.runs(TENANT, limit=1)).items:
        return
    page = await container.catalogue.datasets.datasets(TENANT, limit=1)
    cases = [EvaluationCase(question=question) for question in step["questions"]]
    dataset = page.items[0] if page.items else await container.datasets.create(TENANT, "killed", cases)
    configurations = ({"name": "dense", "strategy": "dense"}, {"name": "sparse", "strategy": "sparse"})
    judge_model = "scripted" if step.get("judge") else None
    plan = RunPlan(dataset_id=dataset.id, dataset_version=0, configurations=configurations, judge_model=judge_model)
    await container.evaluation_runs.request_run(await container.tenants.act_for(TENANT), plan)


async def tune(container: Container, step: Mapping[str, Any]) -> None:
    """Request a proposal unless there is one, and log every case that is measured."""
    measure = CandidateMeasurer.measure_case

    def note(case: EvaluationCase, parameter: Parameter) -> None:
        with Path(step["log"]).open("a", encoding="utf-8") as log:
            log.write(f"{case.id} {parameter}\n")

    async def logged(
        self: CandidateMeasurer, caller: Any, plan: Any, parameter: Parameter, case: EvaluationCase, evidence: Any
    ) -> dict[str, float]:
        note(case, parameter)
        return await measure(self, caller, plan, parameter, case, evidence)

    CandidateMeasurer.measure_case = logged  # type: ignore[method-assign]
    if (await container.catalogue.tuning.proposals(TENANT, limit=1)).items:
        return
    page = await container.catalogue.datasets.datasets(TENANT, limit=1)
    gold = (GoldItem(document=(await documents(container))[0].id),)
    cases = [EvaluationCase(question=question, gold=gold) for question in step["questions"]]
    dataset = page.items[0] if page.items else await container.datasets.create(TENANT, "killed", cases)
    plan = TuningPlan(datasets=(), feedback=False, parameters=(Parameter.HYBRID_WEIGHTS, Parameter.AUTO_STRATEGIES))
    await container.tuning.request_proposal(await container.tenants.act_for(TENANT), plan, [dataset.id])


def cut(chunk_size: int) -> ChunkingOptions:
    return ChunkingOptions(chunk_size=chunk_size, overlap=0)


async def documents(container: Container) -> list[Document]:
    found: list[Document] = []
    cursor: str | None = None
    while True:
        page = await container.catalogue.documents.documents(TENANT, limit=100, cursor=cursor)
        found.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def everything_ended(container: Container) -> None:
    # Wait for workflows, too: jobs that were committed together with another one still have a workflow, which does nothing.
    open_ones = """
        SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')
        UNION ALL SELECT count(*) FROM outbox
        UNION ALL SELECT count(*) FROM workflows WHERE finished_us IS NULL"""
    connection = sqlite3.connect(container.settings.data_dir / "catalogue.db")
    async with asyncio.timeout(500):
        while any(count for (count,) in connection.execute(open_ones)):
            await asyncio.sleep(0.02)
    connection.close()


def main() -> None:
    keep_priority()
    fork_servers_of_workers()
    remember_vectors()
    gc.freeze()  # collections of a child would read, and so copy, all that was imported
    for line in sys.stdin:
        scenario = json.loads(line)
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)  # log output must not be read as an answer
            if "kill" in scenario:
                arm(scenario["kill"])
            if "kill_after_s" in scenario:
                threading.Timer(scenario["kill_after_s"], die).start()
            status = 1
            try:
                shown: Shown = set()
                with asyncio.Runner(loop_factory=WatchedLoop) as runner:
                    took = runner.run(run(scenario, shown))
                if "result" in scenario:
                    held = {**inspected(Path(scenario["folder"]), TENANT.value), "took": took, "shown": sorted(shown)}
                    Path(scenario["result"]).write_text(json.dumps(held))
                status = 0
            except BaseException as error:
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
                raise
            finally:
                sys.stderr.flush()
                os._exit(status)
        print(json.dumps({"exit": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}), flush=True)


if __name__ == "__main__":
    main()
