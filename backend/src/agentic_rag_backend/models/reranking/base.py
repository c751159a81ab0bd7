"""The port of models that score passages for a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentic_rag_backend.domain.usage import UsageAccount


class PassageScorer(Protocol):
    """A model that reads a question and a passage together. Concurrent calls are expected."""

    @property
    def name(self) -> str:
        """Name of the model, for traces and metrics."""

    def check(self) -> None:
        """Return if the model can be called. It is not called for this.

        Raises:
            ModelUnavailable: it is known to be unavailable; the message has the reason and the remedy.
        """

    async def score(self, question: str, passages: Sequence[str], account: UsageAccount) -> Sequence[float]:
        """Return a score in [0, 1] for each passage, in order. Equal passages have equal scores.

        Args:
            account: counts the requests that are sent, also if the call fails or is cancelled.

        Raises:
            ModelUnavailable: the model cannot be loaded, or did not answer.
        """

    async def close(self) -> None:
        """Release threads and connections."""
