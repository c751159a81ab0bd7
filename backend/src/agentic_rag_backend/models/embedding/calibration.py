"""Calibration of encoders: which cosine of an encoder means the same as a cosine of the bundled encoder.

Cosines of one encoder are between 0 and .8, those of another between .6 and .95. Formulas and limits of this program were fitted
to the bundled encoder. So a cosine of another encoder is converted to the bundled encoder's scale before a formula uses it, and a
limit is converted to the other encoder's scale before it is compared with its cosines. Two cosines mean the same if equal shares
of the pairs of texts are below them (equipercentile equating: Kolen and Brennan, "Test Equating, Scaling, and Linking", 2014).

The encoder that judges answers is always the bundled one (see `EvidenceEncoder`), so its limits need no conversion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Cosines of the bundled encoder at which the scale of another encoder is known. Between them, it is interpolated."""
SIMILAR_QUESTION = 0.5
"""On the bundled encoder's scale; see `Calibration.similar_question`. Without it, R@5 of `hybrid` falls by .015 on MuSiQue and
HotpotQA."""
PASSAGE_OF_FACT = 0.2
"""On the bundled encoder's scale; see `Calibration.passage_of_fact`. Graphiti's limit of .6 is for sentences, not passages."""
_LEAST_STEP = 1e-4
"""Least distance of two levels on the scale of an encoder. Equal levels could not be converted back."""


@dataclass(frozen=True, slots=True)
class CosineScale:
    """The cosines of an encoder, in [-1, 1] and ascending, that mean the same as `LEVELS` of the bundled encoder.

    Raises:
        ValueError: the cosines are not ascending, or there is not one for each level.
    """

    cosines: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        if len(self.cosines) != len(LEVELS):
            raise ValueError(f"a scale has {len(LEVELS)} cosines, not {len(self.cosines)}")
        if not all(-1.0 <= cosine <= 1.0 for cosine in self.cosines) or any(low >= high for low, high in pairwise(self.cosines)):
            raise ValueError(f"the cosines of a scale ascend between -1 and 1, unlike {self.cosines}")

    def convert_cosine(self, cosine: float) -> float:
        """Return a cosine of the encoder on the bundled encoder's scale, in [0, 1]. The bundled encoder's own are unchanged."""
        return cosine if self.cosines == LEVELS else float(np.interp(cosine, self.cosines, LEVELS))

    def converted_all(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an array of cosines on the bundled encoder's scale; see `convert_cosine`."""
        return cosines if self.cosines == LEVELS else np.interp(cosines, self.cosines, LEVELS)

    def cosine_of(self, level: float) -> float:
        """Return the encoder's cosine that means the same as ``level``, in [0, 1], of the bundled encoder."""
        return level if self.cosines == LEVELS else float(np.interp(level, LEVELS, self.cosines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The scales and limits of an encoder.

    ``source``: "fitted" to evaluation data, "measured" on the bundled sample, or "default": the bundled encoder's values.
    """

    encoder: str
    """Name of the encoder, or its fingerprint."""
    source: Literal["fitted", "measured", "default"]
    questions: CosineScale = CosineScale()
    """Cosines of a question and a text: a passage, a synthetic question, or the summary of a theme."""
    passages: CosineScale = CosineScale()
    """Cosines of two passages."""
    similar_question: float = SIMILAR_QUESTION
    """Least cosine, in [-1, 1], of a question and a synthetic question that ask the same."""
    passage_of_fact: float = PASSAGE_OF_FACT
    """Least cosine, in [-1, 1], of a question and a passage through which Graphiti's search finds facts and entities."""


BUNDLED_SCALE = CosineScale()
BUNDLED_CALIBRATION = Calibration(encoder="all-MiniLM-L6-v2", source="fitted")
CALIBRATIONS: Mapping[str, Calibration] = {
    "onnx-8199be6f699a395f-be50c362-mean-256-384": BUNDLED_CALIBRATION,
    "onnx-8199be6f699a395f-be50c362-mean-256-384-int8": BUNDLED_CALIBRATION,
    "onnx-6c9c6101a956d62d-d241a60d-cls-512-384": Calibration(
        encoder="bge-small-en-v1.5",
        source="fitted",
        questions=CosineScale((0.385, 0.517, 0.622, 0.727, 0.826, 1.000)),
        passages=CosineScale((0.435, 0.577, 0.679, 0.773, 0.872, 1.000)),
        similar_question=0.674,
        passage_of_fact=0.517,
    ),
}
"""Fitted calibrations by the fingerprint of the encoder. ``benchmarks/calibration.py --fit`` prints an entry."""


def make_calibration(
    encoder: str, source: Literal["fitted", "measured"], *, questions: CosineScale, passages: CosineScale
) -> Calibration:
    """Return the calibration of an encoder with these scales. Its limits are those of the bundled encoder, converted."""
    return Calibration(
        encoder=encoder,
        source=source,
        questions=questions,
        passages=passages,
        similar_question=questions.cosine_of(SIMILAR_QUESTION),
        passage_of_fact=questions.cosine_of(PASSAGE_OF_FACT),
    )


def shares_below(cosines: NDArray[np.floating]) -> tuple[float, ...]:
    """Return the share of the bundled encoder's cosines that is below each of `LEVELS` but the last."""
    return tuple(float((cosines < level).mean()) for level in LEVELS[:-1])


def fit_scale(cosines: NDArray[np.floating], shares: Sequence[float]) -> CosineScale:
    """Return the scale of an encoder whose cosines of the same pairs of texts are given.

    Args:
        cosines: shape (pairs,), in any order.
        shares: see `shares_below`.

    Raises:
        ValueError: the cosines do not differ enough.
    """
    quantiles = np.quantile(cosines.astype(np.float64), shares)
    if quantiles[-1] - quantiles[0] < len(LEVELS) * _LEAST_STEP:
        raise ValueError(f"the cosines of different texts are all about {quantiles[0]:.4f}")
    steps = np.arange(len(quantiles)) * _LEAST_STEP
    ascending = np.maximum.accumulate(np.clip(quantiles, -1.0, 1.0 - (len(quantiles) + 1) * _LEAST_STEP) - steps) + steps
    return CosineScale((*ascending.tolist(), 1.0))
