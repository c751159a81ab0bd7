"""Splits text into sentences by rules, with exact offsets.

A sentence ends at ``. ! ? …``, their full-width forms, or the full stops and question marks of other scripts (`_STOPS`). A period
does not end it after an abbreviation ("Dr. A. Smith", "U.S. Navy", "No. 5"), within a number ("3.5"), or before a word in lower
case. Blank lines, headings, list items and table rows also end a sentence. The abbreviations are English, and some are German.

Separates statements from layout: headings, table rows, datelines, lists of participants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_SENTENCE_CHARACTERS = 1000
"""A longer run without an ending (a table, code) is split at a space before this length."""

_BLOCK_START = re.compile(r"[ \t]*(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?|\|)")
_LIST_MARKER = re.compile(r"(?:#{1,6}[ \t]+|[-*+•][ \t]+|\d{1,3}[.)][ \t]+|>[ \t]?)+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]")
_STOPS = "。｡！？؟۔।॥։።፧၊။។៕"
"""Marks that end a sentence without a space after them: East Asian, Arabic, Urdu, Hindi, Armenian, Ethiopic, Burmese, Khmer."""
# A run of marks is read only from its beginning. Reading from each mark would take n² time for a run of n.
_ENDING = re.compile(r"(?<![.!?…])[.!?…]++[)\]\"'”’»]*+(?:\[\d{1,4}\])*+(?=\s)|" + f"[{_STOPS}]+[」』”’）》〉】]*")
_LAST_TOKEN = re.compile(r"[^\s(\[\"'“‘]{1,40}\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+\Z")
_NEXT_WORD = re.compile(r"[\s\"'“‘(\[]*([^\W_][\w'’]*)?")


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEFORE_NAMES = _split_words(
    "dr mr mrs ms mx prof st sts gen col lt sgt capt cmdr maj adm rev hon sen rep gov pres amb fr sr. mt ft vs cf viz "
    "eg ie e.g i.e al approx ca messrs mme mlle dept bzw z.b d.h u.a sog evtl ggf vgl"
)
"""A period after these words never ends a sentence."""
_BEFORE_NUMBERS = _split_words(
    "no nos nr fig figs vol vols pp p ch sec art eq c jan feb mar apr jun jul aug sep sept oct nov dec"
)
"""A period after these words does not end a sentence if a digit follows."""
_AFTER_ORDINALS = _split_words(
    "Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert Jahrhunderts"
)
"""Words after a German ordinal, which has a period: "am 3. Oktober", "im 19. Jahrhundert"."""
_SOMETIMES = _split_words("inc ltd co corp jr sr etc bros a.m p.m b.c a.d ph.d m.d b.a m.a u.s u.k u.n e.u d.c ave blvd rd est")
"""A period after these words ends a sentence only if the next word commonly begins sentences."""
_STARTERS = _split_words(
    "the a an it its he she his her they their we our you i this that these those there in on at by for from to with as after "
    "before during since when while where who what which how why if although though however but and or so then also both each "
    "some many most several one two three no not today later according because until despite between among under over"
)


_FULL_STOPS = frozenset(".!?…" + _STOPS)


class Sentence(NamedTuple):
    """``text == source[start:end]``, without surrounding space and list markers."""

    start: int
    end: int
    text: str

    @property
    def complete(self) -> bool:
        """Whether it begins and ends like a sentence. False for headings and for sentences cut by a chunk's edge."""
        first_character = self.text.lstrip("\"'“‘([«")[:1]
        return bool(first_character) and not first_character.islower() and has_end_mark(self.text)


def has_end_mark(text: str) -> bool:
    """Return whether a text ends with a full stop, a question mark or the like, closing quotation marks aside."""
    return text.rstrip().rstrip("\"'”’)]»】」』）》〉")[-1:] in _FULL_STOPS


def begins_block(text: str) -> bool:
    """Return whether a line that begins with ``text`` begins a block: a heading, a list item, a quote or a row of a table."""
    return _BLOCK_START.match(text) is not None


def stands_alone(line: str) -> bool:
    """Return whether a line is a block by itself: a heading or a row of a table."""
    return _HEADING.match(line) is not None or line.lstrip().startswith("|")


def with_full_stop(text: str) -> str:
    """Return a text that is ended: with a full stop if it has no ending."""
    return text if has_end_mark(text) else f"{text}."


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of ``text`` in order, without overlap. Only space and list markers are between them."""
    sentences = []
    for start, end in _find_blocks(text):
        for begin, stop in _find_sentences(text, start, end):
            sentence = _trim_sentence(text, begin, stop)
            if sentence is not None:
                sentences.append(sentence)
    return sentences


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield runs of lines that form one block."""
    start: int | None = None
    position = 0
    closed = True
    for line in text.splitlines(keepends=True):
        blank = not line.strip()
        if start is not None and (blank or closed or begins_block(line)):
            yield start, position
            start = None
        if not blank and start is None:
            start = position
        closed = stands_alone(line)
        position += len(line)
    if start is not None:
        yield start, position


