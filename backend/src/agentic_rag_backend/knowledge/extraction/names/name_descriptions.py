"""Collects what a passage says about the bearers of its names, so that people who share a name can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentic_rag_backend.knowledge.extraction.tokens import Tokens
from agentic_rag_backend.language.descriptions import Description, describe, gender_of, may_describe
from agentic_rag_backend.language.words import words

_SUBJECT_WITHIN = 2
"""Words before a name that begins a sentence: "Dr", "Senior nurse"."""

NamedSentence = tuple[int, int, Sequence[tuple[int, str, str]]]
"""First token and end of a sentence, with the first token, key and text of each of its names."""


def describe_names(
    tokens: Tokens, sentences: Iterable[NamedSentence], full: Callable[[str], str]
) -> dict[str, tuple[str, Description]]:
    """Return a spelling and the description of each name, by the key of its full form.

    Args:
        full: returns the key of the full form of a key, such as "rowan teller" for "teller".
    """
    descriptions: dict[str, tuple[str, Description]] = {}

    def add(key: str, text: str, description: Description) -> None:
        spelling, before = descriptions.get(full(key), (text, Description()))
        descriptions[full(key)] = (max(spelling, text, key=len), before | description)

    named_sentences = list(sentences)
    for begin, end, names in named_sentences:
        text = tokens.text[tokens.starts[begin] : tokens.ends[end - 1]]
        if names and may_describe(parsed := words(text)):
            for _, key, name in {name[1]: name for name in names}.values():
                add(key, name, describe(name_forms(name), text, parsed))
    for (begin, _, names), (following, _, _) in pairwise(named_sentences):
        gender = gender_of(tokens.words[following])
        # "Dr Teller is a reader. She was born inland.": the pronoun takes up the only name that begins the sentence before.
        if gender and names and names[0][0] - begin <= _SUBJECT_WITHIN and all(key == names[0][1] for _, key, _ in names[1:]):
            add(names[0][1], names[0][2], Description(gender=gender))
    return descriptions


def name_forms(name: str) -> tuple[str, ...]:
    """Return the forms of a name's words, by which descriptions find it."""
    return tuple(word.form for word in words(name))
