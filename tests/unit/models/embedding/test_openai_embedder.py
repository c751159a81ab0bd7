"""The remote embedder over real HTTP on loopback."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import (
    ConfigurationError,
    ModelInputRefused,
    ModelRefused,
    ModelReplyInvalid,
    ModelUnavailable,
)
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.models.embedding.openai_embedder import (
    BATCH_BYTES,
    BATCH_TEXTS,
    WINDOW_BYTES,
    OpenAIEmbedder,
    RequestTexts,
    batches_of,
    windows_of,
)
from agentic_rag_testing.models.server import ModelServer


def connect(
    server: ModelServer,
    model: str,
    *,
    timeout_s: float = 10,
    dimensions: int | None = 64,
    slots: int = 4,
    texts: RequestTexts | None = None,
) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        api_key="secret-key",
        base_url=server.base_url,
        model=model,
        dimensions=dimensions,
        timeout_s=timeout_s,
        max_concurrency=slots,
        texts=texts,
    )


@given(st.text(max_size=50).map(lambda text: text * 500))
def test_windows_hold_every_character_once(text: str) -> None:
    windows = windows_of(3, text)
    if text.strip():
        assert "".join(window.text for window in windows).startswith(text.rstrip())
    assert all(0 < len(window.text.encode()) <= WINDOW_BYTES and window.owner == 3 for window in windows)


def test_batches_are_bounded() -> None:
    windows = [window for owner in range(1000) for window in windows_of(owner, "ü" * (owner * 5))]
    batches = batches_of(windows)
    assert [window for batch in batches for window in batch] == windows
    assert max(len(batch) for batch in batches) <= BATCH_TEXTS
    assert max(sum(window.size_bytes for window in batch) for batch in batches) <= BATCH_BYTES


async def test_many_texts_take_few_requests(server: ModelServer) -> None:
    embedder = connect(server, "words")
    vectors = await embedder.embed([f"passage {number}" for number in range(600)])
    assert vectors.shape == (600, 64)
    assert server.stats().models["words"].calls == 3
    assert embedder.stats.texts == 600
    assert embedder.stats.busy_s > 0
    await embedder.close()


async def test_no_more_requests_at_once_than_allowed(server: ModelServer) -> None:
    embedder = connect(server, "latency-50ms", slots=2)
    await asyncio.gather(*(embedder.embed([f"text {number}"]) for number in range(6)))
    assert server.stats().most_at_once <= 2
    await embedder.close()


async def test_a_question_has_a_slot_of_its_own(server: ModelServer) -> None:
    embedder = connect(server, "latency-200ms", slots=2)

    async def ingest(number: int) -> None:
        act_for(TenantId("t_" + "1" * 32), job=True)
        await embedder.embed([f"text {number}"])

    passages = [asyncio.create_task(ingest(number)) for number in range(4)]
    await asyncio.sleep(0.02)
    await embedder.embed_query("question")
    assert sum(task.done() for task in passages) <= 1
    await asyncio.gather(*passages)
    await embedder.close()


@pytest.mark.parametrize("model", ["status-500x2", "rate-limited-50msx1", "dropx1", "broken-jsonx1"])
async def test_passing_failures_are_retried(server: ModelServer, model: str) -> None:
    embedder = connect(server, model)
    assert (await embedder.embed(["text"])).shape == (1, 64)
    assert server.stats().models[model].calls >= 2
    await embedder.close()


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("status-401", ModelRefused),
        ("status-404", ModelRefused),
        ("status-400", ModelInputRefused),
        ("status-413", ModelInputRefused),
        ("empty", ModelReplyInvalid),
        ("wrong-schema", ModelReplyInvalid),
        ("nan", ModelReplyInvalid),
    ],
)
async def test_lasting_failures_end_the_call(server: ModelServer, model: str, error: type[Exception]) -> None:
    embedder = connect(server, model)
    with pytest.raises(error) as caught:
        await embedder.embed(["one", "two"])
    assert type(caught.value) is error
    assert "secret-key" not in str(caught.value)
    assert server.stats().models[model].calls == 1
    await embedder.close()


async def test_a_vector_that_is_not_finite_is_the_models_fault(server: ModelServer) -> None:
    embedder = connect(server, "nan")
    with pytest.raises(ModelReplyInvalid, match="NaN: the model computed a value that is not a number"):
        await embedder.embed(["text"])
    for row in ([None, 1.0], [1e300, 1.0], [0.0, 0.0]):
        with pytest.raises(ModelReplyInvalid, match="fault is the model's"):
            embedder._check_reply({"data": [{"index": 0, "embedding": row * 32}]}, 1)
    unnumbered = {"data": [{"embedding": [float(number)] * 64} for number in (1, 2)]}
    assert embedder._check_reply(unnumbered, 2).shape == (2, 64)
    await embedder.close()


async def test_one_timeout_bounds_the_whole_call(server: ModelServer) -> None:
    embedder = connect(server, "latency-30s", timeout_s=0.3)
    started = time.perf_counter()
    with pytest.raises(ModelUnavailable, match=r"0\.3 s"):
        await embedder.embed(["text"])
    assert time.perf_counter() - started < 15
    await embedder.close()


async def test_vectors_of_another_length_are_refused(server: ModelServer) -> None:
    embedder = connect(server, "words", dimensions=128)
    with pytest.raises(ModelReplyInvalid, match=r"\[64\], not 128 \(EMBEDDING_DIMENSIONS\)"):
        await embedder.embed(["text"])
    await embedder.close()


async def test_models_that_can_are_asked_for_the_length(server: ModelServer) -> None:
    short = connect(server, "text-embedding-3-small", dimensions=256)
    assert (await short.embed_query("text")).shape == (256,)
    native = connect(server, "text-embedding-3-large", dimensions=None)
    assert native.dimensions == 3072
    assert short.fingerprint != native.fingerprint
    await short.close()
    await native.close()


def test_an_unknown_length_must_be_set(server: ModelServer) -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIMENSIONS"):
        connect(server, "nomic-embed-text", dimensions=None)


async def test_long_texts_are_pooled(server: ModelServer) -> None:
    embedder = connect(server, "words")
    vectors = await embedder.embed(["rivers " * 4000, "rivers " * 4000 + "mountains " * 1000])
    assert float(vectors[0] @ vectors[1]) < 0.999
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert embedder.stats.windows == 9
    await embedder.close()


async def test_the_tokens_of_a_question_are_bounded_by_the_part_that_is_embedded(server: ModelServer) -> None:
    embedder = connect(server, "words")
    assert 4 <= embedder.query_tokens("Who discovered radium?") <= 8
    long = "radium " * 50_000
    assert embedder.query_tokens(long) == embedder.query_tokens(long[: embedder.query_characters(long)])
    await embedder.close()


async def test_questions_and_passages_have_their_prefixes(server: ModelServer) -> None:
    """The vectors of this server are those of the words."""
    prefixed = connect(server, "words", texts=RequestTexts(question_prefix="query: ", passage_prefix="passage: "))
    plain = connect(server, "words")
    np.testing.assert_allclose(await prefixed.embed_query("kelp"), await plain.embed_query("query: kelp"))
    np.testing.assert_allclose(await prefixed.embed(["kelp"]), await plain.embed(["passage: kelp"]))
    assert prefixed.fingerprint != plain.fingerprint
    questions = connect(server, "words", texts=RequestTexts(question_prefix="query: "))
    assert questions.fingerprint == plain.fingerprint
    assert prefixed.query_characters("x" * 9_000) == WINDOW_BYTES - len("query: ")
    for embedder in (prefixed, plain, questions):
        await embedder.close()


def test_windows_with_a_prefix_are_bounded() -> None:
    windows = windows_of(0, "storm " * 4_000, "passage: ")
    assert all(window.text.startswith("passage: ") and len(window.text.encode()) <= WINDOW_BYTES for window in windows)
    assert "".join(window.text.removeprefix("passage: ") for window in windows) == "storm " * 4_000
    assert sum(window.size_bytes for window in windows) == len("storm " * 4_000)


async def test_the_batch_size_is_bounded_by_its_setting(server: ModelServer) -> None:
    embedder = connect(server, "words", texts=RequestTexts(batch_size=10))
    assert (await embedder.embed([f"passage {number}" for number in range(25)])).shape == (25, 64)
    assert server.stats().models["words"].calls == 3
    await embedder.close()
