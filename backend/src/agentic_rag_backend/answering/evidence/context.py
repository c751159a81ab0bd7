"""The numbered evidence of an answer, built from retrieved passages and themes under a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.answering.conversation import fenced_turns
from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.location import Region, joined_regions
from agentic_rag_backend.domain.query import Hit, LevelWeights, Retrieval, ThemeHit
from agentic_rag_backend.language.entries.reading import header_at
from agentic_rag_backend.language.languages import language_in
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.prompts import Prompt

MAX_TURN_TOKENS = 2_000
"""Estimated tokens of earlier turns in a prompt; the newest that fit are included."""
TURN_SHARE = 8
"""Earlier turns take at most one part in this many of the window."""
LEAST_EVIDENCE = 256
"""Tokens of evidence that are sent in any case. A window without room for them answers with an error of the endpoint."""
SPARE = 0.95
"""Share of the window that is used, because the tokens are estimated."""


def turn_tokens(window: int) -> int:
    """Return the token budget of the earlier turns of a conversation."""
    return min(MAX_TURN_TOKENS, window // TURN_SHARE)


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """The tokens of one call of a model.

    Args:
        window: tokens that the model reads and writes in one call.
        reply_tokens: reserved for the reply.
        wanted_tokens: for the evidence, if the window has room.
    """

    window: int
    reply_tokens: int
    wanted_tokens: int

    def evidence_tokens(self, prompt: Prompt, *texts: str, history: Sequence[Message] = ()) -> int:
        """Return the token budget of the evidence: ``wanted_tokens``, or the rest of the window if it is less.

        ``texts`` are the other values of the prompt, such as the question.
        """
        fixed = sum(map(estimate_tokens, (prompt.system, prompt.user, *texts)))
        fixed += estimate_tokens(fenced_turns(history, turn_tokens(self.window)))
        return max(LEAST_EVIDENCE, min(self.wanted_tokens, int(self.window * SPARE) - self.reply_tokens - fixed))


FRAME_TOKENS = 16
"""Tokens of a passage's tags, number and title in a prompt."""
MAX_FINDINGS_PER_THEME = 4
LATER_FINDING = 0.95
"""Factor on the score of each further finding of a theme, relative to the finding before it."""
MIN_FINDING_OVERLAP = 0.4
"""Least share of a finding's words that the sentence quoted for it must hold."""
_WORD = re.compile(r"[^\W_]+")
_EVEN = LevelWeights(0.5, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A numbered passage: ``text`` stands verbatim in the document's visible text from ``start_char`` on.

    ``score`` in [0, 1] is normalised within its level and weighted by the level's share; ``theme`` marks a passage that
    a community's finding rests on. ``beside`` is the marker of the passage that this one is the neighbour of, in its section.
    ``date`` is the document's (see `document_date`).
    ``header`` are the lines that name the columns of the table with which the passage begins, or that introduce its list; empty
    if it does not begin within one. ``regions`` are the places of its text in the file.
    ``chunks`` are the starts and ids of the chunks of a parent, in order; empty if the passage is of one chunk.
    ``language`` is the ISO 639-1 code in the document's metadata, or empty. ``sections`` are the headings above its parts: where
    a part starts in the document, and the headings from the outermost on, in one line each.
    """

    marker: int
    chunk_id: str
    document_id: str
    title: str
    text: str
    start_char: int
    score: float
    theme: bool = False
    beside: int | None = None
    date: str = ""
    header: str = ""
    regions: tuple[Region, ...] = ()
    chunks: tuple[tuple[int, str], ...] = ()
    language: str = ""
    sections: tuple[tuple[int, str], ...] = ()

    def chunk_at(self, offset: int) -> str:
        """Return the chunk that holds the character at ``offset`` of the document's text, which is within the passage."""
        return next((chunk for start, chunk in reversed(self.chunks) if start <= offset), self.chunk_id)

    @property
    def chunk_ids(self) -> frozenset[str]:
        """The chunks that it may be cited by."""
        return frozenset((self.chunk_id, *(chunk for _, chunk in self.chunks)))

    @property
    def with_header(self) -> str:
        """The header and the text, as a language model reads them."""
        return f"{self.header}\n{self.text}" if self.header else self.text


@dataclass(frozen=True, slots=True)
class ThemeOutline:
    """A community's name and summary in a prompt; never cited."""

    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class Context:
    """The evidence of an answer, best first, markers from 1."""

    passages: tuple[Passage, ...]
    themes: tuple[ThemeOutline, ...] = ()


def theme_chunk_ids(retrieval: Retrieval, *, limit: int = MAX_FINDINGS_PER_THEME) -> tuple[str, ...]:
    """Return the chunks that the themes' findings rest on; the caller looks them up, which leaves only visible ones."""
    findings = (finding for theme in retrieval.themes for finding in theme.findings[:limit])
    ids = (source.chunk_id for finding in findings for source in finding.sources)
    return tuple(dict.fromkeys(ids))


def build_context(retrieval: Retrieval, visible: Mapping[str, VisibleChunk], *, budget_tokens: int) -> Context:
    """Return the passages of both levels that fit ``budget_tokens``, divided by the levels' weights.

    One level may use the budget that the other leaves. A chunk that both levels name is one passage. A theme's passage is the
    sentence of the chunk that states the finding, not the finding's own words: only documents are quoted.
    """
    weights = (retrieval.weights or _EVEN) if retrieval.hits and retrieval.themes else LevelWeights(1.0, 1.0)
    low = _low_passages(passages_of(retrieval), weights.low)
    high, outlines = _high_passages(retrieval.themes, visible, weights.high)
    low = _drop_repeated_text(low)
    share = weights.low / (weights.low + weights.high) if low and high else float(bool(low))
    kept_low, kept_high = _fit_passages(low, int(budget_tokens * share)), []
    if high:
        kept_high = _fit_passages(high, budget_tokens - size_tokens(kept_low))
        kept_low = _fit_passages(low, budget_tokens - size_tokens(kept_high))
    merged = _merge_passages([*kept_low, *kept_high])
    merged.sort(key=lambda passage: -passage.score)
    return Context(tuple(replace(passage, marker=index) for index, passage in enumerate(merged, 1)), outlines)


def passages_of(retrieval: Retrieval) -> tuple[Hit, ...]:
    """Return the passages that an answer may rest on: the retrieved ones, otherwise the passages behind the themes."""
    return retrieval.hits or (retrieval.backing.hits if retrieval.backing is not None else ())


def _low_passages(hits: Sequence[Hit], weight: float) -> list[Passage]:
    top = max((hit.score for hit in hits), default=0.0) or 1.0
    return [_passage_of_hit(hit, weight * hit.score / top) for hit in hits]


def _passage_of_hit(hit: Hit, score: float) -> Passage:
    """Return the parent around a chunk that was found, or else the chunk."""
    passage = passage_of(hit.visible, 0, len(hit.visible.chunk.text), score)
    parent = hit.parent
    if parent is None:
        return passage
    return replace(
        passage,
        text=parent.text,
        start_char=parent.start_char,
        header=header_at(parent.text, parent.chunks[0].location.header, 0),
        regions=joined_regions(chunk.location.regions for chunk in parent.chunks),
        chunks=tuple((chunk.location.start_char, chunk.id) for chunk in parent.chunks),
        sections=tuple((chunk.location.start_char, headings_of(chunk)) for chunk in parent.chunks),
    )


def _high_passages(
    themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk], weight: float
) -> tuple[list[Passage], tuple[ThemeOutline, ...]]:
    top = max((theme.score for theme in themes), default=0.0) or 1.0
    passages: list[Passage] = []
    outlines = tuple(ThemeOutline(theme.name, theme.summary) for theme in themes)
    for theme in themes:
        passages += theme_passages(theme, visible, weight * theme.score / top)
    passages.sort(key=lambda passage: -passage.score)
    return passages, outlines


