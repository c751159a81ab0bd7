"""Finds what a text says about the bearer of a name: "the painter John Marsh", "John Marsh (1901–1970) was a chemist"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from agentic_rag_backend.language.vocabulary.kinds import DEEDS, DISCIPLINES, FIELDS, ROLES, kinds_differ
from agentic_rag_backend.language.words import MAX_NAME_WORDS, Word, all_forms, comparable, words

NEAR_YEARS = 2
"""Years of birth that differ by no more may be one year, of which one is wrong."""
_BEFORE, _AFTER = 60, 160
"""Characters before and after a name that are read."""
_MAX_WORDS = 12
_GAP = re.compile(r"[ \n]|\. ?")
_LIFE = re.compile(r"\(?(?:[^()\d]{0,20})(?<!\d)(1\d{3}|20\d{2}) ?[–-] ?(1\d{3}|20\d{2})?(?!\d)")
_BORN = re.compile(r"\b(?:born|b\.)(?: [^\d.;]{0,40})? ?(1\d{3}|20\d{2})\b", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)(?: [^\d.;]{0,40})? ?(1\d{3}|20\d{2})\b", re.IGNORECASE)
_STATES = re.compile(
    r"(?:\s?\([^()]{1,80}\))?(?:,\s\d{1,3}(?=,))?,?\s(?:who\s)?"
    r"(?:was|is|were|became|remained|worked as|served as|serves as|works as)\s"
    r"(?=(?:an?|the|one of the|his|her|our)\s|[a-z]{1,20}\s(?:of|in)\s)",
)
_APPOSITION = re.compile(
    r"\s?(?:,|–|—)\s(?:\d{1,3},\s)?"
    r"(?=(?:an?|the|then|now|former|later)\s|(?:(?:senior|chief)\s)?[a-z]{1,20}(?:,|\.| of | at | in ))"
)
_THE = re.compile(r"\sthe\s(?=[a-z])")
_PARENTHESIS = re.compile(r"\s?\(([^()]{1,80})\)")
_OF = re.compile(r",? (?:of|at|from) ((?:the )?\w+)")
_PLACE = re.compile(r"^[^,.;:()A-Z]{1,40} (?:at|in|for|with) (?:the )?([A-Z][\w&’'-]{0,30}(?: [A-Z][\w&’'-]{0,30}){0,4})")
_ENDS = all_forms(
    "of in from who which that at for with to by whose where when while on after before but until since near like than about "
    "under son daughter wife husband brother sister friend pupil student widow father mother nephew"
)
"""Words that end a description: "a student of the painter" is no painter."""
_SCHOLARS = all_forms("professor reader lecturer doctor student teacher scholar degree")
_TITLES = {"mr": "m", "sir": "m", "ms": "f", "mrs": "f", "miss": "f", "lady": "f", "dame": "f"}
_TELLING = all_forms("born died") | DEEDS.keys() | _TITLES.keys()
_PRONOUN_GENDERS = {"he": frozenset("m"), "his": frozenset("m"), "she": frozenset("f"), "her": frozenset("f")}
_GENDERS = {"f": "female", "m": "male"}


@dataclass(frozen=True, slots=True)
class Description:
    """What texts say about one bearer of a name.

    ``kinds`` are forms of nouns (see `kinds.FIELDS`). ``tag`` is the parenthesis of a title: "John Marsh (painter)". ``gender``
    is "m" or "f" by Mr, Mrs and similar titles. ``nouns`` are the kinds as written, ``places`` the names of where the bearer has
    them: "banker at Harbour Bank".
    """

    kinds: frozenset[str] = frozenset()
    born: frozenset[int] = frozenset()
    died: frozenset[int] = frozenset()
    tag: str = ""
    gender: frozenset[str] = frozenset()
    nouns: tuple[str, ...] = field(default=(), compare=False)
    places: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.born or self.died or self.tag or self.gender)

    def __or__(self, description: Description) -> Description:
        return Description(
            self.kinds | description.kinds,
            self.born | description.born,
            self.died | description.died,
            self.tag or description.tag,
            self.gender | description.gender,
            tuple(dict.fromkeys((*self.nouns, *description.nouns))),
            tuple(sorted({*self.places, *description.places})),
        )

    @property
    def tells_kind(self) -> bool:
        """Whether it says more than Mr or Ms, which half of all bearers share."""
        return bool(self.kinds or self.born or self.died or self.tag)

    @property
    def label(self) -> str:
        """A few words that tell the bearer from others: "painter", "born 1901"; empty if there are none."""
        if self.tag or self.nouns:
            return self.tag or " and ".join(self.nouns[:2])
        if self.born:
            return f"born {min(self.born)}"
        return f"died {min(self.died)}" if self.died else ""

    def of_sort(self, sort: str) -> Description:
        """Return the description with the kinds of one sort, such as "person" or "vessel"."""
        nouns = tuple(noun for noun in self.nouns if FIELDS[comparable(noun)].sort == sort)
        kinds = frozenset(kind for kind in self.kinds if FIELDS[kind].sort == sort)
        return replace(self, nouns=nouns, kinds=kinds, places=self.places if kinds else ())

    @property
    def written(self) -> str:
        """The description as a line of text, from which `parse` makes it again: "oceanographer, reader; born 1976; female"."""
        parts = [", ".join(dict.fromkeys(self.nouns)), *(f"at {location}" for location in self.places)]
        parts += [f"born {year}" for year in sorted(self.born)] + [f"died {year}" for year in sorted(self.died)]
        parts += [_GENDERS[gender] for gender in sorted(self.gender)]
        parts += [f"({' '.join(self.tag.replace(';', ' ').split())})"] if self.tag else []
        return "; ".join(part for part in parts if part)

    @classmethod
    def parse(cls, text: str) -> Description:
        """Return the description that ``text``, a result of `written`, states. Unknown parts are left out."""
        description = cls()
        for part in text.split("; "):
            word, _, year = part.partition(" ")
            if part.startswith("("):
                description |= cls(tag=part[1:-1])
            elif word == "at":
                description |= cls(places=(year,))
            elif word in ("born", "died") and year.isdigit():
                years = frozenset([int(year)])
                description |= cls(born=years) if word == "born" else cls(died=years)
            elif part in _GENDERS.values():
                description |= cls(gender=frozenset(key for key, name in _GENDERS.items() if name == part))
            else:
                description |= _describe_nouns([noun for noun in part.split(", ") if comparable(noun) in FIELDS])
        return description

    def excludes_bearer(self, description: Description) -> bool:
        """Return whether one bearer cannot have both: other years of birth or death, other tags, Mr and Mrs."""
        tagged = bool(self.tag and description.tag) and self.tag.casefold() != description.tag.casefold()
        if tagged and not self.kinds & description.kinds:
            return True
        if self.gender and description.gender and not self.gender & description.gender:
            return True
        return _are_apart(self.born, description.born) or _are_apart(self.died, description.died)

    def has_other_kind(self, description: Description, *, strictly: bool = True) -> bool:
        """Return whether their kinds differ: see `kinds_differ`. One person may still have both."""
        return kinds_differ(self.kinds, description.kinds, strictly=strictly)

    def works_elsewhere(self, description: Description) -> bool:
        """Return whether they have other professions at other places: a lawyer in Lyon, a banker at Bonn Bank."""
        if not kinds_differ(self.kinds - ROLES, description.kinds - ROLES, strictly=False):
            return False
        here, there = ({word.form for location in bearer.places for word in words(location)} for bearer in (self, description))
        return bool(here and there) and here.isdisjoint(there)


def _are_apart(years: frozenset[int], other_years: frozenset[int]) -> bool:
    return bool(years and other_years) and min(abs(a - b) for a in years for b in other_years) > NEAR_YEARS


def find_mentions(name: Sequence[str], tokens: Sequence[Word], text: str) -> list[tuple[int, int]]:
    """Return where a name stands in a text, as spans of characters. One other name may stand between its words.

    Args:
        name: the forms of its words.
        tokens: the words of ``text``.

    A name of one word is no mention within a longer name: Ellery is not Port Ellery.
    """
    spans = []
    for position, word in enumerate(tokens):
        if word.form != name[0] or not word.name:
            continue
        last_position = _find_last_word(name, tokens, position, text)
        if last_position is None or (len(name) == 1 and _is_longer_name(tokens, position, text)):
            continue
        spans.append((word.start, tokens[last_position].end))
    return spans


def _find_last_word(name: Sequence[str], tokens: Sequence[Word], position: int, text: str) -> int | None:
    """Return the position of the name's last word, if the name begins at ``position``."""
    skipped = 0
    for form in name[1:]:
        position += 1
        if position < len(tokens) and tokens[position].form != form and not skipped and _may_be_middle(tokens[position]):
            position, skipped = position + 1, 1
        if (
            position >= len(tokens)
            or tokens[position].form != form
            or not _GAP.fullmatch(text[tokens[position - 1].end : tokens[position].start])
        ):
            return None
    return position


