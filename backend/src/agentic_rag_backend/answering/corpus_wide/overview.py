"""A corpus-wide answer without a model: the sentences behind the themes that are nearest to the question, without repetition.

Sentences are the documents' own: from the passages that the themes' findings rest on, and from the passages nearest to the
question. A sentence that is not understood without its neighbours counts less, a sentence that shares only a word with the
question is left out. Sentences with dates are put in order of time.

The sentence before an answer without a model. It states what the list of sentences is, and has no citation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.corpus_wide.aspects import aspect_of, expresses
from agentic_rag_backend.answering.corpus_wide.partial_answers import BEST_SCORE, MAX_FINDINGS, PartialAnswers, Point
from agentic_rag_backend.answering.evidence.context import Passage, passage_of, theme_passages
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import placeholder_name
from agentic_rag_backend.domain.query import Hit, ThemeHit
from agentic_rag_backend.language.independence import rate_independence, simplify_sentence
from agentic_rag_backend.language.questions.kinds import is_related_form
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.times import find_years, first_date, has_dates, in_order_of_time
from agentic_rag_backend.language.words import content_forms, inverse_frequency, names_and_numbers, words
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.models.embedding.calibration import BUNDLED_SCALE, CosineScale

MAX_THEMES = 24
EMBEDDED = 40
"""Number of sentences to embed, which is nearly all the cost."""
SENTENCES_PER_PASSAGE = 3
NAME_WEIGHT = 0.5
"""Weight of a name or number of the question relative to other words: names set the scene, other words carry the question."""
WORDS_SHARE = 0.35
"""Weight of the question's words in a sentence's value."""
PASSAGE_SHARE = 0.2
"""Weight of the cosine of the sentence's passage; the rest is the sentence's own cosine with the question."""
MIN_COSINE = 0.2
"""A sentence that is farther from the question than this is no partial answer."""
MIN_STANDING = 0.5
"""Least `rate_independence` of a sentence. The value of a sentence is multiplied with the part above `STANDING_BASE`."""
STANDING_BASE = 0.6
REDUNDANCY = 0.3
MAX_ALIKE = 0.8
"""Cosine of two sentences above which the second one is a repetition."""
SAME_DOCUMENT = 0.08
MAX_PER_DOCUMENT = 3
KEPT_SHARE = 0.68
"""A sentence stays if it is worth at least this share of the best one."""
MAX_SENTENCES = 8
FORMULA = 3
"""Documents with the same sentence, from which on it says nothing about a theme."""
_LEAST_WORDS = 2
"""Words that a question must have besides its names, so that it is also read without them."""
JUDGED_PASSAGES = 10
"""Passages that are read to decide whether there is an answer."""
_BRACKETED_NUMBER = re.compile(r"(?:(?<!\s)\s+)?\[\s*\d[\d\s,;–-]*\]")


@dataclass(frozen=True, slots=True)
class Collected:
    """The visible material of an answer: themes with the chunks behind them, and the passages nearest to the question.

    ``scale`` converts the cosines of the passages, because the sentences are compared by the bundled encoder.
    """

    themes: Sequence[ThemeHit]
    visible: Mapping[str, VisibleChunk]
    hits: Sequence[Hit] = ()
    scale: CosineScale = BUNDLED_SCALE


@dataclass(frozen=True, slots=True)
class RatedSentence:
    """A statement; ``word_share`` is the share of the question's words in it, by weight."""

    passage: Passage
    standing: float
    passage_cosine: float
    word_share: float = 0.0
    cosine: float = 0.0

    @property
    def expected(self) -> float:
        """Return the value that is known without embedding the sentence."""
        return (WORDS_SHARE * self.word_share + (1 - WORDS_SHARE) * self.passage_cosine) * self._standing_share

    @property
    def worth(self) -> float:
        """Return the value in [0, 1]."""
        sentence_share = 1 - WORDS_SHARE - PASSAGE_SHARE
        nearness = sentence_share * max(0.0, self.cosine) + PASSAGE_SHARE * self.passage_cosine
        return (WORDS_SHARE * self.word_share + nearness) * self._standing_share

    @property
    def _standing_share(self) -> float:
        return STANDING_BASE + (1 - STANDING_BASE) * self.standing


async def select_overview(question: str, collected: Collected, encoder: TextEncoder, *, of_all: bool = False) -> PartialAnswers:
    """Return the sentences that are relevant to the question, selected to complement each other.

    Args:
        of_all: the question is about everything, so no sentence is similar to it. Each theme gives its central sentence.
    """
    candidates = _select_central(collected) if of_all else _select_statements(question, collected)
    if not candidates:
        return PartialAnswers(())
    vectors = await encoder.embed([simplify_sentence(sentence.passage.text) for sentence in candidates])
    if not of_all:
        vector = await _embed_question(question, encoder)
        candidates = [
            replace(sentence, cosine=float(cosine)) for sentence, cosine in zip(candidates, vectors @ vector, strict=True)
        ]
    relevant = [index for index, sentence in enumerate(candidates) if of_all or sentence.cosine >= MIN_COSINE]
    aspect = None if of_all else aspect_of(question)
    if aspect is not None:
        relevant = [index for index in relevant if expresses(candidates[index].passage.text, aspect)]
    chosen = choose_sentences(candidates, relevant, vectors @ vectors.T, least=0.0 if of_all else KEPT_SHARE)
    scores = [sentence.word_share if of_all else sentence.cosine for sentence in candidates]
    points = [make_point(candidates[index].passage, scores[index]) for index in chosen]
    return PartialAnswers(
        points=tuple(in_order_of_time(points, _date_of)),
        scores=tuple(max(0.0, min(1.0, scores[index])) for index in relevant),
        zero=len(candidates) - len(relevant),
    )


