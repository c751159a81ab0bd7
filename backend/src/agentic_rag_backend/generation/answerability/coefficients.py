"""Weights of the features, fitted by ``benchmarks/answerability.py --fit`` on labelled questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.generation.answerability.sentence_features import Features

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