def _may_be_middle(word: Word) -> bool:
    return word.name or word.end - word.start == 1


def _is_longer_name(tokens: Sequence[Word], position: int, text: str) -> bool:
    """Return whether another name is directly before or after a word, titles and "HMS" apart."""
    neighbours = [
        pair for pair in pairwise(tokens[max(0, position - 1) : position + 2]) if text[pair[0].end : pair[1].start] == " "
    ]
    others_around = [before if after is tokens[position] else after for before, after in neighbours]
    return any(word.name and not word.form[0].isdigit() and not _is_prefix(word.form) for word in others_around)


def _is_prefix(form: str) -> bool:
    return form in _TITLES or form in ("hms", "ss", "rms", "dr", "mv")


def describe(name: Sequence[str], text: str, tokens: Sequence[Word] | None = None) -> Description:
    """Return what a sentence says about the bearer of a name, given by the forms of its words.

    Args:
        tokens: the words of ``text``, if they were read before.
    """
    description = Description()
    for start, end in find_mentions(name, words(text) if tokens is None else tokens, text):
        before, after = text[max(0, start - _BEFORE) : start], text[end : end + _AFTER]
        description |= _describe_nouns(_nouns_before(before)) | _read_title(before) | _describe_after(after)
    return description


def may_describe(tokens: Sequence[Word]) -> bool:
    """Return whether a text with these words may say something about a bearer: a kind, a deed, a title or a year of life."""
    return any(word.form in FIELDS or word.form in _TELLING for word in tokens)


