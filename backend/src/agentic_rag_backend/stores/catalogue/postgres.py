"""PostgreSQL connections with a time limit on every wait, also if the server or the network fails.

No other layer limits these waits. The server's own limits do not help if it does not answer, and a connection that loses its
packets seems busy for a quarter of an hour. A connection whose wait ended by its limit is closed: its answer is unknown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import URL, Engine, create_engine, event

IDLE_IN_TRANSACTION_S = 60.0
"""Seconds after which the server ends an idle transaction of a lost client: the transaction may hold locks."""
_POLL_INTERVAL_S = 0.1
_SHORTEST_CONNECT_S = 2
"""The minimum that the driver supports."""
_PINGS = 4
"""Divisor of a read's time limit: the time that a pooled connection has to answer a ping."""
_LISTENER_CONNECT_S = 10
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Time limits of waits for a database server.

    Args:
        read_s: seconds of a whole read: the wait for a thread, for a connection, and for every answer.
        write_s: seconds of a writing transaction, which may wait for other writers.
    """

    read_s: float = 10.0
    write_s: float = 120.0


_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def until(end: float) -> Iterator[None]:
    """Set ``end``, by `time.monotonic`, as the limit of this thread's waits."""
    token = _END.set(end)
    try:
        yield
    finally:
        _END.reset(token)


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that waits no longer than `until` allows. Without `until`, ``longest_s`` limits each answer."""

    longest_s = math.inf

    def wait(self, gen: PQGen[Any], interval: float = _POLL_INTERVAL_S, timeout: float | None = None) -> Any:
        """Wait like the driver, within the time limit.

        Raises:
            psycopg.errors.ConnectionTimeout: it took too long; the connection is closed.
        """
        end = _END.get()
        bounded = _end_at_limit(gen, end if end < math.inf else time.monotonic() + self.longest_s)
        try:
            return super().wait(bounded, interval, timeout)
        except psycopg.errors.ConnectionTimeout:
            self.close()
            raise


def _end_at_limit(gen: PQGen[Any], end: float) -> PQGen[Any]:
    try:
        event = next(gen)
        while True:
            ready = yield event
            if time.monotonic() >= end:
                raise psycopg.errors.ConnectionTimeout("no answer in time")
            event = gen.send(ready)
    except StopIteration as done:
        return done.value


def postgres_engine(url: URL, *, connections: int, patience: Patience) -> Engine:
    """Return an engine that keeps ``connections`` connections, and opens as many more. Each is pinged before reuse."""
    engine = create_engine(url, pool_size=connections, max_overflow=connections, pool_pre_ping=True, pool_timeout=patience.read_s)
    ping = engine.dialect.do_ping

    def asked(dbapi_connection: Any) -> bool:
        # The ping of a dead connection must leave time for another connection.
        with until(min(_END.get(), time.monotonic() + patience.read_s / _PINGS)):
            return ping(dbapi_connection)

    engine.dialect.do_ping = asked  # type: ignore[method-assign]

    @event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> BoundedConnection:
        left_s = min(_END.get() - time.monotonic(), patience.read_s)
        timeout_s = max(_SHORTEST_CONNECT_S, math.ceil(left_s))
        connection = BoundedConnection.connect(*arguments, **{"connect_timeout": timeout_s, **_KEEPALIVE, **options})
        connection.longest_s = patience.write_s
        try:
            _limit(connection, patience)
        except BaseException:
            connection.close()
            raise
        return connection

    return engine


async def open_listener(engine: Engine) -> psycopg.AsyncConnection[Any]:
    """Open a separate connection to ``engine``'s database, to wait on the running loop for notifications.

    It may be idle for hours. Keepalives detect a dead connection within a minute.

    Raises:
        psycopg.Error: the server does not answer, or refuses.
    """
    arguments, connect_options = engine.dialect.create_connect_args(engine.url)
    options = {"connect_timeout": _LISTENER_CONNECT_S, **_KEEPALIVE, **connect_options}
    return await psycopg.AsyncConnection.connect(*arguments, autocommit=True, **options)


def _limit(connection: BoundedConnection, patience: Patience) -> None:
    """Make the server end statements that no client waits for any more.

    The limits are set by a statement, because poolers refuse them as startup parameters.
    """
    limits = {"idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_S, "statement_timeout": patience.write_s}
    for name, seconds in limits.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, f"{max(1, round(seconds * 1000))}ms"))
    connection.commit()
