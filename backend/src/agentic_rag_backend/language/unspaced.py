"""Scripts that are written without spaces between words: Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer.

Korean has spaces, but its words have endings, so that it is divided in the same way. Searched texts have no spaces between
letters, no full-width letters and no invisible marks.
"""

from __future__ import annotations

import re

_CHARACTERS = "".join(
    (
        "\u0e00-\u0eff",  # Thai and Lao
        "\u1000-\u109f\u1780-\u17ff",  # Burmese and Khmer
        "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff",  # Japanese syllables
        "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",  # Chinese characters
        "\uac00-\ud7af",  # Korean
    )
)
UNSPACED_RUN = re.compile(f"[{_CHARACTERS}]+")
"""A run of characters of these scripts."""
_LEAST = 0.5


def uses_no_spaces(text: str) -> bool:
    """Return whether most letters of ``text`` are of these scripts."""
    if text.isascii():
        return False
    letter_count = sum(len(run) for run in UNSPACED_RUN.findall(text))
    return letter_count > 0 and letter_count >= _LEAST * sum(map(str.isalpha, text))


def split_pairs(run: str) -> list[str]:
    """Return the overlapping pairs of characters of a run, or the run if it has one character."""
    return [run] if len(run) == 1 else [run[start : start + 2] for start in range(len(run) - 1)]


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
