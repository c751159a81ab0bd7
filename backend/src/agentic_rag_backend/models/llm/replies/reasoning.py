"""Separates the reasoning of a model from its reply, and cuts a reply where it begins to repeat itself.

A model may write its reasoning into the reply, between marks such as ``<think>`` and ``</think>``. Some chat templates write the
opening mark themselves, so that the reply has only the closing one. Reasoning counts only at the beginning of a reply. A reply
that mentions a mark later keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_MARKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "◁think▷": "◁/think▷",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis": "<|channel|>final<|message|>",
    "<|channel|>commentary": "<|channel|>final<|message|>",
}
"""Opening and closing marks: DeepSeek, Qwen and many others; Seed; Magistral; Kimi; Command A; OpenThinker; gpt-oss."""
_BARE_CHANNEL, _BARE_FINAL = "analysis", "assistantfinal"
"""Marks of gpt-oss behind a server that removes control tokens: ``analysisWe need …assistantfinalThe answer``."""
_LEADING = (
    *("<|start|>assistant", "<|channel|>final<|message|>", "<|start_response|>", "<|begin_of_solution|>"),
    *("<|start_text|>", "<|message|>"),
)
"""Marks before the reply itself."""
_ENDINGS = (
    *("<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end|>", "<|return|>", "<|endoftext|>"),
    *("<|end_response|>", "<|end_of_solution|>", "<|end_text|>", "<end_of_turn>", "<start_of_turn>", "<｜end▁of▁sentence｜>"),
)
"""Control tokens after the reply. Text of documents never has them: see `prompt_marks`."""
_OPENINGS = (*_MARKS, _BARE_CHANNEL)
_CLOSINGS = tuple(dict.fromkeys(_MARKS.values()))
_LONGEST = max(map(len, (*_OPENINGS, *_CLOSINGS, *_LEADING, *_ENDINGS)))
_CLOSING = {mark: re.compile(re.escape(mark), re.IGNORECASE) for mark in (*_CLOSINGS, _BARE_FINAL)}
_CLOSING_OR_ENDING = re.compile("|".join(map(re.escape, (*_CLOSINGS, *_ENDINGS))), re.IGNORECASE)
_STOP = re.compile(r"</s>\s{0,8}\Z")
"""The end token of Llama 2 and Mistral. It is also a tag of HTML, so it ends a reply only as its last word."""
_QUOTES = "\"'`“”‘’«»("
_SENTENCE_ENDS = ".!?…:。！？"
_FENCE = "```"
_BEFORE = 3
"""Characters before a closing mark that decide whether it is one."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """A piece of the reply. ``restart``: the pieces before it were reasoning; the reply begins with this one."""

    text: str
    restart: bool = False


@dataclass(slots=True)
class ReasoningFilter:
    """Removes reasoning from a text that arrives in pieces. The result does not depend on how the text is split.

    Args:
        hold: return nothing before it is certain that no closing mark follows. For a whole text, and for models whose
            reasoning has no opening mark.
    """

    hold: bool = False
    reasoned: bool = False
    """Whether reasoning was removed."""
    unopened: bool = False
    """Whether the reasoning had no opening mark."""
    ended: bool = False
    """Whether a control token ended the reply. Later text is ignored."""
    _pending: str = ""
    _closing: str = ""
    """Closing mark of the reasoning that is being read."""
    _began: bool = False
    """Whether the reply itself has begun."""
    _before: str = "\n"
    _waiting: list[str] | None = None
    """Text of the reply that is held back."""
    _fences: tuple[int, str] = (0, "")
    """Number of fences of code in the reply so far, and the beginning of a fence at its end. A mark in code is no mark."""

    def feed_piece(self, piece: str) -> Iterator[VisibleText]:
        """Yield the text that is known to belong to the reply. The beginning of a mark waits for its end."""
        self._pending += piece
        yield from self._read_pending(is_last=False)

    def finish_reply(self) -> Iterator[VisibleText]:
        """Yield the rest of the reply."""
        yield from self._read_pending(is_last=True)
        yield from self.release_text()

    def release_text(self) -> Iterator[VisibleText]:
        """Yield what is held back, and hold nothing back from now on."""
        self.hold = False
        if self._waiting:
            text, self._waiting = "".join(self._waiting), None
            yield VisibleText(text)

    @property
    def opened(self) -> bool:
        """Whether the reply itself has begun after reasoning with an opening mark."""
        return self._began and self.reasoned and not self.unopened

    def _read_pending(self, *, is_last: bool) -> Iterator[VisibleText]:
        going_on = True
        while going_on and not self.ended:
            if self._closing:
                going_on = self._skip_reasoning()
            elif not self._began:
                going_on = self._decide_beginning(is_last=is_last)
            else:
                pieces, going_on = self._write_visible(is_last=is_last)
                yield from pieces
        if self.ended:
            self._pending = ""

    # --- each returns whether to go on with the pending text

    def _skip_reasoning(self) -> bool:
        """Drop reasoning up to its closing mark."""
        mark = _CLOSING[self._closing].search(self._pending)
        if mark is None:
            self._pending = self._pending[max(0, len(self._pending) - len(self._closing) + 1) :]
            return False
        self._pending, self._closing = self._pending[mark.end() :], ""
        return True

    def _decide_beginning(self, *, is_last: bool) -> bool:
        """Decide whether the text begins with reasoning."""
        text = self._pending = self._pending.lstrip()
        head = text[:_LONGEST].lower()
        if not is_last and (not text or any(mark.startswith(head) for mark in (*_OPENINGS, *_LEADING))):
            return False
        leading = next((mark for mark in _LEADING if head.startswith(mark)), "")
        opening = next((mark for mark in _MARKS if head.startswith(mark)), "")
        if leading:
            self._pending, self.reasoned = text[len(leading) :], True
        elif opening:
            self._pending, self._closing, self.reasoned = text[len(opening) :], _MARKS[opening], True
        elif text.startswith(_BARE_CHANNEL) and text[len(_BARE_CHANNEL) :][:1].isupper():
            self._pending, self._closing, self.reasoned = text, _BARE_FINAL, True
        else:
            self._began = True
        return True

    def _write_visible(self, *, is_last: bool) -> tuple[list[VisibleText], bool]:
        """Return the text before the next mark."""
        for mark in _CLOSING_OR_ENDING.finditer(self._pending):
            before = (self._before + self._pending[: mark.start()])[-_BEFORE:]
            if mark[0].lower() in _ENDINGS:
                pieces = self._show_text(self._pending[: mark.start()])
                self.ended = True
                return pieces, False
            if mark.end() == len(self._pending) and not is_last and before.rstrip(" \t")[-1:] != "\n":
                return self._show_text(self._take_text(mark.start())), False
            in_code = self._fences_after(self._pending[: mark.start()])[0] % 2
            if not in_code and _closes_reasoning(before, self._pending[mark.end() : mark.end() + 1]):
                return self._restart_reply(mark.end()), True
        if is_last:
            return self._show_text(_STOP.sub("", self._take_text(len(self._pending)))), False
        return self._show_text(self._take_text(_end_of_certain(self._pending))), False

    def _take_text(self, end: int) -> str:
        text, self._pending = self._pending[:end], self._pending[end:]
        self._before = (self._before + text)[-_BEFORE:]
        self._fences = self._fences_after(text)
        return text

    def _fences_after(self, text: str) -> tuple[int, str]:
        """Return the number of fences of code in the reply up to the end of ``text``, and the beginning of a fence there."""
        count, opening_fence = self._fences
        opening_fence += text
        run = len(opening_fence) - len(opening_fence.rstrip("`"))
        return count + opening_fence.count(_FENCE), "`" * (run % len(_FENCE))

    def _show_text(self, text: str) -> list[VisibleText]:
        if self.hold:
            self._waiting = self._waiting or []
            self._waiting.append(text)
            return []
        return [VisibleText(text)] if text else []

    def _restart_reply(self, end: int) -> list[VisibleText]:
        self._pending, self._before, self._fences = self._pending[end:], "\n", (0, "")
        self.reasoned, self.unopened, self._began, self._waiting = True, True, False, None
        return [] if self.hold else [VisibleText("", restart=True)]


def _closes_reasoning(before: str, after: str) -> bool:
    """Return whether a closing mark between two texts ends reasoning, rather than being mentioned in a sentence."""
    line = before.rstrip(" \t")
    if line[-1:] in ("\n", "") or after in ("\n", ""):
        return True
    return line[-1] in _SENTENCE_ENDS or not (before[-1].isspace() or before[-1] in _QUOTES)


def _end_of_certain(text: str) -> int:
    """Return how many characters of ``text`` come before the beginning of a mark at its end."""
    stop = _STOP.search(text)
    if stop:
        return stop.start()
    tail = text[-_LONGEST:]
    starts = (at for at, letter in enumerate(tail) if letter in "<[◁" and _begins_mark(tail[at:].lower()))
    return len(text) - len(tail) + next(starts, len(tail))


def _begins_mark(text: str) -> bool:
    return any(mark.startswith(text) for mark in (*_CLOSINGS, *_ENDINGS, "</s>"))


def without_reasoning(text: str) -> tuple[str, ReasoningFilter]:
    """Return the reply in a whole text, and the filter that says what was removed."""
    reading = ReasoningFilter(hold=True)
    pieces = [*reading.feed_piece(text), *reading.finish_reply()]
    return "".join(piece.text for piece in pieces), reading


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
