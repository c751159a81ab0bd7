"""Neo4j over Bolt: one driver, transactions with retries after transient errors, and translated errors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncManagedTransaction, AsyncSession, TrustCustomCAs, unit_of_work
from neo4j.exceptions import ClientError, ConstraintError, DriverError, Neo4jError, ServiceUnavailable, TransientError
from neo4j.exceptions import ConfigurationError as DriverMisconfigured

from agentic_rag_backend.breaker import Breaker, Outages
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest, StoreUnavailable

T = TypeVar("T")
Record = Mapping[str, Any]

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_INVALID = ("Neo.ClientError.Statement.ArgumentError", "Neo.ClientError.Statement.TypeError")
_SCHEMA_TIMEOUT_S = 600.0
_MADE_MEANWHILE = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
"""Error of ``IF NOT EXISTS`` if another process created the schema item between check and creation."""
_UNKNOWN_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neo4jAddress:
    """Address and credentials of a Neo4j server. The URI's scheme selects TLS: ``neo4j+s``, ``bolt+s`` and ``+ssc``.

    ``timeout_s`` limits a whole read: waiting for a connection, connecting, the answer, and retries after transient errors. A
    write may wait for other writers of its tenant, for ``write_timeout_s`` in total.
    """

    uri: str
    user: str = "neo4j"
    password: str | None = field(default=None, repr=False)
    database: str = "neo4j"
    pool_size: int = 20
    timeout_s: float = 10.0
    write_timeout_s: float = 120.0
    ca_file: Path | None = None
    """CA certificates for the server's certificate; None: the system's. It requires a scheme with ``+s``."""


class Unreachable(StoreUnavailable):
    """No server can be reached, as opposed to a server that does not answer in time."""


class Transaction:
    """Statements of one transaction. Each takes one round trip."""

    def __init__(self, transaction: AsyncManagedTransaction) -> None:
        self._transaction = transaction

    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Record]:
        """Return every record of a statement, by name."""
        result = await self._transaction.run(statement, dict(values))
        return [dict(record) async for record in result]

    async def run(self, statement: str, values: Mapping[str, Any]) -> None:
        """Run a statement for its effect."""
        await (await self._transaction.run(statement, dict(values))).consume()


class Neo4jConnections:
    """A pool of connections to one database."""

    def __init__(self, driver: AsyncDriver, address: Neo4jAddress) -> None:
        self._driver = driver
        self._address = address
        self._breaker = Breaker(Outages(StoreUnavailable, Unreachable))
        self._closed = False

    @classmethod
    def open(cls, address: Neo4jAddress) -> Neo4jConnections:
        """Create the pool without connecting.

        Raises:
            ConfigurationError: the URI cannot be parsed.
        """
        if address.uri.partition("://")[0] not in _SCHEMES:
            raise ConfigurationError(f"NEO4J_URI must begin with one of {', '.join(_SCHEMES)} and ://; it is {address.uri!r}")
        uri, trust = _trust_options(address)
        auth = (address.user, address.password) if address.password is not None else None
        try:
            driver = AsyncGraphDatabase.driver(
                uri,
                auth=auth,
                **trust,
                max_connection_pool_size=address.pool_size,
                connection_timeout=address.timeout_s,
                connection_acquisition_timeout=address.timeout_s,
                max_transaction_retry_time=address.timeout_s,
                # Detects, before use, connections that a firewall dropped while they were idle.
                liveness_check_timeout=60.0,
                notifications_min_severity="OFF",
                user_agent="agentic-rag-backend",
            )
        except (DriverMisconfigured, ValueError) as error:
            raise ConfigurationError(f"NEO4J_URI cannot be used: {error}") from error
        return cls(driver, address)

    @property
    def database(self) -> str:
        """The name of the database."""
        return self._address.database

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Return the result of ``work``, run in one transaction. Retried after transient errors: it must be idempotent.

        Raises:
            InvalidRequest: a value contradicts the schema, or Neo4j cannot store it.
            StoreUnavailable: the server does not answer in time, or keeps failing.
            ConfigurationError: the server refuses the credentials, or does not have the database.
        """
        limit = self._address.write_timeout_s
        async with self._session(limit) as session:
            return await session.execute_write(_bound_wait(work, limit))

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Return the result of ``work``, run in one reading transaction. It is retried after transient errors.

        Raises:
            StoreUnavailable: the server does not answer in time, or has recently failed to.
        """
        with self._breaker.watch_call():
            return await self._read(work)

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the server answers. Recent failures are ignored."""
        with self._breaker.watch_call(always=True):
            await self._read(lambda transaction: transaction.run("RETURN 1", {}))

    async def _read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        limit = self._address.timeout_s
        async with self._session(limit) as session:
            return await session.execute_read(_bound_wait(work, limit))

    async def define(self, statement: str) -> None:
        """Run a schema statement in its own transaction. Retry if another process runs the same statement."""
        async with self._session(_SCHEMA_TIMEOUT_S) as session:
            while True:
                try:
                    await (await session.run(statement)).consume()
                except TransientError:
                    await asyncio.sleep(random.uniform(0.1, 0.5))  # noqa: S311 - the delay needs no secure randomness
                except ClientError as error:
                    if error.code != _MADE_MEANWHILE:
                        raise
                    return
                else:
                    return

    async def close(self) -> None:
        """Close every connection; further calls raise `StoreUnavailable`."""
        self._closed = True
        await self._driver.close()

    @asynccontextmanager
    async def _session(self, limit_s: float) -> AsyncIterator[AsyncSession]:
        if self._closed:
            raise StoreUnavailable("the graph store is closed")
        try:
            # The server ends a transaction that takes too long, but a hanging server does not.
            async with (
                asyncio.timeout(limit_s),
                self._driver.session(database=self._address.database, fetch_size=-1) as session,
            ):
                yield session
        except (Neo4jError, DriverError, OSError) as error:
            if (translated := self._translate(error)) is None:
                raise
            raise translated from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise InvalidRequest(f"the graph store refused a value: {error}") from error

    def _translate(self, error: Exception) -> Exception | None:
        """Translate an error of the driver, without its values. None for a mistake in our own statement."""
        code = (error.code or "") if isinstance(error, Neo4jError) else ""
        if code.startswith("Neo.ClientError.Security."):
            return ConfigurationError(f"Neo4j at {self._address.uri} refuses the user {self._address.user!r} or the password")
        if isinstance(error, DriverMisconfigured):
            return ConfigurationError(f"NEO4J_URI cannot be used: {error}")
        if code == _UNKNOWN_DATABASE:
            return ConfigurationError(f"Neo4j at {self._address.uri} has no database {self._address.database!r}")
        if isinstance(error, ConstraintError) or code in _INVALID:
            return InvalidRequest(f"the graph store refused a value: {code}")
        if code.startswith("Neo.ClientError.Statement."):
            return None
        if isinstance(error, ServiceUnavailable):
            return Unreachable(f"Neo4j at {self._address.uri} cannot be reached ({code or type(error).__name__})")
        return StoreUnavailable(f"Neo4j at {self._address.uri} does not answer ({code or type(error).__name__})")


def _trust_options(address: Neo4jAddress) -> tuple[str, dict[str, Any]]:
    """Return the URI and the driver options to check the server's certificate against ``ca_file``.

    The driver accepts certificates with the plain schemes only, and then needs TLS as a separate option.
    """
    scheme, _, authority = address.uri.partition("://")
    if address.ca_file is None:
        return address.uri, {}
    if not scheme.endswith("+s"):
        raise ConfigurationError(f"NEO4J_CA_FILE needs NEO4J_URI to begin with bolt+s:// or neo4j+s://; it is {address.uri!r}")
    if not address.ca_file.is_file():
        raise ConfigurationError(f"NEO4J_CA_FILE={address.ca_file} is not a file")
    return f"{scheme.removesuffix('+s')}://{authority}", {
        "encrypted": True,
        "trusted_certificates": TrustCustomCAs(str(address.ca_file)),
    }


def _bound_wait(
    work: Callable[[Transaction], Awaitable[T]], timeout_s: float
) -> Callable[[AsyncManagedTransaction], Awaitable[T]]:
    @unit_of_work(timeout=timeout_s)
    async def bounded(transaction: AsyncManagedTransaction) -> T:
        return await work(Transaction(transaction))

    return bounded
