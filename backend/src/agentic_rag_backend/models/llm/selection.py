"""Selects the sentences that answer a question: the pure half of the `extractive` model.

A sentence scores by the question's rare words that it (or its document's title) contains, by whether it holds an answer of the
requested kind (a name, a date, a number), by its passage's rank, and, for the few best, by its embedding. A further
sentence scores more if another document's sentence leads to it over a name: the second hop of a question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.answers import may_answer
from agentic_rag_backend.domain.text.dates import Date, first_date, in_order_of_time
from agentic_rag_backend.domain.text.independence import standing
from agentic_rag_backend.domain.text.questions import AnswerKind, asked_for, measured, related
from agentic_rag_backend.domain.text.sentences import Sentence, split_sentences
from agentic_rag_backend.domain.text.statements import is_statement
from agentic_rag_backend.domain.text.words import content_forms, inverse_frequency, names_and_numbers
from agentic_rag_backend.models.llm.base import Evidence

MAX_CANDIDATES = 10
"""Number of sentences that are embedded, which is nearly the whole cost of an answer."""
DIRECT_CANDIDATES = 7
"""Number of candidates that are the best by themselves. The others are found through these."""
LEADERS = 3
"""Number of candidates whose names are followed to other documents."""
NAME_WEIGHT = 1.4
"""Weight of a name or number of the question relative to other words."""
CONTEXT_SHARE = 0.5
"""Weight, as a share, of a question word that only the document's title or the sentence before contains ("She grew up in …")."""
SIMILARITY_SHARE = 0.5
LEXICAL_SHARE = 0.35
PASSAGE_SHARE = 0.10
ANSWER_SHARE = 0.10
"""Weight of containing an answer of the requested kind."""
THEME_NAME_WEIGHT = 0.5
"""Weight of names for an account, where names set the scene and the other words carry the question."""
FRAGMENT = 0.6
"""Score factor of a heading, a row or a dateline. For an account, these are left out."""
STANDING_BASE = 0.6
"""Least factor, in an account, on the score of a sentence that is not understood by itself; see `independence.standing`."""
THEME_CANDIDATES = 16
MAX_PER_PASSAGE = 2
"""Sentences of one passage among the candidates of an account."""
REDUNDANCY = 0.25
"""Loss of a sentence that is similar to a chosen one (maximal marginal relevance, Carbonell & Goldstein 1998)."""
NOVELTY = 0.25
"""Gain of a sentence that covers words of the question that no chosen one covers: two hops, two sentences."""
BRIDGE = 0.2
"""Gain of a sentence that shares a name, absent from the question, with a chosen sentence of another document."""
KEPT_SHARE = 0.72
"""A further sentence stays if its score plus its gains is at least this share of the best score."""
KEPT_SHARE_THEME = 0.45
SAME_DOCUMENT = 0.15
"""Loss of a sentence of an account for each chosen sentence of the same document."""
MAX_PER_FACT = 3
MAX_PER_THEME = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A sentence of a passage.

    ``held`` are the question's words in it, ``near`` the question's words in its document's title or the sentence before it.
    ``names`` are the names of the sentence and its title that are absent from the question. ``answers`` is whether it contains an
    answer of the requested kind.
    """

    marker: int
    start: int
    text: str
    title: str
    passage_score: float
    held: frozenset[str]
    near: frozenset[str]
    names: frozenset[str]
    answers: bool
    statement: bool

    @property
    def in_context(self) -> str:
        """Text for the embedder: its document's title disambiguates a sentence such as "he was born"."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnalysis:
    """A question with the sentences that may answer it. ``weights`` of its words sum to 1, ``rarity`` is of names.

    ``named`` are the names among the words. ``measured`` is the word for the counted or measured thing, if there is one.
    """

    asked: AnswerKind
    weights: Mapping[str, float]
    rarity: Mapping[str, float]
    named: frozenset[str]
    measured: frozenset[str]
    candidates: tuple[Candidate, ...]


def question_weights(question: str, asked: AnswerKind) -> dict[str, float]:
    """Return the words of a question that carry meaning, with their weights."""
    names = names_and_numbers(question)
    name_weight = THEME_NAME_WEIGHT if asked is AnswerKind.THEME else NAME_WEIGHT
    return {form: name_weight if form in names else 1.0 for form in content_forms(question)}


