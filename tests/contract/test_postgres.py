"""The contracts of the catalogue, its further ports and the job queue on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from catalogue_checks import contract as catalogue_contract
from catalogue_checks import feedback as feedback_contract
from catalogue_checks import idempotency as idempotency_contract
from catalogue_checks import quotas as quota_contract
from catalogue_checks import search_sessions as search_sessions_contract
from catalogue_checks import store_folders as store_folders_contract
from catalogue_checks import usage as usage_contract
from catalogue_checks.samples import TEXT, nothing, submission, tenant
from job_checks import job_queue as queue_contract
from job_checks import leases as leases_contract
from job_checks import workers as workers_contract
from sqlalchemy import Connection, Engine, create_engine, inspect, text

from agentic_rag_backend.jobs.queue import job_queue as module
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import parse_url
from agentic_rag_backend.stores.catalogue.jobs.job_rows import cancel_open_jobs
from agentic_rag_backend.stores.catalogue.operations import lock_document
from agentic_rag_backend.stores.catalogue.tables import metadata


@pytest.fixture
async def catalogue(postgres_url: str) -> AsyncIterator[Catalogue]:
    opened = await Catalogue.open(postgres_url)
    yield opened
    await opened.close()


@pytest.mark.parametrize("check", catalogue_contract.CHECKS, ids=lambda check: check.__name__)
async def test_catalogue(catalogue: Catalogue, check: catalogue_contract.Check) -> None:  # type: ignore[name-defined]
    await check(catalogue)


@pytest.mark.parametrize("check", idempotency_contract.CHECKS, ids=lambda check: check.__name__)
async def test_idempotency_keys(catalogue: Catalogue, check: idempotency_contract.Check) -> None:
    await check(catalogue.idempotency)


@pytest.mark.parametrize("check", search_sessions_contract.CHECKS, ids=lambda check: check.__name__)
async def test_search_sessions(catalogue: Catalogue, check: search_sessions_contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize("check", feedback_contract.CHECKS, ids=lambda check: check.__name__)
async def test_feedback(catalogue: Catalogue, check: feedback_contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize("check", usage_contract.CHECKS, ids=lambda check: check.__name__)
async def test_usage(catalogue: Catalogue, check: usage_contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize("check", quota_contract.CHECKS, ids=lambda check: check.__name__)
async def test_quotas(catalogue: Catalogue, check: quota_contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize("check", store_folders_contract.CHECKS, ids=lambda check: check.__name__)
async def test_store_folders(catalogue: Catalogue, check: store_folders_contract.Check) -> None:
    await check(catalogue)


@pytest.mark.parametrize("check", workers_contract.CHECKS, ids=lambda check: check.__name__)
async def test_workers(catalogue: Catalogue, check: workers_contract.Check) -> None:
    await check(catalogue.workers)


@pytest.mark.parametrize("check", leases_contract.CHECKS, ids=lambda check: check.__name__)
async def test_leases(catalogue: Catalogue, check: leases_contract.Check) -> None:
    await check(catalogue)


@pytest.fixture
def engine(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(module, "_DRAIN_S", 0.1)
    opened = create_engine(parse_url(postgres_url))
    yield opened
    opened.dispose()


@pytest.mark.parametrize("check", queue_contract.CHECKS, ids=lambda check: check.__name__)
async def test_job_queue(engine: Engine, check: queue_contract.Check) -> None:
    def make() -> JobQueue:
        return JobQueue(
            engine,
            executor_id=uuid.uuid4().hex,
            prepare_concurrency=queue_contract.PREPARE_CONCURRENCY,
            polling_interval_s=0.02,
        )

    async def transact(work: Callable[[Connection], None], commit: bool) -> None:
        def run() -> None:
            with engine.connect() as connection:
                work(connection)
                connection.commit() if commit else connection.rollback()

        await asyncio.to_thread(run)

    await check(queue_contract.Workplace(make, transact))


async def test_migrations_go_up_and_down(empty_postgres: str) -> None:
    catalogue = await Catalogue.open(empty_postgres)
    engine = create_engine(parse_url(empty_postgres))
    try:
        await asyncio.gather(*(catalogue.migrate() for _ in range(3)))
        assert set(metadata.tables) <= set(inspect(engine).get_table_names())
        await catalogue.downgrade("base")
        assert not set(metadata.tables) & set(inspect(engine).get_table_names())
        await catalogue.migrate()
        assert set(metadata.tables) <= set(inspect(engine).get_table_names())
    finally:
        engine.dispose()
        await catalogue.close()


async def test_a_job_begins_after_a_deletion_of_its_document_that_is_under_way(catalogue: Catalogue, engine: Engine) -> None:
    """Both lock the document first. Otherwise each would wait for the other's second lock."""
    owner = await tenant(catalogue)
    job = (await catalogue.documents.submit(owner, submission("report", TEXT), nothing)).job
    assert job is not None
    with engine.connect() as connection:
        assert lock_document(connection, owner, job.document_id or "") is not None
        beginning = asyncio.create_task(catalogue.documents.begin_job(owner, job.id, 1))
        waiting = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
        with engine.connect() as observer:
            while not observer.execute(waiting).scalar_one():
                observer.rollback()
                await asyncio.sleep(0.01)
        connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        cancel_open_jobs(connection, owner, job.document_id or "")
        connection.commit()
    assert (await beginning).job.cancel_requested
