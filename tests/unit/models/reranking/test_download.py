"""Download of a cross-encoder. The hub is replaced, because tests have no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.reranking.download import download


def test_files_are_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(repository: str, name: str, *, local_dir: Path) -> str:
        asked.append((repository, name))
        path = local_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        return str(path)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    for _ in range(2):
        folder = download("maker/model", tmp_path)
        assert (folder / "model.onnx").read_text() == "onnx/model.onnx"
        assert (folder / "tokenizer.json").read_text() == "tokenizer.json"
    assert asked == [("maker/model", "onnx/model.onnx"), ("maker/model", "tokenizer.json")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LocalEntryNotFoundError("offline"), "cannot be reached"),
        (OSError("disk"), "onnx/model.onnx of 'maker/model' cannot be downloaded: OSError"),
        (ValueError("bad name"), "cannot be downloaded: ValueError"),
    ],
)
def test_a_failure_says_why_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def fetch(*_: Any, **__: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fetch)
    with pytest.raises(ModelUnavailable, match="set CROSS_ENCODER_MODEL_PATH to a folder") as failed:
        download("maker/model", tmp_path)
    assert reason in failed.value.message
