"""The reader of CLAIM_VERIFIER=nli: what is opened, and what stops the start."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.container import open_container
from agentic_rag_backend.container.models import open_reader
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models import registry
from agentic_rag_backend.models.facts_files import EncoderFacts, ReaderFacts
from agentic_rag_backend.models.installation import LocalFolder, install_model
from agentic_rag_backend.models.registry import READER, HubFile, KnownModel
from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.cross_encoder import write_reader

FACTS = ReaderFacts(("neutral", "entailment", "contradiction"))


def settings(tmp_path: Path, **given: Any) -> Settings:
    return Settings(data_dir=tmp_path / "data", _env_file=None, **given)


def reader_folder(tmp_path: Path) -> Path:
    return write_reader(tmp_path / "my-reader", {}, bias=(0.0, 1.0, 0.0), facts=FACTS)


def test_nothing_is_opened_for_another_verifier(tmp_path: Path) -> None:
    assert open_reader(settings(tmp_path)) is None
    assert open_reader(settings(tmp_path, claim_verifier_model_path=tmp_path)) is None


async def test_the_start_fails_without_the_model_and_names_the_command(tmp_path: Path) -> None:
    message = f"CLAIM_VERIFIER=nli: {READER} is not installed in .*; run 'agentic-rag models pull {READER}'"
    with pytest.raises(ConfigurationError, match=message):
        async with open_container(settings(tmp_path, claim_verifier="nli")):
            raise AssertionError("it started")


async def test_a_folder_is_opened_with_its_facts(tmp_path: Path) -> None:
    folder = reader_folder(tmp_path)
    given = settings(tmp_path, claim_verifier="nli", claim_verifier_model_path=folder)
    reader = open_reader(given)
    assert reader is not None
    assert reader.name == "my-reader"
    (inference,) = await reader.read([("A", "B")])
    assert inference.likeliest == "entailment"
    await reader.close()
    (folder / "reader.json").unlink()
    with pytest.raises(ConfigurationError, match=r"CLAIM_VERIFIER=nli: .*reader\.json is missing"):
        open_reader(given)


async def test_the_installed_model_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = reader_folder(tmp_path)
    files = tuple(
        HubFile(name, name, hashlib.sha256((source / name).read_bytes()).hexdigest(), (source / name).stat().st_size)
        for name in ("model.onnx", "tokenizer.json")
    )
    small = KnownModel(name=READER, kind="reader", facts=EncoderFacts(max_word_pieces=64), labels=FACTS.labels, files=files)
    monkeypatch.setattr(registry, "MODELS", {READER: small})
    given = settings(tmp_path, claim_verifier="nli")
    # The facts come from the table, not from the folder.
    (source / "reader.json").unlink()
    install_model(small, tmp_path / "data" / "models", LocalFolder(source))
    reader = open_reader(given)
    assert reader is not None
    assert [each.likeliest for each in await reader.read([("A", "B")])] == ["entailment"]
    await reader.close()
