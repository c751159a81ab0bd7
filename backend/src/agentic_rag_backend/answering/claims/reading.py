"""Parse a model's text: sentences, their markers, and the separators between them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.language.sentences import (
    MAX_SENTENCE_CHARACTERS,
    begins_block,
    has_end_mark,
    split_sentences,
    stands_alone,
)
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.replies.lenient_json import ReadValue, read_values

MAX_MARKERS = 20
"""Most markers read from one sentence, so that "[1-1000000]" makes no work."""
_NUMBERS = r"\d{1,6}(?:\s*(?:,|;|-|–|and|&)\s*\d{1,6})*"
_MARKER = re.compile(
    r"(?:(?<![ \t])[ \t]+)?(?:"
    rf"[\[【]\s*(?:\^|(?:passages?|sources?)\s+)?({_NUMBERS})\s*[\]】]"
    rf"|<(?:passages?|sources?)\s*+(?:(?:id|number)\s*=\s*)?[\"']?({_NUMBERS})[\"']?[^<>\n]{{0,200}}+>"
    rf"|\((?:passages?|sources?)\s+({_NUMBERS})\)|(?<=\s)\((\d{{1,2}})\)(?=\s*(?:[.!?](?:\s|\Z)|\Z|\n))"
    r"|</?(?:passages?|question|answer)\b[^<>\n]{0,200}+>)",
    re.IGNORECASE,
)
"""A marker; or a tag of the prompt, which some models repeat."""
_NUMBERED = re.compile(
    r"\b(?:articles?|chapters?|clauses?|columns?|conditions?|eqs?\.|equations?|examples?|figs?\.|figures?|footnotes?|formulas?|"
    r"items?|lemmas?|levels?|lines?|methods?|notes?|numbers?|options?|pages?|paragraphs?|parts?|phases?|points?|rows?|rules?|"
    r"sections?|stages?|steps?|tables?|theorems?|types?|versions?|and|or|to|of|in|is|was)\Z",
    re.IGNORECASE,
)
"""A word before a number in parentheses that is no marker: "see section (2)"."""
_LONGEST_NUMBERED = 16
_LEAD = re.compile(
    r"\A(?:(?:final\s+)?answer|antwort|réponse|respuesta|risposta)\s*:\s+"
    r"|\A(?:according to|as (?:stated|described|noted) in|per|in),\s+",
    re.IGNORECASE,
)
"""Words before a sentence that say that it is the answer, or which passage states it."""
_EMPTY_BOLD = re.compile(r"\s?\*\*\*\*")
"""What is left of a marker in bold."""
_ENVELOPE = re.compile(r"\A\s*+(?:```(?:json)?+\s*+)?+\[?+\s*+\{|\{\s*+[\"']answer[\"']\s*+:|```json\b")
"""The beginning of a JSON object instead of a text, or of one that has the answer."""
_RANGE = re.compile(r"(\d+)\s*[-–]\s*(\d+)|(\d+)")
_MAY_END = re.compile(r"[.!?…。！？\n]")
_HALF_MARKER = re.compile(r"[\[【]\s*+(?:\^|(?:passages?|sources?)\b\s*+)?[\d\s,;–&-]*+\Z", re.IGNORECASE)
_OPEN_MARKER = re.compile(r"(?:[\[【][^\]】]{0,60}|\([^()]{0,20}|<[^<>]{0,220})\Z")


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence without its markers. ``separator`` is the text before it: a space, or line breaks and a list marker."""

    text: str
    markers: tuple[int, ...]
    separator: str = " "


def read_claims(text: str) -> list[Claim]:
    """Return the sentences of ``text`` in order.

    A marker belongs to the sentence that contains it or that it follows: "Said. [1] Next [2]." gives 1 to the first, 2 to the
    second. Accepted forms are ``[1]``, ``[1, 2]``, ``[1][3]``, ``[1-3]``, ``[passage 2]``, ``[^1]``, ``【1】``,
    ``<passage 1>``, ``<passage id="1">``, ``(passage 1)``, and ``(1)`` before the end of a sentence. A sentence without
    a word that carries meaning ("Yes.") is one claim with the next. The beginning of a marker at the end of the text is left out:
    the model stopped there.
    """
    return [item.claim for item in _place_claims(text)]


