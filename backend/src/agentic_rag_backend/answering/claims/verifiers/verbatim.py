"""Finds claims that stand in passages word for word.

Only words, numbers and the signs of `_PIECE` count: spaces, line breaks, other marks and Markdown make no difference. A claim
that is a whole sentence, list item, row or line of code needs no other check. A claim cut out of a sentence may leave out words
that change its meaning, so the caller checks that the sentence asserts it. A list of items is verbatim if all of its items are.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from agentic_rag_backend.answering.claims.base import SupportingSpan
from agentic_rag_backend.answering.claims.passages import LONGEST_QUOTE, IndexedPassage
from agentic_rag_backend.answering.claims.tokens import BRACKETED_NUMBER
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code
from agentic_rag_backend.language.words import STOP_WORDS, comparable

MAX_ITEM_WORDS = 8
"""Longer parts of a claim are no items of a list, but clauses."""
MAX_ITEMS = 40
"""A longer list is not read as one."""
_PIECE = re.compile(r"\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+|[%‰$€£¥°±<>=≤≥≠+]|(?<![^\W_])[-−](?=[.,]?\d)")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_ZEROS = re.compile(r"(?<=\d)\.0+\Z")
_BETWEEN_ITEMS = re.compile(r"[,;](?=\s|\Z)|[\n•·|]|\s(?:and|or|&|und|oder|et|ou|y|e)\s", re.IGNORECASE)
_VERBAL = re.compile(
    r"\b(?:is|are|was|were|be|been|being|has|have|had|do|does|did|will|would|can|could|may|might|must|shall|should|"
    r"[a-z]{3,}ed(?!-))\b|n['’]t\b"
)
"""Words of clauses. "Mira Voss, a painter, founded the mill" is no list, though all its parts may stand in a passage."""
_WORD = re.compile(r"[a-z]+")
_LIMITS = frozenset({"only", "not", "never", "no", "almost", "nearly", "unless", "except"})
_LIMITS_OF_NUMBERS = frozenset({"than", "between", "about", "around", "under", "over", "below", "above", "least", "most", "to"})
"""Words before a number that make it another one: "fewer than 12"."""
_CODE = re.compile(r"\w[(\[]\S|[{}=]")
"""Signs of a line of code. Lines of prose may end with a semicolon, too."""
_OPERATORS = re.compile(r"[-+*/%^&|!<>=]+")
_GOES_ON = re.compile(r"[ \t]*+(?:[-+*/%^&|<>=(\[]|\.\w)")
_WENT_BEFORE = re.compile(r"[-+*/%^&|<>=.]\s{0,4}\Z")
"""An operator after or before a part of a formula: "x = a" in "x = a - b"."""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A claim, or an item of it, as it stands in a passage.

    ``support`` is the sentence around it. ``whole``: it begins and ends with a sentence, a list item, a row or a line of code.
    ``qualified``: it is a part of a formula, or a number without its sign. ``limited``: words next to it change its meaning if it
    is a clause: "fewer than" before "12 people died", "the brother of" before "Holt sold it". As an item, "12" is an answer.
    """

    support: SupportingSpan
    language: Language
    whole: bool
    qualified: bool = False
    limited: bool = False


