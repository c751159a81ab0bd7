"""Limits of a tenant's values and of a document's metadata, for requests, the command line, library calls and archives alike.

`ingestion.accept.metadata_checks` has the limits of metadata, `documents.chunking.registry` those of chunking options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentic_rag_backend.errors import InvalidRequest

MAX_DOCUMENT_KEY_CHARACTERS = 512
MAX_TITLE_CHARACTERS = 512
MAX_PLACE_CHARACTERS = 256
"""Maximum length of the place of an attachment."""
MAX_NAME_CHARACTERS = 128
"""Maximum length of names of tenants and API keys."""


def short_text(field: str, value: str | None, limit: int) -> str:
    """Return ``value`` without surrounding space, or an empty string for None.

    Raises:
        InvalidRequest: it is longer than ``limit`` characters, or has a character that stores cannot keep.
    """
    text = (value or "").strip()
    if len(text) > limit:
        raise InvalidRequest(f"{field} has {len(text)} characters; the limit is {limit}")
    if "\x00" in text:
        raise InvalidRequest(f"{field} has a NUL character at {text.index(chr(0))}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"{field} has an unpaired surrogate at character {error.start}") from None
    return text


def printable_name(value: str) -> str:
    """Return the name of a tenant or API key without surrounding space.

    Raises:
        InvalidRequest: it is blank, too long, or has a character that cannot be printed.
    """
    name = value.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidRequest(f"a name must have 1 to {MAX_NAME_CHARACTERS} printable characters; got {len(name)}")
    return name


def make_storable(text: str) -> str:
    """Return ``text`` with NUL and lone surrogates replaced by U+FFFD, because databases refuse them. The length is unchanged."""
    if text.isascii() and "\0" not in text:
        return text
    text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


MAX_KEYS = 64
MAX_METADATA_BYTES = 8192
OWNERS_BYTES = 1024
"""Room that the values of a file leave for values that its owner adds later."""
_SHORT_CHARACTERS = (1000, 200)
"""Lengths to which texts are shortened, one after the other, until all values fit."""


def size_of(metadata: Mapping[str, Any]) -> int:
    """Return the size of metadata as JSON in bytes."""
    return len(json.dumps(metadata, ensure_ascii=False).encode())


def merge_file_fields(owner_fields: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``fields`` of a file that fit into a document's metadata together with the owner's values.

    Long texts are shortened if not everything fits, and then the last fields are left out.
    """
    keys = MAX_KEYS - len(owner_fields)
    room = MAX_METADATA_BYTES - max(size_of(owner_fields), OWNERS_BYTES)
    for shortened in _shorten_fields(fields):
        if len(shortened) <= keys and size_of(shortened) <= room:
            return shortened
    merged: dict[str, Any] = {}
    for name, value in shortened.items():
        room -= size_of({name: value})
        if len(merged) >= keys or room < 0:
            break
        merged[name] = value
    return merged


def _shorten_fields(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield dict(fields)
    for limit in _SHORT_CHARACTERS:
        yield {name: _shorten_value(value, limit) for name, value in fields.items()}


def _shorten_value(value: Any, limit: int) -> Any:
    return f"{value[: limit - 1]}…" if isinstance(value, str) and len(value) > limit else value
