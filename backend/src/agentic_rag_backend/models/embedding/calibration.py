"""Calibration of encoders: which cosine of an encoder means the same as a cosine of the bundled encoder.

Cosines of one encoder are between 0 and .8, those of another between .6 and .95. Formulas and limits of this program were fitted
to the bundled encoder. So a cosine of another encoder is converted to the bundled encoder's scale before a formula uses it, and a
limit is converted to the other encoder's scale before it is compared with its cosines. Two cosines mean the same if equal shares
of the pairs of texts are below them (equipercentile equating: Kolen and Brennan, "Test Equating, Scaling, and Linking", 2014).

The encoder that judges answers is always the bundled one (see `EvidenceEncoder`), so its limits need no conversion.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.telemetry.logs import get_logger

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


CALIBRATION_FILE = "calibration.json"
"""Name of the file in DATA_DIR that keeps a measured calibration."""
WAIT_S = 10.0
"""How long a search waits for a measurement. Afterwards it uses the default, and the measurement goes on."""
RETRY_S = 60.0
"""Time after a failed measurement before the next one."""
LEAST_SEPARATION = 0.9
"""Least `separation_of` of an encoder that is calibrated. The bundled one, bge-small and e5-small have .999, random vectors .5.
Vectors of hashed words have .86; with a calibration, they refuse twice as many questions of the examples."""
SAMPLE_FILE = "calibration_sample.json"
SHARES = {
    "questions": (0.2731, 0.9057, 0.9491, 0.9641, 0.9878),
    "passages": (0.2981, 0.9096, 0.9589, 0.9757, 0.9945),
}
"""Share of the pairs of the sample below each level, with the bundled encoder; see `shares_below`."""
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CalibrationSample:
    """Questions, and texts: some of the texts answer them. ``digest`` changes with the sample."""

    questions: tuple[str, ...]
    texts: tuple[str, ...]
    digest: str


@lru_cache(maxsize=1)
def load_sample() -> CalibrationSample:
    """Return the bundled sample. Texts are answers with sentences about other things, and questions in other words.

    Passages of documents have several sentences. With single sentences, the scale of bge-small is .05 too low.
    """
    content = (files(__package__) / SAMPLE_FILE).read_bytes()
    subjects = json.loads(content)
    following = [*subjects[1:], subjects[0]]
    return CalibrationSample(
        questions=tuple(subject["question"] for subject in subjects),
        texts=(
            *(
                " ".join((subject["passage"], subject["related"], next_subject["related"]))
                for subject, next_subject in zip(subjects, following, strict=True)
            ),
            *(" ".join((subject["related"], subject["paraphrase"])) for subject in subjects),
            *(subject["rephrased"] for subject in subjects),
        ),
        digest=hashlib.sha256(content).hexdigest()[:16],
    )


async def sample_cosines(embedder: Embedder) -> dict[str, NDArray[np.float32]]:
    """Return the cosines of all pairs of the sample: of a question and a text ("questions"), and of two texts ("passages").

    It takes .5 s of CPU time with the bundled encoder. An endpoint receives one request for each question and one for all texts.

    Raises:
        ModelUnavailable: the encoder did not answer.
    """
    sample = load_sample()
    texts, *questions = await asyncio.gather(embedder.embed(sample.texts), *map(embedder.embed_query, sample.questions))
    pairs = np.triu_indices(len(sample.texts), 1)
    return {"questions": (np.stack(questions) @ texts.T).ravel(), "passages": (texts @ texts.T)[pairs]}


def separation_of(cosines: NDArray[np.float32]) -> float:
    """Return the chance that a question is nearer to a text about its subject than a question is to another text (AUROC).

    Args:
        cosines: of questions and texts of the sample, shape (questions × texts,).
    """
    rows = cosines.reshape(len(load_sample().questions), -1)
    subjects = np.arange(rows.shape[1]) % len(rows)
    related = subjects[None, :] == np.arange(len(rows))[:, None]
    unrelated_scores = np.sort(rows[~related])
    return float(np.searchsorted(unrelated_scores, rows[related]).mean() / len(unrelated_scores))


async def measure_calibration(embedder: Embedder) -> Calibration:
    """Return the calibration of an encoder, measured on the bundled sample.

    Raises:
        ModelUnavailable: the encoder did not answer.
        ValueError: its cosines do not tell texts about one subject from others.
    """
    cosines = await sample_cosines(embedder)
    if (separation := separation_of(cosines["questions"])) < LEAST_SEPARATION:
        raise ValueError(f"related texts are nearer than others in {separation:.0%} of the cases of the sample, which is too few")
    scales = {kind: fit_scale(values, SHARES[kind]) for kind, values in cosines.items()}
    return make_calibration(embedder.fingerprint, "measured", **scales)


class Calibrator:
    """Knows the calibration of one encoder. An encoder that is not in the table is measured when a search needs it first.

    ``pending``: the calibration is not known yet, so the default is used. ``reason`` says why the default is used.

    Args:
        file: keeps a measured calibration; it is read here. None: each process measures.
        calibration: of the encoder, if it is known.
        clock: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        embedder: Embedder,
        file: Path | None = None,
        *,
        calibration: Calibration | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._file = file
        self._clock = clock
        self._calibration = calibration or CALIBRATIONS.get(embedder.fingerprint) or self._read_record()
        self._measurement: asyncio.Task[None] | None = None
        self._retry_at = -math.inf
        self.reason = None if self._calibration else "it is measured at the first search"

    @property
    def pending(self) -> bool:
        """Whether the calibration is not known yet."""
        return self._calibration is None

    @property
    def calibration(self) -> Calibration:
        """The calibration as far as it is known: the bundled encoder's values as default until it is measured."""
        return self._calibration or self._default_calibration()

    async def current_calibration(self, wait_s: float = WAIT_S) -> Calibration:
        """Return the calibration, measured if it is not known. If that takes longer than ``wait_s``, return the default."""
        if self._calibration is None and self._clock() >= self._retry_at:
            if self._measurement is None or self._measurement.done():
                # In an empty context: the measurement belongs to no tenant and outlives the search that began it.
                self._measurement = asyncio.create_task(self._measure_encoder(), context=contextvars.Context())
            await asyncio.wait({self._measurement}, timeout=wait_s)
            if self._measurement.done() and not self._measurement.cancelled():
                self._measurement.result()  # an unexpected error reaches the search
        return self.calibration

    async def close(self) -> None:
        """End a measurement."""
        if self._measurement is not None:
            self._measurement.cancel()
            await asyncio.wait({self._measurement})

    async def _measure_encoder(self) -> None:
        try:
            calibration = await measure_calibration(self.embedder)
            await asyncio.to_thread(self._write_record, calibration)
        except ValueError as error:
            calibration, self.reason = self._default_calibration(), str(error)
            _log.warning("calibration_impossible", encoder=self.embedder.fingerprint, reason=self.reason)
        except AgenticRagError as error:
            self.reason, self._retry_at = error.message, self._clock() + RETRY_S
            _log.warning("calibration_failed", encoder=self.embedder.fingerprint, reason=self.reason, retry_s=RETRY_S)
            return
        else:
            self.reason = None
        self._calibration = calibration

    def _default_calibration(self) -> Calibration:
        return replace(BUNDLED_CALIBRATION, encoder=self.embedder.fingerprint, source="default")

    def _read_record(self) -> Calibration | None:
        """Return the calibration in the file. None if there is none of this encoder and this sample."""
        if self._file is None:
            return None
        try:
            row = json.loads(self._file.read_bytes())
            if (row["encoder"], row["sample"]) != (self.embedder.fingerprint, load_sample().digest):
                return None
            scales = {kind: CosineScale(tuple(row[kind])) for kind in SHARES}
        except (OSError, ValueError, KeyError, TypeError):  # absent, damaged, or of another release
            return None
        return make_calibration(self.embedder.fingerprint, "measured", **scales)

    def _write_record(self, calibration: Calibration) -> None:
        """Write the file. Without it, the next process measures again."""
        if self._file is None:
            return
        scales = {"questions": calibration.questions.cosines, "passages": calibration.passages.cosines}
        row = {"encoder": calibration.encoder, "sample": load_sample().digest, **scales}
        partial = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            partial.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")
            partial.replace(self._file)
        except OSError as error:
            _log.warning("calibration_not_recorded", path=str(self._file), reason=str(error))
