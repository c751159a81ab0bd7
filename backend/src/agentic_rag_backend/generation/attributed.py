"""The checked generator: only sentences that their citations support."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.generation.base import Judged
from agentic_rag_backend.generation.citations import CitationChecker
from agentic_rag_backend.generation.claims import Claim
from agentic_rag_backend.generation.context import Passage


class AttributedGenerator:
    """Checks every sentence (see `citations`); one that does not hold is left out, or cited anew where a passage says it."""

    name = "attributed"
    checked = True

    def judge_for(self, passages: Sequence[Passage]) -> _Judge:
        """Return a judge for an answer that rests on ``passages``."""
        return _Judge(CitationChecker(passages))


class _Judge:
    def __init__(self, checker: CitationChecker) -> None:
        self._checker = checker

    def judge(self, claim: Claim) -> Judged:
        supports = self._checker.check(claim)
        return Judged(claim, bool(supports), supports)
