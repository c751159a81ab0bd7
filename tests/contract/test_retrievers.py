"""The contract of retrievers: on every registered strategy, and on retrievers with a planted fault."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions, QuestionOptions
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_testing.retrievers import contract, samples

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "parent_child": ({}, {"context_window": 1, "max_chunks": 2}),
    "multi_query": ({}, {"base": "graph", "fusion": "min_max"}),
    "fusion": ({}, {"weights": {"sparse": 1.0, "raptor": 0.5}, "fusion": "min_max"}),
    "corrective": ({"base": "parent_child"},),
    "agentic": ({}, {"novelty_circuit": False, "max_rounds": 2, "negative_constraints": ["storm"]}),
}
"""Options that each strategy is checked with. Other strategies are checked without options."""
SMALL = ProcessingOptions(chunking=ChunkingOptions(chunk_size=24, overlap=8))
WITH_PARENTS = ProcessingOptions(chunking=ChunkingOptions("parent_child", chunk_size=24, overlap=0, parent_size=80))
PARENTS = ("ferry", "storm")
"""Documents that are cut with parents."""
CASES = [(name, options) for name in STRATEGIES for options in OPTIONS.get(name, ({},))]


@dataclass
class World:
    """The application with the documents of both tenants."""

    container: Container
    tenants: dict[bool, TenantId] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    async def fill(self) -> None:
        for other, documents in ((False, samples.OWN), (True, samples.OTHER)):
            tenant = self.tenants[other] = (await self.container.catalogue.tenants.create("other" if other else "own")).id
            jobs = []
            for key, document in documents.items():
                upload = Upload(
                    content=document.markdown.encode(),
                    file_name=f"{key}.md",
                    key=key,
                    metadata=document.metadata,
                    options=WITH_PARENTS if key in PARENTS else SMALL,
                    questions=QuestionOptions("patterns"),
                )
                submitted = await self.container.ingestion.submit(tenant, upload)
                jobs.append(submitted.job)
                if not other:
                    self.keys[submitted.document.id] = key
            for job in jobs:
                await self._ended(tenant, job)
            rebuild = RebuildOptions(mode="full", min_community_size=2)
            await self._ended(tenant, await self.container.communities.request_rebuild(tenant, rebuild))
            await self._ended(tenant, await self.container.raptor.request_build(tenant))

    async def _ended(self, tenant: TenantId, job: Job | None) -> None:
        assert job is not None
        async with asyncio.timeout(60):
            while not (held := await self.container.catalogue.jobs.job(tenant, job.id)).state.ended:
                await asyncio.sleep(0.01)
        assert held.state is JobState.SUCCEEDED, held.error


@dataclass
class Searched:
    """A strategy, by its registered name, with options."""

    world: World
    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def keys(self) -> Mapping[str, str]:
        return self.world.keys

    async def ask(
        self,
        text: str,
        *,
        limit: int = 5,
        filters: Filter | None = None,
        moment: datetime = contract.VALID,
        other: bool = False,
    ) -> Retrieval:
        container = self.world.container
        query = Query(
            tenant=await container.catalogue.tenants.tenant(self.world.tenants[other]),
            text=text,
            limit=limit,
            high_limit=limit,
            filters=filters,
            asked_at=moment,
            options=self.options,
            dual_level=True,
        )
        return await container.retrievers.get(self.strategy).retrieve(query)

    async def text(self, document_id: str, version: int) -> str:
        documents = self.world.container.catalogue.documents
        return (await documents.version(self.world.tenants[False], document_id, version)).text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("retrievers") / "data",
        _env_file=None,
        community_auto_rebuild=False,
        job_polling_interval_s=0.02,
    )
    async with open_container(settings) as container:
        made = World(container)
        await made.fill()
        yield made


@pytest.mark.parametrize(("strategy", "options"), CASES, ids=[f"{name}{number}" for number, (name, _) in enumerate(CASES)])
async def test_every_strategy(world: World, strategy: str, options: Mapping[str, Any]) -> None:
    for check in contract.CHECKS:
        await check(Searched(world, strategy, options))


Change = Callable[[Retrieval], Retrieval]


@dataclass
class Faulty(Searched):
    """`hybrid` with one planted fault: other arguments, or other results."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    change: Change = lambda found: found

    async def ask(self, text: str, **asked: Any) -> Retrieval:  # type: ignore[override]
        return self.change(await super().ask(text, **{**asked, **self.arguments}))


def _each_hit(change: Callable[[Hit], Hit]) -> Change:
    return lambda found: replace(found, hits=tuple(map(change, found.hits)))


def _traced(**fields: Any) -> Change:
    return lambda found: replace(found, trace=replace(found.trace, **fields))


def _with_text(hit: Hit) -> Hit:
    chunk = replace(hit.visible.chunk, text=hit.visible.chunk.text.upper())
    return replace(hit, visible=replace(hit.visible, chunk=chunk))


TURNS = itertools.count()
WRONG_ARGUMENTS: Mapping[str, tuple[contract.Check, Mapping[str, Any]]] = {
    "another tenant": (contract.nothing_of_another_tenant_is_found, {"other": True}),
    "no filters": (contract.filters_hold_for_everything_that_is_found, {"filters": None}),
    "at any time": (contract.documents_count_while_they_are_valid, {"moment": contract.VALID}),
    "no limit": (contract.a_limit_returns_the_beginning, {"limit": 100}),
}
WRONG_RESULTS: Mapping[str, tuple[contract.Check, Change]] = {
    "nothing": (contract.a_limit_returns_the_beginning, lambda found: replace(found, hits=())),
    "scores by limit": (
        contract.a_limit_returns_the_beginning,
        lambda found: _each_hit(lambda hit: replace(hit, score=hit.score / len(found.hits)))(found),
    ),
    "by turns": (
        contract.equal_questions_have_equal_results,
        lambda found: replace(found, hits=found.hits[next(TURNS) % 2 :]),
    ),
    "worst first": (contract.scores_are_in_range_and_fall, lambda found: replace(found, hits=found.hits[::-1])),
    "out of range": (contract.scores_are_in_range_and_fall, _each_hit(lambda hit: replace(hit, score=hit.score * 2))),
    "twice": (
        contract.scores_are_in_range_and_fall,
        lambda found: replace(found, hits=tuple(hit for each in found.hits for hit in (each, each))),
    ),
    "other text": (contract.places_are_exact, _each_hit(_with_text)),
    "another name": (contract.the_trace_is_complete, _traced(strategy="dense")),
    "no methods": (contract.the_trace_is_complete, _traced(methods_used=())),
    "no time": (contract.the_trace_is_complete, _traced(processing_time_ms={})),
    "details that are no JSON": (contract.the_trace_is_complete, _traced(details={"as_of": "now", "at": contract.VALID})),
}


async def test_planted_faults_are_found(world: World) -> None:
    faulty = {
        **{fault: (check, Faulty(world, "hybrid", arguments=how)) for fault, (check, how) in WRONG_ARGUMENTS.items()},
        **{fault: (check, Faulty(world, "hybrid", change=change)) for fault, (check, change) in WRONG_RESULTS.items()},
    }
    assert {check for check, _ in faulty.values()} == set(contract.CHECKS)
    missed = [fault for fault, (check, searched) in faulty.items() if not await _finds(check, searched)]
    assert not missed


async def _finds(check: contract.Check, searched: contract.Searched) -> bool:
    try:
        await check(searched)
    except (AssertionError, TypeError, KeyError):
        return True
    return False
