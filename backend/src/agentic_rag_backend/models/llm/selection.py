"""Selects the sentences of an account, such as an answer to "why" or "how": the pure half of the `extractive` model.

A sentence scores by the question's rare words that it (or its document's title) contains, by its passage's rank, by whether it is
understood by itself, and by its embedding. A further sentence scores more if it covers other words of the question, or if a
sentence of another document leads to it over a name. Sentences that answer a fact are chosen by `generation.answerability`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.dates import Date, first_date, in_order_of_time
from agentic_rag_backend.domain.text.independence import standing
from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.sentences import Sentence, split_sentences
from agentic_rag_backend.domain.text.statements import is_statement
from agentic_rag_backend.domain.text.words import content_forms, inverse_frequency, names_and_numbers
from agentic_rag_backend.models.llm.base import Evidence

MAX_CANDIDATES = 16
"""Number of sentences that are embedded, which is nearly the whole cost of an answer."""
MAX_PER_PASSAGE = 2
"""Sentences of one passage among the candidates."""
MAX_SENTENCES = 6
NAME_WEIGHT = 0.5
"""Weight of a name or number of the question relative to other words: names set the scene, other words carry the question."""
CONTEXT_SHARE = 0.5
"""Weight, as a share, of a question word that only the document's title or the sentence before contains ("She grew up in …")."""
SIMILARITY_SHARE = 0.5
LEXICAL_SHARE = 0.35
PASSAGE_SHARE = 0.10
FRAGMENT = 0.6
"""Score factor of a heading, a row or a dateline. They are left out if there is a statement."""
STANDING_BASE = 0.6
"""Least factor on the score of a sentence that is not understood by itself; see `independence.standing`."""
REDUNDANCY = 0.25
"""Loss of a sentence that is similar to a chosen one (maximal marginal relevance, Carbonell & Goldstein 1998)."""
NOVELTY = 0.25
"""Gain of a sentence that covers words of the question that no chosen one covers."""
BRIDGE = 0.2
"""Gain of a sentence that shares a name, absent from the question, with a chosen sentence of another document."""
SAME_DOCUMENT = 0.15
"""Loss of a sentence for each chosen sentence of the same document."""
KEPT_SHARE = 0.45
"""A further sentence stays if its score plus its gains is at least this share of the best score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A sentence of a passage.

    ``held`` are the question's words in it, ``near`` the question's words in its document's title or the sentence before it.
    ``names`` are the names of the sentence and its title that are absent from the question.
    """

    marker: int
    start: int
    text: str
    title: str
    passage_score: float
    held: frozenset[str]
    near: frozenset[str]
    names: frozenset[str]
    statement: bool

    @property
    def in_context(self) -> str:
        """Text for the embedder: its document's title disambiguates a sentence such as "he was born"."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnalysis:
    """A question with the sentences that may answer it. ``weights`` of its words sum to 1, ``rarity`` is of names."""

    weights: Mapping[str, float]
    rarity: Mapping[str, float]
    candidates: tuple[Candidate, ...]


def question_weights(question: str) -> dict[str, float]:
    """Return the words of a question that carry meaning, with their weights."""
    names = names_and_numbers(question)
    return {form: NAME_WEIGHT if form in names else 1.0 for form in content_forms(question)}


def read(question: str, evidence: Sequence[Evidence]) -> QuestionAnalysis:
    """Return the sentences of ``evidence`` worth embedding, best first: the best statements of many passages."""
    base = question_weights(question)
    found = [candidate for passage in evidence for candidate in _sentences(question, base, passage)]
    rarity = inverse_frequency(candidate.held for candidate in found)
    rarest = max(rarity.values(), default=1.0)
    raw = {form: weight * rarity.get(form, rarest) for form, weight in base.items()}
    total = sum(raw.values()) or 1.0
    weights = {form: weight / total for form, weight in raw.items()}
    return QuestionAnalysis(
        weights=weights,
        rarity=inverse_frequency(candidate.names for candidate in found),
        candidates=tuple(_spread(weights, found)),
    )


def select(reading: QuestionAnalysis, similarity: NDArray[np.float32], between: NDArray[np.float32]) -> list[Candidate]:
    """Choose the sentences of the account, in the order of time, else of their passages.

    Args:
        similarity: cosine of question and each candidate, shape (n,).
        between: cosine of each pair of candidates, shape (n, n).
    """
    found = reading.candidates
    if not found:
        return []
    scores = np.array([_score(reading, each, float(cosine)) for each, cosine in zip(found, similarity, strict=True)], np.float32)
    chosen = [int(np.argmax(scores))]
    while len(chosen) < min(MAX_SENTENCES, len(found)):
        worth = scores + BRIDGE * _bridges(reading, chosen) + NOVELTY * _fresh(reading, chosen)
        gain = worth - REDUNDANCY * between[:, chosen].max(axis=1)
        gain -= SAME_DOCUMENT * np.array([sum(found[number].title == each.title for number in chosen) for each in found])
        gain[chosen] = -np.inf
        following = int(np.argmax(gain))
        if worth[following] < KEPT_SHARE * scores[chosen[0]] or gain[following] <= 0:
            break
        chosen.append(following)
    return in_order_of_time(_ordered([found[index] for index in chosen]), _date)


def _date(candidate: Candidate) -> Date | None:
    return first_date(candidate.text) or first_date(candidate.title)


def _sentences(question: str, base: Mapping[str, float], passage: Evidence) -> list[Candidate]:
    title_forms = content_forms(passage.title)
    near = titled = frozenset(form for form in base if related(form, title_forms))
    known = content_forms(question)
    title_names = names_and_numbers(passage.title, first_word=True)
    found = []
    for sentence in split_sentences(passage.text):
        states = is_statement(sentence.text)
        forms = content_forms(sentence.text)
        # A sentence that only repeats the title is a heading, unless the title was taken from a statement.
        if not forms or (forms <= title_forms and not states):
            continue
        held = frozenset(form for form in base if related(form, forms))
        names = {name for name in names_and_numbers(sentence.text, first_word=states) | title_names if not name[0].isdigit()}
        found.append(
            Candidate(
                marker=passage.marker,
                start=sentence.start,
                text=sentence.text,
                title=passage.title,
                passage_score=passage.score,
                held=held,
                near=near,
                names=frozenset(names - known),
                statement=states and _whole(sentence),
            )
        )
        near = titled | held
    return found


def _whole(sentence: Sentence) -> bool:
    return sentence.complete or sentence.text[:1] in "*_"


def _by_words(weights: Mapping[str, float], candidate: Candidate) -> float:
    stated = sum(
        weight * (1.0 if form in candidate.held else CONTEXT_SHARE)
        for form, weight in weights.items()
        if form in candidate.held or form in candidate.near
    )
    score = LEXICAL_SHARE * stated + PASSAGE_SHARE * candidate.passage_score
    return score if candidate.statement else FRAGMENT * score


def _score(reading: QuestionAnalysis, candidate: Candidate, cosine: float) -> float:
    near = cosine if candidate.statement else FRAGMENT * cosine
    return (SIMILARITY_SHARE * near + _by_words(reading.weights, candidate)) * _stands(candidate)


def _stands(candidate: Candidate) -> float:
    return STANDING_BASE + (1 - STANDING_BASE) * standing(candidate.text)


def _spread(weights: Mapping[str, float], found: Sequence[Candidate]) -> list[Candidate]:
    """Return the best statements, few of each passage; fragments only if there is no statement."""
    taken: Counter[int] = Counter()
    chosen: list[Candidate] = []
    whole = [each for each in found if each.statement] or found
    for candidate in sorted(whole, key=lambda each: (-_by_words(weights, each) * _stands(each), each.marker, each.start)):
        if taken[candidate.marker] < MAX_PER_PASSAGE and len(chosen) < MAX_CANDIDATES:
            taken[candidate.marker] += 1
            chosen.append(candidate)
    return chosen


def _shared(reading: QuestionAnalysis, first: Candidate, second: Candidate) -> float:
    """Return the rarity of the names that two sentences of different documents share, in [0, 1)."""
    if first.title == second.title:
        return 0.0
    mass = sum(reading.rarity[name] for name in first.names & second.names)
    return mass / (mass + 2.0)


def _bridges(reading: QuestionAnalysis, chosen: Sequence[int]) -> NDArray[np.float32]:
    """Return, for each candidate, the rarity of the names that it shares with a chosen sentence of another document."""
    found = reading.candidates
    return np.array([max(_shared(reading, found[held], each) for held in chosen) for each in found], np.float32)


def _fresh(reading: QuestionAnalysis, chosen: Sequence[int]) -> NDArray[np.float32]:
    """Return, for each candidate, the weight of the question's words that it contains and no chosen sentence contains."""
    stated = frozenset().union(*(reading.candidates[number].held for number in chosen))
    return np.array([sum(reading.weights[form] for form in each.held - stated) for each in reading.candidates], np.float32)


def _ordered(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Keep the passages in the order of their best sentence, and the sentences of one passage in reading order."""
    markers = list(dict.fromkeys(candidate.marker for candidate in chosen))
    return sorted(chosen, key=lambda candidate: (markers.index(candidate.marker), candidate.start))
