"""Answers without a model: quotations of passages, and the introduction of people, ships or places of one name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.answerability.judge import Judgement
from agentic_rag_backend.answering.claims.base import SupportingSpan, Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.evidence.context import Context, Passage
from agentic_rag_backend.domain.query import KnownBearer, Retrieval, SharedName
from agentic_rag_backend.language.descriptions import Description
from agentic_rag_backend.language.independence import simplify_sentence
from agentic_rag_backend.language.sentences import with_full_stop

_BRACKETED_NUMBER = re.compile(r"(?:(?<!\s)\s+)?\[\s*\d[\d\s,;–-]*\]")
_NUMBER_LEFT = re.compile(r"\[(\s*\d[\d\s,;–-]*)\]")
"""A number that comes to stand in brackets when those within it, or its emphasis, are removed: "[[1]2]", "[**3**]"."""


def passage_text(passage: Passage) -> PassageText:
    """Return a passage as the judge reads it."""
    return PassageText(
        passage.title,
        passage.text,
        passage.score,
        passage.document_id,
        passage.date,
        passage.header,
        passage.language,
        tuple((start - passage.start_char, headings) for start, headings in passage.sections),
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


def introduce_bearers(retrieval: Retrieval, quoted: Sequence[Passage]) -> str:
    """Return sentences that say who bears the names of the question, and whom the quoted passages are about.

    Empty if the question says whom it means.
    """
    titles = {passage.document_id: passage.title for passage in reversed(quoted)}
    return " ".join(_describe_name(name, titles) for name in retrieval.shared_names if not name.decided)


def _describe_name(name: SharedName, titles: Mapping[str, str]) -> str:
    called = [_describe_bearer(bearer) for bearer in name.bearers]
    about = [(bearer, title) for bearer in name.bearers if (title := _title_of(bearer, titles)) is not None]
    introduction = f"The documents speak of more than one {name.name}: {join_texts(called)}."
    if not about:
        return introduction
    quoted = join_texts([f"{_describe_bearer(bearer)} (“{title}”)" for bearer, title in about])
    return f"{introduction} The quoted passages are about {quoted}."


def _describe_bearer(bearer: KnownBearer) -> str:
    label = Description.parse(bearer.entity.description).label
    return f"the one {label}" if label[-1:].isdigit() else f"the {label}"


def _title_of(bearer: KnownBearer, titles: Mapping[str, str]) -> str | None:
    return next((title for id, title in titles.items() if id in bearer.documents), None)


def join_texts(texts: Sequence[str]) -> str:
    """Return texts as an enumeration: "a, b and c"."""
    *leading, last_text = texts
    return f"{', '.join(leading)} and {last_text}" if leading else last_text
