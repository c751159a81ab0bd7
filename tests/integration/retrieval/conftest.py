"""A small hand-written corpus on the real embedded application: documents of two tenants, with communities."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions

STRATEGIES = ("dense", "sparse", "hybrid", "graph", "paths", "temporal", "community", "dual_level", "auto")

ALL_VALID = datetime(2018, 1, 1, tzinfo=UTC)
"""A time at which every document of the corpus is valid."""

CORPUS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "tidal": (
        "Tidal Array",
        "The Tidal Array is a power plant in Carrow Bay. The Tidal Array was designed by the Halden Institute. "
        "It feeds four villages.",
        {"topic": "energy", "year": 2019},
    ),
    "halden": (
        "Halden Institute",
        "The Halden Institute was founded by Mira Voss in Brennmoor. "
        "The Halden Institute employs sixty people and owns two boats.",
        {"topic": "science", "year": 2014},
    ),
    "voss": (
        "Mira Voss",
        "Mira Voss grew up on a lighthouse and studied hydrology. Mira Voss later joined the Lantern Museum as a trustee.",
        {"topic": "people", "year": 2016, "valid_from": "2016", "valid_to": "2020"},
    ),
    "museum": (
        "Lantern Museum",
        "The Lantern Museum in Westerhall shows the Glass Atlas. Petra Okafor directs the Lantern Museum.",
        {"topic": "art", "year": 2021},
    ),
    "atlas": (
        "Glass Atlas",
        "The Glass Atlas was engraved by Tomas Rehn. Tomas Rehn lived in Westerhall and taught Petra Okafor.",
        {"topic": "art", "year": 2022},
    ),
    "report": (
        "Carrow Bay Report",
        "The Carrow Bay Report praised the Tidal Array. "
        "Osric Lindqvist and Mira Voss wrote the Carrow Bay Report for the Halden Institute.",
        {"topic": "energy", "year": 2020},
    ),
    "seals": (
        "Seals of Carrow Bay",
        "Seals rest on the sand banks of Carrow Bay in winter. Osric Lindqvist counted four hundred seals.",
        {"topic": "nature", "year": 2018},
    ),
    "bread": (
        "Bread",
        "Sourdough needs flour, water, salt and patience. The dough rests overnight before it is baked in a hot oven.",
        {"topic": "food", "year": 2017},
    ),
}
"""Key → (title, text, metadata). Finding the founder of the designer of the Tidal Array needs two of them."""


@dataclass
class Corpus:
    """The application, and tenants whose documents are identified by key."""

    container: Container
    documents: dict[TenantId, dict[str, str]] = field(default_factory=dict)

    async def tenant(self, name: str, keys: Sequence[str] = tuple(CORPUS), *, communities: bool = True) -> TenantId:
        """Create a tenant with the documents of ``keys``, submitted in that order."""
        tenant = (await self.container.catalogue.tenants.create(name)).id
        self.documents[tenant] = {}
        texts = {key: f"# {CORPUS[key][0]}\n\n{CORPUS[key][1]}" for key in keys}
        await self.add_all(tenant, {key: (texts[key], {"title": CORPUS[key][0], "metadata": CORPUS[key][2]}) for key in keys})
        if communities:
            await self.rebuild(tenant)
        return tenant

    async def add_all(self, tenant: TenantId, documents: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
        """Submit texts with upload fields by key, and wait until all can be found."""
        jobs = []
        for key, (text, fields) in documents.items():
            upload = Upload(content=text.encode(), file_name=f"{key}.md", key=key, **fields)
            submitted = await self.container.ingestion.submit(tenant, upload)
            self.documents[tenant][key] = submitted.document.id
            jobs.append(submitted.job)
        for job in jobs:
            await self.ended(tenant, job)

    async def rebuild(self, tenant: TenantId) -> None:
        options = RebuildOptions(mode="full", min_community_size=2)
        await self.ended(tenant, await self.container.communities.request_rebuild(tenant, options))

    async def tombstone(self, tenant: TenantId, key: str) -> None:
        """Hide a document as its delete does at once. Its purge does not run."""
        await self.container.catalogue.documents.tombstone(tenant, self.documents[tenant][key], lambda *_: None)

    async def ended(self, tenant: TenantId, job: Job | None) -> None:
        assert job is not None
        async with asyncio.timeout(60):
            while not (held := await self.container.catalogue.jobs.job(tenant, job.id)).state.ended:
                await asyncio.sleep(0.01)
        assert held.state is JobState.SUCCEEDED, held.error

    async def ask(self, tenant: TenantId, text: str, strategy: str = "graph", **fields: Any) -> Retrieval:
        """Search as a request does, with the current tenant and dual-level retrieval, at a time when every document is valid."""
        current = await self.container.catalogue.tenants.tenant(tenant)
        usual = {"dual_level": True, "high_limit": 10, "asked_at": ALL_VALID}
        query = Query(tenant=current, text=text, **{**usual, **fields})
        return await self.container.retrievers.get(strategy).retrieve(query)


Opens = Callable[[Path], AbstractAsyncContextManager[Corpus]]


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Corpus]:
    async with open_container(_settings(folder)) as container:
        yield Corpus(container)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def corpus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Corpus]:
    """Return the application, open for the whole module."""
    async with _opened(tmp_path_factory.mktemp("retrieval") / "data") as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def acme(corpus: Corpus) -> TenantId:
    """Return a tenant that no test changes."""
    return await corpus.tenant("acme")


async def ended(container: Container, tenant: TenantId, job: Job | None) -> None:
    assert job is not None
    while not (held := await container.catalogue.jobs.job(tenant, job.id)).state.ended:
        await asyncio.sleep(0.05)
    assert held.state is JobState.SUCCEEDED, held.error


EXAMPLES = TenantId("t_" + "e" * 32)


def _settings(data_dir: Path) -> Settings:
    # Without caches: most tests repeat a search after a fault, and compare.
    caches: dict[str, Any] = {"search_cache_mb": 0, "embedding_cache_mb": 0, "theme_cache_mb": 0, "passage_cache_mb": 0}
    return Settings(data_dir=data_dir, _env_file=None, community_auto_rebuild=False, job_polling_interval_s=0.02, **caches)


@pytest.fixture(scope="session")
def examples_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Return the stores of a tenant with the examples' corpus, communities and a tree: to be copied.

    They are built once per test run: the first process that needs them builds them while the others wait.
    """
    own = tmp_path_factory.getbasetemp()
    # Without xdist the run is one process, and its own folder is shared with nobody.
    folder = (own.parent if hasattr(request.config, "workerinput") else own) / "examples-of-retrieval"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            building = folder.with_suffix(".new")
            shutil.rmtree(building, ignore_errors=True)
            asyncio.run(_build(building, request.config.rootpath / "examples" / "corpus"))
            building.rename(folder)
    return folder