def nearest_passages(collected: Collected) -> list[PassageText]:
    """Return the passages nearest to the question, best first, at most `JUDGED_PASSAGES`."""
    ranked = sorted(_list_chunks(collected), key=lambda pair: (-pair[1], pair[0].chunk.id))[:JUDGED_PASSAGES]
    best = ranked[0][1] or 1.0 if ranked else 1.0
    return [PassageText(chunk.document_title, chunk.chunk.text, cosine / best) for chunk, cosine in ranked]


async def _embed_question(question: str, encoder: TextEncoder) -> NDArray[np.float32]:
    """Return the mean of the vectors of the question and of the question without its names.

    The names of a question about a theme set the scene: all sentences that have them are near to it.
    """
    vector = await encoder.embed_query(question)
    question_words = words(question)
    names = [word for word in question_words[1:] if word.name]
    if not names or sum(word.content for word in question_words) - len(names) < _LEAST_WORDS:
        return vector
    without = question
    for word in reversed(names):
        without = without[: word.start] + without[word.end :]
    mean = vector + await encoder.embed_query(" ".join(without.split()))
    return (mean / np.linalg.norm(mean)).astype(np.float32)


def ordered_by_time(points: Sequence[Point]) -> bool:
    """Return whether the points have dates, so that `select_overview` puts them in order of time."""
    return has_dates(points, _date_of)


def _date_of(point: Point) -> tuple[int, int, int] | None:
    return first_date(point.statement) or first_date(point.passages[0].title)


def _select_statements(question: str, collected: Collected) -> list[RatedSentence]:
    """Return the statements that promise most by their passage and their words, few of each passage."""
    weights = _question_weights(question)
    candidates = [
        (
            RatedSentence(passage, stands, cosine),
            frozenset(form for form in weights if is_related_form(form, content_forms(passage.text))),
        )
        for chunk, cosine in _list_chunks(collected)
        for passage in (passage_of(chunk, sentence.start, sentence.end, 0.0) for sentence in split_sentences(chunk.chunk.text))
        if (stands := rate_independence(passage.text)) >= MIN_STANDING
    ]
    candidates = _without_formulas(candidates)
    rarity = inverse_frequency(forms for _, forms in candidates)
    rarest = max(rarity.values(), default=1.0)
    weighed = {form: weight * rarity.get(form, rarest) for form, weight in weights.items()}
    total = sum(weighed.values()) or 1.0
    sentences = [replace(sentence, word_share=sum(weighed[form] for form in forms) / total) for sentence, forms in candidates]
    counts: Counter[str] = Counter()
    chosen: list[RatedSentence] = []
    for sentence in sorted(
        sentences, key=lambda sentence: (-sentence.expected, sentence.passage.chunk_id, sentence.passage.start_char)
    ):
        if len(chosen) < EMBEDDED and counts[sentence.passage.chunk_id] < SENTENCES_PER_PASSAGE:
            counts[sentence.passage.chunk_id] += 1
            chosen.append(sentence)
    return chosen


def _without_formulas(candidates: Sequence[tuple[RatedSentence, frozenset[str]]]) -> list[tuple[RatedSentence, frozenset[str]]]:
    """Leave out sentences that three documents or more repeat word for word, such as the greeting of a series."""
    documents: defaultdict[frozenset[str], set[str]] = defaultdict(set)
    for sentence, _ in candidates:
        documents[content_forms(sentence.passage.text)].add(sentence.passage.document_id)
    return [(sentence, forms) for sentence, forms in candidates if len(documents[content_forms(sentence.passage.text)]) < FORMULA]


def _cosine_of(hit: Hit, scale: CosineScale) -> float:
    return max(0.0, scale.convert_cosine(hit.scores["dense"])) if "dense" in hit.scores else 0.0


def _list_chunks(collected: Collected) -> list[tuple[VisibleChunk, float]]:
    """Return the passages nearest to the question and those behind the themes' findings, each once, with their cosines.

    The cosine of a passage that was not searched for is estimated by the score of the first theme that rests on it.
    """
    cosines = {hit.id: _cosine_of(hit, collected.scale) for hit in collected.hits}
    chunks = {hit.id: hit.visible for hit in collected.hits}
    farthest = min((value for value in cosines.values() if value > 0), default=1.0)
    for theme in collected.themes[:MAX_THEMES]:
        for finding in theme.findings[:MAX_FINDINGS]:
            for source in finding.sources:
                if source.chunk_id in collected.visible and source.chunk_id not in chunks:
                    chunks[source.chunk_id] = collected.visible[source.chunk_id]
                    cosines[source.chunk_id] = max(0.0, min(farthest, theme.score))
    return [(chunk, cosines[id]) for id, chunk in chunks.items()]


