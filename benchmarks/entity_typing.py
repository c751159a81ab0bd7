"""Fits the types of names: a linear function of the rules' votes and of the word vectors in and around a name.

Run ``python benchmarks/entity_typing.py --fit ballots.npz`` to write the file of ``knowledge/extraction/types``. It fits to
the even documents of Re-DocRED and to the well-known names of ``seed_names.py``; ``extraction.py`` measures on the odd documents
and on ``typed_documents.py``. The word vectors are the rows of the bundled encoder's table, centred, at length 1. No pass of the
encoder is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.extraction.rules import RuledDocument
from agentic_rag_backend.knowledge.extraction.tokens import tokenise
from agentic_rag_backend.knowledge.extraction.types import ballots
from agentic_rag_backend.knowledge.extraction.types.ballots import (
    CLASSES,
    DECIDED,
    RELATIONS,
    SLOTS,
    Ballot,
    WordScores,
    chances,
    relate_names,
    word_pieces,
)
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE, locate_file
from agentic_rag_backend.models.embedding.onnx import onnx_graph
from extraction import chunk, gold_types, read
from report import data
from seed_names import SEED_NAMES

RAW_DATA = 9
"""Number of a tensor's field with its numbers, in ``onnx.proto``."""
CLASS_OF = {"PER": 0, "ORG": 1, "LOC": 2, "MISC": 3}
PENALTY, FEATURE_PENALTY, SEED_SHARE, MASKED_SHARE, FOLDS = 0.7, 0.5, 0.5, 0.5, 4
NAME_SLOTS = 4
"""The first slots: words of the name itself."""
FULL_NAMES = 300
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Row:
    """A name of a document, or a seed (document -1); ``gold`` is the number of its class, or -1."""

    document: int
    ballot: Ballot
    gold: int


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The encoder's table: vectors of length 1, shape (pieces, dimensions)."""

    number: dict[str, int]
    vectors: Floats

    @classmethod
    def bundled(cls) -> WordVectors:
        """Return the table of the bundled encoder, without pieces of other scripts than Latin."""
        table = word_table(locate_file(MODEL_FILE, None).path.read_bytes())
        stored = json.loads(locate_file(TOKENIZER_FILE, None).path.read_text(encoding="utf-8"))["model"]["vocab"]
        kept = {
            piece: row
            for piece, row in stored.items()
            if not piece.startswith("[") and all(ord(letter) < 0x250 for letter in piece)
        }
        chosen = table[list(kept.values())].astype(np.float32)
        chosen -= chosen.mean(axis=0)
        return cls({piece: number for number, piece in enumerate(kept)}, chosen / np.linalg.norm(chosen, axis=1, keepdims=True))

    def of(self, ballot: Ballot) -> Floats:
        """Return the vectors of all slots, one after another."""
        found = np.zeros((len(SLOTS), self.vectors.shape[1]), dtype=np.float32)
        for slot, words in ballot.slots():
            found[slot] = np.mean([self._word(word) for word in words], axis=0)
        return found.ravel()

    def _word(self, word: str) -> Floats:
        pieces = [self.number[piece] for piece in word_pieces(word, self.number)] if word else []
        return self.vectors[pieces].mean(axis=0) if pieces else np.zeros(self.vectors.shape[1], dtype=np.float32)


def word_table(model: bytes) -> NDArray[np.int8]:
    """Return the quantised word vectors of an encoder, shape (pieces, dimensions). The scale of a row does not matter here."""
    (graph,) = [field.value for field in onnx_graph._read_fields(memoryview(model)) if field.number == onnx_graph._GRAPH]
    tables = [field.value for field in onnx_graph._read_fields(graph) if field.number == onnx_graph._INITIALIZER]
    (found,) = [table for table in tables if "word_embeddings.weight_q" in onnx_graph._read_tensor(table)[0]]
    (numbers,) = [field.value for field in onnx_graph._read_fields(found) if field.number == RAW_DATA]
    tensor = onnx_graph._read_tensor(found)[1]
    return np.frombuffer(numbers, dtype=np.int8).reshape(() if tensor is None else tensor.shape)


