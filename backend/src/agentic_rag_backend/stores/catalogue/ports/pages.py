"""A slice of a list, as the catalogue's ports return it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A slice of a list; ``next_cursor`` is None on the last one."""

    items: tuple[T, ...]
    next_cursor: str | None = None
