"""Quotations of an answer without a model: windows of passages as checked sentences with their citations."""

from __future__ import annotations

import re

from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.answerability.judge import Judgement
from agentic_rag_backend.generation.claims.base import SupportingSpan, Verdict
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.evidence.context import Context, Passage
from agentic_rag_backend.language.independence import simplify_sentence
from agentic_rag_backend.language.sentences import with_full_stop

_BRACKETED_NUMBER = re.compile(r"(?:(?<!\s)\s+)?\[\s*\d[\d\s,;–-]*\]")
_NUMBER_LEFT = re.compile(r"\[(\s*\d[\d\s,;–-]*)\]")
"""A number that comes to stand in brackets when those within it, or its emphasis, are removed: "[[1]2]", "[**3**]"."""


def passage_text(passage: Passage) -> PassageText:
    """Return a passage as the judge reads it."""
    return PassageText(
        passage.title, passage.text, passage.score, passage.document_id, passage.date, passage.header, passage.language
    )


def quotations_of(judgement: Judgement, context: Context) -> tuple[Verdict, ...]:
    """Return the quotations of a judgement, best first. They are verbatim, so they are supported without a check."""
    quotations = []
    for quotation in judgement.quotations:
        passage = context.passages[quotation.passage]
        span = SupportingSpan(passage, quotation.start, quotation.end, 1.0, frozenset())
        quotations.append(Verdict(Claim(written_text(quotation.written), (passage.marker,)), (span,)))
    return tuple(quotations)


def written_text(text: str) -> str:
    """Return a quotation as an answer writes it: without markup, and without bracketed numbers, which look like markers."""
    # A table row or a list item has no full stop and would run into the next sentence.
    return with_full_stop(_NUMBER_LEFT.sub(r"(\1)", simplify_sentence(_BRACKETED_NUMBER.sub("", text))))