def theme_passages(
    theme: ThemeHit, visible: Mapping[str, VisibleChunk], score: float, *, limit: int = MAX_FINDINGS_PER_THEME
) -> list[Passage]:
    """Return the sentences of visible chunks that state the theme's first ``limit`` findings; scores fall from ``score``."""
    passages: list[Passage] = []
    for finding in theme.findings[:limit]:
        chunks = (visible[source.chunk_id] for source in finding.sources if source.chunk_id in visible)
        candidates = (_stating_passage(finding.statement, chunk, score) for chunk in chunks)
        best = next((passage for passage in candidates if passage is not None), None)
        if best is not None:
            passages.append(best)
            score *= LATER_FINDING
    return passages


def _stating_passage(statement: str, chunk: VisibleChunk, score: float) -> Passage | None:
    """Return the sentence of the chunk that covers most of the statement; None if no sentence covers enough of it."""
    statement_forms = content_forms(statement)
    title = content_forms(chunk.document_title)
    best: tuple[float, int, int] = (0.0, 0, 0)
    for sentence in split_sentences(chunk.chunk.text):
        forms = content_forms(sentence.text)
        overlap = len(statement_forms & (forms | title)) / len(statement_forms) if statement_forms & forms else 0.0
        if overlap > best[0]:
            best = (overlap, sentence.start, sentence.end)
    if best[0] < MIN_FINDING_OVERLAP:
        return None
    return passage_of(chunk, best[1], best[2], score, theme=True)


