"""Cursors: opaque positions in a list, validated when they are used."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import orjson
from sqlalchemy import ColumnElement, Table, and_, or_

from agentic_rag_backend.errors import InvalidRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. ``next_cursor`` is None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None


MAX_LIMIT = 1000
_CHECK_BYTES = 6
_MAX_INTEGER = 2**63 - 1
"""Largest integer that both databases take."""
MAX_KEY = 2**64 - 1
"""Largest key of an item in memory."""


def check_limit(limit: int) -> int:
    """Return ``limit`` if it is a valid page size.

    Raises:
        InvalidRequest: it is not between 1 and `MAX_LIMIT`.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit must be between 1 and {MAX_LIMIT}; got {limit}")
    return limit


def _check_digits(scope: str, payload: bytes) -> bytes:
    # Not a secret: a cursor only moves within the caller's own tenant. It detects invalid cursors.
    return hashlib.blake2b(payload, digest_size=_CHECK_BYTES, person=scope.encode()[:16]).digest()


def encode_cursor(scope: str, position: Sequence[Any]) -> str:
    """Return ``position`` as a cursor of the list named ``scope``."""
    payload = orjson.dumps(list(position))
    return base64.urlsafe_b64encode(_check_digits(scope, payload) + payload).decode().rstrip("=")


def decode_cursor(scope: str, cursor: str, *types: type, largest: int = _MAX_INTEGER) -> list[Any]:
    """Return the position in a cursor of `encode_cursor`, whose parts have ``types``. ``largest`` bounds its integers.

    Raises:
        InvalidRequest: the cursor does not come from this list.
    """
    try:
        raw = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError):
        raw = b""
    check, payload = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
    try:
        position: Any = orjson.loads(payload) if check == _check_digits(scope, payload) else None
    except orjson.JSONDecodeError:
        position = None
    if not isinstance(position, list) or [type(part) for part in position] != list(types):
        raise wrong_cursor(cursor)
    if any(isinstance(part, int) and not -largest - 1 <= part <= largest for part in position):
        raise wrong_cursor(cursor)
    return position


def wrong_cursor(cursor: str) -> InvalidRequest:
    """Return the error of a cursor that does not come from the list."""
    return InvalidRequest(f"the cursor does not come from this list; got {cursor[:60]!r}")


def time_cursor(scope: str, created_at: datetime, id: str) -> str:
    """Return the cursor after an item of a list that is ordered by creation time and id."""
    return encode_cursor(scope, (created_at.isoformat(), id))


def beyond(table: Table, scope: str, cursor: str, *, newest_first: bool) -> ColumnElement[bool]:
    """Return the condition for rows after a `time_cursor`. Equal creation times are ordered by ``id`` (or ``tenant_id``).

    Raises:
        InvalidRequest: the cursor does not come from this list.
    """
    stamp, id = decode_cursor(scope, cursor, str, str)
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        raise wrong_cursor(cursor) from None
    if at.tzinfo is None:
        raise wrong_cursor(cursor)
    created, key = table.c.created_at, table.c.id if "id" in table.c else table.c.tenant_id
    if newest_first:
        return or_(created < at, and_(created == at, key < id))
    return or_(created > at, and_(created == at, key > id))
