"""Chooses the sentences that answer: the best, and further ones as long as they help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.generation.answerability.bridges import Bridges
from agentic_rag_backend.generation.answerability.candidates import list_continuations, sum_new_rarity
from agentic_rag_backend.generation.answerability.coefficients import Coefficients
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading
from agentic_rag_backend.generation.answerability.matches import Matrix
from agentic_rag_backend.generation.answerability.sentence_features import Features, Interaction
from agentic_rag_backend.language.questions import AnswerKind

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
    scores = weights.sentence.of(features)
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
