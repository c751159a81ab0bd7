"""Detection of the encoding of text that declares none."""

from __future__ import annotations

import re

from agentic_rag_backend.documents.parsing.encodings.names import ENCODINGS, UTF8, Encoding

SAMPLE_BYTES = 64 * 1024
"""Bytes that are examined, so that the time does not depend on the size of a file."""
LEAST_LETTERS = 4
"""Fewer letters than these, each among ASCII, look alike in most encodings."""
STRAY_SHARE = 0.02
"""Largest share of control characters that do not make a text a binary file."""
_CONTROLS = bytes({*range(0x20), 0x7F} - {*b"\t\n\f\r\x1b"})
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_ADJACENT = re.compile(rb"[\x80-\xff]{2}")
_DEFAULT = ENCODINGS["windows-1252"]
"""The encoding that browsers assume for pages of most languages."""
_BEFORE = 1024
_UNIT_BYTES = 4
"""The widest character of UTF-16 and UTF-32: a sample begins at a multiple of it."""


def detect_encoding(content: bytes) -> Encoding | None:
    """Return the encoding that ``content``, which is not valid UTF-8, probably has. None for bytes that are no text."""
    sample = _take_sample(content)
    valid, invalid = _utf8_characters(sample)
    if valid and valid >= invalid:
        return ENCODINGS[UTF8]  # the invalid bytes are damage, or come from another file
    encoding = _by_statistics(sample)
    has_few_letters = len(_NOT_ASCII.findall(sample)) < LEAST_LETTERS and _ADJACENT.search(sample) is None
    return _DEFAULT if encoding is not None and has_few_letters and b"\x00" not in sample else encoding


def _take_sample(content: bytes) -> bytes:
    """Return a part of the content around its first byte that is not ASCII, or its beginning if there is none."""
    match = _NOT_ASCII.search(content)
    start = max(0, match.start() - _BEFORE) if match is not None else 0
    start -= start % _UNIT_BYTES
    return content[start : start + SAMPLE_BYTES]


def _utf8_characters(sample: bytes) -> tuple[int, int]:
    """Return how many characters other than ASCII are valid UTF-8, and how many replacements the others need."""
    text = sample.decode(UTF8, errors="replace")
    invalid = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", errors="ignore")) - invalid, invalid


def _by_statistics(sample: bytes) -> Encoding | None:
    import chardet  # on demand: few files need it, and its models take 60 ms to load

    # One of these bytes makes chardet take the text for a binary file.
    if len(sample) - len(plain := sample.translate(None, _CONTROLS)) <= STRAY_SHARE * len(sample):
        sample = plain
    candidates = {encoding.codec: encoding for encoding in ENCODINGS.values() if encoding.detected}
    name = chardet.detect(sample, include_encodings=candidates, compat_names=False)["encoding"]
    if name is None or (name.startswith("utf-16") and not _is_wide(sample)):
        return None
    return candidates[name]


def _is_wide(sample: bytes) -> bool:
    """Return whether the characters take two bytes: those of ASCII among them have a zero, always on the same side."""
    even_zeros, odd_zeros = sample[::2].count(0), sample[1::2].count(0)
    return min(even_zeros, odd_zeros) == 0 and max(even_zeros, odd_zeros) >= LEAST_LETTERS
