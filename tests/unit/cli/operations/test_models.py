"""``models list|pull|check`` with small models and a hub on loopback."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_hub import ModelHub, model_hub
from small_encoders import table_of, write_encoder

from agentic_rag_backend.cli.app import run
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models import checking, registry
from agentic_rag_backend.models.entailment.base import Label
from agentic_rag_backend.models.facts_files import EncoderFacts, ReaderFacts, written_facts, written_reader_facts
from agentic_rag_backend.models.registry import HubFile, KnownModel
from agentic_rag_testing.models.cross_encoder import write_cross_encoder, write_reader

WORDS = ("harbour", "storm", "gear", "pays", "pay", "for", "dough", "warm", "kitchen")
Report = Callable[..., Any]
LABELS: tuple[Label, Label, Label] = ("contradiction", "entailment", "neutral")
CONTRADICTING = {"dough": (3.0, 0.0, 0.0)}
"""Weights of a word of the unrelated passage."""


def known_files(source: Path, repository: str) -> tuple[dict[str, bytes], tuple[HubFile, ...]]:
    """Return the files of a model by their path on the hub, and their places in the table."""
    names = ("model.onnx", "tokenizer.json")
    contents = {name: (source / name).read_bytes() for name in names}
    files = tuple(HubFile(name, name, hashlib.sha256(contents[name]).hexdigest(), len(contents[name])) for name in names)
    return {f"/{repository}/resolve/r1/{name}": contents[name] for name in names}, files


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    """Run a hub with a small encoder and a small reranker, which are the known models."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "EMBEDDING_MODEL", "EMBEDDING_MODEL_PATH"):
        monkeypatch.delenv(name, raising=False)
    table = table_of(WORDS)
    table[4:] = np.abs(table[4:])
    table[-3:] *= -1  # words of the unrelated passage
    encoder = write_encoder(tmp_path / "encoder", WORDS, table=table)
    reranker = write_cross_encoder(tmp_path / "reranker", {"harbour": 1.0})
    answers, files = known_files(encoder, "maker/small")
    others, other_files = known_files(reranker, "maker/pairs")
    read, reader_files = known_files(
        write_reader(tmp_path / "reader", CONTRADICTING, bias=(0.0, 1.0, 0.0), facts=ReaderFacts(LABELS)), "maker/reader"
    )
    facts = EncoderFacts(dimensions=8, languages=("en",), question_prefix="harbour ")
    known = (
        KnownModel(
            name="small", kind="encoder", facts=facts, repository="maker/small", revision="r1", files=files, licence="MIT"
        ),
        KnownModel(
            name="pairs", kind="reranker", facts=EncoderFacts(), repository="maker/pairs", revision="r1", files=other_files
        ),
        KnownModel(
            name="nli",
            kind="reader",
            facts=EncoderFacts(max_word_pieces=512),
            labels=LABELS,
            repository="maker/reader",
            revision="r1",
            files=reader_files,
        ),
    )
    monkeypatch.setattr(registry, "MODELS", {model.name: model for model in known})
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("CROSS_ENCODER_MODEL", "maker/unknown")
    with model_hub(answers | others | read) as running:
        monkeypatch.setenv("MODEL_HUB_URL", running.url)
        yield running


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    def reported(*arguments: str, code: int = 0) -> Any:
        assert run(["models", *arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return reported


def test_known_models_are_listed_with_their_state(hub: ModelHub, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in report("list")}
    assert set(rows) == {"small", "pairs", "nli", "maker--unknown"}
    assert rows["small"]["state"] == "not installed"
    assert rows["small"]["files"][0]["address"] == f"{hub.url}/maker/small/resolve/r1/model.onnx"
    assert (rows["small"]["question_prefix"], rows["small"]["pooling"]) == ("harbour ", "mean")
    assert rows["small"]["checksums"] == "known"
    assert rows["maker--unknown"]["checksums"] == "recorded at the first download"
    report("pull", "small")
    assert {row["name"]: row["state"] for row in report("list")}["small"] == "installed"
    assert run(["models", "list"]) == 0
    shown = capsys.readouterr().out
    assert "maker--unknown: its checksums are recorded at the first download." in " ".join(shown.split())
    lines = [line for line in shown.splitlines() if line.startswith("small")]
    assert lines[0].split()[:3] == ["small", "encoder", "installed"], "a line of 80 columns holds a model"


def test_a_pulled_model_can_be_checked(hub: ModelHub, report: Report, tmp_path: Path) -> None:
    report("pull", "small")
    report("pull", "maker/pairs")
    encoder, reranker = report("check")
    assert (encoder["state"], encoder["dimensions"], encoder["norm"], encoder["arithmetic"]) == ("ok", 8, 1.0, "float32")
    assert (reranker["name"], reranker["state"]) == ("pairs", "ok")
    assert encoder["CPU ms a passage"] >= 0
    assert [row["name"] for row in report("check", "small")] == ["small"]
    model = tmp_path / "data" / "models" / "small" / "model.onnx"
    model.write_bytes(model.read_bytes()[::-1])
    (row,) = report("check", "small", code=1)
    assert "has SHA-256" in row["state"]


def test_a_reader_is_pulled_and_checked(
    hub: ModelHub, report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {row["name"]: row.get("labels") for row in report("list")}["nli"] == list(LABELS)
    assert run(["models", "pull", "nli"]) == 0
    assert "CLAIM_VERIFIER=nli" in capsys.readouterr().out
    (row,) = report("check", "nli")
    assert (row["state"], row["dimensions"]) == ("ok", "")
    facts = tmp_path / "data" / "models" / "nli" / "reader.json"
    facts.write_bytes(written_reader_facts(ReaderFacts(("entailment", "contradiction", "neutral"))))
    (row,) = report("check", "nli", code=1)
    assert "check the order of the labels" in row["state"]


def test_progress_is_on_stderr_and_the_next_step_on_stdout(
    hub: ModelHub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentic_rag_backend.cli.progress.LINE_INTERVAL_S", 0.0)
    assert run(["models", "pull", "small"]) == 0
    shown = capsys.readouterr()
    assert "small: model.onnx" in shown.err
    assert "100 %" in shown.err
    assert "EMBEDDING_MODEL=small" in " ".join(shown.out.split())
    assert run(["models", "pull", "pairs"]) == 0
    assert "cross_encoder" in capsys.readouterr().out


def test_a_model_is_taken_from_a_folder(hub: ModelHub, report: Report, tmp_path: Path) -> None:
    hub.files.clear()
    assert report("pull", "small", "--from", str(tmp_path / "encoder"))["folder"] == str(tmp_path / "data" / "models" / "small")


def test_an_unlisted_reranker_of_the_settings_can_be_pulled(hub: ModelHub, report: Report, tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "other", {"harbour": 1.0})
    report("pull", "maker/unknown", "--from", str(tmp_path / "other"))
    (row,) = report("check")
    assert (row["name"], row["state"]) == ("maker--unknown", "ok")


def test_failures_end_with_one_line(hub: ModelHub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.files["/maker/small/resolve/r1/model.onnx"] = b"another file"
    assert run(["models", "pull", "small"]) == 1
    assert "model.onnx of small has SHA-256" in " ".join(capsys.readouterr().err.split())
    assert run(["models", "pull", "large"]) == 2
    assert "no known model is called 'large'; known are small, pairs, nli" in " ".join(capsys.readouterr().err.split())


def test_what_is_bundled_is_not_pulled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    assert run(["models", "pull", "all-MiniLM-L6-v2"]) == 2
    assert "part of the installed packages" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (EncoderFacts(dimensions=9), "8 dimensions, not 9"),
        (EncoderFacts(question_prefix="dough " * 20), "check pooling and prefixes"),
    ],
)
def test_a_folder_of_the_settings_is_checked(
    hub: ModelHub, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: EncoderFacts, problem: str
) -> None:
    folder = tmp_path / "encoder"
    monkeypatch.setenv("EMBEDDING_MODEL_PATH", str(folder))
    assert [row["state"] for row in report("check")] == ["ok"]
    (folder / "encoder.json").write_bytes(written_facts(facts))
    (row,) = report("check", code=1)
    assert problem in row["state"]
    assert row["name"] == str(folder)


async def test_a_model_that_cannot_read_its_longest_input_is_refused(tmp_path: Path) -> None:
    class Short:
        max_word_pieces = 600

        async def embed(self, texts: list[str]) -> np.ndarray:
            if len(texts[0]) > 3_000:
                raise checking._RUN_FAILURES[0]("512 by 602")
            return np.eye(2, 8, dtype=np.float32)

        async def embed_query(self, text: str) -> np.ndarray:
            return np.ones(8, dtype=np.float32)

    with pytest.raises(ConfigurationError, match="the model cannot be run: 512 by 602"):
        await checking.check_encoder(Short())


def test_a_reranker_that_prefers_the_unrelated_passage_is_refused(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path, {"dough": 1.0})
    with pytest.raises(ConfigurationError, match=r"a related passage scores 0\.\d+, an unrelated one"):
        checking.check_reranker(folder)
