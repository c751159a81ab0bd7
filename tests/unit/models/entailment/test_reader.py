"""The reader in this process, on a small ONNX model that is made here."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path

import pytest

from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.models.entailment.base import Inference, Label
from agentic_rag_backend.models.entailment.reader import OnnxReader
from agentic_rag_backend.models.facts_files import ReaderFacts, read_reader_facts
from agentic_rag_testing.models.cross_encoder import write_cross_encoder, write_reader

LABELS: tuple[Label, Label, Label] = ("contradiction", "entailment", "neutral")
FACTS = ReaderFacts(LABELS, max_word_pieces=16)
WEIGHTS = {"denied": (3.0, 0.0, 0.0), "perhaps": (0.0, 0.0, 2.0), "indeed": (0.0, 0.5, 0.0)}
BIAS = (0.0, 1.0, 0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reader(tmp_path_factory.mktemp("reader"), WEIGHTS, bias=BIAS, facts=FACTS)


async def test_the_outputs_are_probabilities_of_relations(folder: Path) -> None:
    reader = OnnxReader("small", folder, FACTS)
    plain, denied, perhaps = await reader.read([("A", "B"), ("A", "It was denied."), ("Perhaps, indeed.", "B")])
    total = 2 + math.e
    assert plain == Inference(
        *(pytest.approx(value) for value in (1 / total, math.e / total, 1 / total))  # type: ignore[arg-type]
    )
    assert [each.likeliest for each in (plain, denied, perhaps)] == ["entailment", "contradiction", "neutral"]
    assert reader.name == "small"
    assert await reader.read([]) == []
    await reader.close()
    with pytest.raises(ModelUnavailable, match="the reader is closed"):
        await reader.read([("A", "B")])


@pytest.mark.parametrize("labels", list(permutations(LABELS)))
async def test_the_facts_say_which_output_is_which(tmp_path: Path, labels: tuple[Label, Label, Label]) -> None:
    bias = [float(label == "entailment") for label in labels]
    facts = ReaderFacts(labels)
    reader = OnnxReader("small", write_reader(tmp_path / "r", {}, bias=bias, facts=facts), facts)
    assert [each.likeliest for each in await reader.read([("A", "B")])] == ["entailment"]
    await reader.close()


async def test_long_texts_are_cut_to_the_model_s_input(folder: Path) -> None:
    reader = OnnxReader("small", folder, FACTS)
    long, short = await reader.read([("word " * 100 + "denied", "B"), ("word", "B")])
    assert long == short
    await reader.close()


def test_facts_are_required_and_checked(tmp_path: Path, folder: Path) -> None:
    assert read_reader_facts(folder) == FACTS
    with pytest.raises(ConfigurationError, match=r"reader.json is missing; it names .*\"contradiction\""):
        read_reader_facts(tmp_path)
    for given, problem in (
        ({"labels": ["entailment", "neutral"]}, "labels"),
        ({"labels": ["entailment", "neutral", "neutral"]}, "must occur once"),
        ({"labels": ["entailment", "neutral", "other"]}, "labels"),
        ({"labels": list(LABELS), "max_word_pieces": 4}, "max_word_pieces"),
        ({"labels": list(LABELS), "order": 1}, "order"),
    ):
        (tmp_path / "reader.json").write_text(json.dumps(given))
        with pytest.raises(ConfigurationError, match=problem):
            read_reader_facts(tmp_path)


def test_another_kind_of_model_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"must have 3 outputs for a pair .* got shape \(1, 1\)"):
        OnnxReader("scores", write_cross_encoder(tmp_path / "scores", {}), FACTS)
    with pytest.raises(ConfigurationError, match=r"model.onnx is missing"):
        OnnxReader("none", tmp_path, FACTS)
