"""Chooses the sentences that are worth encoding, those that answer, and further ones as long as they help."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.evidence import EvidenceReading
from agentic_rag_backend.answering.answerability.question import Matrix
from agentic_rag_backend.answering.answerability.sentence_features import Features, Interaction
from agentic_rag_backend.language.questions.kinds import AnswerKind
from agentic_rag_backend.language.words import content_forms, inverse_frequency, names_and_numbers

FILE = "coefficients.json"


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear function of named features."""

    weights: Mapping[str, float]
    intercept: float = 0.0

    def of(self, features: Features) -> NDArray[np.float64]:
        """Return its value for each row of ``features``, which may have further ones."""
        values = sum(weight * features[name] for name, weight in self.weights.items())
        return np.asarray(values + self.intercept, dtype=np.float64)

    def at(self, features: Mapping[str, float]) -> float:
        """Return its value for one row."""
        return sum(weight * features[name] for name, weight in self.weights.items()) + self.intercept


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The functions that choose sentences and estimate confidence.

    Args:
        candidate: value of a sentence before it is encoded.
        bridge: value of a sentence that a name leads to.
        sentence: log odds, up to a constant, that a sentence is the one that answers.
        further: value of a sentence beside those that are chosen.
        fact: log odds that sentences of one document answer.
        hops: log odds that connected sentences of several documents answer.
        account: log odds that the passages hold the account that the question asks for.
    """

    candidate: Linear
    bridge: Linear
    sentence: Linear
    further: Linear
    fact: Linear
    hops: Linear
    account: Linear


def parse_coefficients(stored: Mapping[str, Mapping[str, Any]]) -> Coefficients:
    """Return the coefficients that a JSON object holds: for each function its ``weights`` and ``intercept``."""
    return Coefficients(
        **{name: Linear(dict(function["weights"]), float(function["intercept"])) for name, function in stored.items()}
    )


@lru_cache(maxsize=1)
def load_coefficients() -> Coefficients:
    """Return the coefficients that this version ships."""
    return parse_coefficients(json.loads((files(__package__) / FILE).read_text(encoding="utf-8")))


_CALENDAR = content_forms(
    "January February March April May June July August September October November December Monday Tuesday Wednesday Thursday "
    "Friday Saturday Sunday"
)
"""Capitalised words that connect nothing."""
HALF_RARITY = 2.0
"""Rarity of shared names that counts one half."""


@dataclass(frozen=True)
class Bridges:
    """The names of each sentence and of its title that are absent from the question."""

    reading: EvidenceReading

    @cached_property
    def names(self) -> Sequence[frozenset[str]]:
        """The names by sentence."""
        question_forms = content_forms(self.reading.question.text)
        titles = [names_and_numbers(passage.title, first_word=True) for passage in self.reading.passages]
        return [
            frozenset(
                name
                for name in names_and_numbers(sentence.text, first_word=sentence.statement) | titles[sentence.passage]
                if not name[0].isdigit() and name not in question_forms and name not in _CALENDAR
            )
            for sentence in self.reading.sentences
        ]

    @cached_property
    def _rarity(self) -> Mapping[str, float]:
        return inverse_frequency(self.names)

    def strength(self, number: int, other_number: int) -> float:
        """Return the rarity of the names that two sentences of different documents share, in [0, 1)."""
        passages = self.reading.passages
        if passages[self.reading.sentences[number].passage].title == passages[self.reading.sentences[other_number].passage].title:
            return 0.0
        mass = sum(self._rarity[name] for name in self.names[number] & self.names[other_number])
        return mass / (mass + HALF_RARITY)

    def share_of_title(self, number: int, other_number: int) -> float:
        """Return the share of the words of ``number``'s title, without those of the question, that ``other_number`` contains."""
        passages, sentences = self.reading.passages, self.reading.sentences
        title = passages[sentences[number].passage].title
        forms = content_forms(title) - content_forms(self.reading.question.text)
        if not forms or title == passages[sentences[other_number].passage].title:
            return 0.0
        return len(forms & sentences[other_number].forms) / len(forms)


