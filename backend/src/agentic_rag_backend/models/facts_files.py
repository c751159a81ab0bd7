"""Facts about encoders and readers that their files do not contain, as JSON files beside the weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.entailment.base import Label

T = TypeVar("T")


def read_facts_file(path: Path, adapter: TypeAdapter[T]) -> T | None:
    """Return the facts in a file; None if there is no file.

    Raises:
        ConfigurationError: the file cannot be read, or a fact is outside its limits.
    """
    try:
        return adapter.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise ConfigurationError(f"{path}: {name}: {problem['msg']}") from error


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
_ENCODER_FACTS = TypeAdapter(EncoderFacts)


def read_facts(folder: Path) -> EncoderFacts:
    """Return the facts in ``encoder.json`` of a folder; the defaults, if it has no such file.

    Raises:
        ConfigurationError: the file cannot be read, or a fact is outside its limits.
    """
    return read_facts_file(folder / FACTS_FILE, _ENCODER_FACTS) or EncoderFacts()


def written_facts(facts: EncoderFacts) -> bytes:
    """Return the content of ``encoder.json``."""
    return _ENCODER_FACTS.dump_json(facts, indent=2) + b"\n"


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


_READER_FACTS = TypeAdapter(ReaderFacts)


def read_reader_facts(folder: Path) -> ReaderFacts:
    """Return the facts in ``reader.json`` of a folder.

    Raises:
        ConfigurationError: the file is missing or cannot be read, or a fact is outside its limits.
    """
    path = folder / READER_FACTS_FILE
    facts = read_facts_file(path, _READER_FACTS)
    if facts is None:
        raise ConfigurationError(f"{path} is missing; it names the model's outputs in their order, such as {EXAMPLE}")
    return facts


def written_reader_facts(facts: ReaderFacts) -> bytes:
    """Return the content of ``reader.json``."""
    return _READER_FACTS.dump_json(facts, indent=2) + b"\n"
