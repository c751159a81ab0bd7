"""A page of a list, as the catalogue's ports return it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list. ``next_cursor`` is None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None
