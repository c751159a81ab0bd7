"""Lock-out of clients that send many wrong keys.

A tenant's key has 256 random bits and cannot be guessed, so it is checked whatever its client sent before: clients behind one
address do not lock each other out. People choose the operator's key and the key of the metrics. A client that is locked out
cannot try them, unless the same key was accepted from it before.

The counts belong to one process. Time and counts are bounded: the longest lock, and the clients that are remembered.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)
FIRST_LOCK_S = 1.0
LONGEST_LOCK_S = 300.0
FORGOTTEN_AFTER_S = 3600.0
MAX_CLIENTS = 10_000
"""Remembered clients. Beyond it, the one that was not seen for the longest time is forgotten."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What is known about a client. Times are on the monotonic clock."""

    wrong: int = 0
    last_wrong_at: float = 0.0
    locked_until: float = 0.0
    accepted: frozenset[str] = frozenset()
    """Hashes of keys that people chose and that this client sent."""


class WrongKeys:
    """Counts wrong keys by client. Each wrong key after the limit locks the client out, twice as long as the one before.

    Args:
        limit: wrong keys before the first lock. 0: no client is locked out.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def may_try(self, client: str | None, digest: str) -> bool:
        """Return whether a key of a client may be compared with the key that has the hash ``digest``."""
        record = self._record_of(client)
        return record.locked_until <= self._clock() or digest in record.accepted

    def accept_key(self, client: str | None, digest: str) -> None:
        """Remember that a client sent the key with the hash ``digest``."""
        record = self._record_of(client)
        self._keep_record(client, replace(record, accepted=record.accepted | {digest}))

    def count_wrong_key(self, client: str | None) -> float:
        """Count a wrong key, unless the client is locked out. Return the seconds for which it is locked out now."""
        if client is None or not self.limit:
            return 0.0
        record, now = self._record_of(client), self._clock()
        if record.locked_until > now:
            return record.locked_until - now
        forgotten = now - record.last_wrong_at > FORGOTTEN_AFTER_S
        record = replace(record, wrong=1 if forgotten else record.wrong + 1, last_wrong_at=now)
        beyond = record.wrong - self.limit
        if beyond > 0:
            doubled = FIRST_LOCK_S * 2.0 ** min(beyond - 1, 30)
            record = replace(record, locked_until=now + min(doubled, LONGEST_LOCK_S))
            _log.warning("client_locked_out", client=client, wrong_keys=record.wrong, locked_s=record.locked_until - now)
        self._keep_record(client, record)
        return max(0.0, record.locked_until - now)

    def _record_of(self, client: str | None) -> _Record:
        return self._records.get(client or "", _Record())

    def _keep_record(self, client: str | None, record: _Record) -> None:
        if client is None or not self.limit:
            return
        self._records[client] = record
        self._records.move_to_end(client)
        while len(self._records) > MAX_CLIENTS:
            self._records.popitem(last=False)
