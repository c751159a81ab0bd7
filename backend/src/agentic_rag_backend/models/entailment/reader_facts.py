"""Facts about a reader that its files do not contain: the order of its outputs, and its longest input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.entailment.base import Label
from agentic_rag_backend.models.facts_files import read_facts_file

READER_FACTS_FILE = "reader.json"
EXAMPLE = '{"labels": ["contradiction", "entailment", "neutral"]}'
Labels = tuple[Label, Label, Label]


def _require_distinct(labels: Labels) -> Labels:
    if len(set(labels)) != len(labels):
        raise ValueError("each of contradiction, entailment and neutral must occur once")
    return labels


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """How a reader's outputs are read.

    ``labels`` are the relations in the order of the outputs; models differ in it. ``max_word_pieces`` is the longest input, with
    its special tokens.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    labels: Annotated[Labels, AfterValidator(_require_distinct)]
    max_word_pieces: Annotated[int, Field(ge=16, le=8192)] = 512


_READER = TypeAdapter(ReaderFacts)


def read_reader_facts(folder: Path) -> ReaderFacts:
    """Return the facts in ``reader.json`` of a folder.

    Raises:
        ConfigurationError: the file is missing or cannot be read, or a fact is outside its limits.
    """
    path = folder / READER_FACTS_FILE
    facts = read_facts_file(path, _READER)
    if facts is None:
        raise ConfigurationError(f"{path} is missing; it names the model's outputs in their order, such as {EXAMPLE}")
    return facts


def written_reader_facts(facts: ReaderFacts) -> bytes:
    """Return the content of ``reader.json``."""
    return _READER.dump_json(facts, indent=2) + b"\n"
