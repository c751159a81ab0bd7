"""Tries out an installed model: shape and length of its vectors, its arithmetic, its order of passages, and its speed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as failures

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.entailment.reader import OnnxReader
from agentic_rag_backend.models.facts_files import read_reader_facts
from agentic_rag_backend.models.reranking.cross_encoder import PairModel

_QUESTION = "Who has to pay for gear that a storm carried out of the harbour?"
_RELATED = "The harbour office does not pay for fishing gear that storms sweep away; its owner pays. "
_UNRELATED = "Knead the dough for ten minutes and let it rise in a warm kitchen until it has doubled. "
_REPEATS = 5
"""Repeats of a sentence in a passage: about 100 word pieces."""
_RUNS = 9
_RUN_FAILURES = (failures.Fail, failures.InvalidArgument, failures.RuntimeException)


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Results of a model that works. ``ms`` is the median CPU time of a passage of about 100 word pieces, milliseconds.

    Rerankers and readers have no ``dimensions`` and no ``norm``.
    """

    ms: float
    dimensions: int | None = None
    norm: float | None = None
    arithmetic: str = ""


async def check_encoder(embedder: BundledEmbedder) -> ModelCheck:
    """Try out an encoder.

    Raises:
        ConfigurationError: its vectors are not of length 1, are not nearer for a related passage, or it cannot read its longest
            input.
    """
    passages = [_RELATED * _REPEATS, _UNRELATED * _REPEATS]
    try:
        related, unrelated = await embedder.embed(passages)
        question = await embedder.embed_query(_QUESTION)
        await embedder.embed(["harbour " * embedder.max_word_pieces])
    except _RUN_FAILURES as error:
        raise ConfigurationError(f"the model cannot be run: {error}") from error
    norms = np.linalg.norm([related, unrelated, question], axis=1)
    if not np.allclose(norms, 1, atol=1e-3):
        raise ConfigurationError(f"vectors must have the length 1; got {', '.join(f'{norm:.3f}' for norm in norms)}")
    related_score, far = float(question @ related), float(question @ unrelated)
    if related_score <= far:
        raise ConfigurationError(
            f"a related passage has the cosine {related_score:.3f}, an unrelated one {far:.3f}: check pooling and prefixes"
        )
    times = []
    for _ in range(_RUNS):
        started_at = time.process_time()
        await embedder.embed(passages[:1])
        times.append(time.process_time() - started_at)
    return ModelCheck(
        ms=1000 * statistics.median(times),
        dimensions=embedder.dimensions,
        norm=float(norms[0]),
        arithmetic=embedder.arithmetic,
    )


def check_reranker(folder: Path) -> ModelCheck:
    """Try out a cross-encoder.

    Raises:
        ConfigurationError: it cannot be loaded, or a related passage does not score higher than an unrelated one.
    """
    model = PairModel(folder, threads=1)
    related_score, far = model.score_passages(_QUESTION, [_RELATED * _REPEATS, _UNRELATED * _REPEATS])
    if related_score <= far:
        raise ConfigurationError(f"a related passage scores {related_score:.3f}, an unrelated one {far:.3f}")
    return ModelCheck(ms=_cpu_ms(lambda: model.score_passages(_QUESTION, [_RELATED * _REPEATS])))


async def check_reader(name: str, folder: Path) -> ModelCheck:
    """Try out a reader.

    Raises:
        ConfigurationError: it cannot be loaded, or finds that a copy of a text follows less than another text.
    """
    reader = OnnxReader(name, folder, read_reader_facts(folder))
    try:
        copied, unrelated_inference = await reader.read([(_RELATED, _RELATED), (_UNRELATED, _RELATED)])
        if copied.likeliest != "entailment" or copied.entailment <= unrelated_inference.entailment:
            raise ConfigurationError(
                f"a copied sentence has the probability {copied.entailment:.3f} of entailment, an unrelated one"
                f" {unrelated_inference.entailment:.3f}: check the order of the labels"
            )
        return ModelCheck(ms=_cpu_ms(lambda: reader.infer_relation((_RELATED * _REPEATS, _RELATED))))
    finally:
        await reader.close()


def _cpu_ms(work: Callable[[], object]) -> float:
    """Return the median CPU time of ``work``, milliseconds."""
    times = []
    for _ in range(_RUNS):
        started_at = time.process_time()
        work()
        times.append(time.process_time() - started_at)
    return 1000 * statistics.median(times)
