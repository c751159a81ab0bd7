"""The embedder that the settings name: a known model, a folder, or an endpoint with its own address and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_encoders import write_encoder

from agentic_rag_backend.cli.configuration import models_of
from agentic_rag_backend.container.models import open_embedder, tokenizer_file
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models import registry
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.openai_embedder import OpenAIEmbedder
from agentic_rag_backend.models.facts_files import EncoderFacts
from agentic_rag_backend.models.installation import LocalFolder, install_model
from agentic_rag_backend.models.registry import HubFile, KnownModel
from agentic_rag_backend.settings import Settings

SMALL = KnownModel(
    name="small",
    kind="encoder",
    facts=EncoderFacts(pooling="cls", languages=("en", "de")),
    repository="maker/small",
    files=(HubFile("model.onnx", "onnx/model.onnx"), HubFile("tokenizer.json", "tokenizer.json")),
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the small model to the known ones."""
    monkeypatch.setattr(registry, "MODELS", {**registry.MODELS, "small": SMALL})


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(data_dir=tmp_path, _env_file=None, **given)


async def test_an_installed_model_is_opened_by_its_name(tmp_path: Path, known: None) -> None:
    named = settings(tmp_path, embedding_model="small", embedding_threads=1)
    with pytest.raises(ConfigurationError, match=r"small is not installed in .*; run 'agentic-rag models pull small'"):
        open_embedder(named)
    folder = install_model(SMALL, tmp_path / "models", LocalFolder(write_encoder(tmp_path / "source", ["kelp"])))
    embedder = open_embedder(named)
    assert isinstance(embedder, BundledEmbedder)
    assert embedder.languages == ("en", "de")
    assert "-cls-" in embedder.fingerprint
    assert tokenizer_file(named) == folder / "tokenizer.json"
    assert models_of(named)["embedder"] == "bundled: small, in this process"
    # The installed folder has the same facts for EMBEDDING_MODEL_PATH.
    by_path = open_embedder(settings(tmp_path, embedding_model_path=folder, embedding_threads=1))
    assert (by_path.fingerprint, by_path.languages) == (embedder.fingerprint, embedder.languages)
    (folder / "model.onnx").write_bytes(b"changed")
    with pytest.raises(ConfigurationError, match=r"model\.onnx has SHA-256"):
        open_embedder(named)
    for each in (embedder, by_path):
        await each.close()


async def test_the_name_of_the_bundled_encoder_selects_it(tmp_path: Path) -> None:
    named = settings(tmp_path, embedding_model="all-MiniLM-L6-v2", embedding_threads=1)
    embedder = open_embedder(named)
    assert isinstance(embedder, BundledEmbedder)
    assert embedder.is_bundled
    assert tokenizer_file(named) is None
    await embedder.close()


def test_names_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="EMBEDDING_MODEL: no known encoder is called 'text-embedding-3-small'; known are all-MiniLM"
    ):
        open_embedder(settings(tmp_path, embedding_model="text-embedding-3-small"))
    with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL and EMBEDDING_MODEL_PATH name two encoders"):
        open_embedder(settings(tmp_path, embedding_model="bge-small-en-v1.5", embedding_model_path=tmp_path))


@pytest.mark.parametrize(
    ("given", "address", "key"),
    [
        ({"openai_api_key": "a"}, "https://api.openai.com/v1/", "a"),
        ({"openai_api_key": "a", "openai_base_url": "http://llm/v1"}, "http://llm/v1/", "a"),
        ({"openai_base_url": "http://llm/v1"}, "http://llm/v1/", "none"),
        ({"openai_api_key": "a", "embedding_base_url": "http://tei/v1"}, "http://tei/v1/", "none"),
        ({"openai_api_key": "a", "embedding_base_url": "http://tei/v1", "embedding_api_key": "b"}, "http://tei/v1/", "b"),
        ({"openai_api_key": "a", "embedding_api_key": "b"}, "https://api.openai.com/v1/", "b"),
    ],
)
async def test_an_endpoint_has_its_own_address_and_key(tmp_path: Path, given: Any, address: str, key: str) -> None:
    embedder = open_embedder(settings(tmp_path, embedder="openai", **given))
    assert isinstance(embedder, OpenAIEmbedder)
    client = embedder._endpoint.client
    assert (str(client.base_url), client.api_key) == (address, key)
    assert embedder.fingerprint == "openai-text-embedding-3-small-1536"
    await embedder.close()


async def test_an_endpoint_takes_the_settings_of_its_model(tmp_path: Path) -> None:
    given = settings(
        tmp_path,
        embedder="openai",
        embedding_base_url="http://tei/v1",
        embedding_model="maker/e5",
        embedding_dimensions=384,
        embedding_batch_size=8,
        embedding_question_prefix="query: ",
        embedding_passage_prefix="passage: ",
    )
    embedder = open_embedder(given)
    assert isinstance(embedder, OpenAIEmbedder)
    assert (embedder._texts.batch_size, embedder._texts.question_prefix, embedder._texts.passage_prefix) == (
        8,
        "query: ",
        "passage: ",
    )
    assert models_of(given)["embedder"] == "openai: maker/e5 at http://tei/v1"
    assert tokenizer_file(given) is None
    await embedder.close()


def test_openai_requires_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDER=openai requires OPENAI_API_KEY"):
        open_embedder(settings(tmp_path, embedder="openai"))