MAX_CANDIDATES = 8
"""Sentences that are encoded, which is most of an answer's time. With 6, .04 fewer of 108 questions about real documents have the
answer in their quotations; with 12, as many."""
DIRECT_CANDIDATES = 5
"""Candidates that are chosen by themselves, at least. The others may be found through these."""
FOLLOWING = 2
"""Sentences after the best one that continue an account: a reason stands after what it explains."""
DEFINITION = 8.0
"""Value that a sentence gains if the question asks what something is, and it says so: "A lock keeper is a person who …"."""
MIN_ADDED = 0.05
"""Least rarity of the terms that a sentence adds to the one that leads to it."""


def choose_candidates(reading: EvidenceReading, lexical: Features, bridges: Bridges, weights: Coefficients) -> tuple[int, ...]:
    """Return the numbers of at most `MAX_CANDIDATES` sentences, in reading order.

    Half of them are the best by their words, and the sentences that continue the best. The other half may be
    sentences of other documents that a name in one of these leads to and that contain terms which it lacks; as far as there are
    none, the next best by their words.
    """
    scores = weights.candidate.of(lexical) + DEFINITION * lexical["defines"]
    order = [int(number) for number in np.argsort(-scores, kind="stable")]
    best = order[0]
    direct = list(dict.fromkeys([best, *list_continuations(reading, best), *order]))[:DIRECT_CANDIDATES]
    further = [number for number in order if number not in direct]
    value: dict[int, float] = {}
    for number in further:
        best_of_leader = [_value_after(reading, bridges, weights, leader, number, float(scores[number])) for leader in direct]
        if values := [value for value in best_of_leader if value is not None]:
            value[number] = max(values)
    led = sorted(value, key=lambda number: (-value[number], number))[: MAX_CANDIDATES - len(direct)]
    remaining = [*direct, *(number for number in further if number not in set(led))]
    return tuple(sorted([*led, *remaining[: MAX_CANDIDATES - len(led)]]))


def list_continuations(reading: EvidenceReading, number: int) -> list[int]:
    """Return the sentences that continue one: the next if it refers to it; for an account, the next ones of its passage."""
    end = min(number + 1 + FOLLOWING, len(reading.sentences))
    after = [following for following in range(number + 1, end) if reading.passage_of[following] == reading.passage_of[number]]
    if reading.question.asked is AnswerKind.THEME:
        return after
    return [following for following in after[:1] if number in reading.referred[following]]


def _value_after(
    reading: EvidenceReading, bridges: Bridges, weights: Coefficients, leader: int, number: int, score: float
) -> float | None:
    """Return the value of a sentence that ``leader`` leads to; None if it does not."""
    strength = bridges.strength(leader, number)
    if strength <= 0.0:
        return None
    added = sum_new_rarity(reading, [leader], number)
    if added < MIN_ADDED:
        return None
    return weights.bridge.at({"score": score, "bridge": strength, "added": added})


def sum_new_rarity(reading: EvidenceReading, chosen: Sequence[int], number: int) -> float:
    """Return the rarity of the terms that a sentence contains, and no chosen one with its neighbours and title."""
    covered = reading.in_window[:, list(chosen)].max(axis=1) > 0
    return float(reading.rarity[(reading.held[:, number] > 0) & ~covered].sum())


MAX_SENTENCES = 3
"""Sentences of an answer to one question, unless they continue each other."""
MAX_CONNECTED = 5
"""Sentences of an answer, if a name or a title connects the later ones with those before."""
CONNECTED = 0.6
"""Value that a further sentence gains, if a name or a title connects it with the chosen ones, or if it continues the best."""
UNCONNECTED = 0.3
"""Value that a further sentence loses otherwise: it is an alternative."""