@dataclass(frozen=True, slots=True)
class _PlacedClaim:
    """A claim, and the position in the model's text from which it can be read without the text before it (None: no such one)."""

    claim: Claim
    begin: int | None


def _place_claims(text: str) -> list[_PlacedClaim]:
    half = _HALF_MARKER.search(text)
    plain, marked, cuts = _without_markers(text[: half.start()].rstrip() if half is not None else text)
    claims: list[_PlacedClaim] = []
    pending: tuple[int, str, int | None] | None = None
    end_before = 0
    sentences = split_sentences(plain)
    places = [at for at, _ in marked]
    for index, sentence in enumerate(sentences):
        between = plain[end_before : sentence.start]
        separator = between if "\n" in between or (not claims and between.strip()) else " "
        start, separator, begin = pending or (sentence.start, separator, _find_begin(plain, end_before, sentence.start))
        end_before = sentence.end
        last = index + 1 == len(sentences)
        if not last and not content_forms(sentence.text):
            pending = (start, separator, begin)
            continue
        pending = None
        until = len(plain) + 1 if last else sentences[index + 1].start + 1
        spanned = marked[bisect_right(places, start) : bisect_left(places, until)]
        markers = tuple(dict.fromkeys(number for _, numbers in spanned for number in numbers))
        claim = Claim(_without_lead(_EMPTY_BOLD.sub("", plain[start : sentence.end])), markers[:MAX_MARKERS], separator)
        claims.append(_PlacedClaim(claim, None if begin is None else _restore_position(cuts, begin)))
    return claims


def _find_begin(text: str, end_before: int, start: int) -> int | None:
    """Return where a sentence begins. None: it reads otherwise without its line, such as the second sentence of a heading."""
    line = text[text.rfind("\n", 0, start) + 1 : start + 1].splitlines()[-1]
    alone = start + 1 - len(line) >= end_before  # the first of its line
    return end_before if alone or not (stands_alone(line) or begins_block(text[start:])) else None


def _restore_position(cuts: Sequence[tuple[int, int]], position: int) -> int:
    """Return a position in the text with its markers. See `_without_markers`."""
    length, end = cuts[bisect_right(cuts, position, key=lambda cut: cut[0]) - 1]
    return end + position - length


class ClaimReader:
    """Reads claims from a text that arrives in pieces; together they equal the claims of the whole text.

    Only the text from the last claim that was given is read again, so the work grows with the length of the text.
    """

    def __init__(self) -> None:
        self._read = list[str]()
        """Text before the last given claim, in pieces."""
        self._rest = ""
        self._given = 0
        """Number of claims of the rest that were given."""
        self._may_have_ended = False
        self._wait_until = 0
        """Length of the rest before which it is not read again: a long text without a claim is not read after every word."""

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join([*self._read, self._rest])

    def feed(self, piece: str) -> list[Claim]:
        """Return the claims that ``piece`` completed: claims with another sentence after them."""
        self._rest += piece
        self._may_have_ended = self._may_have_ended or _MAY_END.search(piece) is not None
        if len(self._rest) < self._wait_until or not self._may_have_ended or not any(map(str.isspace, piece)):
            return []
        if _ENVELOPE.search(self._rest):
            return []
        # The last word may be half a word, and the last bracket half a marker.
        complete = self._rest[: max(self._rest.rfind(" "), self._rest.rfind("\n")) + 1]
        opened = _OPEN_MARKER.search(complete)
        claims = _place_claims(complete[: opened.start()] if opened else complete)
        # The next word decides whether "Inc." ends a sentence. Text without a word, such as "[", decides nothing.
        while claims and not any(map(str.isalnum, claims[-1].claim.text)):
            claims.pop()
        fresh = claims[self._given : -1]
        # An ending that a whole word follows has been judged.
        waits = not claims or has_end_mark(claims[-1].claim.text)
        self._may_have_ended = waits or _MAY_END.search(self._rest, len(complete.rstrip())) is not None
        long = len(self._rest) > MAX_SENTENCE_CHARACTERS and not fresh
        self._wait_until = len(self._rest) * 9 // 8 if long else 0
        if fresh:
            self._given += len(fresh)
            # A piece of a sentence that is too long depends on where the sentence begins.
            if fresh[-1].begin is not None and len(fresh[-1].claim.text) < MAX_SENTENCE_CHARACTERS // 2:
                self._read.append(self._rest[: fresh[-1].begin])
                self._rest, self._given = self._rest[fresh[-1].begin :], 1
        return [item.claim for item in fresh]

    def finish(self, *, cut: bool = False) -> list[Claim]:
        """Return the remaining claims; the text has ended. A text that was cut off has no last claim without its full stop."""
        before, answer = _unwrap_answer(self._rest)
        claims = read_claims(before)[self._given :]
        if answer is not None:
            # "Here is the JSON:" announces the object.
            claims = [*(claim for claim in claims if not claim.text.endswith(":")), *read_claims(answer)]
            self._rest = f"{before}\n\n{answer}" if before else answer
        return claims[:-1] if cut and claims and not has_end_mark(claims[-1].text) else claims


