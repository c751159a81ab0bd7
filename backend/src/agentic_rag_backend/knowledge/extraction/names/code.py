"""Code identifiers in prose: snake_case, camelCase, dotted paths, calls, and text between backticks."""

from __future__ import annotations

import re

from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens

_DOTTED = re.compile(r"[A-Za-z_]\w{1,63}(?:\.[A-Za-z_]\w{1,63}){1,16}\Z")
_CAMEL = re.compile(r"(?:[a-z]{2,32}|[A-Z][a-z0-9]{1,32}(?:[A-Z][a-z0-9]{1,32}){1,8})(?:[A-Z][a-z0-9]{1,32}){1,8}\Z")
_LONGEST = 120


def code_end(tokens: Tokens, index: int, limit: int) -> int:
    """Return the token number after the identifier that starts at ``index``, its "()" included, or ``index`` if none does."""
    word = tokens.words[index]
    if tokens.shapes[index] in (Shape.PUNCTUATION, Shape.NUMBER) or len(word) > _LONGEST:
        return index
    quoted = index > 0 and tokens.words[index - 1] == "`" and index + 1 < limit and tokens.words[index + 1] in ("`", "(")
    called = _has_call(tokens, index, limit)
    if quoted or _is_identifier(word) or (called and word.islower()) or (called and _CAMEL.match(word) is not None):
        return index + 3 if called else index + 1
    return index


def _has_call(tokens: Tokens, index: int, limit: int) -> bool:
    """Return whether "()" follows without a space."""
    if index + 2 >= limit or tokens.words[index + 1] != "(" or tokens.words[index + 2] != ")":
        return False
    return tokens.starts[index + 1] == tokens.ends[index] and tokens.starts[index + 2] == tokens.ends[index + 1]


def _is_identifier(word: str) -> bool:
    if word.isalpha():
        return _CAMEL.match(word) is not None and not word[0].isupper()
    if "_" in word:
        return any(letter.isalpha() for letter in word) and word.isascii()
    return "." in word and _DOTTED.match(word) is not None and word[0].islower() and not word.endswith(_DOMAINS)


_DOMAINS = (".com", ".org", ".net", ".edu", ".gov", ".io", ".uk", ".de")
