"""The form of a text in which its words are searched: without invisible marks, full-width letters and spaces between letters."""

from __future__ import annotations

import re

_INVISIBLE = dict.fromkeys((0x00AD, 0x200B, 0x2060, 0xFEFF))
"""Soft hyphen, zero-width space, word joiner, byte order mark."""
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_FORMS = _INVISIBLE | _FULL_WIDTH
_LETTER = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_SPACED = re.compile(rf"(?<={_LETTER})[ \t](?={_LETTER})")
"""A space between Chinese or Japanese letters, which some files have between all of them."""


def remove_invisible(text: str) -> str:
    """Return a text without marks that have no width."""
    return text if text.isascii() else text.translate(_INVISIBLE)


def make_searchable(text: str) -> str:
    """Return a text as it is searched. Its offsets are not those of ``text``."""
    return text if text.isascii() else _SPACED.sub("", text.translate(_FORMS))