def _without_lead(sentence: str) -> str:
    stripped = _LEAD.sub("", sentence)
    return stripped if stripped == sentence else stripped[:1].upper() + stripped[1:]


def _unwrap_answer(text: str) -> tuple[str, str | None]:
    """Return the text before the first JSON object that has an ``answer``, and the answer. What follows the object is left out.

    An object that is the whole text may have its only text under another name. Without such an object, all is text.
    """
    for read in read_values(text) if _ENVELOPE.search(text) else ():
        if isinstance(read, ReadValue):
            before = text[: read.start].rstrip().removesuffix("```json").removesuffix("```").rstrip()
            answer = _find_answer(read.value, alone=not before.strip())
            if answer is not None:
                return before, answer
    return text, None


def _find_answer(value: Any, *, alone: bool) -> str | None:
    if isinstance(value, list):
        return _find_answer(value[0], alone=alone) if len(value) == 1 else None
    if not isinstance(value, dict):
        return None
    if isinstance(answer := value.get("answer"), str):
        return answer
    if len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        return _find_answer(inner, alone=alone)
    texts = [text for text in value.values() if isinstance(text, str)]
    return texts[0] if alone and len(texts) == 1 else None


def _without_markers(text: str) -> tuple[str, list[tuple[int, tuple[int, ...]]], list[tuple[int, int]]]:
    """Return the text without markers, and each marker's numbers and position (the end of the text before it).

    The last value has the position after each cut: in the text without markers, and in ``text``.
    """
    pieces: list[str] = []
    marked: list[tuple[int, tuple[int, ...]]] = []
    cuts = [(0, 0)]
    end = length = stripped = 0

    def add_piece(piece: str) -> None:
        nonlocal length, stripped
        pieces.append(piece)
        if solid := len(piece.rstrip()):
            stripped = length + solid
        length += len(piece)

    for match in _MARKER.finditer(text):
        if match[4] and _NUMBERED.search(text, max(0, match.start() - _LONGEST_NUMBERED), match.start()):
            continue
        add_piece(text[end : match.start()])
        end = match.end()
        if text[end : end + 1].isalnum():
            # Without its marker "The [1]tide" would be one word, unlike the streamed text.
            add_piece(" ")
        cuts.append((length, end))
        if (numbers := next(filter(None, match.groups()), None)) is not None:
            marked.append((stripped, _read_numbers(numbers)))
    pieces.append(text[end:])
    return "".join(pieces), marked, cuts


def _read_numbers(listing: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for match in _RANGE.finditer(listing):
        if match[3]:
            numbers.append(int(match[3]))
        else:
            first, last = int(match[1]), int(match[2])
            numbers += range(first, min(last, first + MAX_MARKERS) + 1)
    return tuple(numbers)
