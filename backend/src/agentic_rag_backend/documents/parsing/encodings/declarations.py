"""Charsets that a file declares in its own text: pages of HTML and XHTML, and Python source code."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentic_rag_backend.documents.parsing.encodings.names import MAX_NAME_CHARACTERS, UTF8
from agentic_rag_backend.domain.media_types import HTML, PYTHON

DECLARED_WITHIN = 1024
"""A declaration stands in this many bytes at the beginning of a file."""
_PATTERNS: Mapping[str, re.Pattern[bytes]] = {
    HTML: re.compile(
        rb"""(?:<meta\b[^>]{0,200}?\bcharset|<\?xml\b[^>]{0,100}?\bencoding)\s*=\s*["']?([A-Za-z0-9_.:-]{2,%d})"""
        % MAX_NAME_CHARACTERS,
        re.IGNORECASE,
    ),
    # PEP 263: a comment in the first or second line.
    PYTHON: re.compile(
        rb"(?:[^\n]{0,200}\n)?[ \t\f]{0,80}#[^\n]{0,80}?coding[:=][ \t]{0,80}([-\w.]{1,%d})" % MAX_NAME_CHARACTERS
    ),
}
_WIDE = ("utf-16", "utf-32")


def charset_within(media_type: str, content: bytes) -> str | None:
    """Return the charset that a file declares in its first kilobyte, as it is written there. None if it declares none."""
    pattern = _PATTERNS.get(media_type)
    if pattern is None:
        return None
    head = content[:DECLARED_WITHIN]
    match = pattern.match(head) if media_type == PYTHON else pattern.search(head)
    if match is None:
        return None
    name = match[1].decode("ascii", errors="replace")
    # The declaration was read as ASCII, so the file has no wide characters. The WHATWG Encoding Standard reads UTF-8.
    return UTF8 if name.lower().startswith(_WIDE) else name
