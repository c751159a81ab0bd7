"""The cross-encoder, on a small ONNX model that is made here."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import ConfigurationError, ModelUnavailable
from agentic_rag_backend.models.pairs import MAX_WORD_PIECES
from agentic_rag_backend.models.reranking.cross_encoder import BATCH_PAIRS, RETRY_S, CrossEncoder, PairModel
from agentic_rag_testing.models.cross_encoder import write_cross_encoder

WEIGHTS = {"delayed": 2.0, "array": 1.0, "bread": -3.0}


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cross_encoder(tmp_path_factory.mktemp("model"), WEIGHTS)


async def test_scores_are_the_probabilities_of_pairs(folder: Path) -> None:
    encoder = CrossEncoder("small", lambda: folder)
    passages = ["The array was delayed.", "Bread, bread!", "", "delayed " * 3, "seals"]
    account = UsageAccount()
    found = await encoder.score("Why was the array delayed?", passages, account)
    assert found == pytest.approx([logistic(3), logistic(-6), 0.5, logistic(6), 0.5], abs=1e-6)
    assert account.usage.calls == 0
    assert encoder.name == "small"
    await encoder.close()


async def test_a_score_does_not_depend_on_the_passages_beside_it(folder: Path) -> None:
    encoder = CrossEncoder("small", lambda: folder)
    many = [f"{'array ' * (number % 7)}{'bread ' * (number % 3)}" for number in range(3 * BATCH_PAIRS + 5)]
    together = await encoder.score("q", many, UsageAccount())
    for number in (0, 5, BATCH_PAIRS, len(many) - 1):
        assert await encoder.score("q", [many[number]], UsageAccount()) == [together[number]]
    await encoder.close()


def test_long_texts_are_cut_to_the_model_s_input(folder: Path) -> None:
    model = PairModel(folder, threads=1)
    (long,) = model.score_passages("why", ["array " * 2 * MAX_WORD_PIECES])
    assert long == pytest.approx(1.0)
    assert model.score_passages("why " * 2 * MAX_WORD_PIECES, ["array array"]) == pytest.approx([logistic(2)])


async def test_a_model_that_cannot_be_loaded_says_why_and_is_tried_again_later(tmp_path: Path, folder: Path) -> None:
    now, places = [100.0], [tmp_path / "absent"]
    encoder = CrossEncoder("small", lambda: places[-1], clock=lambda: now[-1])
    encoder.check()
    with pytest.raises(ModelUnavailable, match=r"model.onnx is missing"):
        await encoder.score("q", ["p"], UsageAccount())
    places.append(folder)
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        encoder.check()
    now.append(100.0 + RETRY_S)
    encoder.check()
    assert await encoder.score("q", ["array"], UsageAccount()) == pytest.approx([logistic(1)])
    await encoder.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        await encoder.score("q", ["array"], UsageAccount())


@pytest.mark.parametrize("damaged", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named(tmp_path: Path, damaged: str) -> None:
    folder = write_cross_encoder(tmp_path, WEIGHTS)
    (folder / damaged).write_bytes(b"damaged")
    with pytest.raises(ConfigurationError, match=damaged):
        PairModel(folder, threads=1)
