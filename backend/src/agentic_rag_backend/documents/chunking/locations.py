"""Locations of pieces in a parsed document."""

from __future__ import annotations

from dataclasses import fields

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.location import LOCATION_FIELDS, Location, regions_within

_CARRIED = tuple(field.name for field in fields(Piece) if field.name in LOCATION_FIELDS)
"""Fields of a location that a piece has under the same name."""


class Locator:
    """Finds the location of each piece of ``parsed``. Pieces must come in the order of their starts."""

    def __init__(self, parsed: ParsedDocument) -> None:
        self._text, self._regions = parsed.text, parsed.regions
        self._line, self._counted = 1, 0

    def locate_piece(self, piece: Piece) -> Location:
        """Return where ``piece`` is.

        It counts the lines between the previous piece and this one, so that a whole document takes one pass.
        """
        # Overlap makes a piece begin before the end of the previous one, but never before its start.
        self._line += self._text.count("\n", self._counted, piece.start)
        self._counted = piece.start
        return Location(
            start_char=piece.start,
            end_char=piece.end,
            start_line=self._line,
            end_line=self._line + self._text.count("\n", piece.start, piece.end),
            regions=regions_within(self._regions, piece.start, piece.end),
            parent_start=piece.parent[0] if piece.parent else None,
            parent_end=piece.parent[1] if piece.parent else None,
            **{name: getattr(piece, name) for name in _CARRIED},
        )
