"""Sums that another process of the test run has computed are those of the model, to the last bit."""

from __future__ import annotations

import asyncio

import numpy as np

from agentic_rag_backend.models.embedding import bundled


def test_remembered_sums_are_those_of_the_model() -> None:
    embedder = bundled.BundledEmbedder()
    try:
        batch = [bundled.TokenWindow(0, tuple(range(101, 109))), bundled.TokenWindow(1, (101, 2_003, 102))]
        for session in (embedder._session, embedder._question_session):
            hidden, mask = embedder._run_session(batch, session)
            expected = np.einsum("wtd,wt->wd", hidden, mask.astype(np.float32))
            for _ in range(2):  # computed or read, then remembered
                assert np.array_equal(embedder._sum_batch(batch, session), expected)
    finally:
        asyncio.run(embedder.close())
