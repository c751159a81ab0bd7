"""Labels of list items, as a reader sees them: numbers in ordered lists, otherwise a dash."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

BULLET = "- "
_MAX_DIGITS = 9
_LETTERS = 26


@dataclass(slots=True)
class ListNumbers:
    """Numbers of the items of ordered lists so far, by the list."""

    _next: dict[Hashable, int] = field(default_factory=dict)

    def write_label(self, place: Hashable, attributes: Mapping[str, str | None], item: Mapping[str, str | None]) -> str:
        """Return the label of the next item of the ordered list at a place, from the attributes of list and item."""
        if "none" in (attributes.get("style") or ""):
            return BULLET
        start = self._next.get(place, _read_number(attributes.get("start"), 1))
        number = _read_number(item.get("value"), start)
        self._next[place] = number + 1
        letter = attributes.get("type")
        return f"{chr(ord(letter) + number - 1)}. " if letter in {"a", "A"} and 1 <= number <= _LETTERS else f"{number}. "


def _read_number(text: str | None, default: int) -> int:
    text = (text or "").strip()
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else default