def read(question: str, evidence: Sequence[Evidence]) -> QuestionAnalysis:
    """Return the sentences of ``evidence`` worth embedding, best first.

    At most `MAX_CANDIDATES`: the best by words, and the best that these lead to over a name in another document; for an
    account the best statements of many passages, at most `THEME_CANDIDATES`.
    """
    asked = asked_for(question)
    base = question_weights(question, asked)
    found = [candidate for passage in evidence for candidate in _sentences(question, asked, base, passage)]
    rarity = inverse_frequency(candidate.held for candidate in found)
    rarest = max(rarity.values(), default=1.0)
    raw = {form: weight * rarity.get(form, rarest) for form, weight in base.items()}
    total = sum(raw.values()) or 1.0
    reading = QuestionAnalysis(
        asked=asked,
        weights={form: weight / total for form, weight in raw.items()},
        rarity=inverse_frequency(candidate.names for candidate in found),
        named=frozenset(name for name in names_and_numbers(question) if not name[0].isdigit()) & frozenset(raw),
        measured=measured(question) & frozenset(raw) if asked.numeric else frozenset(),
        candidates=tuple(found),
    )
    ranked = sorted(found, key=lambda candidate: (-_by_words(reading, candidate), candidate.marker, candidate.start))
    if asked is AnswerKind.THEME:
        return replace(reading, candidates=tuple(_spread(reading, ranked)))
    chosen = ranked[:DIRECT_CANDIDATES]
    chosen += _led_to(reading, ranked[:LEADERS], ranked[len(chosen) :])[: MAX_CANDIDATES - len(chosen)]
    return replace(reading, candidates=tuple(chosen))


def support(reading: QuestionAnalysis, chosen: Sequence[Candidate], nearest: float) -> float:
    """Return how well ``chosen`` answers the question, in [0, 1]; 0 if it wants a number and no sentence names its unit.

    Args:
        nearest: the largest cosine of the question and a candidate.

    The score is the cosine times the square root of a share: the question's words, by rarity, in the chosen sentences, their
    titles and the sentences before them. An account rests on many passages and paraphrases: its score is the cosine alone.
    """
    if reading.asked is AnswerKind.THEME or not reading.weights:
        return max(0.0, nearest)
    stated = frozenset().union(*(candidate.held | candidate.near for candidate in chosen))
    if reading.measured and not _counted(reading, chosen):
        return 0.0
    share = sum(weight for form, weight in reading.weights.items() if form in stated)
    return float(max(0.0, nearest) * share**0.5)


def _counted(reading: QuestionAnalysis, chosen: Sequence[Candidate]) -> bool:
    """Return whether a chosen sentence with a number names the counted thing.

    With the requested year in the sentence, a chosen sentence of the same document may name it.
    """
    years = {form for form in reading.weights if form.isdigit()}
    for each in chosen:
        if not each.answers:
            continue
        same = [other for other in chosen if other.title == each.title] if years and years <= each.held else [each]
        if any(reading.measured <= other.held | other.near for other in same):
            return True
    return False


def select(reading: QuestionAnalysis, similarity: NDArray[np.float32], between: NDArray[np.float32]) -> list[Candidate]:
    """Choose and order the sentences that answer the question.

    Args:
        similarity: cosine of question and each candidate, shape (n,).
        between: cosine of each pair of candidates, shape (n, n).
    """
    found = reading.candidates
    if not found:
        return []
    scores = np.array([_score(reading, each, float(cosine)) for each, cosine in zip(found, similarity, strict=True)], np.float32)
    theme = reading.asked is AnswerKind.THEME
    chosen = [int(np.argmax(scores))]
    while len(chosen) < min(MAX_PER_THEME if theme else MAX_PER_FACT, len(found)):
        bridges = np.array([_bridge(reading, found, chosen, number) for number in range(len(found))], np.float32)
        worth = scores + BRIDGE * bridges + NOVELTY * _fresh(reading, chosen)
        gain = worth - REDUNDANCY * between[:, chosen].max(axis=1)
        if theme:
            gain -= SAME_DOCUMENT * np.array([sum(found[n].title == each.title for n in chosen) for each in found])
        else:
            gain[[not _connected(reading, each, bridged) for each, bridged in zip(found, bridges, strict=True)]] = -np.inf
        gain[chosen] = -np.inf
        following = int(np.argmax(gain))
        if worth[following] < (KEPT_SHARE_THEME if theme else KEPT_SHARE) * scores[chosen[0]] or gain[following] <= 0:
            break
        chosen.append(following)
    ordered = _ordered([found[index] for index in chosen])
    return in_order_of_time(ordered, _date) if theme else ordered


