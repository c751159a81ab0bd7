"""Generators by name: each decides which sentences of a model enter an answer, and which passages are cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.generation.base import Generator, Judge, Judged
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage


def attributed(passages: Sequence[Passage]) -> Judge:
    """Check every sentence. A sentence that fails is left out, or cited again if a passage supports it."""
    verifier = LexicalVerifier(passages)

    def judge(claim: Claim) -> Judged:
        verdict = verifier.check(claim)
        return Judged(claim, verdict.holds, verdict.supports)

    return judge


def standard(passages: Sequence[Passage]) -> Judge:
    """Keep every sentence. Only a sentence that a passage states is cited."""
    verifier = LexicalVerifier(passages)
    return lambda claim: Judged(claim, True, verifier.check(claim).supports)


GENERATORS: Mapping[str, Generator] = {"attributed": attributed, "standard": standard}
