"""Training files: JSON Lines of questions, with the documents or passages that a search must find."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agentic_rag_backend.errors import InvalidRequest

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_ROWS = 2_000
MAX_QUESTION = 8_000
MAX_GOLD = 50
MAX_PASSAGE = 20_000
_MAX_NAME = 1_024
_REPORTED = 10
"""Errors that a refusal lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row of a training file.

    Attributes:
        row: line number in the file, from 1.
        documents: ids, keys or titles of documents that a search must find.
        passages: texts of passages that a search must find.
        tenant: name or id. None: the tenant of the command.
        group: rows of one group are all for training or all for validation. Empty: the row is its own group.
    """

    row: int
    question: str
    documents: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    tenant: str | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class ExampleSplit:
    """Examples by use: proposals read those for training, and those for validation choose the prompt."""

    training: tuple[Example, ...]
    validation: tuple[Example, ...]


def read_examples(path: Path) -> tuple[Example, ...]:
    """Return the rows of a file. Empty lines are skipped, and unknown fields are ignored.

    Raises:
        InvalidRequest: the file cannot be read or is too large, or rows of it are malformed. The message has the first ten with
            their numbers.
    """
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise InvalidRequest(f"training file {path} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are allowed")
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InvalidRequest(f"training file {path} cannot be read: {error.strerror or type(error).__name__}") from error
    examples, problems = [], []
    for row, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            examples.append(_example(row, line))
        except InvalidRequest as error:
            problems.append(f"row {row}: {error.message}")
    if len(examples) > MAX_ROWS:
        problems.append(f"it has {len(examples):,} rows; at most {MAX_ROWS:,} are allowed")
    if problems:
        suffix = f"; and {len(problems) - _REPORTED} more" if len(problems) > _REPORTED else ""
        raise InvalidRequest(f"training file {path} is malformed: {'; '.join(problems[:_REPORTED])}{suffix}")
    return tuple(examples)


def split(examples: Sequence[Example], validation_share: float, seed: int) -> ExampleSplit:
    """Return the examples in two parts. No group is in both, and equal input gives equal parts.

    Args:
        validation_share: in (0, 1).

    Raises:
        InvalidRequest: there are fewer than two groups.
    """
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(f"group {example.group}" if example.group else f"row {example.row}", []).append(example)
    if len(groups) < 2:
        raise InvalidRequest(f"training and validation need at least 2 rows of different groups; the file has {len(groups)}")
    order = sorted(groups)
    random.Random(seed).shuffle(order)  # noqa: S311 - not for security
    target_size = validation_share * len(examples)
    validation: list[Example] = []
    # The last group is for training, so that neither part is empty.
    for name in order[:-1]:
        if validation and len(validation) + len(groups[name]) / 2 > target_size:
            break
        validation += groups[name]
    chosen = {example.row for example in validation}
    training = tuple(example for example in examples if example.row not in chosen)
    return ExampleSplit(training, tuple(sorted(validation, key=lambda example: example.row)))


def _example(row: int, line: bytes) -> Example:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"not JSON: {error.msg}") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"not a JSON object but a {type(value).__name__}")
    question = _text(value, "question", MAX_QUESTION)
    if not question:
        raise InvalidRequest("it has no 'question'")
    documents, passages = _texts(value, "documents", _MAX_NAME), _texts(value, "passages", MAX_PASSAGE)
    if not documents and not passages:
        raise InvalidRequest("it names neither 'documents' nor 'passages' that the search must find")
    return Example(
        row=row,
        question=question,
        documents=documents,
        passages=passages,
        tenant=_text(value, "tenant", _MAX_NAME) or None,
        group=_text(value, "group", _MAX_NAME),
    )


def _text(value: Mapping[str, Any], name: str, limit: int) -> str:
    text = value.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise InvalidRequest(f"'{name}' must be a string, not {type(text).__name__}")
    if len(text) > limit:
        raise InvalidRequest(f"'{name}' has {len(text):,} characters; at most {limit:,} are allowed")
    return text.strip()


def _texts(value: Mapping[str, Any], name: str, limit: int) -> tuple[str, ...]:
    value_given = value.get(name)
    texts = [] if value_given is None else [value_given] if isinstance(value_given, str) else value_given
    if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidRequest(f"'{name}' must be a list of strings that are not empty")
    if len(texts) > MAX_GOLD:
        raise InvalidRequest(f"'{name}' has {len(texts)} items; at most {MAX_GOLD} are allowed")
    for text in texts:
        if len(text) > limit:
            raise InvalidRequest(f"an item of '{name}' has {len(text):,} characters; at most {limit:,} are allowed")
    return tuple(dict.fromkeys(text.strip() for text in texts))
