"""Facts about an encoder that its files do not contain: how texts go in, and how a vector comes out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from agentic_rag_backend.models.facts_files import read_facts_file

FACTS_FILE = "encoder.json"
Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class EncoderFacts:
    """How an encoder reads texts.

    ``dimensions`` and ``languages`` are None if they are unknown; for ``languages``, None also means many. ``pooling`` is "mean"
    (of all word pieces) or "cls" (the first special token). The prefixes belong before each question and each passage.
    ``max_word_pieces`` is the longest input, with its special tokens.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    dimensions: Annotated[int, Field(ge=1, le=8192)] | None = None
    languages: tuple[str, ...] | None = None
    pooling: Pooling = "mean"
    question_prefix: Annotated[str, Field(max_length=500)] = ""
    passage_prefix: Annotated[str, Field(max_length=500)] = ""
    max_word_pieces: Annotated[int, Field(ge=16, le=8192)] = 256


BUNDLED_FACTS = EncoderFacts(dimensions=384, languages=("en",))
"""all-MiniLM-L6-v2 was trained on English text, with inputs of 256 word pieces."""
_READER = TypeAdapter(EncoderFacts)


def read_facts(folder: Path) -> EncoderFacts:
    """Return the facts in ``encoder.json`` of a folder; the defaults, if it has no such file.

    Raises:
        ConfigurationError: the file cannot be read, or a fact is outside its limits.
    """
    return read_facts_file(folder / FACTS_FILE, _READER) or EncoderFacts()


def written_facts(facts: EncoderFacts) -> bytes:
    """Return the content of ``encoder.json``."""
    return _READER.dump_json(facts, indent=2) + b"\n"