def documents(annotated: Sequence[dict[str, Any]]) -> list[RuledDocument]:
    """Return the rules' view of annotated documents."""
    blank = WordScores((), np.zeros((0, len(SLOTS) * DECIDED), dtype=np.int8), 1.0, {}, {})
    return [RuledDocument(each["title"], [chunk(" ".join(each["sentences"]))], blank) for each in annotated]


def seeds() -> list[Row]:
    """Return a row for each well-known name, and for full names made of two of the persons' names."""
    listed = {type_: sorted({" ".join(each.split()) for each in names.split(",")}) for type_, names in SEED_NAMES.items()}
    single = [name for name in listed["PER"] if " " not in name]
    random = Random(0)
    listed["PER"] += [" ".join(random.sample(single, 2)) for _ in range(FULL_NAMES)]
    return [
        Row(-1, Ballot(normalise_name(name), tokenise(name).words), CLASS_OF[type_])
        for type_, names in listed.items()
        for name in names
    ]


def fit_classes(values: Floats, right: NDArray[np.int64], share: Floats, penalty: Floats) -> Floats:
    """Return the weights, shape (columns, classes), of a multinomial logistic regression with a penalty for each column."""
    rows, columns = values.shape

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(columns, len(CLASSES)).astype(np.float32)
        odds = values @ weights
        odds -= odds.max(axis=1, keepdims=True)
        chance = np.exp(odds)
        chance /= chance.sum(axis=1, keepdims=True)
        likelihood = float((share * np.log(chance[np.arange(rows), right] + 1e-9)).sum())
        chance[np.arange(rows), right] -= 1
        gradient = values.T @ (chance * share[:, None]) + 2 * penalty[:, None] * weights
        return float((penalty[:, None] * weights**2).sum()) - likelihood, gradient.astype(np.float64).ravel()

    found = minimize(loss, np.zeros(columns * len(CLASSES)), jac=True, method="L-BFGS-B", options={"maxiter": 150})
    weights: Floats = found.x.reshape(columns, len(CLASSES)).astype(np.float32)
    return weights - weights[:, -1:]


