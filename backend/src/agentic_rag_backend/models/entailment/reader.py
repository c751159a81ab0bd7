"""A reader in this process: an ONNX cross-encoder with an output for each relation, run by onnxruntime."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.fairness import FairThreadPool
from agentic_rag_backend.models.entailment.base import Inference, Pair
from agentic_rag_backend.models.facts_files import ReaderFacts
from agentic_rag_backend.models.pairs import PairSession, run_in


class OnnxReader:
    """Reads pairs on its own thread, one after the other, so that tenants take turns, and a cancelled request stops.

    Each pair has a run of its own: integer products take their scale from the whole run, so a pair would depend on the others.

    Args:
        name: of the model, for messages.
        folder: has ``model.onnx`` and ``tokenizer.json``.
        threads: number of cores for one pair.

    Raises:
        ConfigurationError: a file is missing or damaged, or the model has not the outputs that ``facts`` names.
    """

    def __init__(self, name: str, folder: Path, facts: ReaderFacts, *, threads: int = 1) -> None:
        self._name = name
        self._labels = facts.labels
        self._session = PairSession(folder, threads=threads, max_word_pieces=facts.max_word_pieces)
        self._pool = FairThreadPool(1, "reader", of_tenant=1)
        self.infer_relation(("a premise", "a claim"))

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._name

    async def read(self, pairs: Sequence[Pair]) -> list[Inference]:
        """See `EntailmentReader`."""
        return [await run_in(self._pool, partial(self.infer_relation, pair), "the reader") for pair in tuple(pairs)]

    async def close(self) -> None:
        """Finish running work and release the thread."""
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    def infer_relation(self, pair: Pair) -> Inference:
        """Return the relation of a premise and a claim. The longer of the two is cut if both are too long together.

        Raises:
            ConfigurationError: the model has another number of outputs.
        """
        output = self._session.run_batch(self._session.encode_pairs([pair]))
        if output.shape != (1, len(self._labels)):
            raise ConfigurationError(
                f"the reader {self._name} must have {len(self._labels)} outputs for a pair ({', '.join(self._labels)});"
                f" got shape {output.shape}"
            )
        powers = np.exp(output[0].astype(np.float64) - output.max())
        shares = dict(zip(self._labels, (powers / powers.sum()).tolist(), strict=True))
        return Inference(shares["contradiction"], shares["entailment"], shares["neutral"])
