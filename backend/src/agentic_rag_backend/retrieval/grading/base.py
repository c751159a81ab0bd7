"""The grader port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentic_rag_backend.domain.query import Hit


class Grader(Protocol):
    """Grades results without a language model."""

    @property
    def name(self) -> str:
        """The name in traces."""

    async def grade(self, question: str, hits: Sequence[Hit]) -> list[float]:
        """Return a grade in [0, 1] for each hit: how likely it holds the answer, or a part of it. 0.7 is enough for an answer.

        Args:
            hits: best first, at most about ten.
        """


def read_text(hit: Hit) -> str:
    """Return the text of a result that an answer reads: the passage around the chunk, or else the chunk."""
    return hit.parent.text if hit.parent is not None else hit.visible.chunk.text