class Fit:
    """The rows of the fit and their values, computed once."""

    def __init__(self, annotated: Sequence[dict[str, Any]]) -> None:
        self.table = WordVectors.bundled()
        self.documents = documents(annotated)
        gold = [gold_types(each) for each in annotated]
        named = [
            Row(number, ballot, CLASS_OF.get(gold[number].get(key, ""), -1))
            for number, document in enumerate(self.documents)
            for key, ballot in document.ballots.items()
            if ballot.uses
        ]
        self.rows = [*named, *seeds()]
        self.gold = np.array([row.gold for row in self.rows])
        self.document = np.array([row.document for row in self.rows])
        counts = Counter(name for row in named for name in row.ballot.features())
        self.names = sorted(name for name, count in counts.items() if count >= 20)
        vectors = np.stack([self.table.of(row.ballot) for row in self.rows])
        features = np.zeros((len(self.rows), len(self.names) + 1), dtype=np.float32)
        for place, row in enumerate(self.rows):
            known = row.ballot.features()
            features[place] = [*(known.get(name, 0.0) for name in self.names), 1.0]
        self.values = np.hstack([vectors, features])
        self.penalty = np.concatenate(
            [np.full(vectors.shape[1], PENALTY), np.full(len(self.names), FEATURE_PENALTY), [0.01]]
        ).astype(np.float32)

    def weights(self, chosen: NDArray[np.bool_]) -> Floats:
        """Fit to the chosen rows that have a gold type, with and without the words of the name."""
        used = chosen & (self.gold >= 0)
        annotated = used & (self.document >= 0)
        # Every annotated name is also a name of unknown words: votes and neighbours must do for most names of a new domain.
        masked = self.values[annotated].copy()
        masked[:, : NAME_SLOTS * self.table.vectors.shape[1]] = 0
        values = np.vstack([self.values[used], masked])
        share = np.where(self.document[used] < 0, SEED_SHARE, 1.0)
        share = np.concatenate([share, np.full(len(masked), MASKED_SHARE)]).astype(np.float32)
        return fit_classes(values, np.concatenate([self.gold[used], self.gold[annotated]]), share, self.penalty)

    def agreement(self) -> dict[str, float]:
        """Fit the influence of related names to the chances that each name has without its own document."""
        odds = np.zeros((len(self.rows), len(CLASSES)), dtype=np.float32)
        for fold in range(FOLDS):
            inside = (self.document >= 0) & (self.document % FOLDS == fold)
            odds[inside] = self.values[inside] @ self.weights(~inside)
        alone = np.array([chances(row) for row in odds.tolist()])
        heard = np.zeros((len(self.rows), len(RELATIONS), len(CLASSES)))
        place_of = {(row.document, row.ballot.key): place for place, row in enumerate(self.rows)}
        for number, document in enumerate(self.documents):
            keys = [key for key, ballot in document.ballots.items() if ballot.uses]
            for key, relations in relate_names(keys, document.list_neighbours()).items():
                for relation, others in relations.items():
                    places = [place_of[number, other] for other in others]
                    heard[place_of[number, key], RELATIONS.index(relation)] = alone[places].mean(axis=0)
        used = (self.gold >= 0) & (self.document >= 0)

        def loss(weights: NDArray[np.float64]) -> float:
            totals = odds[used] + np.einsum("nrc,r->nc", heard[used], weights)
            totals -= totals.max(axis=1, keepdims=True)
            chance = np.exp(totals)
            chance /= chance.sum(axis=1, keepdims=True)
            return float(-np.log(chance[np.arange(len(totals)), self.gold[used]] + 1e-9).sum() + (weights**2).sum())

        found = minimize(loss, np.zeros(len(RELATIONS)), method="L-BFGS-B")
        crossed = (odds[used] + np.einsum("nrc,r->nc", heard[used], found.x)).argmax(axis=1)
        print("folds:", np.mean(odds[used].argmax(axis=1) == self.gold[used]), "agreed:", np.mean(crossed == self.gold[used]))
        return {relation: round(float(weight), 3) for relation, weight in zip(RELATIONS, found.x, strict=True)}

    def write(self, path: Path) -> None:
        """Fit to all rows and write the scores of all pieces."""
        weights = self.weights(np.ones(len(self.rows), dtype=bool))
        width = self.table.vectors.shape[1]
        by_slot = weights[: len(SLOTS) * width, :DECIDED].reshape(len(SLOTS), width, DECIDED)
        scores = np.einsum("pd,sdc->psc", self.table.vectors, by_slot).reshape(len(self.table.vectors), -1)
        unit = float(np.abs(scores).max() / 127)
        own = weights[len(SLOTS) * width :, :DECIDED].round(3).tolist()
        fit = {"unit": unit, "weights": dict(zip([*self.names, "bias"], own, strict=True)), "agreement": self.agreement()}
        np.savez_compressed(
            path,
            pieces=np.array("\n".join(self.table.number)),
            scores=(scores / unit).round().astype(np.int8),
            fit=np.array(json.dumps(fit)),
        )
        print(json.dumps(fit, indent=1), path.stat().st_size)


def main() -> int:
    """Fit and write the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", type=Path, required=True, metavar="FILE", help=f"file to write, {ballots.FILE}")
    chosen = parser.parse_args()
    folder = data()
    if folder is None:
        return 0
    Fit(read(folder / "redocred" / "dev.jsonl")[0::2]).write(chosen.fit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
