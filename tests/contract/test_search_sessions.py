"""The contract of search sessions on SQLite, and on stores with planted faults. Also the limit of sessions and query plans."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from catalogue_checks import search_sessions as contract
from planted_statements import plant
from sqlalchemy import Connection, event, text

from agentic_rag_backend.domain.search_session import SessionMemory
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.catalogue import search_sessions as module
from agentic_rag_backend.stores.catalogue.base import Catalogue, SearchSessions


async def test_sqlite(tmp_path: Path) -> None:
    for check in contract.CHECKS:
        opened = await Catalogue.open(f"sqlite:///{tmp_path / check.__name__}.db")
        await opened.migrate()
        await check(opened)
        await opened.close()


async def test_two_processes_share_a_session(tmp_path: Path, catalogue: Catalogue) -> None:
    """Over two separate connections, as in two processes. Nothing is lost, and a restart keeps it."""
    other = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    tenant = (await catalogue.tenants.create("a")).id
    adding = [
        each.search_sessions.remember(tenant, "s", contract.facts(f"{place}-{number}"), kept_s=60)
        for number in range(10)
        for place, each in enumerate((catalogue, other))
    ]
    await asyncio.gather(*adding)
    await other.close()
    again = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")
    found = await again.search_sessions.recall(tenant, "s")
    assert found is not None
    assert len(found.facts) == 20
    await again.close()


class _ReadsFirst(SearchSessions):
    """Reads in one transaction and writes in another. All concurrent calls have read before the first one writes."""

    read = asyncio.Barrier(contract.AT_ONCE)

    async def remember(self, tenant: TenantId, digest: str, more: SessionMemory, *, kept_s: float) -> SessionMemory:
        held = await self.recall(tenant, digest) or SessionMemory()
        whole = held.extend_memory(more)
        await self.read.wait()

        def replace(connection: Connection) -> SessionMemory:
            connection.execute(text("DELETE FROM search_sessions WHERE digest = :d"), {"d": digest})
            return module.remember(connection, tenant, digest, whole, kept_s=kept_s)

        return await self._database.write(replace)


async def test_a_memory_that_is_not_atomic_fails(catalogue: Catalogue) -> None:
    catalogue.search_sessions = _ReadsFirst(catalogue._database)
    with pytest.raises(AssertionError):
        await contract.concurrent_requests_lose_nothing(catalogue)


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.tenants_are_separate, "SELECT", "search_sessions.tenant_id = ?", "? <> ''"),
        (contract.tenants_are_separate, "UPDATE", "search_sessions.tenant_id = ?", "? <> ''"),
        (contract.a_memory_grows, "SELECT", "search_sessions.digest = ?", "? <> ''"),
        (contract.an_expired_session_is_empty, "UPDATE", "expires_at=?", "expires_at=substr('9999-01-01 00:00:00' || ?, 1, 19)"),
        (contract.expired_sessions_are_removed, "DELETE", "search_sessions.expires_at <= ?", "? <> ''"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError)):
        await check(catalogue)
    assert planted


async def test_the_sessions_that_were_not_used_go_when_there_are_too_many(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 3)
    a, b = [(await catalogue.tenants.create(name)).id for name in "ab"]
    sessions = catalogue.search_sessions
    await sessions.remember(b, "of another tenant", contract.facts("x"), kept_s=60)
    for session in ("1", "2", "3", "1", "4"):
        await sessions.remember(a, session, contract.facts(session), kept_s=60)
    left = [session for session in "1234" if await sessions.recall(a, session) is not None]
    assert left == ["1", "3", "4"]
    assert await sessions.recall(b, "of another tenant") is not None


async def test_no_statement_of_a_request_scans(catalogue: Catalogue) -> None:
    """By SQLite's own query plan. Only the removal of expired sessions of all tenants reads the table."""
    plans: list[str] = []

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, _x: Any, _many: bool) -> None:
        if "search_sessions" in statement and not statement.startswith(("EXPLAIN", "INSERT")):
            asking = connection.connection.cursor()
            asking.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(row[3] for row in asking.fetchall())

    tenant = (await catalogue.tenants.create("a")).id
    for engine in {catalogue._database._engine, catalogue._database._write_engine}:
        event.listen(engine, "before_cursor_execute", explain)
    await catalogue.search_sessions.remember(tenant, "s", contract.facts("x"), kept_s=60)
    await catalogue.search_sessions.recall(tenant, "s")
    assert len(plans) >= 4
    assert [plan for plan in plans if "search_sessions" in plan and not plan.startswith("SEARCH search_sessions USING")] == []
