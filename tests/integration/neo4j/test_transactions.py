"""Concurrent writers, transient and permanent errors, unavailable servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from neo4j.exceptions import ConstraintError, Neo4jError, TransientError

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections, Transaction
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.nodes import MAX_NAME_BYTES
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_testing.stores import graph_samples as samples


async def test_writers_of_one_tenant_leave_what_one_writer_would(
    store: Neo4jGraphStore, empty_neo4j: Neo4jAddress, tmp_path: Path
) -> None:
    """Documents with common entities, from two processes, with repetitions and deletions in between."""
    names = ["Ada", "Acme", "Bolt", "Nuts", "Eve"]
    documents = [
        samples.knowledge(f"doc-{number:02}", [(names[number % 5], "knows", names[(number * 3 + 1) % 5])]) for number in range(12)
    ]
    goes = [samples.knowledge(f"gone-{number}", [("Ada", "left", "Acme"), ("Zed", "left", "Yip")]) for number in range(4)]
    other = await Neo4jGraphStore.open(empty_neo4j)
    for document in goes:
        await store.write_document(samples.A, document)
    await asyncio.gather(
        *(store.write_document(samples.A, document) for document in documents),
        *(other.write_document(samples.A, document) for document in documents[::-1]),
        *(other.delete_document(samples.A, document.document_id, up_to_version=1) for document in goes),
    )
    alone = await SqliteGraphStore.open(tmp_path / "graph.db")
    for document in documents:
        await alone.write_document(samples.A, document)

    assert await samples.snapshot(store, samples.A) == await samples.snapshot(alone, samples.A)
    await alone.close()
    await other.close()


async def test_transient_errors_are_answered_by_another_try_and_others_are_not(store: Neo4jGraphStore) -> None:
    tries: list[int] = []

    async def deadlocked_once(transaction: Transaction) -> str:
        tries.append(1)
        await transaction.run("MERGE (t:Tenant {group_id: $tenant})", {"tenant": samples.A.value})
        if len(tries) == 1:
            raise _error("Neo.TransientError.Transaction.DeadlockDetected", TransientError)
        return "done"

    async def refused(transaction: Transaction) -> None:
        tries.append(1)
        raise _error("Neo.ClientError.Schema.ConstraintValidationFailed", ConstraintError)

    assert await store._connections.write(deadlocked_once) == "done"
    assert len(tries) == 2
    tries.clear()
    with pytest.raises(InvalidRequest):
        await store._connections.write(refused)
    assert len(tries) == 1


async def test_tries_end(empty_neo4j: Neo4jAddress) -> None:
    connections = Neo4jConnections.open(replace(empty_neo4j, timeout_s=0.5))

    async def always_deadlocked(transaction: Transaction) -> None:
        raise _error("Neo.TransientError.Transaction.DeadlockDetected", TransientError)

    for call in (connections.read, connections.write):
        with pytest.raises(StoreUnavailable):
            await call(always_deadlocked)
    await connections.close()


def _error(code: str, kind: type[Neo4jError]) -> Neo4jError:
    """Return the driver's error for the server's code."""
    error = Neo4jError._hydrate_neo4j(code=code, message="as the server says it")
    assert isinstance(error, kind)
    return error


async def test_an_unavailable_server_is_reported() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = Neo4jAddress(uri=f"bolt://127.0.0.1:{port}", timeout_s=0.5, write_timeout_s=0.5)
    with pytest.raises(StoreUnavailable, match=f"bolt://127.0.0.1:{port}"):
        await Neo4jGraphStore.open(address)


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async with _silent() as port:
        with pytest.raises(StoreUnavailable):
            await Neo4jGraphStore.open(Neo4jAddress(uri=f"bolt://127.0.0.1:{port}", timeout_s=0.5))


@asynccontextmanager
async def _silent() -> AsyncIterator[int]:
    """Accept connections and never answer."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(1024):
                pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("uri", ["http://127.0.0.1:7687", "nonsense", "bolt+s+ssc://x"])
async def test_an_address_that_cannot_be_read_is_a_wrong_setting(uri: str) -> None:
    with pytest.raises(ConfigurationError, match="NEO4J_URI"):
        await Neo4jGraphStore.open(Neo4jAddress(uri=uri))


async def test_a_database_that_is_not_there_is_a_wrong_setting(empty_neo4j: Neo4jAddress) -> None:
    with pytest.raises(ConfigurationError, match="elsewhere"):
        await Neo4jGraphStore.open(replace(empty_neo4j, database="elsewhere"))


async def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(Neo4jAddress(uri="bolt://127.0.0.1", password="secret"))


async def test_a_name_that_no_index_takes_is_refused_whole(store: Neo4jGraphStore) -> None:
    fits, too_long = "é" * (MAX_NAME_BYTES // 2), "é" * (MAX_NAME_BYTES // 2 + 1)
    await store.write_document(samples.A, samples.knowledge("fits", [(fits, "is", "Ada")]))
    before = await samples.snapshot(store, samples.A)
    with pytest.raises(InvalidRequest, match=str(MAX_NAME_BYTES)):
        await store.write_document(samples.A, samples.knowledge("long", [(too_long, "is", "Ada")]))

    assert await samples.snapshot(store, samples.A) == before
    assert list(await store.find_entities(samples.A, [fits])) == [fits.casefold()]


async def test_a_tenant_that_never_wrote_is_not_made_by_a_delete(store: Neo4jGraphStore) -> None:
    await store.delete_document(TenantId.new(), "one", up_to_version=1)
    async with store._connections._session(60) as session:
        held = await (await session.run("MATCH (n) WHERE NOT n:SchemaVersion RETURN count(n) AS held")).single(strict=True)

    assert held["held"] == 0
