"""Queue workers: they look at the queues when something was enqueued, not several times a second.

DBOS claims what is enqueued by a worker thread a queue, which waits on its stop event for the polling interval before each
look. A `Doorbell` stands in for that event: it ends the wait when it is rung. Measured: a look at both queues costs 4–6 ms of
the interpreter's time, which is the embedder's and every request's as well; ten looks a second were a tenth of an ingestion's
CPU time, and all of what an idle server used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import cast

from dbos import DBOS
from dbos._queue import queue_worker_thread

from agentic_rag_backend.jobs.base import QueueName

IDLE_S = 5.0
"""Seconds between two looks where nobody rings; nothing should depend on it where every enqueueing rings."""
PLENTY = 16
"""Jobs claimed and not ended from which on the queues are looked at seldom: what was claimed ahead lasts for longer."""
SELDOM = 2
"""Times the usual pause. Looking takes 5 % of an ingestion's CPU time at this pace (4.5 of 90 s); at five times the pause a small
tenant's document beside a large upload took 1.3 s instead of .9, since it waits for two looks."""


class Doorbell:
    """Has the methods of `threading.Event` that DBOS's queue worker uses.

    Args:
        pause_s: tells how many seconds there are between two looks at least.
        idle_s: tells how many seconds there are between two looks at most; asked when a look is over and when it is rung.
    """

    def __init__(self, pause_s: Callable[[], float], idle_s: Callable[[], float] = lambda: IDLE_S) -> None:
        self._pause_s = pause_s
        self._idle_s = idle_s
        self._changed = threading.Condition()
        self._rung = True
        self._stopped = False
        self._looked = float("-inf")
        self.looks = 0

    def ring(self) -> None:
        """Let the worker look."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def set(self) -> None:
        """End the worker."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def is_set(self) -> bool:
        """Tell whether the worker is to end."""
        return self._stopped

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the worker is to look, whatever polling interval it asks for; return True where it is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._rung or self._stopped, self._idle_s())
            while not self._stopped and (left_s := self._looked + self._pause_s() - time.monotonic()) > 0:
                self._changed.wait(left_s)
            self._rung = False
            self._looked = time.monotonic()
            self.looks += 1
            return self._stopped


class QueueWorkers:
    """Claims what is enqueued in both queues.

    Args:
        pause_s: usual seconds between two looks while there is work.
        at_hand: tells how many jobs are claimed and not ended.
        rung: tells whether every enqueueing rings; where other processes enqueue and cannot ring, the queues are polled.
    """

    def __init__(self, pause_s: float, at_hand: Callable[[], int], rung: Callable[[], bool]) -> None:
        def between_looks() -> float:
            return pause_s * SELDOM if at_hand() >= PLENTY else pause_s

        def without_a_ring() -> float:
            return IDLE_S if rung() else pause_s

        self._make_bell = partial(Doorbell, between_looks, without_a_ring)
        self.bells = {queue: self._make_bell() for queue in QueueName}
        self._threads: list[threading.Thread] = []

    def ring(self) -> None:
        """Have both queues looked at."""
        for bell in self.bells.values():
            bell.ring()

    def start(self, dbos: DBOS) -> None:
        """Take over from DBOS's own workers, once it is launched; again after `stop`."""
        self.bells = {queue: self._make_bell() for queue in QueueName}
        # With them goes what looks once a second for delayed workflows and for those with a deadline: there are none.
        for event in (*dbos.background_thread_stop_events, dbos._background_jobs_stop_event):
            event.set()
        for queue, bell in self.bells.items():
            declared = dbos._sys_db.get_queue(queue.value)
            arguments = (cast(threading.Event, bell), dbos, declared)
            thread = threading.Thread(target=queue_worker_thread, args=arguments, name=f"claims-{queue.value}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the workers; blocks until they have."""
        for bell in self.bells.values():
            bell.set()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._threads.clear()