class VerbatimPassage:
    """A passage in which copies are found."""

    def __init__(self, passage: IndexedPassage) -> None:
        self._indexed = passage

    def find(self, pieces: Sequence[str], operators: Sequence[str]) -> Copy | None:
        """Return the first copy of ``pieces``, preferably a whole one. A formula needs its ``operators``, too."""
        run, places = self._run
        return self._find_run(run, places, pieces, operators)

    def find_item(self, pieces: Sequence[str]) -> Copy | None:
        """Return the first copy of ``pieces``; the endings of words make no difference."""
        run, places = self._forms
        return self._find_run(run, places, [comparable(piece) for piece in pieces])

    def _find_run(self, run: str, places: Sequence[int], pieces: Sequence[str], operators: Sequence[str] = ()) -> Copy | None:
        sequence = _join_pieces(pieces)
        match: tuple[int, int] | None = None
        changed: tuple[int, int] | None = None
        at = run.find(sequence)
        while at >= 0:
            first = bisect_left(places, at)
            last = first + len(pieces) - 1
            if operators and operators != self._list_operators(first, last):
                changed = changed or (first, last)
            elif first in self._firsts and last in self._lasts:
                return self._make_copy(first, last, whole=True)
            else:
                match = match or (first, last)
            at = run.find(sequence, at + 1)
        if match is None and changed is not None:
            return replace(self._make_copy(*changed, whole=False), qualified=True)
        return None if match is None else self._make_copy(*match, whole=False)

    def _list_operators(self, start_piece: int, end_piece: int) -> list[str]:
        return _OPERATORS.findall(self._indexed.passage.text, self._pieces[start_piece].start, self._pieces[end_piece].end)

    def _make_copy(self, start_piece: int, end_piece: int, *, whole: bool) -> Copy:
        start, end = self._pieces[start_piece].start, self._pieces[end_piece].end
        inside = [sentence for sentence in self._indexed.sentences if sentence.start < end and start < sentence.end]
        if inside:
            around = min(inside[0].start, start), max(inside[-1].end, end)
            start, end = around if around[1] - around[0] <= max(LONGEST_QUOTE, end - start) else (start, end)
        forms = frozenset(token.form for token in self._indexed.within(start, end))
        before = self._pieces[start_piece - 1].text if start_piece and self._pieces[start_piece - 1].start >= start else ""
        after = (
            self._pieces[end_piece + 1].text
            if end_piece + 1 < len(self._pieces) and self._pieces[end_piece + 1].end <= end
            else ""
        )
        limited = before in _LIMITS_OF_NUMBERS and self._pieces[start_piece].text[0].isdigit()
        limited = not whole and (limited or not _LIMITS.isdisjoint((before, after)))
        formula = any(piece.text == "=" for piece in self._pieces[start_piece : end_piece + 1]) and self._is_part(
            start_piece, end_piece
        )
        support = SupportingSpan(self._indexed.passage, start, end, 1.0, forms)
        qualified = not whole and (formula or (before in ("-", "−") and self._pieces[start_piece].text[0].isdigit()))
        return Copy(support, self._indexed.language, whole, qualified, limited or (before == "of" and not whole))

    def _is_part(self, start_piece: int, end_piece: int) -> bool:
        """Return whether a formula goes on after the last piece, or began before the first."""
        text, start = self._indexed.passage.text, self._pieces[start_piece].start
        after = _GOES_ON.match(text, self._pieces[end_piece].end)
        return after is not None or _WENT_BEFORE.search(text[max(0, start - 4) : start]) is not None

    @cached_property
    def _pieces(self) -> list[_Piece]:
        text = self._indexed.passage.text
        references = [match.span() for match in BRACKETED_NUMBER.finditer(text)]
        starts = [start for start, _ in references]
        pieces = []
        for match in _PIECE.finditer(text):
            before = bisect_right(starts, match.start()) - 1
            if before < 0 or references[before][1] <= match.start():
                pieces.append(_Piece(match.start(), match.end(), _normalise_piece(match[0])))
        return pieces

    @cached_property
    def _run(self) -> tuple[str, list[int]]:
        return _run_of([piece.text for piece in self._pieces])

    @cached_property
    def _forms(self) -> tuple[str, list[int]]:
        return _run_of([comparable(piece.text) for piece in self._pieces])

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Return the places of sentences, list items, rows and lines of code."""
        text = self._indexed.passage.text
        parts = [(sentence.start, sentence.end) for sentence in self._indexed.sentences]
        start = 0
        for line in text.splitlines(keepends=True):
            if _CODE.search(line):
                parts.append((start, start + len(line.rstrip())))
            start += len(line)
        return parts

    @cached_property
    def _firsts(self) -> frozenset[int]:
        starts = [piece.start for piece in self._pieces]
        return frozenset(bisect_left(starts, start) for start, _ in self._parts)

    @cached_property
    def _lasts(self) -> frozenset[int]:
        ends = [piece.end for piece in self._pieces]
        return frozenset(bisect_right(ends, end) - 1 for _, end in self._parts)


class VerbatimPassages:
    """The passages of one answer."""

    def __init__(self, passages: Sequence[IndexedPassage]) -> None:
        self._passages = {passage.passage.marker: VerbatimPassage(passage) for passage in passages}

    def find(self, text: str, markers: Sequence[int]) -> Copy | None:
        """Return a copy of ``text``: a whole one in any passage, otherwise one in a passage of ``markers``, otherwise any."""
        pieces = _pieces_of(text)
        if not _says_something(pieces):
            return None
        operators = _OPERATORS.findall(text.strip("*_`- ")) if "=" in pieces else []
        part: Copy | None = None
        for passage in self._in_order(markers):
            copy = passage.find(pieces, operators)
            if copy is not None and copy.whole:
                return copy
            part = part or copy
        return part

    def _find_item(self, text: str, markers: Sequence[int]) -> Copy | None:
        pieces = _pieces_of(text)
        if not _says_something(pieces):
            return None
        copies = (passage.find_item(pieces) for passage in self._in_order(markers))
        return next((copy for copy in copies if copy is not None), None)

    def list_items(self, text: str, markers: Sequence[int]) -> list[tuple[str, Copy]] | None:
        """Return the items of a list with their copies. None if ``text`` is no list of items that all stand in the passages."""
        if has_verb(text):
            return None
        parts = [part for part in (part.strip() for part in _BETWEEN_ITEMS.split(text)) if part]
        parts = [part for part in parts if _pieces_of(part)]
        if not 1 < len(parts) <= MAX_ITEMS or any(len(_pieces_of(part)) > MAX_ITEM_WORDS for part in parts):
            return None
        # "Norway, 12; Sweden, 9" states which number belongs to which name.
        if len({any(piece[0].isdigit() for piece in _pieces_of(part)) for part in parts}) > 1:
            return None
        items: list[tuple[str, Copy]] = []
        for part in parts:
            copy = self._find_item(part, markers)
            if copy is None:
                return None
            items.append((part, copy))
        return items

    def _in_order(self, markers: Sequence[int]) -> list[VerbatimPassage]:
        cited = [self._passages[marker] for marker in markers if marker in self._passages]
        return [*cited, *(passage for passage in self._passages.values() if passage not in cited)]


def has_verb(text: str) -> bool:
    """Return whether a text may be a clause: it has a form that only verbs have."""
    irregular = language_of_code(ENGLISH).irregular_forms
    return bool(_VERBAL.search(text)) or any(comparable(match[0]) in irregular for match in _WORD.finditer(text))


def _pieces_of(text: str) -> list[str]:
    return [_normalise_piece(match[0]) for match in _PIECE.finditer(BRACKETED_NUMBER.sub(" ", text))]


def _normalise_piece(piece: str) -> str:
    if not piece[0].isdigit():
        return piece.casefold()
    return _ZEROS.sub("", piece.replace(",", "") if _THOUSANDS.match(piece) else piece.casefold())


def _says_something(pieces: Sequence[str]) -> bool:
    return any(piece not in STOP_WORDS and piece[0].isalnum() for piece in pieces)


def _run_of(pieces: Sequence[str]) -> tuple[str, list[int]]:
    """Return pieces as one text, and the place of each in it."""
    places, length = list[int](), 0
    for piece in pieces:
        places.append(length)
        length += len(piece) + 1
    return _join_pieces(pieces), places


def _join_pieces(pieces: Sequence[str]) -> str:
    """Return pieces as one text in which a search finds whole pieces only."""
    return "\n" + "".join(f"{piece}\n" for piece in pieces)
