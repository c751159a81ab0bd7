"""Relevance does not depend on the scale of an embedder's cosines, which is measured at the first search."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.library import Embedded, open_embedded
from agentic_rag_backend.models.embedding import calibrator
from agentic_rag_backend.testing.models.server import ModelServer

WORDS, FLOOR = "words+dimensions-384", "words+dimensions-384+floor-70"
OWN, FOREIGN = "Who designed the Tidal Array in Carrow Bay?", "How many kilometres of railway does Bolivia operate?"
DOCUMENTS = {
    "tidal": "The Tidal Array is a power plant in Carrow Bay. The Tidal Array was designed by the Halden Institute.",
    "bread": "Sourdough needs flour, water, salt and patience. The dough rests overnight before it is baked.",
}


def endpoint(base_url: str, model: str) -> dict[str, Any]:
    return {
        "embedder": "openai",
        "openai_api_key": "any",
        "openai_base_url": base_url,
        "embedding_model": model,
        "embedding_dimensions": 384,
    }


async def relevances(rag: Embedded) -> list[float]:
    """Return the relevance of the documents for a question about them and for another one, by three strategies."""
    tenant = await rag.container.tenants.get(rag.tenant_id)
    return [
        (await rag.container.retrievers.get(strategy).retrieve(Query(tenant=tenant, text=text))).relevance
        for strategy in ("dense", "hybrid", "graph")
        for text in (OWN, FOREIGN)
    ]


async def test_an_embedder_of_another_scale_has_the_same_relevance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrator, "LEAST_SEPARATION", 0.8)  # the scripted embedder knows words only
    values = {}
    with ModelServer() as server:
        for model in (WORDS, FLOOR):
            async with open_embedded(tmp_path / model, **endpoint(server.base_url, model)) as rag:
                for key, text in DOCUMENTS.items():
                    await rag.ingest(text=text, key=key)
                assert rag.container.calibrator.pending
                values[model] = await relevances(rag)
                assert (await rag.container.calibrator.current()).source == "measured"
        server.reset()
        async with open_embedded(tmp_path / FLOOR, **endpoint(server.base_url, FLOOR)) as rag:
            assert rag.container.calibrator.calibration.source == "measured"
        assert server.stats().models.get(FLOOR) is None, "the calibration of an earlier start is not measured again"
    assert values[FLOOR] == pytest.approx(values[WORDS], abs=0.03)
    assert all(own > 0.5 > 0.2 > foreign for own, foreign in zip(values[FLOOR][::2], values[FLOOR][1::2], strict=True))


async def test_the_start_does_not_need_the_endpoint(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    async with open_embedded(tmp_path, **endpoint(away, FLOOR), llm_timeout_s=1) as rag:
        await rag.search("Who designed the Tidal Array?", strategy="sparse")
        assert rag.container.calibrator.reason == "it is measured at the first search", "words need no embedder"
        calibration = await rag.container.calibrator.current()
        assert (calibration.source, rag.container.calibrator.pending) == ("default", True)
        assert "embedder" in str(rag.container.calibrator.reason)
