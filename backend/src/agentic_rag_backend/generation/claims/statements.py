"""Checks whether sentences of a document say a statement, by words and without a model. Ingestion uses it for `proposition`."""

from __future__ import annotations

from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.generation.evidence.context import Passage


def says_statement(statement: str, source: str, title: str) -> bool:
    """Return whether the text ``source``, from a document or section called ``title``, says what ``statement`` says."""
    passage = Passage(marker=1, chunk_id="", document_id="", title=title, text=source, start_char=0, score=1.0)
    return LexicalVerifier([passage]).check(Claim(statement, (1,))).holds
