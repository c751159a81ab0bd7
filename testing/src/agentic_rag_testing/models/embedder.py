"""The contract of an `Embedder`, run from ``tests/contract`` on every adapter.

Each check is an async function of an embedder. `CHECKS` lists them. An adapter that breaks a rule of `models.embedding.base`
fails at least one.
"""

from __future__ import annotations

import asyncio

import numpy as np

from agentic_rag_backend.models.embedding.base import Embedder

TEXTS = (
    "Marie Curie discovered polonium and radium in Paris.",
    "The ship left Rotterdam with eleven thousand containers on board and reached Singapore after four weeks.",
    "Invoice 4711 is due on 30 June 2024.",
    "x",
    "Ein Satz mit Umlauten: Grüße aus Köln. 東京タワーは赤い。",
)
TOLERANCE = 1e-3
"""Maximum difference between two embeddings of one text in any value. Smaller differences do not affect an index."""


async def check_shape_and_length(embedder: Embedder) -> None:
    """Rows are float32, finite, of length 1 and of the declared dimension."""
    vectors = await embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def check_order(embedder: Embedder) -> None:
    """Vectors are in the order of the texts, for any order of computation. Different texts differ."""
    forward = await embedder.embed(TEXTS)
    backward = await embedder.embed(TEXTS[::-1])
    np.testing.assert_allclose(forward, backward[::-1], atol=TOLERANCE)
    similarity = forward @ forward.T
    assert (similarity - np.eye(len(TEXTS), dtype=np.float32)).max() < 0.999


async def check_alone_or_in_a_batch(embedder: Embedder) -> None:
    """A text has the same vector alone, in a batch and repeated."""
    together = await embedder.embed(TEXTS * 12)
    for number, text in enumerate(TEXTS):
        alone = (await embedder.embed([text]))[0]
        for row in together[number :: len(TEXTS)]:
            np.testing.assert_allclose(row, alone, atol=TOLERANCE)


async def check_concurrent_calls(embedder: Embedder) -> None:
    """Concurrent callers get their own results."""
    expected = await embedder.embed(TEXTS)
    results = await asyncio.gather(*(embedder.embed([text, TEXTS[0]]) for text in TEXTS))
    for number, vectors in enumerate(results):
        np.testing.assert_allclose(vectors[0], expected[number], atol=TOLERANCE)
        np.testing.assert_allclose(vectors[1], expected[0], atol=TOLERANCE)


async def check_query(embedder: Embedder) -> None:
    """A question gives one unit vector. An empty question gives a finite vector."""
    query = await embedder.embed_query("Who discovered radium?")
    assert query.shape == (embedder.dimensions,)
    assert query.dtype == np.float32
    assert abs(float(np.linalg.norm(query)) - 1.0) < 1e-5
    assert np.isfinite(await embedder.embed_query("")).all()


async def check_long_query(embedder: Embedder) -> None:
    """Only the beginning of a very long question is embedded. `query_characters` returns its length."""
    short = "Who discovered radium?"
    assert embedder.query_characters(short) == len(short)
    for long in ("." * 8000, "Who discovered radium? " * 2000, "雨" * 8000):
        read = embedder.query_characters(long)
        assert 100 <= read <= len(long)
        assert embedder.query_tokens(long) == embedder.query_tokens(long[:read])
        np.testing.assert_allclose(await embedder.embed_query(long), await embedder.embed_query(long[:read]), atol=1e-5)
    assert embedder.query_characters("." * 100_000) < 100_000


async def check_long_text(embedder: Embedder) -> None:
    """The end of a long text affects its vector: nothing is truncated."""
    start = "The committee met again to discuss the harbour, the railway and the schools of the town. " * 40
    vectors = await embedder.embed([start, start + "Penguins breed on the ice of Antarctica. " * 20, start * 5])
    assert float(vectors[0] @ vectors[1]) < 0.99
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def check_nothing(embedder: Embedder) -> None:
    """No texts give no rows of the right width. An empty text gives a finite vector."""
    assert (await embedder.embed([])).shape == (0, embedder.dimensions)
    assert np.isfinite(await embedder.embed(["", " \n"])).all()


async def check_fingerprint(embedder: Embedder) -> None:
    """The fingerprint is not empty and does not change with use."""
    before = embedder.fingerprint
    await embedder.embed(TEXTS[:1])
    assert before
    assert embedder.fingerprint == before


CHECKS = (
    check_shape_and_length,
    check_order,
    check_alone_or_in_a_batch,
    check_concurrent_calls,
    check_query,
    check_long_query,
    check_long_text,
    check_nothing,
    check_fingerprint,
)
