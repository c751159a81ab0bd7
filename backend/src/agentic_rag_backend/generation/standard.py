"""The plain generator: what the model writes, with the passages it names."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.generation.base import Judged
from agentic_rag_backend.generation.citations import CitationChecker
from agentic_rag_backend.generation.claims import Claim
from agentic_rag_backend.generation.context import Passage


class StandardGenerator:
    """Keeps every sentence. Markers that resolve are cited with the nearest words of their passage; the others go."""

    name = "standard"
    checked = False

    def judge_for(self, passages: Sequence[Passage]) -> _Judge:
        """Return a judge for an answer that rests on ``passages``."""
        return _Judge(CitationChecker(passages))


class _Judge:
    def __init__(self, checker: CitationChecker) -> None:
        self._checker = checker

    def judge(self, claim: Claim) -> Judged:
        return Judged(claim, True, self._checker.nearest(claim))
