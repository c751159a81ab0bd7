"""Notifications of PostgreSQL, by which a process that enqueues a job wakes the queue workers of the others.

Every process notifies in the transaction that enqueues, so that a notification arrives when there is something to claim, and
never otherwise. A process that runs jobs listens on a connection of its own. It relies on notifications only after one of its
own has come back to it: a pooler that hands out server connections by the transaction accepts ``LISTEN`` and delivers nothing.

Channels belong to a database, and a deployment has a database of its own, so deployments do not wake each other.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

import structlog
from sqlalchemy import Connection, Engine, text

from agentic_rag_backend.stores.catalogue.postgres import open_listener

CHANNEL = "agentic_rag_jobs"
PROOF_S = 10.0
"""Seconds in which a process's own notification must have come back to it."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0

_NOTIFY = text("SELECT pg_notify(:channel, :sender)")

_log = structlog.get_logger(__name__)


class Notifications:
    """Sends notifications to the other processes on a PostgreSQL database, and listens for theirs.

    Args:
        heard: called when something may have been enqueued, or when `listening` has changed.
    """

    def __init__(self, engine: Engine, heard: Callable[[], None]) -> None:
        self._engine = engine
        self._heard = heard
        self._sender = uuid.uuid4().hex
        self.listening = False
        """Whether notifications reach this process, as far as it knows; while False, it must poll."""
        self.received = 0
        """Notifications of other processes so far."""

    def send(self, connection: Connection) -> None:
        """Notify the other processes when the open transaction is committed; blocks."""
        connection.execute(_NOTIFY, {"channel": CHANNEL, "sender": self._sender})

    def send_now(self) -> None:
        """Notify the other processes; blocks.

        Raises:
            SQLAlchemyError: the database does not answer.
        """
        with self._engine.begin() as connection:
            self.send(connection)

    async def listen(self) -> None:
        """Listen until cancelled; a connection that is lost is opened again, after pauses that grow."""
        failures = 0
        while True:
            try:
                await self._listen_once()
            except Exception as error:  # noqa: BLE001 - whatever it is, a task that ended would look like a hang
                failures = 1 if self.listening else failures + 1
                # While it stays away, one line is enough.
                _log.log(
                    logging.WARNING if failures == 1 else logging.DEBUG,
                    "job_notifications_lost",
                    error=type(error).__name__,
                    reason=str(error),
                    consequence="the queues are polled instead",
                )
            finally:
                self._listens(False)
            await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 30)))

    async def _listen_once(self) -> None:
        """Listen on one connection until it fails.

        Raises:
            TimeoutError: this process's own notification did not come back.
            Exception: the connection failed, in one of the many ways of the driver.
        """
        async with await open_listener(self._engine) as connection:
            await connection.execute(f'LISTEN "{CHANNEL}"')
            await asyncio.to_thread(self.send_now)
            async with asyncio.timeout(PROOF_S) as proof:
                async for notification in connection.notifies():
                    if notification.payload != self._sender:
                        self.received += 1
                        self._heard()
                    elif not self.listening:
                        proof.reschedule(None)
                        self._listens(True)
        raise ConnectionError("the connection stopped delivering notifications")

    def _listens(self, listening: bool) -> None:
        if listening != self.listening:
            self.listening = listening
            # Something may have been enqueued while nobody listened, and the workers are to know how long to wait.
            self._heard()
            if listening:
                _log.info("job_notifications_arrive")


def notifications_on(engine: Engine, heard: Callable[[], None]) -> Notifications | None:
    """Return the notifications of ``engine``'s database; None where it has none."""
    return Notifications(engine, heard) if engine.dialect.name == "postgresql" else None
