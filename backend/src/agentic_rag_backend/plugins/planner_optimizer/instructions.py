"""Prompts of the planner from proposed instructions.

A proposal is untrusted: a language model wrote it, and it has read questions and passages. Whatever it says, the prompt keeps the
fields of the reply and the rule that a question is data, has no placeholder of the proposal, and repeats no training data.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.prompts import Prompt, built_in, parse
from agentic_rag_backend.retrieval.agentic.plan import PLACEHOLDERS, PLAN_SCHEMA, REQUIRED_PLACEHOLDERS, prompt_values

NAME = "agentic_plan"
MAX_INSTRUCTION = 12_000
"""Characters of an instruction. The rest is cut off."""
QUOTED_WORDS = 6
"""Consecutive words that make a repetition of training data."""
_SHORT = 4
"""A text of fewer words, such as a title, may occur in any instruction."""
_QUESTION_ALONE = "{{question}}"
_DOUBLE_BRACE = re.compile(r"([{}])(?=\1)")
_SECTION = re.compile(r"#(?=\s*(?:System|User)\s*\Z)", re.IGNORECASE)
_FIELD = re.compile(r'^- "(\w+)": (.+)$', re.MULTILINE)
_WORD = re.compile(r"\w+")
_REPLY = "Reply with one JSON object. These fields are required, too:"


def field_descriptions() -> dict[str, str]:
    """Return the description of each field of a plan, as the built-in prompt has it."""
    limit = prompt_values("")["most"]
    descriptions = dict(_FIELD.findall(built_in(NAME).system))
    return {name: descriptions[name].replace("{{most}}", limit) for name in PLAN_SCHEMA["properties"]}


def data_rule() -> str:
    """Return the last line of the built-in prompt, which declares the question to be data."""
    return built_in(NAME).system.splitlines()[-1]


@dataclass(frozen=True, slots=True)
class TrainingWords:
    """Sequences of words of the training file. A prompt serves all tenants, so it must not repeat a tenant's text."""

    sequences: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TrainingWords:
        """Return the sequences of `QUOTED_WORDS` words, and of all words of shorter texts."""
        phrases: set[tuple[str, ...]] = set()
        for text in texts:
            words = _words(text)
            if len(words) >= QUOTED_WORDS:
                phrases.update(_windows(words, QUOTED_WORDS))
            elif len(words) >= _SHORT:
                phrases.add(tuple(words))
        return cls(frozenset(phrases))

    def find_repeated_positions(self, words: Sequence[str]) -> set[int]:
        """Return the places of words that belong to a repeated sequence."""
        return {
            position
            for size in range(_SHORT, QUOTED_WORDS + 1)
            for start, window in enumerate(_windows(words, size))
            if window in self.sequences
            for position in range(start, start + size)
        }


@dataclass(frozen=True, slots=True)
class Instructions:
    """Makes prompts that differ from the present one only in their instruction.

    Args:
        present: the prompt in use.
        training: its words are left out.
    """

    present: Prompt
    training: TrainingWords

    def first(self) -> str:
        """Return the instruction of the present prompt, from which the optimization starts."""
        system = self.present.system or built_in(NAME).system
        system = system.replace("{{most}}", prompt_values("")["most"])
        return system.removesuffix(data_rule()).rstrip()

    def prompt(self, instruction: str, version: str = "candidate") -> Prompt:
        """Return the prompt with an instruction. The instruction of `first` gives the present prompt if that has the rule."""
        text = clean_instruction(instruction, self.training)
        missing_fields = [f'- "{name}": {meaning}' for name, meaning in field_descriptions().items() if name not in text]
        parts = [text, *([_REPLY, *missing_fields] if missing_fields else []), data_rule()]
        user = self.present.user if self.present.system else _QUESTION_ALONE
        return Prompt(NAME, version, "", "\n".join(part for part in parts if part), user)


def clean_instruction(instruction: str, training: TrainingWords) -> str:
    """Return an instruction without placeholders, section headings, control characters and training data."""
    lines: list[str] = []
    for line in instruction[:MAX_INSTRUCTION].splitlines():
        plain = "".join(character for character in line if character == "\t" or unicodedata.category(character)[0] != "C")
        lines.append(_SECTION.sub("##", _DOUBLE_BRACE.sub(r"\1 ", plain)))
    return _without_repetitions(lines, training).strip().removesuffix(data_rule()).rstrip()


def _without_repetitions(lines: Sequence[str], training: TrainingWords) -> str:
    """Return the lines without the sentences that repeat training data, also across sentences and lines."""
    units = [(number, piece) for number, line in enumerate(lines) for piece in _pieces(line)]
    while True:
        words = [(unit, word) for unit, (_, piece) in enumerate(units) for word in _words(piece)]
        removed = {words[position][0] for position in training.find_repeated_positions([word for _, word in words])}
        if not removed:
            break
        # What is left may repeat training data only now that something between it is gone.
        units = [item for unit, item in enumerate(units) if unit not in removed]
    lines_kept = dict.fromkeys((number for number, _ in units), "")
    for number, piece in units:
        lines_kept[number] += piece
    return "\n".join(line.rstrip() for line in lines_kept.values())


def _pieces(line: str) -> list[str]:
    """Return the sentences of a line with the space and the list markers around them. Together they are the line."""
    starts = [0, *(sentence.start for sentence in split_sentences(line)[1:]), len(line)]
    return [line[start:end] for start, end in pairwise(starts)] if line else [""]


def version_of(prompt: Prompt, optimizer: str, date: str) -> str:
    """Return a version: the date, the optimizer, and a hash of the text. The same text has the same hash."""
    digest = hashlib.sha256(f"{prompt.system}\n{prompt.user}".encode()).hexdigest()
    return f"{date}-{optimizer}-{digest[:8]}"


def prompt_file(prompt: Prompt, header: Mapping[str, object]) -> str:
    """Return the text of a prompt file. Values of the header are written on one line each."""
    header_fields = {"name": prompt.name, "version": prompt.version, "description": prompt.description, **header}
    lines = [f"{name}: {' '.join(str(value).split())}" for name, value in header_fields.items()]
    return "\n".join(["---", *lines, "---", "# System", prompt.system, "# User", prompt.user, ""])


def write_prompt(path: Path, prompt: Prompt, header: Mapping[str, object]) -> None:
    """Write a new prompt file that the planner reads as this prompt.

    Raises:
        InvalidRequest: the file exists or cannot be written, or the planner would refuse the prompt.
    """
    text = prompt_file(prompt, header)
    parsed = parse(text, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS)
    if (parsed.id, parsed.system, parsed.user) != (prompt.id, prompt.system, prompt.user):
        raise InvalidRequest("the prompt cannot be written as a file: it would be read as another prompt")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InvalidRequest(f"prompt file {path} cannot be written: {error.strerror or type(error).__name__}") from error


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _windows(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return (tuple(words[start : start + size]) for start in range(len(words) - size + 1))
