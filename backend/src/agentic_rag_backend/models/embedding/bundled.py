"""The embedder in this process, run by onnxruntime: MiniLM-L6-v2 with int8 weights, without API key and download, or another
ONNX encoder from a folder.

Measured on 2 cores with passages of 99 word pieces: separate runs on every core take 14.0 ms per passage; batches of 8, 16 and
32 on both cores take 14.1, 14.8 and 17.1 ms. The runtime computes in float32, so batching passages saves nothing, and padding
costs time. Only short names gain (3.2 ms alone, 1.4 ms in a batch of 32). So a run has at most `BATCH_TOKENS` word pieces. Runs
of
different callers are never combined, so that one tenant's texts cannot change another tenant's vectors.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnxruntime
import tokenizers
from numpy.typing import NDArray

from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.fairness import FairThreadPool, current_actor
from agentic_rag_backend.models.embedding.base import BusyClock, EmbedderStats, TextVectors, Vectors
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE, locate_file
from agentic_rag_backend.models.embedding.onnx.onnx_graph import list_operators
from agentic_rag_backend.models.embedding.onnx.onnx_sessions import (
    Arithmetic,
    NoIntegerWeights,
    open_sessions,
    possible_arithmetic,
)
from agentic_rag_backend.models.embedding.tokenizer import load_tokenizer, split_pieces
from agentic_rag_backend.models.facts_files import BUNDLED_FACTS, EncoderFacts, read_facts
from agentic_rag_backend.priority import BACKGROUND, lower_thread

WINDOW = BUNDLED_FACTS.max_word_pieces - 2
"""Word pieces of a text in one input of the bundled encoder, which adds two special tokens."""
QUERY_WINDOWS = 1
"""Windows of a question that are embedded, about 190 words, so that a question costs no more than a passage."""
MAX_QUERY_WORD_PIECES = QUERY_WINDOWS * WINDOW
_QUERY_CHARACTERS = 8 * WINDOW
"""Characters of a question that are read first: more than the windows hold of ordinary text."""
_PIECES_OF_WORD = 100
"""Maximum number of word pieces of a word: a longer one is a single unknown piece."""
BATCH_TOKENS = 256
BATCH_TEXTS = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """A part of text number ``owner`` that fits the model: word pieces with the special tokens around them."""

    owner: int
    ids: tuple[int, ...]


def windows_of(owner: int, ids: Sequence[int], *, begin: Sequence[int], end: int, size: int = WINDOW + 2) -> list[TokenWindow]:
    """Return ``ids`` in as few windows of equal length as possible. Without ids, return one window of ``begin`` and ``end``.

    Args:
        begin: ids that each window begins with: a special token, and a prefix.
        size: maximum number of ids in a window.
    """
    count = max(1, -(-len(ids) // (size - len(begin) - 1)))
    bounds = [len(ids) * number // count for number in range(count + 1)]
    return [TokenWindow(owner, (*begin, *ids[start:stop], end)) for start, stop in pairwise(bounds)]


def batches_of(windows: Sequence[TokenWindow]) -> list[list[TokenWindow]]:
    """Return the windows by length, in batches of ≤ `BATCH_TOKENS` padded word pieces, or of one window."""
    batches: list[list[TokenWindow]] = []
    for window in sorted(windows, key=lambda window: len(window.ids)):
        last_batch = batches[-1] if batches else []
        if last_batch and len(last_batch) < BATCH_TEXTS and (len(last_batch) + 1) * len(window.ids) <= BATCH_TOKENS:
            last_batch.append(window)
        else:
            batches.append([window])
    return batches


def batches_for(windows: Sequence[TokenWindow], cores: int) -> list[list[TokenWindow]]:
    """Return the windows by length, in batches of about equal cost, at least one for each core."""
    limit = max(1, min(BATCH_TOKENS, -(-sum(len(window.ids) for window in windows) // cores)))
    batches: list[list[TokenWindow]] = []
    token_count = 0
    for window in sorted(windows, key=lambda window: -len(window.ids)):
        if not batches or token_count + len(window.ids) // 2 > limit or len(batches[-1]) >= BATCH_TEXTS:
            batches.append([])
            token_count = 0
        batches[-1].append(window)
        token_count += len(window.ids)
    return batches


class BundledEmbedder:
    """Embeds in this process on its own threads: some for questions and passages of requests, some for passages of jobs.

    Tenants share both in rotation, one batch at a time. With integer arithmetic, a product takes its scale from the whole run. A
    run then has a single window, so that a vector depends on its text alone.

    ``is_bundled``: it has the bundled weights. ``arithmetic``: "float32" or "int8".

    Args:
        model_path: folder with ``model.onnx`` and ``tokenizer.json`` of another encoder. None selects the bundled weights.
        facts: how the encoder of ``model_path`` reads texts; None: its ``encoder.json``.
        threads: number of cores for passages; 0: all cores.
        arithmetic: "int8" multiplies the int8 weights of a model as integers, in little more than half the CPU time. Its
            vectors differ (a cosine of .9993 with those of "float32" in the mean), and so does the fingerprint. None selects
            it if the model has such weights and this processor multiplies exactly. A model with integer products of its own
            ignores it.
        niceness: niceness of the threads for passages of jobs.

    Raises:
        ConfigurationError: the files are missing, damaged or of another kind, or the chosen arithmetic is impossible here.
    """

    def __init__(
        self,
        *,
        model_path: Path | None = None,
        facts: EncoderFacts | None = None,
        threads: int = 0,
        arithmetic: Arithmetic | None = "float32",
        niceness: int = BACKGROUND,
    ) -> None:
        model, vocabulary = locate_file(MODEL_FILE, model_path), locate_file(TOKENIZER_FILE, model_path)
        self._facts = BUNDLED_FACTS if model_path is None else facts or read_facts(model_path)
        self._tokenizer = load_tokenizer(vocabulary.path)
        begin, self._end = self._special_tokens()
        # White space at the end of a prefix separates it from the text; no word piece has it.
        self._passage_begin = (begin, *self._encode_ids(self._facts.passage_prefix.rstrip()))
        self._question_begin = (begin, *self._encode_ids(self._facts.question_prefix.rstrip()))
        if max(len(self._passage_begin), len(self._question_begin)) > self._facts.max_word_pieces // 2:
            raise ConfigurationError(
                f"a prefix of {model.path} takes more than half of its {self._facts.max_word_pieces} word pieces"
            )
        self._cores = cores = threads or _count_cores()
        # A passage runs on one core, with as many passages in parallel as cores: several cores per passage take a quarter more
        # time
        # (measured). A question runs on all cores: 3.0 ms instead of 5.2, at the cost of a second copy of the weights, 54 MB.
        has_integers = model_path is not None and "DynamicQuantizeLinear" in list_operators(model.path.read_bytes())
        rewritten: Arithmetic = "float32" if has_integers else possible_arithmetic(arithmetic)
        try:
            self._session, self._question_session = open_sessions(model.path, cores, rewritten)
        except NoIntegerWeights:
            if arithmetic is not None:
                raise
            rewritten = "float32"
            self._session, self._question_session = open_sessions(model.path, cores, rewritten)
        self.is_bundled = model_path is None
        self.arithmetic: Arithmetic = "int8" if has_integers else rewritten
        self._one_window = self.arithmetic == "int8"
        self._inputs = frozenset(node.name for node in self._session.get_inputs())
        # Requests have priority over passages of jobs, and batches are short, so one tenant may use all cores.
        self._passages = FairThreadPool(cores, "embed", of_tenant=cores, initializer=partial(lower_thread, niceness))
        self._questions = FairThreadPool(cores, "embed-question", of_tenant=cores)
        self._clock = BusyClock()
        self._dimensions = int(self._sum_batch([TokenWindow(0, (begin, self._end))]).shape[1])
        if self._facts.dimensions not in (None, self._dimensions):
            raise ConfigurationError(
                f"{model.path} has vectors of {self._dimensions} dimensions, not {self._facts.dimensions} as its facts say"
            )
        weights = f"{model.sha256[:16]}-{vocabulary.sha256[:8]}"
        suffix = "" if rewritten == "float32" else f"-{rewritten}"
        if prefix := self._facts.passage_prefix:
            suffix += f"-{hashlib.sha256(prefix.encode()).hexdigest()[:8]}"
        self._fingerprint = f"onnx-{weights}-{self._facts.pooling}-{self._facts.max_word_pieces}-{self._dimensions}{suffix}"

    @property
    def fingerprint(self) -> str:
        """Identity of weights, vocabulary, pooling, window, dimension, arithmetic and prefix of passages."""
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self._dimensions

    @property
    def max_word_pieces(self) -> int:
        """Longest input, with its special tokens."""
        return self._facts.max_word_pieces

    @property
    def languages(self) -> tuple[str, ...] | None:
        """English for the bundled weights. None for many languages, and for weights whose training is unknown."""
        return self._facts.languages

    @property
    def stats(self) -> EmbedderStats:
        """Return the counters since the start."""
        return self._clock.read_stats()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: float32, shape (len(texts), dimensions), unit rows, in order. Long texts in windows, pooled."""
        if not texts:
            return np.empty((0, self._dimensions), dtype=np.float32)
        passages = tuple(texts)
        pool = self._passages if current_actor().job else self._questions
        batches = await self._run_on(pool, lambda: self._make_batches(self._make_windows(passages, self._passage_begin)))
        sums = await asyncio.gather(*(self._run_on(pool, partial(self._time_batch, batch)) for batch in batches))
        self._clock.add_counts(texts=len(passages), windows=sum(len(batch) for batch in batches))
        return _pool_sums(len(passages), batches, sums)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Embed one question in parallel with passages: float32, shape (dimensions,)."""

        def embed_question() -> NDArray[np.float32]:
            batches = self._make_batches(self._make_windows((text[: self.query_characters(text)],), self._question_begin))
            row: NDArray[np.float32] = _pool_sums(
                1, batches, [self._sum_batch(batch, self._question_session) for batch in batches]
            )[0]
            return row

        vector = await self._run_on(self._questions, embed_question)
        self._clock.add_counts(queries=1)
        return vector

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[TextVectors]:
        """Encode texts and their words in parallel runs of the model. See `WordEncoder`."""
        encodings = [self._tokenizer.encode(text, add_special_tokens=False) for text in texts]
        states = await self._compute_states(encodings)
        return [
            _with_words(rows, encoding.offsets[:WINDOW], inside)
            for rows, encoding, inside in zip(states, encodings, spans, strict=True)
        ]

    async def encode_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """Encode the word pieces of texts in parallel runs of the model. See `TokenEncoder`."""
        passages = tuple(texts)
        # A thread of the pool reads the texts, because there may be many.
        encodings = await self._run_on(
            self._questions, lambda: [self._tokenizer.encode(text, add_special_tokens=False) for text in passages]
        )
        # Each text in a run of its own: its vectors must not depend on the texts beside it, not even in the last digit.
        return [_scale_to_unit(rows[1:-1]) for rows in await self._compute_states(encodings, alone=True)]

    async def _compute_states(self, encodings: Sequence[tokenizers.Encoding], *, alone: bool = False) -> list[Vectors]:
        """Return the vectors of the first window of each text, special tokens included: shape (word pieces + 2, dimensions)."""
        windows = [
            TokenWindow(owner, (self._passage_begin[0], *encoding.ids[:WINDOW], self._end))
            for owner, encoding in enumerate(encodings)
        ]
        batches = [[window] for window in windows] if alone or self._one_window else batches_for(windows, self._cores)
        hidden = await asyncio.gather(*(self._run_on(self._questions, partial(self._run_session, batch)) for batch in batches))
        states_by_text: dict[int, Vectors] = {}
        for batch, (states, _) in zip(batches, hidden, strict=True):
            states_by_text |= {window.owner: rows[: len(window.ids)] for window, rows in zip(batch, states, strict=True)}
        return [states_by_text[owner] for owner in range(len(encodings))]

    def query_characters(self, text: str) -> int:
        """Return the end of the last word piece that fits the windows of a question."""
        limit = min(MAX_QUERY_WORD_PIECES, self._facts.max_word_pieces - len(self._question_begin) - 1)
        if len(text) <= limit:  # no word piece is shorter than a character
            return len(text)
        end = _QUERY_CHARACTERS
        # A cut word has other word pieces than the whole word, so the last of them do not count.
        while len(offsets := self._tokenizer.encode(text[:end], add_special_tokens=False).offsets) <= limit + _PIECES_OF_WORD:
            if end >= len(text):
                return len(text) if len(offsets) <= limit else int(offsets[limit - 1][1])
            end *= 2
        return int(offsets[limit - 1][1])

    def query_tokens(self, text: str) -> int:
        """Return 0: the model is in this process."""
        return 0

    async def close(self) -> None:
        """Finish running work and release the threads."""
        for pool in (self._passages, self._questions):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def _run_on(self, pool: Executor, work: Callable[[], T]) -> T:
        try:
            future = pool.submit(work)
        except RuntimeError as error:  # the pool was shut down
            raise ModelUnavailable("the embedder is closed") from error
        return await asyncio.wrap_future(future)

    def _special_tokens(self) -> tuple[int, int]:
        """Return the ids of the special tokens around every text."""
        ids = self._tokenizer.encode("").ids
        if len(ids) != 2:
            raise ConfigurationError(f"the tokenizer must put two special tokens around a text; it puts {len(ids)}")
        return ids[0], ids[1]

    def _encode_ids(self, text: str) -> list[int]:
        return [id for _, piece in split_pieces(text) for id in self._tokenizer.encode(piece, add_special_tokens=False).ids]

    def _make_windows(self, texts: Sequence[str], begin: Sequence[int]) -> list[TokenWindow]:
        size = self._facts.max_word_pieces
        return [
            window
            for owner, text in enumerate(texts)
            for window in windows_of(owner, self._encode_ids(text), begin=begin, end=self._end, size=size)
        ]

    def _make_batches(self, windows: Sequence[TokenWindow]) -> list[list[TokenWindow]]:
        return [[window] for window in windows] if self._one_window else batches_of(windows)

    def _time_batch(self, batch: Sequence[TokenWindow]) -> Vectors:
        with self._clock:
            return self._sum_batch(batch)

    def _sum_batch(self, batch: Sequence[TokenWindow], session: onnxruntime.InferenceSession | None = None) -> Vectors:
        """Run the model and return each window's vector times its number of word pieces, shape (len(batch), dimensions)."""
        hidden, mask = self._run_session(batch, session)
        sums: Vectors
        if self._facts.pooling == "cls":
            sums = _scale_to_unit(hidden[:, 0]) * mask.sum(axis=1, keepdims=True, dtype=np.float32)
        else:
            sums = np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32))
        return sums

    def _run_session(
        self, batch: Sequence[TokenWindow], session: onnxruntime.InferenceSession | None = None
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """Run the model and return the vectors of the word pieces, shape (len(batch), width, dimensions), and their mask."""
        width = max(len(window.ids) for window in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, window in enumerate(batch):
            ids[row, : len(window.ids)] = window.ids
            mask[row, : len(window.ids)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        outputs = (session or self._session).run(None, {name: value for name, value in feeds.items() if name in self._inputs})
        return outputs[0], mask


def _with_words(states: Vectors, offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> TextVectors:
    """Return the mean over a window, and over the word pieces of each span, at length 1. ``states`` has the special tokens."""
    bounds = np.array(offsets, dtype=np.int64).reshape(-1, 2)
    rows = np.zeros((len(spans), states.shape[1]), dtype=np.float32)
    for row, (start, end) in enumerate(spans):
        inside = (bounds[:, 0] < end) & (bounds[:, 1] > start)
        if inside.any():
            rows[row] = states[1:-1][inside].mean(axis=0)
    return TextVectors(_scale_to_unit(states.mean(axis=0, keepdims=True))[0], _scale_to_unit(rows))


def _scale_to_unit(rows: Vectors) -> Vectors:
    result: Vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))
    return result


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pool_sums(count: int, batches: Sequence[Sequence[TokenWindow]], sums: Sequence[Vectors]) -> Vectors:
    """Return each text's mean over the word pieces of all its windows, at length 1 (so a window weighs by its length)."""
    totals = np.zeros((count, sums[0].shape[1]), dtype=np.float32)
    for batch, part in zip(batches, sums, strict=True):
        np.add.at(totals, [window.owner for window in batch], part)
    return _scale_to_unit(totals)