def gender_of(pronoun: str) -> frozenset[str]:
    """Return the gender that a personal pronoun gives: "she", "her"; empty for other words."""
    return _PRONOUN_GENDERS.get(pronoun.casefold(), frozenset())


def describe_title(name: Sequence[str], title: str) -> Description:
    """Return what a document's title says about the bearer of a name: "John Marsh (painter)", "Staff profile: the nurse …"."""
    description = describe(name, title)
    for _, end in find_mentions(name, words(title), title):
        if match := _PARENTHESIS.match(title, end):
            description |= Description(tag=match[1].strip())
    return description


def find_belongings(name: Sequence[str], text: str, words_given: Sequence[Word] | None = None) -> frozenset[str]:
    """Return the forms of what the bearer of a name belongs to: "hospital" for "Rowan Teller of the hospital".

    Args:
        words_given: the words of ``text``, if they were read before.
    """
    tokens = words(text) if words_given is None else words_given
    ends = (end for _, end in find_mentions(name, tokens, text))
    return frozenset(word.form for end in ends if (match := _OF.match(text, end)) for word in words(match[1]) if word.content)


def _nouns_before(text: str) -> list[str]:
    """Return the nouns directly before a name: "the English painter John Marsh", "directed by Paul Winter"."""
    tokens = words(text)
    if not tokens or text[tokens[-1].end :] not in (" ", ' "', " “"):
        return []
    last_word = tokens[-1]
    if last_word.form in FIELDS:
        return [_normalise_noun(text, last_word)]
    return [DEEDS[tokens[-2].form]] if last_word.form == "by" and len(tokens) > 1 and tokens[-2].form in DEEDS else []


