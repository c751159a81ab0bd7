"""The place of a chunk in its document."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """The place of a passage in the text of one document version.

    Offsets count Unicode characters, ``0 <= start_char < end_char``. Lines count from 1, and ``end_line`` is the last line of
    the passage. ``headings`` is the path of the headings above the passage, outermost first. ``header`` is the header of the
    table within which the passage begins, or the line that introduces its list, as the document has it. It is empty if the
    passage does not begin within one.

    A field that is added here flows through every layer; `LOCATION_FIELDS` lists the names. A column of ``chunks``, a field of
    the archive's chunk line and a field of the API's location have the same names.
    """

    start_char: int
    end_char: int
    start_line: int
    end_line: int
    headings: tuple[str, ...] = ()
    header: str = ""

    def as_fields(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in LOCATION_FIELDS}


LOCATION_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Location))
