"""What a parser leaves out of the text of a file, as warnings that name the kind, the number and the first places."""

from __future__ import annotations

from dataclasses import dataclass, field

NAMED_PLACES = 3
"""Places that a warning names. It counts the others."""


@dataclass(slots=True)
class _Omission:
    count: int = 0
    places: dict[str, None] = field(default_factory=dict)


class Omissions:
    """Counts the parts of one file that are not in its text, by kind."""

    def __init__(self) -> None:
        self._by_kind: dict[str, _Omission] = {}

    def add(self, kind: str, place: str = "", *, count: int = 1) -> None:
        """Count parts that are left out.

        Args:
            kind: what they are, in the plural, such as ``"hidden rows"``. Never text of the file.
            place: where the first of them is, such as ``"page 3"`` or ``"Sheet1!5:7"``. Empty if the format has no places.
            count: how many there are; 0 adds nothing.
        """
        if count < 1:
            return
        omission = self._by_kind.setdefault(kind, _Omission())
        omission.count += count
        if place and len(omission.places) <= NAMED_PLACES:
            omission.places.setdefault(place)

    def list_warnings(self) -> tuple[str, ...]:
        """Return a warning for each kind, in the order in which the kinds were first added.

        Example: ``"not in the text: hidden rows (4: Sales!5:7, Costs!2)"``.
        """
        return tuple(f"not in the text: {kind} ({_describe(omission)})" for kind, omission in self._by_kind.items())


def _describe(omission: _Omission) -> str:
    places = list(omission.places)
    named = ", ".join(places[:NAMED_PLACES]) + (", …" if len(places) > NAMED_PLACES else "")
    return f"{omission.count}: {named}" if named else str(omission.count)
