"""Queue workers that poll the queues when something was enqueued, instead of several times a second.

Each queue has a thread, which waits on its `PollEvent` before each poll. A poll takes a millisecond or more of the interpreter's
time, which the embedder and every request share. With an earlier queue, ten polls a second took a tenth of an ingestion's CPU
time, and all of the CPU time of an idle server.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

IDLE_S = 5.0
"""Seconds between two polls if nothing wakes the worker. It has no effect on latency if every enqueueing wakes it."""
PLENTY = 16
"""Number of claimed jobs from which on the queues are polled less often: the claimed jobs last longer than the pause."""
SELDOM = 3
"""Factor of the pause between polls. A document waits for one poll, a large one for two."""


class PollEvent:
    """Ends the wait of a queue's thread when it is woken.

    Args:
        pause_s: returns the minimum seconds between two polls.
        idle_s: returns the maximum seconds between two polls; called after a poll and when woken.
    """

    def __init__(self, pause_s: Callable[[], float], idle_s: Callable[[], float] = lambda: IDLE_S) -> None:
        self._pause_s = pause_s
        self._idle_s = idle_s
        self._changed = threading.Condition()
        self._awake = True
        self._stopped = False
        self._last_poll = float("-inf")
        self.polls = 0

    def wake(self) -> None:
        """Make the worker poll."""
        with self._changed:
            self._awake = True
            self._changed.notify_all()

    def set(self) -> None:
        """End the worker."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def is_set(self) -> bool:
        """Return whether the worker is to end."""
        return self._stopped

    def wait(self) -> bool:
        """Wait until the next poll is due. Return True if the worker is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._awake or self._stopped, self._idle_s())
            while not self._stopped and (left_s := self._last_poll + self._pause_s() - time.monotonic()) > 0:
                self._changed.wait(left_s)
            self._awake = False
            self._last_poll = time.monotonic()
            self.polls += 1
            return self._stopped


class QueueWorkers:
    """Claims enqueued jobs of both queues.

    Args:
        pause_s: usual seconds between two polls while there is work.
        claimed: returns the number of jobs that are claimed and have not ended.
        notified: returns whether every enqueueing wakes the workers. If other processes enqueue without a notification, the
            queues are polled.
    """

    def __init__(self, pause_s: float, claimed: Callable[[], int], notified: Callable[[], bool]) -> None:
        def between_polls() -> float:
            return pause_s * SELDOM if claimed() >= PLENTY else pause_s

        def without_a_wake() -> float:
            return IDLE_S if notified() else pause_s

        self._make_event = partial(PollEvent, between_polls, without_a_wake)
        self.poll_events = {queue: self._make_event() for queue in QueueName}
        self._threads: list[threading.Thread] = []

    def wake(self, queue: QueueName | None = None) -> None:
        """Make the worker of a queue poll; None: both."""
        for name, poll_event in self.poll_events.items():
            if queue in (None, name):
                poll_event.wake()

    def start(self, claim: Callable[[QueueName], list[ClaimedWorkflow]], run: Callable[[list[ClaimedWorkflow]], object]) -> None:
        """Start the threads. May be called again after `stop`.

        Args:
            claim: claims waiting workflows of a queue.
            run: starts claimed workflows. Both are called on the thread of the queue.
        """
        self.poll_events = {queue: self._make_event() for queue in QueueName}
        for queue, poll_event in self.poll_events.items():
            arguments = (queue, poll_event, claim, run)
            thread = threading.Thread(target=_keep_claiming, args=arguments, name=f"claims-{queue.value}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the workers, and wait for their end."""
        for poll_event in self.poll_events.values():
            poll_event.set()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._threads.clear()


def _keep_claiming(
    queue: QueueName,
    poll_event: PollEvent,
    claim: Callable[[QueueName], list[ClaimedWorkflow]],
    run: Callable[[list[ClaimedWorkflow]], object],
) -> None:
    failing = False
    while not poll_event.wait():
        try:
            if workflows := claim(queue):
                run(workflows)
            failing = False
        except Exception:  # noqa: BLE001 - a thread that ended would look like a hang
            # The next poll claims. If the claim was committed, `OwnClaims` finds the workflows.
            if not failing:  # one warning per outage
                _log.warning("claims_failed", queue=queue.value, consequence="the queue is polled again", exc_info=True)
            failing = True