def _find_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    marker = _LIST_MARKER.match(text, start + len(text[start:end]) - len(text[start:end].lstrip(" \t")), end)
    begin = marker.end() if marker else start
    for ending in _ENDING.finditer(text, begin, end):
        if _ends_sentence(text, begin, ending, end):
            yield from _cut_pieces(text, begin, ending.end())
            begin = ending.end()
    yield from _cut_pieces(text, begin, end)


def _ends_sentence(text: str, begin: int, ending: re.Match[str], end: int) -> bool:
    following = _NEXT_WORD.match(text, ending.end(), end)
    word = following[1] if following else None
    if word is None:
        return True
    if word[0].islower():
        return ending[0][0] in _STOPS
    if not ending[0].startswith(".") or ending[0].startswith(".."):
        return True
    token = _LAST_TOKEN.search(text, max(begin, ending.start() - 40), ending.start())
    before = token[0] if token else ""
    name = before.casefold()
    if name in _BEFORE_NAMES or name.rpartition("-")[2] in _BEFORE_NAMES:
        return False
    if word in _AFTER_ORDINALS and name.isdecimal():
        return False
    if name in _BEFORE_NUMBERS and word[0].isdigit():
        return False
    if name in _SOMETIMES or _INITIALS.match(before + "."):
        return word.casefold() in _STARTERS and word != "I"
    return True


def _cut_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE_CHARACTERS:
        cut = max(text.rfind(separator, start + 1, start + MAX_SENTENCE_CHARACTERS) for separator in (" ", "\n"))
        cut = cut if cut > start else start + MAX_SENTENCE_CHARACTERS
        yield start, cut
        start = cut
    if end > start:
        yield start, end


def _trim_sentence(text: str, start: int, end: int) -> Sentence | None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    return Sentence(start, end, text[start:end]) if end > start else None


LEAST_WORDS = 5
"""Shorter pieces are fragments ("A research note.", "PORT ELLERY."), whatever their punctuation."""
_WORD = re.compile(r"[^\W_]+(?:['’.,-][^\W_]+)*")
_EMPHASIS = re.compile(r"\s*(\*\*|__|\*|_)(?=\S)(?:(?!\1).)+\1[.:]?\s*", re.DOTALL)
_LABEL = re.compile(r"\s*[*_]*[A-Z][^\W\d_]*(?: [^\W\d_]+){0,3}[*_]*:[*_]*\s")
_LEANING = re.compile(
    r"[\"'“‘(*_]*(?:he|she|it|they|his|her|its|their|this|these|those|that|such|however|but|and|or|also|there|then|so|both|neither|"
    r"one|another|the (?:latter|former|first|second|third|other|rest)|"
    r"(?:together|later|afterwards|soon|now|today|since then),? (?:he|she|it|they))\b",
    re.IGNORECASE,
)
_CLOSING = "\"'”’)]»*_"
_ENDINGS = frozenset(".!?…。！？")
_MAX_CAPITALS = 0.75
_MAX_CAPITALS_LABELLED = 0.3


def is_statement(text: str) -> bool:
    """Return whether ``text``, a sentence of `split_sentences`, is a statement that can be quoted by itself.

    It has at least `LEAST_WORDS` words and an ending, and it begins like a sentence. It is not a table row, a line in emphasis
    like a heading, a list of names after a label ("Present: …"), or mostly capitals. For English and other languages with letter
    case. A text in a script without case only needs an ending.
    """
    piece = text.strip()
    if not piece or "|" in piece or piece.startswith("#") or piece.rstrip(_CLOSING)[-1:] not in _ENDINGS:
        return False
    if _EMPHASIS.fullmatch(piece):
        return False
    words: list[str] = _WORD.findall(piece)
    if len(words) < LEAST_WORDS:
        return _without_spaces(piece)
    if piece.lstrip("\"'“‘([«*_—–- ")[:1].islower():
        return False
    capitals = sum(word[0].isupper() for word in words) / len(words)
    largest_share = _MAX_CAPITALS_LABELLED if _LABEL.match(piece) else _MAX_CAPITALS
    return capitals <= largest_share


def leans_on_context(text: str) -> bool:
    """Return whether a sentence begins with a word that refers to the context ("He …", "This …", "But …")."""
    return _LEANING.match(text) is not None


def _without_spaces(piece: str) -> bool:
    """Return whether the script writes no spaces between words, so that a single "word" may be a sentence."""
    return not piece.isascii() and any("\u3040" <= letter <= "\u9fff" for letter in piece)
