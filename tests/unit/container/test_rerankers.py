"""Settings of rerankers: what is opened, and what stops the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model_hub import model_hub

from agentic_rag_backend.container.models import open_cross_encoder, open_rerank_endpoint, rerank_defaults
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.installation import LocalFolder, has_files, install_model
from agentic_rag_backend.models.registry import reranker_of
from agentic_rag_backend.retrieval.requests.builder import RerankDefaults
from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.cross_encoder import write_cross_encoder


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(data_dir=tmp_path, _env_file=None, **given)


def test_nothing_is_opened_by_default(tmp_path: Path) -> None:
    plain = settings(tmp_path)
    assert open_cross_encoder(plain) is open_rerank_endpoint(plain) is None


async def test_models_are_named(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "my-encoder", {"array": 1.0})
    given = settings(tmp_path, cross_encoder_model_path=folder, rerank_url="https://rerank.example/v2/rerank", rerank_model="m")
    named = [
        open_cross_encoder(given),
        open_rerank_endpoint(given),
        open_cross_encoder(settings(tmp_path, cross_encoder_download=True)),
    ]
    assert [each and each.name for each in named] == ["my-encoder", "m", "Xenova/ms-marco-MiniLM-L-6-v2"]
    for each in named:
        assert each is not None
        each.check()
        await each.close()


def test_the_default_of_hybrid_is_switched_by_its_setting(tmp_path: Path) -> None:
    assert rerank_defaults(settings(tmp_path, hybrid_rerank=False)).hybrid is None
    chosen = rerank_defaults(settings(tmp_path, reranker="mmr", hybrid_rerank=True, rerank_timeout_s=3))
    assert chosen == RerankDefaults(reranker="mmr", hybrid="mmr", timeout_s=3)


def test_wrong_settings_stop_the_start(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"CROSS_ENCODER_MODEL_PATH .* lacks tokenizer.json"):
        open_cross_encoder(settings(tmp_path, cross_encoder_model_path=tmp_path))
    with pytest.raises(ConfigurationError, match="RERANK_URL must begin with http"):
        open_rerank_endpoint(settings(tmp_path, rerank_url="rerank.example"))
    with pytest.raises(ConfigurationError, match=r"RERANKER must be one of none, mmr, .*; got 'best'"):
        rerank_defaults(settings(tmp_path, reranker="best"))


async def test_an_installed_reranker_needs_no_setting(tmp_path: Path) -> None:
    files = write_cross_encoder(tmp_path / "source", {"array": 1.0})
    given = settings(tmp_path, cross_encoder_model="maker/model")
    assert open_cross_encoder(given) is None
    install_model(reranker_of("maker/model"), tmp_path / "models", LocalFolder(files))
    scorer = open_cross_encoder(given)
    assert scorer is not None
    assert list(await scorer.score("q", ["array"], UsageAccount())) == [pytest.approx(0.731, abs=0.001)]
    await scorer.close()


async def test_a_reranker_is_downloaded_when_it_is_needed(tmp_path: Path) -> None:
    source = write_cross_encoder(tmp_path / "source", {"array": 1.0})
    root = "/maker/model/resolve/main"
    files = {f"{root}/onnx/model.onnx": source / "model.onnx", f"{root}/tokenizer.json": source / "tokenizer.json"}
    with model_hub({path: file.read_bytes() for path, file in files.items()}) as hub:
        given = settings(tmp_path, cross_encoder_model="maker/model", cross_encoder_download=True, model_hub_url=hub.url)
        scorer = open_cross_encoder(given)
        assert scorer is not None
        assert hub.ranges == []
        assert list(await scorer.score("q", ["array"], UsageAccount())) == [pytest.approx(0.731, abs=0.001)]
        await scorer.close()
    assert has_files(reranker_of("maker/model"), tmp_path / "models")
