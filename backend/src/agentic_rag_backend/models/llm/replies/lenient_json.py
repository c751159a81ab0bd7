"""Reads JSON that a language model wrote with mistakes: text around it, trailing commas, quotes of Python, missing brackets.

Every reader takes linear time. Values are nested at most `MAX_DEPTH` deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 48
MAX_BRACKETS = 200
"""Brackets of a text that are tried as the beginning of a value."""
_BRACKET = re.compile(r"[{\[]")
_SPACE = re.compile(r"[\s\u00a0\ufeff]*+")
_DOUBLE = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SINGLE = re.compile(r"'(?:[^'\\]|\\.|'(?!\s*[,:}\]]))*+'(?=\s*[,:}\]])", re.DOTALL)
"""A text in single quotes. An apostrophe is not its end unless a mark of JSON follows."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]{1,9}\b")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_BACKSLASH = re.compile(r'\\\\|\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
"""An escaped backslash, or one that begins no escape."""

CLOSED = "closed brackets"
COMMAS = "removed commas"
QUOTES = "replaced quotes"
ESCAPES = "escaped characters"
AROUND = "removed text around the object"


class NotJson(ValueError):
    """The text at ``position`` is not JSON."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"not JSON: {message} at character {position}")
        self.position = position


@dataclass(frozen=True, slots=True)
class ReadValue:
    """An object or a list from a text.

    Args:
        end: position after it.
        mended: what was wrong with it.
        cut: whether the text ends in the middle of one of its values. Whole items of the lists are kept.
    """

    value: Any
    start: int
    end: int
    mended: tuple[str, ...] = ()
    cut: bool = False


def read_values(text: str, *, cut: bool = False) -> Iterator[ReadValue | NotJson]:
    """Yield the objects and lists in a text in order, and the error of each bracket that does not begin one.

    Args:
        cut: whether the text was cut off, so that its last value may be incomplete.
    """
    position, reading = 0, _Reading(text, cut)
    for _ in range(MAX_BRACKETS):
        bracket = _BRACKET.search(text, position)
        if bracket is None:
            return
        reading.mended.clear()
        try:
            value, end = reading.read_value(bracket.start(), 0)
        except _Ended as inner_end:
            yield ReadValue(inner_end.value, bracket.start(), len(text), reading.notes, cut=not inner_end.whole)
            return
        except NotJson as error:
            yield error
            position = max(error.position, bracket.end())
        else:
            yield ReadValue(value, bracket.start(), end, reading.notes)
            position = end


class _Ended(Exception):
    """The text ended within a value. ``value`` is what came of it; ``whole`` if only closing brackets are missing."""

    def __init__(self, value: Any = None, *, whole: bool = False) -> None:
        super().__init__()
        self.value, self.whole = value, whole


@dataclass(slots=True)
class _Reading:
    """Reads one value. Each method takes a position and returns a value and the position after it."""

    text: str
    cut: bool
    mended: list[str] = field(default_factory=list)
    _unended: bool = False
    """Whether no further text in single quotes has an end."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mended in the value that was read last."""
        return tuple(dict.fromkeys(self.mended))

    def read_value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._skip_space(at)
        mark = self.text[at : at + 1]
        if not mark:
            raise _Ended
        if mark in "{[":
            if depth >= MAX_DEPTH:
                raise NotJson("nested too deeply", at + 1)
            return self._read_object(at + 1, depth) if mark == "{" else self._read_list(at + 1, depth)
        if mark in "\"'":
            return self._read_string(at)
        return self._read_scalar(at)

    def _skip_space(self, at: int) -> int:
        space = _SPACE.match(self.text, at)
        return space.end() if space else at

    def _read_object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        while True:
            try:
                at = self._skip_space(at)
                if self.text[at : at + 1] == "}":
                    return members, at + 1
                if self.text[at : at + 1] not in ("'", '"', ""):
                    raise NotJson("a name in quotes is expected", at)
                name, at = self.read_value(at, depth)
                at = self._skip_space(at)
                if at < len(self.text) and self.text[at] != ":":
                    raise NotJson("':' is expected", at)
                if at >= len(self.text):
                    raise _Ended
                members[str(name)], at = self.read_value(at + 1, depth + 1)
            except _Ended as inner_end:
                if inner_end.whole or (depth == 0 and isinstance(inner_end.value, list)):
                    members[str(name)] = inner_end.value
                raise self._end_early(members, inner_end) from None
            at = self._after_item(at, "}", members, is_whole=depth == 0 or not self.cut)

    def _read_list(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            try:
                at = self._skip_space(at)
                if self.text[at : at + 1] == "]":
                    return items, at + 1
                item, at = self.read_value(at, depth + 1)
                items.append(item)
            except _Ended as inner_end:
                if inner_end.whole:
                    items.append(inner_end.value)
                raise self._end_early(items, inner_end) from None
            at = self._after_item(at, "]", items, is_whole=not self.cut)

    def _after_item(self, at: int, closing: str, items: Any, *, is_whole: bool) -> int:
        """Return the position of the next item or of the closing bracket. ``is_whole``: see `_Ended`, if the text ends here."""
        at = self._skip_space(at)
        mark = self.text[at : at + 1]
        if not mark:
            self.mended.append(CLOSED)
            raise _Ended(items, whole=is_whole)
        if mark == ",":
            at = self._skip_space(at + 1)
            if self.text[at : at + 1] == closing:
                self.mended.append(COMMAS)
            return at
        if mark != closing:
            raise NotJson(f"',' or '{closing}' is expected", at)
        return at

    def _end_early(self, value: Any, inner: _Ended) -> _Ended:
        self.mended.append(CLOSED)
        return _Ended(value, whole=inner.whole)

    def _read_string(self, at: int) -> tuple[str, int]:
        if self.text[at] == '"':
            string = _DOUBLE.match(self.text, at)
            if string is None:
                raise _Ended
            return self._decode_literal(string[0]), string.end()
        string = None if self._unended else _SINGLE.match(self.text, at)
        if string is None:
            self._unended = True
            raise NotJson("a text without an end", at + 1)
        self.mended.append(QUOTES)
        inner = string[0][1:-1].replace("\\'", "'")
        return self._decode_literal('"' + _escape_quotes(inner) + '"'), string.end()

    def _decode_literal(self, literal: str) -> str:
        """Return the text of a literal in double quotes. Line ends are allowed in it, and so are unknown escapes."""
        try:
            return str(json.loads(literal))
        except json.JSONDecodeError:
            self.mended.append(ESCAPES)
            return str(json.loads(_BACKSLASH.sub(lambda _: "\\\\", literal), strict=False))

    def _read_scalar(self, at: int) -> tuple[Any, int]:
        number = _NUMBER.match(self.text, at)
        if number:
            if self.cut and number.end() == len(self.text):
                raise _Ended
            return json.loads(number[0]), number.end()
        word = _WORD.match(self.text, at)
        if word is None or word[0] not in _WORDS:
            if word is not None and word.end() == len(self.text):
                raise _Ended
            raise NotJson("a value is expected", at)
        if word[0] in ("True", "False", "None"):
            self.mended.append(QUOTES)
        return _WORDS[word[0]], word.end()


def _escape_quotes(text: str) -> str:
    return '\\"'.join(part.replace('"', '\\"') for part in text.split('\\"'))
