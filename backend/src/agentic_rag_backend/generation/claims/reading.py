"""Parse a model's text: sentences, their markers, and the separators between them."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from agentic_rag_backend.domain.text.sentences import is_ended, split_sentences
from agentic_rag_backend.domain.text.words import content_forms

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
_ENVELOPE = re.compile(r"\s*(?:```(?:json)?\s*)?\{")
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
    half = _HALF_MARKER.search(text)
    plain, found = _without_markers(text[: half.start()].rstrip() if half is not None else text)
    claims: list[Claim] = []
    held: tuple[int, str] | None = None
    end_before = 0
    sentences = split_sentences(plain)
    places = [at for at, _ in found]
    for index, sentence in enumerate(sentences):
        between = plain[end_before : sentence.start]
        separator = between if "\n" in between or (not claims and between.strip()) else " "
        start, separator = held or (sentence.start, separator)
        end_before = sentence.end
        last = index + 1 == len(sentences)
        if not last and not content_forms(sentence.text):
            held = (start, separator)
            continue
        held = None
        until = len(plain) + 1 if last else sentences[index + 1].start + 1
        own = found[bisect_right(places, start) : bisect_left(places, until)]
        markers = tuple(dict.fromkeys(number for _, numbers in own for number in numbers))
        claims.append(Claim(_without_lead(_EMPTY_BOLD.sub("", plain[start : sentence.end])), markers[:MAX_MARKERS], separator))
    return claims


class ClaimReader:
    """Reads claims from a text that arrives in pieces; together they equal the claims of the whole text."""

    def __init__(self) -> None:
        self._text = ""
        self._given = 0
        self._may_have_ended = False

    @property
    def text(self) -> str:
        """Return the text so far."""
        return self._text

    def feed(self, piece: str) -> list[Claim]:
        """Return the claims that ``piece`` completed: claims with another sentence after them."""
        self._text += piece
        self._may_have_ended = self._may_have_ended or _MAY_END.search(piece) is not None
        if not self._may_have_ended or not any(character.isspace() for character in piece) or _ENVELOPE.match(self._text):
            return []
        # The last word may be half a word, and the last bracket half a marker.
        complete = self._text[: max(self._text.rfind(" "), self._text.rfind("\n")) + 1]
        opened = _OPEN_MARKER.search(complete)
        claims = read_claims(complete[: opened.start()] if opened else complete)
        # The next word decides whether "Inc." ends a sentence. Text without a word, such as "[", decides nothing.
        while claims and not any(map(str.isalnum, claims[-1].text)):
            claims.pop()
        fresh = claims[self._given : -1]
        if fresh:
            self._given += len(fresh)
            self._may_have_ended = False
        return fresh

    def finish(self, *, cut: bool = False) -> list[Claim]:
        """Return the remaining claims; the text has ended. A text that was cut off has no last claim without its full stop."""
        if not self._given:
            self._text = _unwrapped(self._text)
        claims = read_claims(self._text)[self._given :]
        return claims[:-1] if cut and claims and not is_ended(claims[-1].text) else claims


def _without_lead(sentence: str) -> str:
    rest = _LEAD.sub("", sentence)
    return rest if rest == sentence else rest[:1].upper() + rest[1:]


def _unwrapped(text: str) -> str:
    """Return the answer in a JSON object that has an ``answer`` or only one text; any other text as it is."""
    if _ENVELOPE.match(text) is None:
        return text
    try:
        value = json.loads(text.strip().removeprefix("```json").strip("`\n "))
    except (ValueError, RecursionError):
        return text
    answer = value.get("answer")
    texts = [answer] if isinstance(answer, str) else [each for each in value.values() if isinstance(each, str)]
    return texts[0] if len(texts) == 1 else text


def _without_markers(text: str) -> tuple[str, list[tuple[int, tuple[int, ...]]]]:
    """Return the text without markers, and each marker's numbers and position (the end of the text before it)."""
    pieces: list[str] = []
    found: list[tuple[int, tuple[int, ...]]] = []
    end = length = stripped = 0

    def add(piece: str) -> None:
        nonlocal length, stripped
        pieces.append(piece)
        if solid := len(piece.rstrip()):
            stripped = length + solid
        length += len(piece)

    for match in _MARKER.finditer(text):
        if match[4] and _NUMBERED.search(text, max(0, match.start() - _LONGEST_NUMBERED), match.start()):
            continue
        add(text[end : match.start()])
        end = match.end()
        if text[end : end + 1].isalnum():
            # Without its marker "The [1]tide" would be one word, unlike the streamed text.
            add(" ")
        if (numbers := next(filter(None, match.groups()), None)) is not None:
            found.append((stripped, _numbers(numbers)))
    pieces.append(text[end:])
    return "".join(pieces), found


def _numbers(written: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for match in _RANGE.finditer(written):
        if match[3]:
            numbers.append(int(match[3]))
        else:
            first, last = int(match[1]), int(match[2])
            numbers += range(first, min(last, first + MAX_MARKERS) + 1)
    return tuple(numbers)
