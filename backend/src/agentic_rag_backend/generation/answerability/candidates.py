"""Chooses the few sentences that are worth encoding, which is nearly the whole cost of an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_rag_backend.generation.answerability.bridges import Bridges
from agentic_rag_backend.generation.answerability.coefficients import Coefficients
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading
from agentic_rag_backend.generation.answerability.sentence_features import Features
from agentic_rag_backend.language.questions import AnswerKind

MAX_CANDIDATES = 6
"""Sentences that are encoded. With 12, the first sentence is right for .003 more of the questions (SQuAD 2.0)."""
DIRECT_CANDIDATES = 3
"""Candidates that are chosen by themselves, at least. The others may be found through these."""
FOLLOWING = 2
"""Sentences after the best one that continue an account: a reason stands after what it explains."""
MIN_ADDED = 0.05
"""Least rarity of the terms that a sentence adds to the one that leads to it."""


def choose_candidates(reading: EvidenceReading, lexical: Features, bridges: Bridges, weights: Coefficients) -> tuple[int, ...]:
    """Return the numbers of at most `MAX_CANDIDATES` sentences, in reading order.

    Half of them are the best by their words, and the sentences that continue the best. The other half may be
    sentences of other documents that a name in one of these leads to and that contain terms which it lacks; as far as there are
    none, the next best by their words.
    """
    scores = weights.candidate.of(lexical)
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
