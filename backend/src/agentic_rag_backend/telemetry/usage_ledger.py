"""Usage of this process that is not in the catalogue yet: model calls and requests by tenant, day, key, model and stage.

Recording adds to a number in memory, so it does not slow a call. `tenancy.usage` writes the numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from agentic_rag_backend.domain.prices import PriceTable
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.domain.usage_report import UsageCount

if TYPE_CHECKING:  # its module loads the metrics, which a command that only prints help does not need
    from agentic_rag_backend.telemetry.metrics import ModelCall

NO_KEY = ""
"""Key of work that no request began, such as an automatic rebuild."""
NO_MODEL = ""
NO_STAGE = ""
"""Model and stage of requests."""
MAX_CHARACTERS = 128
"""Maximum length of the name of a model or a stage."""
_EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True, order=True)
class UsageSlot:
    """What usage is counted by. ``day`` is in UTC."""

    tenant: TenantId
    day: date
    key_id: str
    model: str
    stage: str


def _today() -> date:
    return datetime.now(UTC).date()


class UsageLedger:
    """Collects usage in memory. Safe in any thread.

    Args:
        prices: prices of models at the time of a call.
        today: returns the current day in UTC.
    """

    def __init__(self, prices: PriceTable, today: Callable[[], date] = _today) -> None:
        self.prices = prices
        self._today = today
        self._lock = threading.Lock()
        self._counts: dict[UsageSlot, UsageCount] = {}
        self.on_call: Callable[[TenantId, str | None, Usage], None] = lambda tenant, key_id, usage: None
        """Called with each call of a model that has ended, in any thread."""

    def record_call(self, tenant: TenantId, key_id: str | None, call: ModelCall, *, job: bool) -> Usage:
        """Add a request to a model that has ended, and return it with its cost.

        Args:
            key_id: the key of the request that began the work. None: no request did.
            job: whether a job made the call. Embeddings of documents and of questions are two stages.
        """
        usage = self.prices.price_usage(call.model, Usage(call.input_tokens, call.output_tokens, 1, int(call.outcome != "ok")))
        stage = call.purpose
        if stage == _EMBEDDING:
            stage = "document_embedding" if job else "question_embedding"
        self._add_count(tenant, key_id, (call.model, stage), UsageCount(usage))
        self.on_call(tenant, key_id, usage)
        return usage

    def record_request(self, tenant: TenantId, key_id: str | None) -> None:
        """Add an HTTP request."""
        self._add_count(tenant, key_id, (NO_MODEL, NO_STAGE), UsageCount(requests=1))

    def _add_count(self, tenant: TenantId, key_id: str | None, source: tuple[str, str], count: UsageCount) -> None:
        model, stage = (name[:MAX_CHARACTERS] for name in source)
        self.restore({UsageSlot(tenant, self._today(), key_id or NO_KEY, model, stage): count})

    def take(self) -> dict[UsageSlot, UsageCount]:
        """Return everything that was recorded since the last call. The caller writes it, or returns it with `restore`."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return counts

    def restore(self, counts: Mapping[UsageSlot, UsageCount]) -> None:
        """Add counts, for example those that could not be written."""
        with self._lock:
            for slot, count in counts.items():
                self._counts[slot] = self._counts.get(slot, UsageCount()) + count
