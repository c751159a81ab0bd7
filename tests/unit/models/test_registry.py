"""The table of known models is complete, and names are found in it."""

from __future__ import annotations

import re

import pytest

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.model_files import MODEL_FILE, TOKENIZER_FILE
from agentic_rag_backend.models.registry import BUNDLED, MODELS, READER, known_model, reranker_of


def test_every_file_is_pinned_by_revision_and_hash() -> None:
    downloaded = [model for model in MODELS.values() if model.name != BUNDLED]
    assert len(downloaded) >= 3
    for model in downloaded:
        assert [file.name for file in model.files] == [MODEL_FILE, TOKENIZER_FILE]
        assert re.fullmatch("[0-9a-f]{40}", model.revision), model.name
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256 or "") and file.size_bytes for file in model.files), model.name
        assert model.licence
        assert (model.kind == "encoder") == (model.facts.dimensions is not None)
        assert (model.kind == "reader") == (model.labels is not None)
        assert re.fullmatch(r"[\w.-]+", model.name), "it is the name of a folder"


def test_the_reader_is_known_with_the_order_of_its_outputs() -> None:
    assert known_model(READER, "reader").labels == ("contradiction", "entailment", "neutral")


def test_an_unknown_name_lists_the_names_of_its_kind() -> None:
    assert known_model("bge-small-en-v1.5", "encoder").facts.pooling == "cls"
    with pytest.raises(
        ConfigurationError, match=r"no known encoder is called 'ms-marco-MiniLM-L-6-v2'; known are .*bge-small"
    ) as error:
        known_model("ms-marco-MiniLM-L-6-v2", "encoder")
    assert "known are all-MiniLM-L6-v2" in error.value.message
    with pytest.raises(ConfigurationError, match="no known model is called 'text-embedding-3-small'"):
        known_model("text-embedding-3-small")


def test_a_reranker_has_a_name_or_a_repository() -> None:
    assert reranker_of("Xenova/ms-marco-MiniLM-L-6-v2") is reranker_of("ms-marco-MiniLM-L-6-v2")
    other = reranker_of("maker/model")
    assert (other.name, other.repository, other.size_bytes) == ("maker--model", "maker/model", None)
    assert [(file.path, file.sha256) for file in other.files] == [("onnx/model.onnx", None), ("tokenizer.json", None)]
    # An encoder's repository is no reranker.
    assert reranker_of("Xenova/bge-small-en-v1.5").kind == "reranker"
