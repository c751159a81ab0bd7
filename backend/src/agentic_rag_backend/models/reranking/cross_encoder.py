"""A cross-encoder in this process: an ONNX model that reads a question and a passage together, run by onnxruntime.

Nogueira and Cho, "Passage re-ranking with BERT", 2019.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.fairness import FairThreadPool
from agentic_rag_backend.models.pairs import PairSession, run_in

BATCH_PAIRS = 16
RETRY_S = 60.0
"""Seconds after which a model that could not be loaded is loaded again."""

Locate = Callable[[], Path]
"""Returns the folder with the model's files. It may download them.

Raises:
    ModelUnavailable: there are none; the message has the reason and the remedy.
"""


class PairModel:
    """The loaded model.

    Args:
        folder: has ``model.onnx`` and ``tokenizer.json``.
        threads: number of cores for one batch.

    Raises:
        ConfigurationError: a file is missing or damaged, or the model does not score pairs.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
        self._session = PairSession(folder, threads=threads)
        self.score_passages("a question", ["a passage"])

    def score_passages(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return the probability that each passage is relevant: the logistic function of the model's output."""
        pairs = self._session.encode_pairs([(question, passage) for passage in passages])
        scores = np.zeros(len(pairs))
        # Pairs of similar length together: padding costs time.
        order = sorted(range(len(pairs)), key=lambda number: len(pairs[number].ids))
        for start in range(0, len(order), BATCH_PAIRS):
            batch = order[start : start + BATCH_PAIRS]
            scores[batch] = _to_probabilities(self._session.run_batch([pairs[number] for number in batch]))
        return [float(value) for value in scores]


def _to_probabilities(output: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return probabilities from logits of shape (pairs,), (pairs, 1), or (pairs, 2): irrelevant and relevant.

    Raises:
        ConfigurationError: the output has another shape.
    """
    logits = output.astype(np.float64)
    if logits.ndim == 2 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]
    elif logits.ndim == 2 and logits.shape[1] == 1:
        logits = logits[:, 0]
    if logits.ndim != 1:
        raise ConfigurationError(f"the output of a cross-encoder has one or two numbers for each pair; got shape {output.shape}")
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -500, 500))))


class CrossEncoder:
    """Scores passages on its own thread. The model is loaded when it is first needed.

    Args:
        name: for traces.
        locate: finds the model's files.
        threads: number of cores.
        clock: monotonic clock in seconds.
    """

    def __init__(self, name: str, locate: Locate, *, threads: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._locate = locate
        self._threads = threads
        self._clock = clock
        self._pool = FairThreadPool(1, "cross-encoder", of_tenant=1)
        self._model: PairModel | None = None
        self._failure: str | None = None
        self._failed_at = 0.0

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._name

    def check(self) -> None:
        """See `PassageScorer`."""
        if self._failure is not None and self._clock() - self._failed_at < RETRY_S:
            raise ModelUnavailable(self._failure)

    async def score(self, question: str, passages: Sequence[str], account: UsageAccount) -> Sequence[float]:
        """See `PassageScorer`. No request is sent, so ``account`` counts nothing."""
        self.check()
        passage_list = tuple(passages)
        # Batch by batch, so that tenants take turns, and a cancelled request stops.
        scores: list[float] = []
        for start in range(0, len(passage_list), BATCH_PAIRS):
            batch = partial(self._score_passages, question, passage_list[start : start + BATCH_PAIRS])
            scores += await run_in(self._pool, batch, "the cross-encoder")
        return scores

    async def close(self) -> None:
        """Finish running work and release the thread."""
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    def _score_passages(self, question: str, passages: Sequence[str]) -> list[float]:
        return self._load_model().score_passages(question, passages)

    def _load_model(self) -> PairModel:
        if self._model is None:
            self.check()  # an earlier call on this thread may have failed
            try:
                self._model = PairModel(self._locate(), threads=self._threads)
                self._failure = None
            except (ConfigurationError, ModelUnavailable) as error:
                self._failure, self._failed_at = f"the cross-encoder cannot be loaded: {error.message}", self._clock()
                raise ModelUnavailable(self._failure) from error
        return self._model
