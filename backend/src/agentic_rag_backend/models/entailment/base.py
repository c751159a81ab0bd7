"""The port of readers: a reader decides whether a claim follows from a premise (natural language inference)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Label = Literal["contradiction", "entailment", "neutral"]
Pair = tuple[str, str]
"""A premise and a claim."""


@dataclass(frozen=True, slots=True)
class Inference:
    """The probabilities of the three relations of a claim to its premise. They are in [0, 1], and their sum is 1."""

    contradiction: float
    entailment: float
    neutral: float

    @property
    def likeliest(self) -> Label:
        """The relation with the highest probability."""
        values: dict[Label, float] = {
            "contradiction": self.contradiction,
            "entailment": self.entailment,
            "neutral": self.neutral,
        }
        return max(values, key=lambda label: values[label])


class EntailmentReader(Protocol):
    """Reads pairs of a premise and a claim in English."""

    @property
    def name(self) -> str:
        """Name of the model."""

    async def read(self, pairs: Sequence[Pair]) -> list[Inference]:
        """Return the relation of each pair, in order. A pair's result does not depend on the other pairs.

        Raises:
            ModelUnavailable: the reader is closed.
        """

    async def close(self) -> None:
        """Release threads."""