def _read_title(before: str) -> Description:
    word = before.rstrip(" .").rpartition(" ")[2].casefold()
    return Description(gender=frozenset(_TITLES[word])) if word in _TITLES and before[-1:] == " " else Description()


def _describe_after(text: str) -> Description:
    description = Description()
    if match := _PARENTHESIS.match(text):
        inside = match[1]
        description |= _read_life(f"({inside})") | _describe_nouns(_list_nouns(inside))
    elif match := re.match(r",?\s(?:who\s)?(?:was\s)?(?=born\b)", text):
        description |= _read_life(text[match.end() : match.end() + 60])
    for pattern in (_STATES, _APPOSITION, _THE):
        if match := pattern.match(text):
            described = text[match.end() :]
            nouns = _list_nouns(described)
            location = _PLACE.search(described) if nouns else None
            description |= replace(_describe_nouns(nouns), places=(location[1],) if location else ())
            break
    return description


def _read_life(text: str) -> Description:
    born, died = _BORN.search(text), _DIED.search(text)
    life = _LIFE.match(text)
    return Description(
        born=frozenset(int(match[1]) for match in (born, life) if match),
        died=frozenset([*([int(died[1])] if died else []), *([int(life[2])] if life and life[2] else [])]),
    )


def _list_nouns(text: str) -> list[str]:
    """Return the nouns of a description, up to a word that ends it: "a retired chemist and poet from Leeds"."""
    end = re.search(r"[.;:()]", text)
    tokens = words(text[: end.start()] if end else text)[:_MAX_WORDS]
    nouns: list[str] = []
    for position, word in enumerate(tokens):
        before = tokens[position - 1] if position else None
        if before is not None and "," in text[before.end : word.start] and nouns:
            break
        if word.form in FIELDS and not _belongs_to_next(text, tokens, position):
            nouns.append(_normalise_noun(text, word))
        if word.form in _ENDS:
            if before is not None and before.form in _SCHOLARS:
                nouns += [
                    DISCIPLINES[word_after.form]
                    for word_after in tokens[position + 1 : position + 3]
                    if word_after.form in DISCIPLINES
                ]
            break
    return nouns


def _belongs_to_next(text: str, tokens: Sequence[Word], position: int) -> bool:
    """Return whether a noun describes the word after it: "the painter's son", "the chemist Anna Brandt", "ferry engineer"."""
    word = tokens[position]
    if text[word.start : word.end].casefold().endswith(("'s", "’s")):
        return True
    if position + 1 >= len(tokens) or text[word.end : tokens[position + 1].start] != " ":
        return False
    following = tokens[position + 1]
    return (following.name and not following.form[0].isdigit()) or following.form in FIELDS


def _normalise_noun(text: str, word: Word) -> str:
    return text[word.start : word.end].casefold()


def _describe_nouns(nouns_found: Sequence[str]) -> Description:
    return Description(kinds=frozenset(map(comparable, nouns_found)), nouns=tuple(nouns_found))


def names_of(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of a text, each as the forms of its capitalised words in a row."""
    return (tuple(word.form for word in run) for run in words_of_names(text))


def words_of_names(text: str) -> Iterator[Sequence[Word]]:
    """Yield the capitalised words in a row of each name of a text. More than `MAX_NAME_WORDS` are no name."""
    run: list[Word] = []
    for word in words(text):
        adjacent = (
            bool(run)
            and _GAP.fullmatch(text[run[-1].end : word.start]) is not None
            and "\n" not in text[run[-1].end : word.start]
        )
        capital = word.name and not word.form[0].isdigit() and word.content
        if run and not (adjacent and capital):
            if len(run) <= MAX_NAME_WORDS:
                yield run
            run = []
        if capital:
            run.append(word)
    if run and len(run) <= MAX_NAME_WORDS:
        yield run
