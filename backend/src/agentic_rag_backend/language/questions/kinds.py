"""Analysis of a question's words: the kind of answer it asks for, matches of word forms, and its literal parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from agentic_rag_backend.language.words import comparable, words

_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”|„([^“”\n]{2,200})[“”]|«([^»\n]{2,200})»|「([^」\n]{1,200})」')
_AROUND = "?!.,;:()[]{}<>\"'`“”„«»「」、。"
_QUANTITY = re.compile(r"\d+['’]?[^\W\d_]{1,3}")
"""Ordinals, decades and numbers with a unit: "19th", "1990's", "12km"."""
_YEARS = re.compile(r"\d{4}[-/]\d{2}(?:\d{2})?(?:[-/]\d{1,2})?")
"""Ranges of years and ISO dates: "2019-20", "2024-05-06"."""
_GROUPS = re.compile(r"\d+(?:[-/]\d+)+|\d+(?:\.\d+){2,}")
"""Numbers in groups, such as "2024-118" and "10.0.0.1"; a single point is a decimal point."""
_PARTS = re.compile(r"[-/]")
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_MIN_DIGITS = 6
"""Digits of a plain number that is more likely an identifier than an amount."""


@dataclass(frozen=True, slots=True)
class Literals:
    """The quoted phrases and the identifiers of a query, each in order."""

    quoted: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()


def find_literals(text: str) -> Literals:
    """Return the literal parts of a query.

    An identifier is a word that mixes letters and digits ("KX-4471"), joins parts by underscores or double colons
    ("parse_header"), or is a number in groups or of six digits. Ordinals, decades, dates and quantities are none.
    """
    quoted = tuple(next(filter(None, match.groups())) for match in _QUOTED.finditer(text))
    words = (word.strip(_AROUND) for word in _QUOTED.sub(" ", text).split())
    return Literals(quoted, tuple(word for word in words if _is_identifier(word)))


def _is_identifier(word: str) -> bool:
    if len(word) < 3 or _QUANTITY.fullmatch(word) or _YEARS.fullmatch(word):
        return False
    if not any(character.isalpha() for character in word):
        return (word.isdecimal() and len(word) >= _MIN_DIGITS) or _GROUPS.fullmatch(word) is not None
    if "::" in word or "_" in word.strip("_"):
        return True
    parts = _PARTS.split(word)
    if any(_mixes_letters_and_digits(part) for part in parts):
        return True
    # "KX-4471" and "kx-4471", but neither "4-letter" nor "mid-1970".
    numbered = any(part.isdecimal() for part in parts)
    long = any(part.isdecimal() and len(part) > 2 and not _YEAR.fullmatch(part) for part in parts)
    return (numbered and any(part.isupper() for part in parts)) or long


def _mixes_letters_and_digits(part: str) -> bool:
    """Return whether a part has letters and digits, and is no quantity."""
    has_digit = any(character.isdigit() for character in part)
    return has_digit and any(character.isalpha() for character in part) and not _QUANTITY.fullmatch(part)


class AnswerKind(Enum):
    """The kind of answer."""

    NAME = "name"
    PLACE = "place"
    TIME = "time"
    NUMBER = "number"
    PERCENT = "percent"
    MONEY = "money"
    MEASURE = "measure"
    """A number with a unit: a length, an age, a speed."""
    COLOUR = "colour"
    PHONE = "phone"
    EMAIL = "email"
    WEBSITE = "website"
    THEME = "theme"
    """An account of several sentences: a history, a reason, a role."""
    OTHER = "other"

    @property
    def numeric(self) -> bool:
        """Whether the answer is a number, apart from dates."""
        return self in _NUMERIC

    @property
    def fact(self) -> bool:
        """Whether the answer is one item that can be recognised by its form."""
        return self not in (AnswerKind.THEME, AnswerKind.OTHER)


_NUMERIC = frozenset({AnswerKind.NUMBER, AnswerKind.PERCENT, AnswerKind.MONEY, AnswerKind.MEASURE})
_PRICES = "price|cost|budget|salary|wages?|fee|rent|revenue|income|fine|loan|turnover"
_SIZES = (
    "speed|distance|height|width|depth|length|weight|temperature|size|age|elevation|altitude|capacity|diameter|peak|gust|horizon"
)
_COUNTS = r"(?<!phone )(?<!mobile )(?<!cell )(?<!fax )number|amount|population|rate|total|count|density"
_WHAT = r"(?:what|which)(?: (?:is|was|were|are) the(?: \w+){0,2}| \w+)?"
_UNNAMED = r"(?! (?:\w+ )?(?:called|named|known)\b)"
_TIME = re.compile(
    # "When" is a question in front of an auxiliary, at the beginning, after a verb of telling or at the end. Otherwise it opens
    # a clause: "when the river rose", "when discussing trends".
    r"\bwhen (?:did|was|were|is|are|will|would|had|has|have|can|could|should)\b|\bwhen\W*$|"
    r"(?:^\W*|\b(?:and|or|but|tell me|knows?|sa(?:y|ys|id)|since|until|exactly|of|find out) )when\b(?! \w+ing\b| do(?:es)?\b)|"
    r"\b(?:(?:what|which)(?: \w+)? (?:year|date|day|month|century|decade|time)|how (?:recently|late|early))\b",
    re.IGNORECASE,
)
_MONEY = re.compile(
    rf"\b{_WHAT} (?:{_PRICES})\b|"
    r"\bhow much (?:money\b|[^?]{0,120}\b(?:costs?|pa(?:y|ys|id)|earn(?:s|ed)?|spen[dt]|spends|s[eo]ld|sell|worth|charged?|"
    r"raised?|len[dt]|borrow(?:ed)?|fined?)\b)|"
    r"\bwhat (?:did|does|do|was|were) [^?]{0,120}\b(?:earn|cost|pay|paid|spend|charge)\b",
    re.IGNORECASE,
)
_PERCENT = re.compile(rf"\b(?:{_WHAT} (?:percent|percentage|proportion|share)|how many percent)\b", re.IGNORECASE)
_MEASURE = re.compile(
    r"\b(?:how (?:old|long|tall|big|wide|deep|high|heavy|fast|thick|hot|cold|large|far (?:is|from|away|apart|did it))\b|"
    rf"{_WHAT} (?:{_SIZES}|area of)\b{_UNNAMED})",
    re.IGNORECASE,
)
_NUMBER = re.compile(rf"\b(?:how (?:many|much|often)\b|{_WHAT} (?:{_COUNTS})\b{_UNNAMED})", re.IGNORECASE)
_PHONE = re.compile(
    r"\b(?:(?:tele)?phone|mobile|cell|fax)(?: |-)?numbers?\b|['’]s (?:tele)?phone\W*$|"
    r"\bwhat numbers? (?:\w+ ){0,3}(?:call|ring|phone|dial)\b",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"\be-?mails?(?: address(?:es)?)?\W*$|\be-?mail address(?:es)?\b", re.IGNORECASE)
_WEBSITE = re.compile(
    r"\b(?:what|which) (?:is|was|are) [^?]{0,80}\b(?:web ?site|web ?page|home ?page|web address|url)\b", re.IGNORECASE
)
_COLOUR = re.compile(r"\b(?:what|which) colou?rs?\b|\b(?:is|was|are|were) the colou?rs?\b", re.IGNORECASE)
_PLACE = re.compile(
    r"\b(?:where|(?:what|which)(?: \w+){0,2} (?:city|town|village|country|countries|state|county|province|region|district|island|"
    r"river|mountain|port|place|street|building|continent|ocean|sea|lake|nation)|birthplace|hometown)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"\b(?:who|whom|whose|(?:what|which)(?: \w+){0,2} (?:university|college|school|institution|company|organi[sz]ation|team|club|"
    r"band|league|party|person|actor|actress|author|writer|singer|director|producer|player|man|woman|king|queen|president|book|"
    r"film|movie|album|song|ship|language|religion|function|name|title)|(?:what|which) (?:\w+ )?(?:is|was|are|were) the "
    r"(?:name|title)|nationality)\b",
    re.IGNORECASE,
)
_THEME = re.compile(
    r"\s*(?:why\b|(?:and |so )?how (?:do|does|did|has|have|had|is|are|was|were|can|could|far|should|would)\b|to what extent\b|"
    r"in (?:what|which) ways?\b|what (?:\w+ )?(?:role|part) (?:do|does|did|has|have)\b|what (?:\w+ )?(?:effects?|impact|"
    r"influence|consequences?|lessons?|themes?|topics?|trends?|challenges?|reasons?|causes?|patterns?|relation|relationship|"
    r"differences?)\b|what (?:do|does|did|has|have) .{3,60}\b(?:do|mean|say|think|show|suggest|tell)\b|"
    r"what (?:is|are|was|were) .{0,80}\bover the years\b|"
    r"(?:describe|explain|discuss|compare|summari[sz]e|outline|give an overview)\b|what are the (?:\w+ )?\w+s\b)",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\bhow many ((?:(?!(?:do|does|did|has|have|had|is|are|was|were|can|could|will|would)\b)[\w-]+ ){1,3})", re.IGNORECASE
)
_ATTRIBUTE = re.compile(
    r"\bwhat (salary|wages?|price|fee|rent|temperature|speed|height|weight|population)\b|"
    r"\b(?:what|which)(?: (?:is|was|are|were) the)? (\w+) number\b",
    re.IGNORECASE,
)
_UNTOLD = frozenset({"time", "people", "person", "different", "total"})
"""Counted without being named: "They met twice", "640 live there"."""
_VERBS = """
grow grew grown; write wrote written; build built; buy bought; sell sold; win won; lose lost
begin began begun; become became; come came; go went gone; give gave given; take took taken; lead led
leave left; make made; meet met; sing sang sung; teach taught; speak spoke spoken; choose chose chosen
hold held; keep kept; lend lent; spend spent; send sent; pay paid; say said
tell told; find found; see saw seen; know knew known; draw drew drawn; fall fell fallen; rise rose risen
drive drove driven; break broke broken; steal stole stolen; wear wore worn; bear bore born; catch caught; fight fought
bring brought; think thought; run ran; swim swam; sink sank sunk; die dead death
"""
_IRREGULAR = {
    comparable(form): comparable(verb.split()[0]) for verb in re.split(r"[;\n]", _VERBS.strip()) for form in verb.split()
}
_LEAST_COMMON = 5
_MAX_DIFFERENT = 4


_SECOND_QUESTION = re.compile(r"\band (?:how|what|why|where|who|which|when)\b", re.IGNORECASE)


def asks_twice(question: str) -> bool:
    """Return whether another question follows after "and": "What was promised to the island, and how do its people fare?"."""
    return _SECOND_QUESTION.search(question) is not None


def asked_for(question: str) -> AnswerKind:
    """Return the kind of answer that ``question`` asks for."""
    if _THEME.match(question) and not any(pattern.match(question.strip()) for pattern in (_MEASURE, _NUMBER, _MONEY, _PERCENT)):
        return AnswerKind.THEME
    # The first question word determines the kind. A second one belongs to a clause that describes it.
    matches = [(match.start(), kind) for pattern, kind in _KINDS if (match := pattern.search(question))]
    return min(matches, key=lambda item: item[0])[1] if matches else AnswerKind.OTHER


_KINDS = (
    # Of two that begin at the same word, the first in this list is the kind.
    (_PHONE, AnswerKind.PHONE),
    (_EMAIL, AnswerKind.EMAIL),
    (_WEBSITE, AnswerKind.WEBSITE),
    (_TIME, AnswerKind.TIME),
    (_PERCENT, AnswerKind.PERCENT),
    (_MONEY, AnswerKind.MONEY),
    (_MEASURE, AnswerKind.MEASURE),
    (_NUMBER, AnswerKind.NUMBER),
    (_COLOUR, AnswerKind.COLOUR),
    (_PLACE, AnswerKind.PLACE),
    (_NAME, AnswerKind.NAME),
)


def find_measure(question: str) -> frozenset[str]:
    """Return the forms of the counted or measured noun: "passenger" for "How many passengers …". Empty without one.

    A number answers such a question only if the text names the counted noun.
    """
    match = _COUNTED.search(question) or _ATTRIBUTE.search(question)
    return frozenset(list(_content_forms(next(filter(None, match.groups()))))[:1]) if match else frozenset()


def _content_forms(text: str) -> dict[str, None]:
    return {word.form: None for word in words(text) if word.content and word.form not in _UNTOLD}


def is_related_form(form: str, other_forms: Iterable[str]) -> bool:
    """Return whether ``form`` is in ``other_forms`` or shares a stem ("doctorate" and "doctoral", "director" and "direct").

    Irregular verbs are known ("grow" and "grew"). A stem: the first five letters or more are the same and at most four differ
    on either side. Numbers must be equal, and so must codes, which are letters with digits ("port038" and "port001").
    """
    base = _IRREGULAR.get(form, form)
    is_code = any(map(str.isdigit, form))
    for other_form in other_forms:
        if base == _IRREGULAR.get(other_form, other_form):
            return True
        if form[:_LEAST_COMMON] != other_form[:_LEAST_COMMON] or len(form) < _LEAST_COMMON or form[0].isdigit():
            continue
        if is_code and any(map(str.isdigit, other_form)):
            continue
        common = next(
            (n for n, (a, b) in enumerate(zip(form, other_form, strict=False)) if a != b), min(len(form), len(other_form))
        )
        if max(len(form), len(other_form)) - common <= _MAX_DIFFERENT:
            return True
    return False
