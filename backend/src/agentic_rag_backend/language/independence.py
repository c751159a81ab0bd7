"""Judges how well a sentence stands by itself, and prepares it for a list: without markup, one claim at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentic_rag_backend.language.sentences import is_statement, leans_on_context
from agentic_rag_backend.language.vocabulary.word_classes import AMBIGUOUS, FINITE, OPENERS, STARTERS, VERBS
from agentic_rag_backend.language.words import STOP_WORDS, comparable

_WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
_CLOSING = "\"'”’)]»*_"
_FULL_STOPS = frozenset("!?…。！？")
_FIRST_PERSON = re.compile(r"[\"'“‘(*_]{0,4}(?:i|we|my|our|us|me)\b", re.IGNORECASE)
_ADDRESS = re.compile(
    r"[\"'“‘(*_]{0,4}(?:you|your|yeah|yes|no|well|now|okay|ok|um|uh|oh|hi|hey|like|thanks?|welcome|today's guest|because|let)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?<![\w.’'-])[A-Z][A-Z.’'-]{1,30}+(?: [A-Z][A-Z.’'-]{1,30}+){0,3}: ")
_FILLERS = re.compile(r"\b(?:you know|i mean|sort of|kind of|like,|and, like)\b|, like\b| – (?:and|the|I) –", re.IGNORECASE)
_FILE_NAME = re.compile(r"(?<!\w)\w{1,80}+\.(?:txt|md|pdf|docx?|html?|csv)\b|(?<!\w)[^\W_]{1,40}+_[^\W_]{1,40}+_\w")
_UNRESOLVED = re.compile(
    r"[\"'“‘(*_]{0,4}(?:the (?:boy|girl|child|man|woman|two|three|four|former|author|speaker|chair|committee|panel|company)s?\b|"
    r"(?:asked|told|taken down) |(?:\w{1,30}+ ){1,5}of (?:it|them|him|her)\b|the \w{1,20}est (?:was|is|were|are|of)\b|"
    r"(?:to|from|witness|present): |to (?:the|our|all) )",
    re.IGNORECASE,
)
"""Subjects that only an earlier sentence names."""
_EMPHASISED = re.compile(r"(?<!\w)(\*\*|\*|__|_|`)(?=\S)(.{1,300}?)(?<=\S)\1(?!\w)")
_LABEL_IN_EMPHASIS = re.compile(r"^\*\*[^*]{1,80}[.:?!]\*\*\s+(?=\S)")
_LIST_MARKER = re.compile(r"^[-*•] +")
_PARTICIPLES = frozenset(
    ["given", "kept", "taken", "written", "made", "built", "known", "held", "sent", "brought", "bought", "drawn"]
)
_POSSESSIVES = frozenset(["his", "her", "its", "their", "our", "my"])
_NO_SUBJECTS = frozenset(["the", "a", "an", "of", "to", "in", "by", "at", "for", "from", "with", "on"]) | _POSSESSIVES
_OBJECTS = (
    frozenset(["a", "an", "the", "that", "to", "no", "not", "two", "three", "into", "it", "them", "him", "us"]) | _POSSESSIVES
)
_BEFORE_DETERMINER = re.compile(r"(?<=[a-z] )([a-z]{3,}) (?:a|an|the|his|her|its|their|our|my)\b")
"""A small word directly before a determiner is a preposition or a verb, hardly ever a noun."""
_AFTER_PARTICIPLES = frozenset(["for", "from", "on", "in", "at", "to"])
_SHORTEST_PAST = 4
_PROSE_MARKS = ".,;:!?()[]'\"‘’“”„«»¿¡-–—…%&€$£"
_CODE_MARKS = "_=(){}$<>|\\/"
_MAX_MARKS = 0.03
_MAX_CODE_WORDS = 1
_MAX_DIGITS = 0.15
_MAX_NAMES = 0.6
"""Share of names and numbers in a text without function words, above which it is a caption."""


def refers_back(text: str) -> bool:
    """Return whether a sentence begins with a word or a subject that earlier sentences explain: "She …", "The largest was …"."""
    return leans_on_context(text) or _UNRESOLVED.match(text) is not None


def reads_as_prose(text: str) -> bool:
    """Return whether a sentence is made of words: no code, no settings, no row of a table or of a log, no line before a list."""
    marks = sum(not (character.isalnum() or character.isspace() or character in _PROSE_MARKS) for character in text)
    words_with_marks = sum(any(mark in word.strip(_PROSE_MARKS) for mark in _CODE_MARKS) for word in text.split())
    digits = sum(map(str.isdigit, text))
    few_marks = marks <= _MAX_MARKS * len(text) and words_with_marks <= _MAX_CODE_WORDS
    return few_marks and digits <= _MAX_DIGITS * len(text) and not text.rstrip().endswith(":")


@lru_cache(maxsize=16_384)
def rate_independence(text: str) -> float:
    """Return how well a sentence is understood without its neighbours, in [0, 1].

    1: a statement that needs no context. Lower: it begins in the first person or asks. Lower still: it begins with a word that
    refers to the context, lacks a verb, or opens a quotation that it does not close. 0: it is no statement.
    """
    if not is_statement(text) or not is_statement(text := simplify_sentence(text)):
        return 0.0
    value = 0.2 if _FILE_NAME.search(text) else 1.0
    value *= 0.75 ** len(_FILLERS.findall(text))
    speaker = _SPEAKER.match(text)
    text = text[speaker.end() :] if speaker else text
    if text.lstrip("–—- ")[:1].islower() or _SPEAKER.search(text):
        value *= 0.3
    if leans_on_context(text):
        value *= 0.3
    if _ADDRESS.match(text) or (speaker is None and _FIRST_PERSON.match(text)):
        value *= 0.6
    if _UNRESOLVED.match(text):
        value *= 0.6
    if text.rstrip(_CLOSING).endswith("?"):
        value *= 0.4
    if not _has_paired_marks(text):
        value *= 0.3
    if not _has_verb(text):
        value *= 0.25
    return value


def simplify_sentence(text: str) -> str:
    """Return a sentence on one line, without marks of emphasis, a label in emphasis before it, and a list marker."""
    line = _LABEL_IN_EMPHASIS.sub("", _LIST_MARKER.sub("", " ".join(text.split())))
    return _EMPHASISED.sub(r"\2", line).replace("**", "")


def split_claims(text: str) -> list[str]:
    """Return the parts of a sentence that stand by themselves, divided at semicolons; the sentence itself if one part does not.

    All words stay in their order. A part begins with a capital and ends with a full stop.
    """
    parts = [part.strip() for part in text.split("; ")]
    if len(parts) < 2 or "(" in text or "“" in text or '"' in text:
        return [text]
    sentences = [_make_sentence(part) for part in parts]
    return sentences if all(rate_independence(part) >= 1.0 for part in sentences) else [text]


def _make_sentence(part: str) -> str:
    part = re.sub(r"^(?:and|but|so) ", "", part)
    return f"{part[:1].upper()}{part[1:].rstrip('.;,')}{'' if part[-1:] in _FULL_STOPS else '.'}"


def _has_paired_marks(text: str) -> bool:
    return text.count('"') % 2 == 0 and text.count("“") == text.count("”") and text.count("(") == text.count(")")


def _has_verb(text: str) -> bool:
    """Return whether an English sentence has a finite verb. A text without English function words has one, unless it is a list
    of names and numbers.
    """
    tokens = _WORD.findall(text)
    words = [word.casefold() for word in tokens]
    if not any(comparable(word) in STARTERS or word in ("of", "in", "and", "to") for word in words):
        return sum(not word[0].islower() for word in tokens) < _MAX_NAMES * len(tokens)
    if any(comparable(match[1]) not in OPENERS | STOP_WORDS for match in _BEFORE_DETERMINER.finditer(text)):
        return True
    return any(_is_finite(words[number - 1], word, words[number + 1 : number + 2]) for number, word in enumerate(words) if number)


def _is_finite(before: str, word: str, following: Sequence[str]) -> bool:
    """Return whether a word after another one is a finite verb, by its form and its neighbours."""
    form, after = comparable(word), next(iter(following), "")
    if form in FINITE or word.endswith(("n't", "n’t")):
        return True
    if before in _NO_SUBJECTS or after == "by" or (after in _AFTER_PARTICIPLES and word in _PARTICIPLES):
        return False
    if form in VERBS or (word.endswith("ed") and len(word) > _SHORTEST_PAST):
        return True
    if form in AMBIGUOUS and before not in STOP_WORDS:
        return True
    return word.endswith("s") and not word.endswith("ss") and after in _OBJECTS
