"""Contradictions between a passage and its edited copy: sentences that differ in one date, number or name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from agentic_rag_backend.domain.contradictions import Contradiction, Kind, Side
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.knowledge.contradictions.statements import subject_of
from agentic_rag_backend.language.sentences import Sentence
from agentic_rag_backend.language.times.periods import document_date
from agentic_rag_backend.language.values import Span, may_agree, placed_moments
from agentic_rag_backend.language.words import Word, words

CHANGED_VALUE = 0.9
CHANGED_NAME = 0.75
MAX_CHANGED = 8
"""Sentences of a passage that its copy does not have. A passage with more is another text."""
MAX_WORDS = 6
"""Words that differ."""
_CONTEXT = 3
LEAST_SAME = 0.6
"""Share of the words of two sentences that are the same."""


@dataclass(frozen=True)
class ChangedSentence:
    """A sentence that the other passage does not have. Its words are read once, for all pairs and entities that need them."""

    sentence: Sentence

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Words in order."""
        return tuple(words(self.sentence.text))

    @cached_property
    def dates(self) -> tuple[Span, ...]:
        """Places of the dates."""
        return tuple(span for _, span in placed_moments(self.sentence.text))


Pair = tuple[VisibleChunk, VisibleChunk]
Changed = tuple[Sequence[ChangedSentence], Sequence[ChangedSentence]]


@dataclass(frozen=True, slots=True)
class _Change:
    """The words that differ, as they are written, and the words before them."""

    kind: Kind
    context: str
    before: str
    after: str


def contradictions_of_copies(
    about: EntityRef, names: Sequence[Sequence[str]], copies: tuple[Pair, Changed], *, topic: bool
) -> Iterator[Contradiction]:
    """Yield the contradictions between two passages of which one is a copy of the other.

    Args:
        about: the entity that sentences must be about: their subject, or else the ``topic`` of the passages.
        names: the entity's names, each as the forms of its words.
        copies: the passages, and the sentences of each that the other one does not have.
    """
    passages, changed = copies
    if max(map(len, changed)) > MAX_CHANGED:
        return
    subjects = [[sentence for sentence in sentences if _is_about(sentence, names, topic=topic)] for sentences in changed]
    for sentence_a, sentence_b in product(*subjects):
        change = _find_change(sentence_a, sentence_b)
        if change is not None:
            yield _build_contradiction(about, passages, (sentence_a.sentence, sentence_b.sentence), change)


def _is_about(changed: ChangedSentence, names: Sequence[Sequence[str]], *, topic: bool) -> bool:
    """Return whether the entity is the subject of a sentence. A subject without a name is the topic."""
    if subject_of(changed.sentence.text, changed.words, names, changed.dates) is not None:
        return True
    articles = ("the", "a", "an")
    first_word = next((word for word in changed.words if word.form not in articles and not _is_within(word, changed.dates)), None)
    return topic and (first_word is None or not first_word.name)


def _find_change(changed_sentence: ChangedSentence, sentence_b: ChangedSentence) -> _Change | None:
    """Return the one place in which two sentences differ, if it is a value or a name in both."""
    forms = [[word.form for word in changed.words] for changed in (changed_sentence, sentence_b)]
    shorter = min(map(len, forms))
    begin = next((at for at in range(shorter) if forms[0][at] != forms[1][at]), shorter)
    end = next((at for at in range(shorter - begin) if forms[0][-1 - at] != forms[1][-1 - at]), shorter - begin)
    parts = [changed.words[begin : len(changed.words) - end] for changed in (changed_sentence, sentence_b)]
    shared = (begin + end) / max(map(len, forms))
    if shared < LEAST_SAME or not all(1 <= len(part) <= MAX_WORDS for part in parts):
        return None
    texts = changed_sentence.sentence.text, sentence_b.sentence.text
    before, after = (text[part[0].start : part[-1].end] for text, part in zip(texts, parts, strict=True))
    if may_agree(before, after):
        return None
    dated = [
        all(_is_within(word, changed.dates) for word in part)
        for changed, part in zip((changed_sentence, sentence_b), parts, strict=True)
    ]
    digits = [any(word.form[0].isdigit() for word in part) for part in parts]
    context = " ".join(texts[0][word.start : word.end] for word in changed_sentence.words[max(begin - _CONTEXT, 0) : begin])
    if all(dated):
        return _Change("date", context, before, after)
    if all(digits) and not any(dated):
        return _Change("number", context, before, after)
    are_names = all(word.name and not word.form[0].isdigit() for part in parts for word in part if word.content)
    return _Change("exclusive", context, before, after) if are_names and begin else None


def _is_within(word: Word, spans: Sequence[Span]) -> bool:
    return any(start <= word.start < end for start, end in spans)


def _build_contradiction(
    about: EntityRef, passages: Pair, sentences: tuple[Sentence, Sentence], change: _Change
) -> Contradiction:
    values = change.before, change.after
    sides = [
        Side(
            fact=sentence.text,
            value=value,
            chunk_id=passage.chunk.id,
            document_id=passage.chunk.document_id,
            title=passage.document_title,
            quote=sentence.text,
            start_char=sentence.start,
            date=document_date(passage.document_title, passage.metadata),
        )
        for passage, sentence, value in zip(passages, sentences, values, strict=True)
    ]
    return Contradiction(
        kind=change.kind,
        about=about,
        subject=f"{about.name} – {change.context}",
        entity_a=about,
        entity_b=about,
        a=sides[0],
        b=sides[1],
        reason=f"two copies of one text have {values[0]} and {values[1]} in one place",
        confidence=CHANGED_NAME if change.kind == "exclusive" else CHANGED_VALUE,
    )
