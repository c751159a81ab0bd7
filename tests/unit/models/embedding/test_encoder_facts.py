"""Facts of an encoder are read from its folder, and wrong ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.facts_files import FACTS_FILE, EncoderFacts, read_facts, written_facts


def test_what_is_written_is_read(tmp_path: Path) -> None:
    facts = EncoderFacts(
        dimensions=384,
        languages=("en", "de"),
        pooling="cls",
        question_prefix="query: ",
        passage_prefix="p: ",
        max_word_pieces=512,
    )
    (tmp_path / FACTS_FILE).write_bytes(written_facts(facts))
    assert read_facts(tmp_path) == facts


def test_a_folder_without_facts_has_those_of_the_bundled_kind(tmp_path: Path) -> None:
    assert read_facts(tmp_path) == EncoderFacts(pooling="mean", max_word_pieces=256, languages=None, dimensions=None)
    (tmp_path / FACTS_FILE).write_text('{"pooling": "cls"}')
    assert read_facts(tmp_path) == EncoderFacts(pooling="cls")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"pooling": "max"}', "pooling: Input should be 'mean' or 'cls'"),
        ('{"prefix": "query: "}', "prefix: Unexpected keyword argument"),
        ('{"max_word_pieces": 4}', "max_word_pieces: Input should be greater than or equal to 16"),
        ('{"dimensions": "384"}', "dimensions: Input should be a valid integer"),
        ("[", "the file: Invalid JSON"),
    ],
)
def test_a_wrong_fact_is_named(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / FACTS_FILE).write_text(content)
    with pytest.raises(ConfigurationError, match=f"encoder.json: {problem}"):
        read_facts(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / FACTS_FILE).mkdir()
    with pytest.raises(ConfigurationError, match=r"encoder\.json cannot be read: Is a directory"):
        read_facts(tmp_path)
