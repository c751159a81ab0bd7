"""Verifiers by name, and the check of statements that ingestion uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentic_rag_backend.answering.claims.base import ClaimVerifier, VerifierFactory
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.entailment import EntailmentVerifier
from agentic_rag_backend.answering.claims.verifiers.judging import ModelVerifier
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.claims.verifiers.translation import EmbeddingVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.answering.similarity import RelativeSimilarity
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.entailment.base import EntailmentReader
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls


def says_statement(statement: str, source: str, title: str) -> bool:
    """Return whether the text ``source``, from a document or section called ``title``, says what ``statement`` says."""
    passage = Passage(marker=1, chunk_id="", document_id="", title=title, text=source, start_char=0, score=1.0)
    return LexicalVerifier([passage]).check(Claim(statement, (1,))).holds


VerifierName = Literal["auto", "lexical", "embedding", "model", "nli"]


@dataclass(frozen=True, slots=True)
class VerifierParts:
    """The parts that verifiers are made of.

    ``similarity`` compares languages; None: no embedder knows several. ``reader`` is for `nli`. ``left_s``: seconds left for
    models; None: their own limits.
    """

    calls: StructuredCalls
    left_s: float | None = None
    similarity: RelativeSimilarity | None = None
    reader: EntailmentReader | None = None


def lexical(parts: VerifierParts, passages: Sequence[Passage], question: str) -> ClaimVerifier:
    """Words decide."""
    return LexicalVerifier(passages, question)


def embedding(parts: VerifierParts, passages: Sequence[Passage], question: str) -> ClaimVerifier:
    """Words decide. Embeddings accept claims in another language than their passage."""
    return EmbeddingVerifier(LexicalVerifier(passages, question), parts.similarity)


def auto(parts: VerifierParts, passages: Sequence[Passage], question: str) -> ClaimVerifier:
    """As `embedding`. Then a language model, if there is one, decides about the claims that are left undecided."""
    return _judged_by_model(parts, passages, question, supported_too=False)


def model(parts: VerifierParts, passages: Sequence[Passage], question: str) -> ClaimVerifier:
    """As `auto`. The language model can reject supported claims, too."""
    return _judged_by_model(parts, passages, question, supported_too=True)


def _judged_by_model(parts: VerifierParts, passages: Sequence[Passage], question: str, *, supported_too: bool) -> ClaimVerifier:
    words = LexicalVerifier(passages, question)
    before = EmbeddingVerifier(words, parts.similarity)
    if not parts.calls.possible:
        return before
    return ModelVerifier(before, words, parts.calls, parts.left_s, supported_too=supported_too)


def nli(parts: VerifierParts, passages: Sequence[Passage], question: str) -> ClaimVerifier:
    """As `embedding`. Then a reader decides about the claims that words do not show to be false.

    Raises:
        ConfigurationError: there is no reader.
    """
    if parts.reader is None:
        raise ConfigurationError("the verifier nli needs a reader")
    words = LexicalVerifier(passages, question)
    before = EmbeddingVerifier(words, parts.similarity)
    return EntailmentVerifier(before, words, parts.reader, parts.left_s)


VERIFIERS = {"auto": auto, "lexical": lexical, "embedding": embedding, "model": model, "nli": nli}


def verifier_factory(name: VerifierName, parts: VerifierParts) -> VerifierFactory:
    """Return the verifier of that name for the passages of an answer."""
    build = VERIFIERS[name]
    return lambda passages, question, left_s: build(replace(parts, left_s=left_s), passages, question)