def _date(candidate: Candidate) -> Date | None:
    return first_date(candidate.text) or first_date(candidate.title)


def _sentences(question: str, asked: AnswerKind, base: Mapping[str, float], passage: Evidence) -> list[Candidate]:
    title_forms = content_forms(passage.title)
    near = titled = frozenset(form for form in base if related(form, title_forms))
    known = content_forms(question)
    title_names = names_and_numbers(passage.title, first_word=True)
    sentences = split_sentences(passage.text)
    stated = [is_statement(sentence.text) for sentence in sentences]
    found = []
    for sentence, states in zip(sentences, stated, strict=True):
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
                answers=may_answer(sentence.text, asked, question),
                statement=states and _whole(sentence),
            )
        )
        near = titled | held
    return found


def _whole(sentence: Sentence) -> bool:
    return sentence.complete or sentence.text[:1] in "*_"


def _by_words(reading: QuestionAnalysis, candidate: Candidate) -> float:
    stated = sum(
        weight * (1.0 if form in candidate.held else CONTEXT_SHARE)
        for form, weight in reading.weights.items()
        if form in candidate.held or form in candidate.near
    )
    score = LEXICAL_SHARE * stated + PASSAGE_SHARE * candidate.passage_score + ANSWER_SHARE * candidate.answers
    return score if candidate.statement else FRAGMENT * score


def _score(reading: QuestionAnalysis, candidate: Candidate, cosine: float) -> float:
    near = cosine if candidate.statement else FRAGMENT * cosine
    score = SIMILARITY_SHARE * near + _by_words(reading, candidate)
    return score * _stands(candidate) if reading.asked is AnswerKind.THEME else score


def _stands(candidate: Candidate) -> float:
    return STANDING_BASE + (1 - STANDING_BASE) * standing(candidate.text)


def _spread(reading: QuestionAnalysis, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the best statements, few of each passage; fragments only if there is no statement."""
    taken: Counter[int] = Counter()
    chosen: list[Candidate] = []
    whole = [each for each in ranked if each.statement]
    for candidate in sorted(whole, key=lambda each: -_by_words(reading, each) * _stands(each)) or ranked:
        if taken[candidate.marker] < MAX_PER_PASSAGE and len(chosen) < THEME_CANDIDATES:
            taken[candidate.marker] += 1
            chosen.append(candidate)
    return chosen


def _led_to(reading: QuestionAnalysis, leaders: Sequence[Candidate], others: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that share a name with a leader of another document, best first."""
    value: dict[int, float] = {}
    for number, candidate in enumerate(others):
        for leader in leaders:
            shared = _shared(reading, leader, candidate)
            if shared > 0:
                added = sum(reading.weights[form] for form in candidate.held - leader.held)
                score = _by_words(reading, candidate) + BRIDGE * shared + NOVELTY * added
                value[number] = max(value.get(number, 0.0), score)
    return [others[number] for number in sorted(value, key=lambda number: (-value[number], number))]


def _shared(reading: QuestionAnalysis, first: Candidate, second: Candidate) -> float:
    """Return the rarity of the names that two sentences of different documents share, in [0, 1)."""
    if first.title == second.title:
        return 0.0
    mass = sum(reading.rarity[name] for name in first.names & second.names)
    return mass / (mass + 2.0)


def _bridge(reading: QuestionAnalysis, found: Sequence[Candidate], chosen: Sequence[int], number: int) -> float:
    return max(_shared(reading, found[held], found[number]) for held in chosen)


def _connected(reading: QuestionAnalysis, candidate: Candidate, bridge: float) -> bool:
    """Return whether a sentence names a name of the question or of a chosen sentence. "He was born" may be about anyone."""
    return bridge > 0 or not reading.named or not reading.named.isdisjoint(candidate.held | candidate.near)


def _fresh(reading: QuestionAnalysis, chosen: Sequence[int]) -> NDArray[np.float32]:
    """Return, for each candidate, the weight of the question's words that it contains and no chosen sentence contains."""
    stated = frozenset().union(*(reading.candidates[number].held for number in chosen))
    return np.array([sum(reading.weights[form] for form in each.held - stated) for each in reading.candidates], np.float32)


def _ordered(chosen: Sequence[Candidate]) -> list[Candidate]:
    """Keep the passages in the order of their best sentence, and the sentences of one passage in reading order."""
    markers = list(dict.fromkeys(candidate.marker for candidate in chosen))
    return sorted(chosen, key=lambda candidate: (markers.index(candidate.marker), candidate.start))
