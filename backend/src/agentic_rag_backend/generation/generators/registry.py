"""Generators by name: each decides which sentences of a model enter an answer, and which passages are cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.generation.base import Generator, Judge, Judged
from agentic_rag_backend.generation.claims.lexical import CitationChecker
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage


def attributed(passages: Sequence[Passage]) -> Judge:
    """Check every sentence (see `claims.lexical`). A sentence that fails is left out, or cited again if a passage supports it."""
    checker = CitationChecker(passages)

    def judge(claim: Claim) -> Judged:
        supports = checker.check(claim)
        return Judged(claim, bool(supports), supports)

    return judge


def standard(passages: Sequence[Passage]) -> Judge:
    """Keep every sentence. A marker that resolves is cited with the nearest words of its passage; the others are removed."""
    checker = CitationChecker(passages)
    return lambda claim: Judged(claim, True, checker.nearest(claim))


GENERATORS: Mapping[str, Generator] = {"attributed": attributed, "standard": standard}