async def _build(folder: Path, corpus: Path) -> None:
    async with open_container(_settings(folder)) as container:
        await container.catalogue.tenants.create("examples", tenant_id=EXAMPLES)
        jobs = [await _submitted(container, path) for path in sorted(corpus.iterdir()) if path.is_file()]
        for job in jobs:
            await ended(container, EXAMPLES, job)
        # Names that several documents use settle after the jobs.
        assert (await container.relay.deliver(EXAMPLES, within_s=60)).done
        await ended(container, EXAMPLES, await container.communities.request_rebuild(EXAMPLES))
        await ended(container, EXAMPLES, await container.raptor.request_build(EXAMPLES))


async def _submitted(container: Container, path: Path) -> Job | None:
    upload = Upload(content=path.read_bytes(), file_name=path.name, key=path.name)
    return (await container.ingestion.submit(EXAMPLES, upload)).job


@pytest.fixture(scope="module")
def copied_examples(examples_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the examples' stores for the tests of one module."""
    folder = tmp_path_factory.mktemp("examples") / "data"
    subprocess.run(["cp", "-a", "--sparse=always", str(examples_folder), str(folder)], check=True)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examples(copied_examples: Path) -> AsyncIterator[tuple[Container, TenantId]]:
    """Return the application on the examples. It runs no jobs."""
    async with open_container(_settings(copied_examples), work=False) as container:
        yield container, EXAMPLES
