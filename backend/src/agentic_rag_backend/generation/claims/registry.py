"""Verifiers by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentic_rag_backend.generation.claims.base import ClaimVerifier, VerifierFactory
from agentic_rag_backend.generation.claims.embedding import EmbeddingVerifier
from agentic_rag_backend.generation.claims.judging import ModelVerifier
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.generation.similarity import RelativeSimilarity
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

VerifierName = Literal["lexical", "embedding", "model"]


@dataclass(frozen=True, slots=True)
class VerifierParts:
    """The parts that verifiers are made of.

    ``similarity`` compares languages; None: no embedder knows several. ``left_s``: seconds left for models; None: their own
    limits.
    """

    encoder: TextEncoder
    calls: StructuredCalls
    left_s: float | None = None
    similarity: RelativeSimilarity | None = None


def lexical(parts: VerifierParts, passages: Sequence[Passage]) -> ClaimVerifier:
    """Words decide."""
    return LexicalVerifier(passages)


def embedding(parts: VerifierParts, passages: Sequence[Passage]) -> ClaimVerifier:
    """Words decide. Embeddings accept paraphrases, and claims in another language than their passage."""
    return EmbeddingVerifier(LexicalVerifier(passages), parts.encoder, parts.similarity)


def model(parts: VerifierParts, passages: Sequence[Passage]) -> ClaimVerifier:
    """As `embedding`. Then a language model can reject claims, if there is one."""
    before = embedding(parts, passages)
    return ModelVerifier(before, parts.calls, parts.left_s) if parts.calls.possible else before


VERIFIERS = {"lexical": lexical, "embedding": embedding, "model": model}


def verifier_factory(name: VerifierName, parts: VerifierParts) -> VerifierFactory:
    """Return the verifier of that name for the passages of an answer."""
    build = VERIFIERS[name]
    return lambda passages, left_s: build(replace(parts, left_s=left_s), passages)
