"""ONNX models that read two texts together, run by onnxruntime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnxruntime
import tokenizers
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as failures

from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE
from agentic_rag_backend.models.embedding.tokenizer import load_tokenizer

MAX_WORD_PIECES = 512
"""Word pieces of both texts together, including special tokens. The longer of the two is cut."""

T = TypeVar("T")
_LOAD_FAILURES = (
    failures.Fail,
    failures.InvalidArgument,
    failures.InvalidGraph,
    failures.InvalidProtobuf,
    failures.NoModel,
    failures.NoSuchFile,
)
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class PairSession:
    """A loaded model.

    Args:
        folder: has ``model.onnx`` and ``tokenizer.json``.
        threads: number of cores for one batch.

    Raises:
        ConfigurationError: a file is missing or damaged, or the model does not read pairs.
    """

    def __init__(self, folder: Path, *, threads: int, max_word_pieces: int = MAX_WORD_PIECES) -> None:
        path = folder / MODEL_FILE
        if not path.is_file():
            raise ConfigurationError(f"a cross-encoder is a folder with {MODEL_FILE} and {TOKENIZER_FILE}; {path} is missing")
        self._tokenizer = load_tokenizer(folder / TOKENIZER_FILE)
        self._tokenizer.enable_truncation(max_word_pieces, strategy="longest_first")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            self._inputs = [model_input.name for model_input in self._session.get_inputs()]
            if "input_ids" not in self._inputs or not _INPUTS.issuperset(self._inputs):
                raise ConfigurationError(f"{path} has the inputs {', '.join(self._inputs)}, not those of a cross-encoder")
            self.run_batch(self.encode_pairs([("a question", "a passage")]))
        except _LOAD_FAILURES as error:
            raise ConfigurationError(
                f"{path} is not a model that onnxruntime {onnxruntime.__version__} reads: {error}"
            ) from error

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tokenizers.Encoding]:
        """Return the word pieces of pairs."""
        return self._tokenizer.encode_batch(list(pairs))

    def run_batch(self, pairs: Sequence[tokenizers.Encoding]) -> NDArray[np.float32]:
        """Return the model's output for one batch: float32, shape (pairs, …)."""
        width = max(len(pair.ids) for pair in pairs)
        feeds = {name: np.zeros((len(pairs), width), dtype=np.int64) for name in _INPUTS}
        for row, pair in enumerate(pairs):
            feeds["input_ids"][row, : len(pair.ids)] = pair.ids
            feeds["token_type_ids"][row, : len(pair.ids)] = pair.type_ids
            feeds["attention_mask"][row, : len(pair.ids)] = 1
        output: NDArray[np.float32] = self._session.run(None, {name: feeds[name] for name in self._inputs})[0]
        return output


async def run_in(pool: Executor, work: Callable[[], T], name: str) -> T:
    """Return the result of ``work`` on a thread of ``pool``.

    Raises:
        ModelUnavailable: the pool was shut down. The message says that ``name`` is closed.
    """
    try:
        future = pool.submit(work)
    except RuntimeError as error:
        raise ModelUnavailable(f"{name} is closed") from error
    return await asyncio.wrap_future(future)
