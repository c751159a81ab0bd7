"""Verifiers by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.generation.claims.base import ClaimVerifier, VerifierFactory
from agentic_rag_backend.generation.claims.embedding import EmbeddingVerifier
from agentic_rag_backend.generation.claims.entailment import EntailmentVerifier
from agentic_rag_backend.generation.claims.judging import ModelVerifier
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.generation.similarity import RelativeSimilarity
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.models.entailment.base import EntailmentReader
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

VerifierName = Literal["lexical", "embedding", "model", "nli"]


@dataclass(frozen=True, slots=True)
class VerifierParts:
    """The parts that verifiers are made of.

    ``similarity`` compares languages; None: no embedder knows several. ``reader`` is for `nli`. ``left_s``: seconds left for
    models; None: their own limits.
    """

    encoder: TextEncoder
    calls: StructuredCalls
    left_s: float | None = None
    similarity: RelativeSimilarity | None = None
    reader: EntailmentReader | None = None


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


def nli(parts: VerifierParts, passages: Sequence[Passage]) -> ClaimVerifier:
    """As `embedding`. Then a reader decides about the claims that words do not show to be false.

    Raises:
        ConfigurationError: there is no reader.
    """
    if parts.reader is None:
        raise ConfigurationError("the verifier nli needs a reader")
    words = LexicalVerifier(passages)
    before = EmbeddingVerifier(words, parts.encoder, parts.similarity)
    return EntailmentVerifier(before, words, parts.reader, parts.left_s)


VERIFIERS = {"lexical": lexical, "embedding": embedding, "model": model, "nli": nli}


def verifier_factory(name: VerifierName, parts: VerifierParts) -> VerifierFactory:
    """Return the verifier of that name for the passages of an answer."""
    build = VERIFIERS[name]
    return lambda passages, left_s: build(replace(parts, left_s=left_s), passages)