@dataclass(frozen=True)
class Selection:
    """The candidates of a question, and those chosen for the answer.

    ``features`` have a row for each candidate. ``chosen`` are places among the candidates, the best first.
    """

    reading: EvidenceReading
    bridges: Bridges
    interaction: Interaction
    features: Features
    scores: NDArray[np.float64]
    chosen: tuple[int, ...]

    @property
    def first(self) -> int:
        """The place of the best sentence."""
        return self.chosen[0]

    @property
    def places(self) -> list[int]:
        """The places of the chosen sentences."""
        return list(self.chosen)

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of the chosen sentences in the reading."""
        return [self.interaction.chosen[index] for index in self.chosen]

    @cached_property
    def connection(self) -> float:
        """How strongly a name or a title connects the best sentence with another chosen one, in [0, 1]; 0 for one document."""
        leader_number, *following = self.numbers
        strength = max((self.bridges.strength(leader_number, number) for number in following), default=0.0)
        titles = (
            self.bridges.share_of_title(leader, number) for leader in self.numbers for number in self.numbers if leader != number
        )
        return max(strength, *titles, 0.0) if following else 0.0


def select(
    reading: EvidenceReading, bridges: Bridges, interaction: Interaction, features: Features, weights: Coefficients
) -> Selection:
    """Choose candidates: the best by itself, then by what each adds to those before it."""
    scores = weights.sentence.of(features) + DEFINITION * features["defines"]
    chosen = [int(np.argmax(scores))]
    selection = Selection(reading, bridges, interaction, features, scores, tuple(chosen))
    best, account = interaction.chosen[chosen[0]], reading.question.asked is AnswerKind.THEME
    while len(chosen) < min(MAX_CONNECTED, len(scores)):
        added = added_features(selection, scores, chosen)
        connected = (added["bridge"] > 0) | (added["title_named"] > 0)
        next_ones = np.isin(interaction.chosen, list_continuations(reading, best)) & (features["statement"] > 0)
        continued = next_ones & (account | (added["added"] > 0))
        gain = np.where(connected | continued, CONNECTED, np.where(added["follows"] > 0, 0.0, -UNCONNECTED))
        value = weights.further.of(added) + gain
        if account:
            value[next_ones] = np.maximum(value[next_ones], 0.0)
        value[chosen] = -np.inf
        if len(chosen) >= MAX_SENTENCES:
            value[~connected] = -np.inf
        following = int(np.argmax(value))
        if value[following] < 0.0:
            break
        chosen.append(following)
    return replace(selection, chosen=tuple(chosen))


def added_features(selection: Selection, scores: NDArray[np.float64], chosen: Sequence[int]) -> dict[str, Matrix]:
    """Return what each candidate adds to the chosen ones: terms, names that connect them, another passage."""
    reading, bridges, interaction = selection.reading, selection.bridges, selection.interaction
    quoted = [interaction.chosen[index] for index in chosen]
    covered = reading.held[:, quoted].max(axis=1) > 0
    passages = {reading.sentences[number].passage for number in quoted}
    rows = np.array(
        [
            (
                max(bridges.strength(number, quotation) for quotation in quoted),
                max(bridges.share_of_title(number, quotation) for quotation in quoted),
                float(reading.rarity[(reading.held[:, number] > 0) & ~covered].sum()),
                sum_new_rarity(reading, quoted, number),
                float(reading.sentences[number].passage in passages),
                float(any(quotation in reading.referred[number] for quotation in quoted)),
                float(
                    any(abs(number - quotation) == 1 for quotation in quoted) and reading.sentences[number].passage in passages
                ),
            )
            for number in interaction.chosen
        ],
        dtype=np.float32,
    )
    names = ("bridge", "title_named", "added", "added_to_window", "same_passage", "follows", "adjacent")
    typeless, valueless = selection.features["type_absent"], selection.features["value_absent"]
    return {
        **dict(zip(names, rows.T, strict=True)),
        "score": np.asarray(scores - scores[chosen[0]], dtype=np.float32),
        "item_added": (1.0 - typeless) * typeless[list(chosen)].min(),
        "value_added": (1.0 - valueless) * valueless[list(chosen)].min(),
        "likeness": interaction.between[:, list(chosen)].max(axis=1),
        **{name: selection.features[name] for name in ("type_absent", "question_word", "near", "statement")},
    }
