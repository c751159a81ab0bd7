"""Finds where a reply begins to repeat itself: a sentence three times in a row, or a shorter phrase over `LOOP_CHARACTERS`."""

from __future__ import annotations

from dataclasses import dataclass, field

REPEATS = 3
SENTENCE_CHARACTERS = 24
"""A repeated text of this length or more is a sentence, if it has a letter: rows of a table may consist of marks and spaces."""
LOOP_CHARACTERS = 240
"""Least length of the repetitions of a shorter phrase. Rules and leaders such as ``-----`` stay below it."""
MAX_PERIOD = 1_200
_STEP = 48
"""Characters between two looks at the text."""
_PROBE = 16
_MAX_PROBES = 8
"""Earlier occurrences of the last characters that are tried as the beginning of the repetition."""


@dataclass(slots=True)
class LoopDetector:
    """Reads a text in pieces. The result does not depend on how the text is split."""

    start: int | None = None
    """Position after the first occurrence of what is repeated; None: no repetition yet."""
    _text: str = ""
    _offset: int = 0
    _pending: list[str] = field(default_factory=list)
    _size: int = 0

    def feed_piece(self, piece: str) -> bool:
        """Return whether the text repeats itself."""
        self._pending.append(piece)
        self._size += len(piece)
        if self.start is None and self._size >= _STEP:
            text, self._pending = "".join(self._pending), []
            end = len(text) - len(text) % _STEP
            for at in range(0, end, _STEP):
                if self._check_step(text[at : at + _STEP]):
                    return True
            self._pending, self._size = [text[end:]], len(text) - end
        return self.start is not None

    def _check_step(self, step: str) -> bool:
        longest = REPEATS * MAX_PERIOD + _STEP
        self._text += step
        if len(self._text) > 2 * longest:
            self._offset += len(self._text) - longest
            self._text = self._text[-longest:]
        period = _find_period(self._text)
        if period:
            self.start = self._offset + _first_end(self._text, period)
        return self.start is not None


def _find_period(text: str) -> int:
    """Return the length of what the end of ``text`` repeats; 0: nothing."""
    probe, at = text[-_PROBE:], len(text) - _PROBE
    for _ in range(_MAX_PROBES):
        at = text.rfind(probe, max(0, len(text) - MAX_PERIOD - _PROBE), at + _PROBE - 1)
        if at < 0:
            return 0
        period = len(text) - _PROBE - at
        if _has_period(text, period, REPEATS * period):
            # A multiple of a short period is no sentence.
            sentence = period >= SENTENCE_CHARACTERS and any(map(str.isalnum, text[-period:]))
            return period if sentence or _has_period(text, period, LOOP_CHARACTERS) else 0
    return 0


def _has_period(text: str, period: int, size: int) -> bool:
    """Return whether the last ``size`` characters of ``text`` have this period."""
    return len(text) >= size and text[-size:-period] == text[period - size :]


def _first_end(text: str, period: int) -> int:
    """Return the position after the first occurrence of a repetition with this period at the end of ``text``."""
    at = len(text)
    while at > period and text[at - 1] == text[at - 1 - period]:
        at -= 1
    while not text[at].isspace() and at < len(text) - period:  # the word or mark before the repetition stays whole
        at += 1
    return at


def without_loop(text: str) -> tuple[str, bool]:
    """Return ``text`` up to the first occurrence of what it repeats to its end, and whether it repeats something."""
    detector = LoopDetector()
    if not detector.feed_piece(text) or detector.start is None:
        return text, False
    return text[: detector.start].rstrip(), True
