"""Fits the calibration of an encoder to evaluation data, and measures what it changes.

``--fit`` prints the entry of `CALIBRATIONS` for an encoder: the quantiles of its cosines on MuSiQue, HotpotQA and SQuAD at which
the bundled encoder's cosines are `LEVELS`. Without it, the relevance of a corpus for its own questions and for those of another
corpus is measured with the fitted calibration, the measured one and the default. Writes ``results/calibration.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.evaluation.datasets import load_question_set
from agentic_rag_backend.evaluation.estimate_metrics import auroc
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.calibration import (
    BUNDLED_CALIBRATION,
    CALIBRATIONS,
    Calibration,
    fit_scale,
    make_calibration,
    measure_calibration,
    shares_below,
)
from agentic_rag_backend.models.registry import known_model
from agentic_rag_backend.retrieval.scoring import MEASURED, best_coverage, relevance
from agentic_rag_backend.stores.vector.bm25 import Bm25Encoder, Bm25Parameters
from report import data, finish, quiet

SETS = ("musique", "hotpotqa", "squad2")
QUESTIONS, PASSAGES = 100, 400
"""Texts of each set. The gold passages are always among them."""
REFUSED_BELOW = 0.3
"""The default of DUAL_LEVEL_LOW_MIN_SCORE."""


@dataclass(frozen=True)
class Texts:
    """Questions of a set, its passages, and the questions of another set."""

    name: str
    questions: Sequence[str]
    passages: Sequence[str]
    foreign: Sequence[str]


@dataclass(frozen=True)
class Encoded:
    """The vectors of a set by one encoder: questions, passages, and foreign questions."""

    questions: NDArray[np.float32]
    passages: NDArray[np.float32]
    foreign: NDArray[np.float32]

    def pairs(self) -> dict[str, NDArray[np.float32]]:
        """Return the cosines of questions with passages, and of passages with one another."""
        upper = np.triu_indices(len(self.passages), 1)
        return {
            "questions": (self.questions @ self.passages.T).ravel(),
            "passages": (self.passages @ self.passages.T)[upper],
        }


def texts_of(folder: Path, name: str) -> Texts:
    """Return the first questions of a set, and passages with those that answer them. Foreign questions are added later."""
    held = load_question_set(folder / name)
    step = max(1, len(held.questions) // QUESTIONS)
    asked = held.questions[::step][:QUESTIONS]
    gold = {id for question in asked for id in question.gold}
    first = sorted(held.passages, key=lambda passage: passage.id not in gold)[:PASSAGES]
    return Texts(name, [question.question for question in asked], [f"{row.title}\n{row.text}" for row in first], ())


async def encode(encoder: BundledEmbedder, texts: Texts) -> Encoded:
    """Return the vectors of a set."""
    questions = [await encoder.embed_query(question) for question in texts.questions]
    foreign = [await encoder.embed_query(question) for question in texts.foreign]
    return Encoded(np.stack(questions), await encoder.embed(texts.passages), np.stack(foreign))


def fit(name: str, bundled: Sequence[Encoded], other: Sequence[Encoded]) -> Calibration:
    """Return the calibration of an encoder, fitted to the pairs of all sets."""
    expected = [encoded.pairs() for encoded in bundled]
    actual = [encoded.pairs() for encoded in other]
    scales = {
        kind: fit_scale(
            np.concatenate([pairs[kind] for pairs in actual]), shares_below(np.concatenate([pairs[kind] for pairs in expected]))
        )
        for kind in ("questions", "passages")
    }
    return make_calibration(name, "fitted", **scales)


def entry(fingerprint: str, calibration: Calibration) -> str:
    """Return the entry of `CALIBRATIONS`."""
    scales = {"questions": calibration.questions, "passages": calibration.passages}
    lines = [f'    "{fingerprint}": Calibration(', f'        encoder="{calibration.encoder}",', '        source="fitted",']
    for kind, scale in scales.items():
        lines.append(f"        {kind}=CosineScale(({', '.join(f'{cosine:.3f}' for cosine in scale.cosines)})),")
    lines += [f"        {name}={getattr(calibration, name):.3f}," for name in ("similar_question", "passage_of_fact")]
    return "\n".join([*lines, "    ),"])


def relevances(texts: Texts, encoded: Encoded, calibration: Calibration) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the relevance that `dense` gives for own and for foreign questions."""
    terms = Bm25Encoder(Bm25Parameters()).terms

    def of(questions: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        values = []
        for question, cosines in zip(questions, vectors @ encoded.passages.T, strict=True):
            best = np.argsort(-cosines)[:MEASURED]
            coverage = best_coverage(terms, question, [texts.passages[number].partition("\n")[2] for number in best])
            values.append(relevance(float(cosines[best[0]]), coverage, calibration))
        return np.array(values)

    return of(texts.questions, encoded.questions), of(texts.foreign, encoded.foreign)


def figures(texts: Texts, encoded: Encoded, calibration: Calibration) -> dict[str, float]:
    """Return how well relevance separates own from foreign questions, and what it refuses at the default limit."""
    own, foreign = relevances(texts, encoded, calibration)
    return {
        "mean_own": round(float(own.mean()), 3),
        "mean_foreign": round(float(foreign.mean()), 3),
        "auroc": round(auroc(own, foreign), 3),
        "own_refused": round(float((own < REFUSED_BELOW).mean()), 3),
        "foreign_refused": round(float((foreign < REFUSED_BELOW).mean()), 3),
    }


def encoder_of(name: str, folder: Path | None) -> BundledEmbedder:
    """Return a known encoder whose files are in ``folder``, or the encoder of a folder."""
    return BundledEmbedder(model_path=folder, facts=known_model(name, "encoder").facts if name else None)


async def run(folder: Path, encoder: BundledEmbedder, name: str, *, fit_only: bool) -> dict[str, Any]:
    """Fit the calibration of an encoder, print its entry, and return the figures of each calibration."""
    plain = [texts_of(folder, each) for each in SETS]
    sets = [replace(texts, foreign=plain[number - 1].questions) for number, texts in enumerate(plain)]
    bundled = BundledEmbedder(arithmetic="float32")
    expected = [await encode(bundled, texts) for texts in sets]
    actual = [await encode(encoder, texts) for texts in sets]
    fitted = fit(name or encoder.fingerprint, expected, actual)
    print(entry(encoder.fingerprint, fitted), flush=True)
    measured = await measure_calibration(encoder)
    print("measured", measured, flush=True)
    if fit_only:
        return {}
    rows: dict[str, tuple[Sequence[Encoded], Calibration]] = {
        "bundled encoder": (expected, BUNDLED_CALIBRATION),
        "default": (actual, replace(BUNDLED_CALIBRATION, source="default")),
        "measured": (actual, measured),
        "fitted": (actual, CALIBRATIONS.get(encoder.fingerprint, fitted)),
    }
    found: dict[str, Any] = {
        label: {texts.name: figures(texts, one, calibration) for texts, one in zip(sets, encoded, strict=True)}
        for label, (encoded, calibration) in rows.items()
    }
    # Each pair of sets: fit on the others, so that a fit is not measured on its own pairs only.
    found["fitted on the other sets"] = {
        texts.name: figures(
            texts,
            actual[number],
            fit(name, expected[:number] + expected[number + 1 :], actual[:number] + actual[number + 1 :]),
        )
        for number, texts in enumerate(sets)
    }
    return found


def markdown(results: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Return the table."""
    lines = [
        "| calibration | set | relevance of own questions | of foreign ones | AUROC | own refused | foreign refused |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {label} | {name} | " + " | ".join(str(value) for value in row.values()) + " |"
        for label, sets in results.items()
        for name, row in sets.items()
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", action="store_true", help="only print the entry of the table")
    parser.add_argument("--encoder", default="", help="known encoder whose facts apply; otherwise those of encoder.json")
    parser.add_argument("--path", type=Path, help="folder with model.onnx and tokenizer.json")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    encoder = encoder_of(chosen.encoder, chosen.path)
    results = asyncio.run(run(folder, encoder, chosen.encoder, fit_only=chosen.fit))
    return 0 if chosen.fit else finish("calibration", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