def passage_of(visible: VisibleChunk, start: int, end: int, score: float, *, theme: bool = False) -> Passage:
    """Return a span of a chunk as a passage without a number."""
    chunk = visible.chunk
    return Passage(
        marker=0,
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=visible.document_title,
        text=chunk.text[start:end],
        start_char=chunk.location.start_char + start,
        score=min(1.0, max(0.0, score)),
        theme=theme,
        date=document_date(visible.document_title, visible.metadata),
        header=header_at(chunk.text, chunk.location.header, start),
        regions=chunk.location.regions,
        language=language_in(visible.metadata),
        sections=((chunk.location.start_char, headings_of(chunk)),),
    )


def headings_of(chunk: Chunk) -> str:
    """Return the headings above a chunk in one line, the outermost first; empty if there are none."""
    return " – ".join(chunk.location.headings)


def size_tokens(passages: Sequence[Passage]) -> int:
    """Return the estimated tokens of passages in a prompt."""
    return sum(estimate_tokens(passage.with_header) + FRAME_TOKENS for passage in passages)


def halve_context(context: Context) -> Context:
    """Return the best passages, in half the tokens. Of a single passage, the sentences of its first half are left."""
    if len(context.passages) == 1:
        (passage,) = context.passages
        middle = len(passage.text) // 2
        end = max((sentence.end for sentence in split_sentences(passage.text) if sentence.end <= middle), default=middle)
        return replace(context, passages=(replace(passage, text=passage.text[:end]),))
    return replace(context, passages=tuple(_fit_passages(context.passages, size_tokens(context.passages) // 2)))


def _fit_passages(passages: Sequence[Passage], tokens: int) -> list[Passage]:
    """Keep passages, best first, while they fit; the first always does, or there would be no evidence at all."""
    selected: list[Passage] = []
    remaining = tokens
    for passage in passages:
        remaining -= size_tokens([passage])
        if selected and remaining < 0:
            break
        if selected or tokens > 0:
            selected.append(passage)
    return selected


def _drop_repeated_text(passages: Sequence[Passage]) -> list[Passage]:
    """Return passages, best first, without text that a better one has.

    A passage with the words of a better one is dropped. Chunks of one document may overlap: the overlap stays in the better one,
    and the other begins or ends at the next sentence.
    """
    selected: list[Passage] = []
    for passage in passages:
        text = _join_words(passage.text)
        if any(text in _join_words(better.text) for better in selected):
            continue
        trimmed = passage
        for better in selected:
            trimmed = _without_overlap(trimmed, better)
        if trimmed.text.strip():
            selected.append(trimmed)
    return selected


def _without_overlap(passage: Passage, better: Passage) -> Passage:
    """Return the sentences of ``passage`` that ``better``, of the same document, does not hold."""
    start, end = better.start_char - passage.start_char, better.start_char + len(better.text) - passage.start_char
    if passage.document_id != better.document_id or end <= 0 or start >= len(passage.text):
        return passage
    outside = [sentence for sentence in split_sentences(passage.text) if sentence.end <= start or sentence.start >= end]
    before = [sentence for sentence in outside if sentence.end <= start]
    chosen = before if len(before) * 2 >= len(outside) else [sentence for sentence in outside if sentence.start >= end]
    if not chosen:
        return replace(passage, text="")
    begin, finish = chosen[0].start, chosen[-1].end
    header = header_at(passage.text, passage.header, begin)
    return replace(passage, text=passage.text[begin:finish], start_char=passage.start_char + begin, header=header)


def _join_words(text: str) -> str:
    """Return the words of a text, so that layout and letter case make no difference."""
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


def _merge_passages(passages: Sequence[Passage]) -> list[Passage]:
    """Join passages of one chunk, and drop passages that a longer one contains."""
    selected: list[Passage] = []
    for passage in sorted(passages, key=lambda passage: -len(passage.text)):
        text = _join_words(passage.text)
        twin = next((index for index, longer in enumerate(selected) if text in _join_words(longer.text)), None)
        if twin is None:
            selected.append(passage)
            continue
        longer = selected[twin]
        selected[twin] = replace(longer, score=max(longer.score, passage.score), theme=longer.theme or passage.theme)
    return selected
