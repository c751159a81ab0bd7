"""How often a process that is alone looks at the queues: seldom while it has plenty at hand.

Measured: a look at both queues costs 4–6 ms of the interpreter's time, which is the embedder's and every request's as well;
ten looks a second were a tenth of an ingestion's CPU time. What was claimed ahead lasts for longer than the pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.backlog import Backlog
from agentic_rag_backend.jobs.database import as_unavailable

PLENTY = 16
"""Jobs claimed and not ended from which on the queues are looked at seldom."""
SELDOM = 2
"""Times the usual pause. Looking takes 5 % of an ingestion's CPU time at this pace (4.5 of 90 s); at five times the pause a small
tenant's document beside a large upload took 1.3 s instead of .9, since it waits for two looks."""
_LOOK_S = 0.5

_log = logging.getLogger(__name__)


class Pace:
    """Sets the polling interval of both queues to what there is to do.

    Args:
        at_hand: tells how many jobs are claimed and not ended.
    """

    def __init__(self, backlog: Backlog, polling_interval_s: float, at_hand: Callable[[], int]) -> None:
        self._backlog = backlog
        self._usual_s = polling_interval_s
        self._at_hand = at_hand
        self._seldom = False

    async def keep(self) -> None:
        """Look at what is at hand, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            seldom = self._at_hand() >= PLENTY
            if seldom == self._seldom:
                continue
            try:
                with as_unavailable():
                    await asyncio.to_thread(self._declare, self._usual_s * SELDOM if seldom else self._usual_s)
            except StoreUnavailable:
                _log.warning("the queues' polling interval could not be set; it is tried again", exc_info=True)
            else:
                self._seldom = seldom

    def _declare(self, polling_interval_s: float) -> None:
        self._backlog.declare(polling_interval_s=polling_interval_s, claimed_beside=None)
