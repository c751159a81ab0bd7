"""Recent durations of strategies, by tenant, in this process."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from agentic_rag_backend.domain.tenant import TenantId

KEPT = 32
"""Durations of a strategy that count, at most."""
LEAST = 3
"""Durations without which nothing is expected."""
RECENT_S = 600.0
"""Seconds for which a duration counts: a machine that was busy is tried again."""
_SHARE = 0.9
_MAX_PAIRS = 4096
"""Pairs of tenant and strategy that are kept, the last used ones: a few megabytes."""


class Latencies:
    """Expects the next duration of a strategy from its last ones. Corpora differ in size, so tenants are kept apart.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recent: OrderedDict[tuple[TenantId, str], deque[tuple[float, float]]] = OrderedDict()

    def record(self, tenant: TenantId, strategy: str, milliseconds: float) -> None:
        """Add a duration."""
        recent = self._recent.setdefault((tenant, strategy), deque(maxlen=KEPT))
        recent.append((self._clock(), milliseconds))
        self._recent.move_to_end((tenant, strategy))
        if len(self._recent) > _MAX_PAIRS:
            self._recent.popitem(last=False)

    def expected(self, tenant: TenantId, strategy: str) -> float | None:
        """Return the milliseconds within which nine of ten recent searches ended; None: too few are known."""
        since = self._clock() - RECENT_S
        recent = sorted(milliseconds for at, milliseconds in self._recent.get((tenant, strategy), ()) if at >= since)
        return recent[math.ceil(_SHARE * len(recent)) - 1] if len(recent) >= LEAST else None
