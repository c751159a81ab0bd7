"""Relevance does not depend on the scale of an embedder's cosines, which is measured at the first search."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from squeezed_encoder import FLOOR, Squeezed
from tests.integration.retrieval.conftest import CORPUS, Corpus

from agentic_rag_backend.container import open_container, reindexing
from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.query import Query, Rerank
from agentic_rag_backend.library import Embedded, open_embedded
from agentic_rag_backend.models.embedding import calibration
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.calibration import CALIBRATIONS, LEVELS, CosineScale, make_calibration
from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.server import ModelServer

WORDS, HIGH = "words+dimensions-384", "words+dimensions-384+floor-70"
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
    monkeypatch.setattr(calibration, "LEAST_SEPARATION", 0.8)  # the scripted embedder knows words only
    values = {}
    with ModelServer() as server:
        for model in (WORDS, HIGH):
            async with open_embedded(tmp_path / model, **endpoint(server.base_url, model)) as rag:
                for key, text in DOCUMENTS.items():
                    await rag.ingest(text=text, key=key)
                assert rag.container.calibrator.pending
                values[model] = await relevances(rag)
                assert (await rag.container.calibrator.current_calibration()).source == "measured"
        server.reset()
        async with open_embedded(tmp_path / HIGH, **endpoint(server.base_url, HIGH)) as rag:
            assert rag.container.calibrator.calibration.source == "measured"
        assert server.stats().models.get(HIGH) is None, "the calibration of an earlier start is not measured again"
    assert values[HIGH] == pytest.approx(values[WORDS], abs=0.03)
    assert all(own > 0.5 > 0.2 > foreign for own, foreign in zip(values[HIGH][::2], values[HIGH][1::2], strict=True))


async def test_the_start_does_not_need_the_endpoint(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    async with open_embedded(tmp_path, **endpoint(away, HIGH), llm_timeout_s=1) as rag:
        await rag.search("Who designed the Tidal Array?", strategy="sparse")
        assert rag.container.calibrator.reason == "it is measured at the first search", "words need no embedder"
        calibration = await rag.container.calibrator.current_calibration()
        assert (calibration.source, rag.container.calibrator.pending) == ("default", True)
        assert "embedder" in str(rag.container.calibrator.reason)


async def results(corpus: Corpus) -> dict[str, Any]:
    """Return scores by document, of each use of a cosine: legs, relevance, hops, novelty, themes and synthetic questions."""
    tenant = (await corpus.container.catalogue.tenants.create("scales")).id
    corpus.documents[tenant] = {}
    fields = {"questions": QuestionOptions("patterns")}
    await corpus.add_all(
        tenant, {key: (f"# {title}\n\n{text}", {"title": title, **fields}) for key, (title, text, _) in CORPUS.items()}
    )
    await corpus.rebuild(tenant)
    await corpus.ended(tenant, await corpus.container.raptor.request_build(tenant))
    question = "Who founded the institute that designed the Tidal Array?"
    graph = await corpus.ask(tenant, question, "graph")
    novel = await corpus.ask(tenant, question, "hybrid", rerank=Rerank(name="mmr", candidates=30, options={"lambda": 0.3}))
    matched = await corpus.ask(tenant, "Where is the Glass Atlas shown?", "hybrid", synthetic_questions=True)
    themes = (await corpus.ask(tenant, question, "community")).themes
    nodes = (await corpus.ask(tenant, question, "raptor")).themes
    return {
        "relevance": [graph.relevance, novel.relevance],
        "hops": {hit.visible.document_key: hit.scores["hop"] for hit in graph.hits if "hop" in hit.scores},
        "graph": {hit.visible.document_key: hit.score for hit in graph.hits},
        "mmr": {hit.visible.document_key: hit.score for hit in novel.hits},
        "matched": sorted(str(hit.visible.document_key) for hit in matched.hits if hit.matched_question),
        "themes": [themes[0].score, themes[-1].score],
        "nodes": [nodes[0].score, nodes[-1].score],
    }


async def test_every_use_of_a_cosine_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scale = CosineScale(tuple(FLOOR + (1 - FLOOR) * level for level in LEVELS))
    known = make_calibration("squeezed", "fitted", questions=scale, passages=scale)
    monkeypatch.setattr(calibration, "CALIBRATIONS", {**CALIBRATIONS, "squeezed": known})
    values = {}
    for name in ("bundled", "squeezed"):
        with monkeypatch.context() as patched:
            if name == "squeezed":
                patched.setattr(reindexing, "open_embedder", lambda settings: Squeezed(BundledEmbedder(threads=1)))
            settings = Settings(data_dir=tmp_path / name, _env_file=None, community_auto_rebuild=False, search_cache_mb=0)
            async with open_container(settings) as container:
                assert container.embedder.fingerprint.startswith("onnx" if name == "bundled" else name)
                values[name] = await results(Corpus(container))
    bundled, squeezed = values["bundled"], values["squeezed"]
    assert squeezed["relevance"] == pytest.approx(bundled["relevance"], abs=0.01)
    assert squeezed["hops"] == pytest.approx(bundled["hops"], abs=0.01)
    assert squeezed["graph"] == pytest.approx(bundled["graph"], abs=0.01)
    assert squeezed["mmr"] == pytest.approx(bundled["mmr"], abs=0.01)
    assert squeezed["matched"] == bundled["matched"]
    assert squeezed["themes"] == pytest.approx(bundled["themes"], abs=0.03)
    assert squeezed["nodes"] == pytest.approx(bundled["nodes"], abs=0.03)
