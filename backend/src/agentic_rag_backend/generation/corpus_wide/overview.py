"""A corpus-wide answer without a model: from each theme the sentence that covers most of the question; the best are merged.

The steps equal those with a model: every theme gives a partial answer with a score, a score of zero is dropped, and the rest is
merged without repetition. Sentences are the documents' own, from the passages that the themes' findings rest on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import ThemeHit
from agentic_rag_backend.domain.text.questions import AnswerKind, related
from agentic_rag_backend.domain.text.sentences import split_sentences
from agentic_rag_backend.domain.text.statements import is_statement, leans_on_context
from agentic_rag_backend.domain.text.words import content_forms, inverse_frequency
from agentic_rag_backend.generation.context import Passage, passage_of, theme_passages
from agentic_rag_backend.generation.corpus_wide.partial_answers import BEST_SCORE, MAX_FINDINGS, PartialAnswers, Point
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.selection import question_weights

MAX_THEMES = 24
EMBEDDED = 40
"""Number of sentences to embed, which is nearly all the cost."""
SENTENCES_PER_THEME = 3
WORDS_SHARE = 0.35
"""Weight of the question's words in a sentence's value; the rest is its cosine with the question."""
MIN_COSINE = 0.15
"""A sentence that is farther from the question than this is no partial answer."""
LEANING = 0.85
"""Factor on the score of a sentence that begins with "He …" or "This …"."""
REDUNDANCY = 0.25
SAME_DOCUMENT = 0.1
KEPT_SHARE = 0.7
"""A sentence stays if it is worth at least this share of the best one."""
MAX_SENTENCES = 8
_BRACKETED_NUMBER = re.compile(r"(?:(?<!\s)\s+)?\[\s*\d[\d\s,;–-]*\]")


@dataclass(frozen=True, slots=True)
class _ThemeSentence:
    """A statement of a passage behind a theme; ``word_share`` is the share of the question's words in it, by weight."""

    passage: Passage
    theme: int
    word_share: float = 0.0
    cosine: float = 0.0

    @property
    def worth(self) -> float:
        worth = WORDS_SHARE * self.word_share + (1 - WORDS_SHARE) * max(0.0, self.cosine)
        return LEANING * worth if leans_on_context(self.passage.text) else worth


async def overview(
    question: str, themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk], embedder: Embedder, *, of_all: bool = False
) -> PartialAnswers:
    """Return one sentence of each theme that is relevant to the question, selected to complement each other.

    Args:
        of_all: the question is about everything, so no sentence is similar to it. Each theme gives its central sentences.
    """
    found = _central(themes, visible) if of_all else _statements(question, themes[:MAX_THEMES], visible)
    if not found:
        return PartialAnswers(())
    asked = await embedder.embed_query(question)
    vectors = await embedder.embed([f"{each.passage.title}: {each.passage.text}" for each in found])
    if not of_all:
        found = [replace(each, cosine=float(cosine)) for each, cosine in zip(found, vectors @ asked, strict=True)]
    best: dict[int, int] = {}
    for index, each in enumerate(found):
        if each.theme not in best or each.worth > found[best[each.theme]].worth:
            best[each.theme] = index
    near = [index for index in best.values() if of_all or found[index].cosine >= MIN_COSINE]
    chosen = _merged(found, near, vectors @ vectors.T, least=0.0 if of_all else KEPT_SHARE)
    scores = [each.word_share if of_all else each.cosine for each in found]
    return PartialAnswers(
        points=tuple(_point(found[index].passage, scores[index]) for index in chosen),
        scores=tuple(max(0.0, min(1.0, scores[index])) for index in near),
        zero=len(best) - len(near),
    )


def _statements(question: str, themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk]) -> list[_ThemeSentence]:
    """Return the statements of each theme's passages that cover most of the question's words, some of each theme."""
    weights = question_weights(question, AnswerKind.THEME)
    found = [
        (number, passage, _asked_words(weights, content_forms(passage.text)))
        for number, chunk in _chunks(themes, visible)
        for passage in (passage_of(chunk, each.start, each.end, 0.0) for each in split_sentences(chunk.chunk.text))
        if is_statement(passage.text)
    ]
    rarity = inverse_frequency(held for _, _, held in found)
    rarest = max(rarity.values(), default=1.0)
    weighed = {form: weight * rarity.get(form, rarest) for form, weight in weights.items()}
    total = sum(weighed.values()) or 1.0
    sentences = [_ThemeSentence(passage, number, sum(weighed[form] for form in held) / total) for number, passage, held in found]
    taken: Counter[int] = Counter()
    chosen: list[_ThemeSentence] = []
    for each in sorted(
        sentences, key=lambda each: (-each.word_share, each.theme, each.passage.chunk_id, each.passage.start_char)
    ):
        if len(chosen) < EMBEDDED and taken[each.theme] < SENTENCES_PER_THEME:
            taken[each.theme] += 1
            chosen.append(each)
    return chosen


def _asked_words(asked: Iterable[str], forms: frozenset[str]) -> frozenset[str]:
    return frozenset(form for form in asked if related(form, forms))


def _chunks(themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk]) -> list[tuple[int, VisibleChunk]]:
    """Return the passages behind the themes' findings, each once, with the number of the first theme that rests on it."""
    numbers: dict[str, int] = {}
    for number, theme in enumerate(themes):
        for finding in theme.findings[:MAX_FINDINGS]:
            for source in finding.sources:
                if source.chunk_id in visible:
                    numbers.setdefault(source.chunk_id, number)
    return [(number, visible[id]) for id, number in numbers.items()]


def _central(themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk]) -> list[_ThemeSentence]:
    """Return the sentences that state the first findings of the best documented themes."""
    found: list[_ThemeSentence] = []
    for number, theme in enumerate(themes[:MAX_THEMES]):
        passages = [each for each in theme_passages(theme, visible, 1.0, most=SENTENCES_PER_THEME) if is_statement(each.text)]
        found += [_ThemeSentence(each, number, max(0.0, min(1.0, theme.score))) for each in passages]
    return found[:EMBEDDED]


def _merged(found: Sequence[_ThemeSentence], near: Sequence[int], between: NDArray[np.float32], *, least: float) -> list[int]:
    """Choose by falling value: relevance to the question, difference from the chosen sentences, another document."""
    chosen: list[int] = []
    documents: Counter[str] = Counter()
    best = max((found[index].worth for index in near), default=0.0)
    left = [index for index in near if found[index].worth >= least * best]
    while left and len(chosen) < MAX_SENTENCES:

        def gain(index: int) -> float:
            alike = max((float(between[index, other]) for other in chosen), default=0.0)
            repeated = documents[found[index].passage.document_id]
            return found[index].worth - REDUNDANCY * max(0.0, alike) - SAME_DOCUMENT * repeated

        following = max(left, key=lambda index: (gain(index), -index))
        left.remove(following)
        chosen.append(following)
        documents[found[following].passage.document_id] += 1
    return chosen


def _point(passage: Passage, score: float) -> Point:
    # A bracketed number in the document would look like a marker.
    text = " ".join(_BRACKETED_NUMBER.sub("", passage.text).split())
    return Point(text, (passage,), round(BEST_SCORE * max(0.0, min(1.0, score)), 1))
