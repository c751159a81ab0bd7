"""Encoders of a folder: pooling, prefixes, longest input, and models with integer products of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_encoders import DIMENSIONS, SPECIAL, table_of, write_encoder

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.onnx import onnx_sessions
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.models.facts_files import EncoderFacts

WORDS = ("query", "passage", "kelp", "harbour", "light", "storm")
TABLE = table_of(WORDS)
PREFIXES = EncoderFacts(question_prefix="query: ", passage_prefix="passage: ")


def rows(text: str) -> np.ndarray:
    return np.array([TABLE[(*SPECIAL, *WORDS).index(word)] for word in f"[CLS] {text} [SEP]".split()])


def unit(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / np.linalg.norm(vector))


async def vectors(folder: Path, *texts: str, **named: Any) -> Any:
    embedder = BundledEmbedder(model_path=folder, threads=1, **named)
    try:
        return embedder, await embedder.embed(texts), np.array([await embedder.embed_query(text) for text in texts])
    finally:
        await embedder.close()


@pytest.mark.parametrize("unigram", [False, True], ids=["words", "SentencePiece"])
@pytest.mark.parametrize(("pooling", "pool"), [("mean", lambda rows: rows.mean(axis=0)), ("cls", lambda rows: rows[0])])
async def test_vectors_are_pooled_with_the_prefix_of_their_kind(
    tmp_path: Path, pooling: Any, pool: Callable[[np.ndarray], np.ndarray], unigram: bool
) -> None:
    # With SentencePiece, "query: kelp" has the pieces "▁query", ":" and "▁kelp".
    folder = write_encoder(tmp_path, WORDS, replace(PREFIXES, pooling=pooling), unigram=unigram)
    embedder, (passage,), (question,) = await vectors(folder, "kelp storm")
    np.testing.assert_allclose(passage, unit(pool(rows("passage : kelp storm"))), atol=1e-6)
    np.testing.assert_allclose(question, unit(pool(rows("query : kelp storm"))), atol=1e-6)
    assert embedder.languages is None


async def test_windows_have_the_longest_input_and_each_has_the_prefix(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, WORDS, replace(PREFIXES, max_word_pieces=16))
    embedder, (long,), _ = await vectors(folder, "kelp " * 12 + "storm " * 12)
    halves = [rows("passage : " + word * 12).sum(axis=0) for word in ("kelp ", "storm ")]
    np.testing.assert_allclose(long, unit(halves[0] + halves[1]), atol=1e-6)
    assert embedder.stats.windows == 2
    assert embedder.query_characters("kelp " * 30) == len("kelp " * 12) - 1


async def test_the_parts_of_a_long_text_count_by_their_length_with_every_pooling(tmp_path: Path) -> None:
    facts = EncoderFacts(pooling="cls", max_word_pieces=16)
    _, (long, short), _ = await vectors(write_encoder(tmp_path, WORDS, facts), "kelp " * 40, "kelp")
    np.testing.assert_allclose(long, short, atol=1e-6)  # the first vector of every window is that of [CLS]
    assert np.linalg.norm(long) == pytest.approx(1)


async def test_each_encoder_has_its_fingerprint(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, WORDS)
    plain = EncoderFacts()
    different = (plain, replace(plain, pooling="cls"), replace(plain, max_word_pieces=64), replace(plain, passage_prefix="p: "))
    found = [(await vectors(folder, "kelp", facts=facts))[0].fingerprint for facts in different]
    assert len(set(found)) == len(different)
    # A question's prefix changes no stored vector.
    assert (await vectors(folder, "kelp", facts=replace(plain, question_prefix="q: ")))[0].fingerprint == found[0]
    assert (await vectors(folder, "kelp"))[0].fingerprint == found[0]


def test_facts_that_contradict_the_model_are_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, WORDS)
    with pytest.raises(ConfigurationError, match=f"vectors of {DIMENSIONS} dimensions, not 384"):
        BundledEmbedder(model_path=folder, threads=1, facts=EncoderFacts(dimensions=384))
    with pytest.raises(ConfigurationError, match=r"a prefix of .* takes more than half of its 16 word pieces"):
        BundledEmbedder(model_path=folder, threads=1, facts=EncoderFacts(passage_prefix="kelp " * 9, max_word_pieces=16))


async def test_with_integer_products_of_the_model_a_vector_depends_on_its_text_alone(tmp_path: Path) -> None:
    table = TABLE * np.linspace(1, 50, len(TABLE))[:, None].astype(np.float32)  # some texts have larger numbers than others
    folder = write_encoder(tmp_path, WORDS, integers=True, table=table)
    texts = ("kelp", "storm light", "harbour " * 9)
    embedder, together, _ = await vectors(folder, *texts)
    assert embedder.arithmetic == "int8"
    assert not embedder.is_bundled
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal((await vectors(folder, text))[1][0], vector)
    # The model computes in integers whatever the setting.
    other = (await vectors(folder, "kelp", arithmetic="int8"))[0]
    assert other.fingerprint == embedder.fingerprint


async def test_inexact_integer_products_are_computed_in_floats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_encoder(tmp_path, WORDS, integers=True)
    embedder, exact, _ = await vectors(folder, "kelp storm")
    monkeypatch.setattr(onnx_sessions, "multiplies_exactly", lambda: False)
    other, floats, _ = await vectors(folder, "kelp storm")
    np.testing.assert_allclose(floats, exact, atol=1e-6)
    assert other.fingerprint == embedder.fingerprint


def test_chunks_are_measured_with_a_sentencepiece_tokenizer(tmp_path: Path) -> None:
    tokenizer = WordPieceTokenizer(write_encoder(tmp_path, WORDS, unigram=True) / "tokenizer.json")
    text = "kelp harbour storm"
    spans = tokenizer.spans(text)
    assert [text[start:end].strip() for start, end in spans] == text.split()