def _question_weights(question: str) -> dict[str, float]:
    """Return the words of a question that carry meaning, with their weights."""
    names = names_and_numbers(question)
    return {form: NAME_WEIGHT if form in names else 1.0 for form in content_forms(question)}


def _select_central(collected: Collected) -> list[RatedSentence]:
    """Return the sentence that states the first finding of each of the best documented themes, if one stands by itself."""
    sentences: list[RatedSentence] = []
    for theme in collected.themes[:MAX_THEMES]:
        score = max(0.0, min(1.0, theme.score))
        passages = theme_passages(theme, collected.visible, 1.0, limit=MAX_FINDINGS)
        stands = [(rate_independence(passage.text), -number) for number, passage in enumerate(passages)]
        if passages and max(stands)[0] >= MIN_STANDING:
            best = -max(stands)[1]
            sentences.append(RatedSentence(passages[best], stands[best][0], 0.0, word_share=score))
    return sentences[:EMBEDDED]


def choose_sentences(
    sentences: Sequence[RatedSentence],
    relevant: Sequence[int],
    between: NDArray[np.float32],
    *,
    least: float,
    most: int = MAX_SENTENCES,
    most_per_document: int = MAX_PER_DOCUMENT,
) -> list[int]:
    """Choose by falling value: relevance to the question, difference from the chosen sentences, another document."""
    chosen: list[int] = []
    documents: Counter[str] = Counter()
    best = max((sentences[index].worth for index in relevant), default=0.0)
    remaining = [index for index in relevant if sentences[index].worth >= least * best]

    def max_similarity(index: int) -> float:
        return max((float(between[index, chosen_index]) for chosen_index in chosen), default=0.0)

    def gain_of(index: int) -> float:
        repeated = documents[sentences[index].passage.document_id]
        return (
            sentences[index].worth
            - REDUNDANCY * max(0.0, max_similarity(index)) * sentences[index].worth
            - SAME_DOCUMENT * repeated
        )

    while remaining and len(chosen) < most:
        following = max(remaining, key=lambda index: (gain_of(index), -index))
        remaining.remove(following)
        document = sentences[following].passage.document_id
        if max_similarity(following) <= MAX_ALIKE and documents[document] < most_per_document:
            chosen.append(following)
            documents[document] += 1
    return chosen


def make_point(passage: Passage, score: float) -> Point:
    # A bracketed number in the document would look like a marker.
    text = simplify_sentence(_BRACKETED_NUMBER.sub("", passage.text))
    return Point(text, (passage,), round(BEST_SCORE * max(0.0, min(1.0, score)), 1))


_NAMED_THEMES = 2
_LISTED_THEMES = 15
_MIN_SENTENCES = 2


def introduce_themes(points: Sequence[Point], themes: Sequence[ThemeHit], *, of_all: bool) -> str:
    """Return the introduction of an answer of these sentences; empty for less than two.

    Args:
        of_all: the question is about everything, so each sentence represents a theme.
    """
    if len(points) < _MIN_SENTENCES:
        return ""
    documents = len({passage.document_id for point in points for passage in point.passages})
    if of_all:
        names = [f"“{theme.name}”" for theme in themes if theme.name != placeholder_name(theme.id)][:_LISTED_THEMES]
        more = f" and {len(themes) - len(names)} more" if len(themes) > len(names) else ""
        list_of_names = f": {', '.join(names)}{more}" if names else ""
        return (
            f"The documents have {len(themes)} themes{list_of_names}; each of these {len(points)} sentences from "
            f"{_count_documents(documents)} states a finding of one of the best documented themes."
        )
    dates = sorted(year for point in points for year in find_years(point.statement))
    period = f" ({dates[0]} to {dates[-1]})" if dates and dates[0] < dates[-1] else ""
    order = "in order of time, those without a date last" if ordered_by_time(points) else "nearest first"
    return (
        f"The {len(points)} sentences that are nearest to the question come from {_count_documents(documents)}{period}"
        f"{_name_themes(points, themes)} and are listed {order}."
    )


def _count_documents(count: int) -> str:
    return "one document" if count == 1 else f"{count} documents"


def _name_themes(points: Sequence[Point], themes: Sequence[ThemeHit]) -> str:
    """Return the names of the themes that most of the sentences belong to."""
    rests = [{source.chunk_id for finding in theme.findings for source in finding.sources} for theme in themes]
    counts: Counter[int] = Counter()
    for point in points:
        chunks = {passage.chunk_id for passage in point.passages}
        number = next((number for number, chunk_ids in enumerate(rests) if not chunk_ids.isdisjoint(chunks)), None)
        if number is not None:
            counts[number] += 1
    best = sorted(counts, key=lambda number: (-counts[number], number))[:_NAMED_THEMES]
    names = " and ".join(f"“{themes[number].name}”" for number in best)
    return f", mostly of the theme{'s' if len(best) > 1 else ''} {names}," if names else ""
