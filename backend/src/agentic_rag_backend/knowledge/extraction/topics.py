"""The subjects of a chunk: the document's title and the headings above it, as names."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS, GENERIC_HEADINGS, LABELS, NAME_PARTICLES
from agentic_rag_backend.knowledge.extraction.types.entity_types import OTHER, type_from_disambiguator
from agentic_rag_backend.language.titles import is_excerpt

MAX_TOPIC_CHARACTERS = 160
_MAX_WORDS = 16
_LONGEST_PLACE = 6
_SHORTEST_HEAD = 4
_WORD = re.compile(r"\w+")
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?(?:\d{1,2}(?:\.\d{1,2})*[.):]?|(?:[ivxlc]+|[a-z])[.):])\s+", re.IGNORECASE
)
_NAMELESS = GENERIC_HEADINGS | LABELS | FUNCTION_WORDS
_FILE_ENDING = re.compile(r"\.(?:md|txt|rst|html?|pdf|docx?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TopicName:
    """A title or heading as a name.

    ``bare`` is the name without a disambiguator, ``head`` the name before a region or a subtitle
    ("Halden" of "Halden, Norway", "Tideway" of "Tideway: a report"); both equal ``name`` if there is nothing to leave out.
    ``text`` is the title with the description that is no part of the name: "Ann Marsh, botanist".
    A head is a name of its own, since many places or reports share it: the chunk is about it, too, but it is no alias.
    """

    name: str
    bare: str
    type: str
    head: str
    text: str

    @property
    def forms(self) -> tuple[str, ...]:
        """The names under which the topic is mentioned, the fullest first."""
        return tuple(dict.fromkeys((self.name, self.bare, self.head)))

    @property
    def is_proper(self) -> bool:
        """Whether the name is written as a name: all of its words but function words with capitals or numbers."""
        words = (word for word in self.bare.split() if word.lower() not in FUNCTION_WORDS and word not in NAME_PARTICLES)
        return not any(word[0].islower() for word in words)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The other names of the same thing: without the disambiguator, and as typed without diacritics."""
        names = tuple(dict.fromkeys((self.name, self.bare)))
        return tuple(dict.fromkeys(form for form in (*names[1:], *map(without_diacritics, names)) if form != self.name))


def _head_of(name: str) -> str:
    """Return "Halden" for "Halden, Norway", "Tideway" for "Tideway: a report", and other names as they are."""
    head, colon, _ = name.partition(": ")
    if colon and head[:1].isupper() and len(head) >= _SHORTEST_HEAD:
        return head
    head, comma, region = name.partition(", ")
    words = [*head.split(), *region.split()]
    is_place = bool(head and comma and region) and "," not in region and len(words) <= _LONGEST_PLACE
    return head if is_place and all(word[0].isupper() for word in words) else name


def _without_description(name: str) -> str:
    """Return "Ann Marsh" for "Ann Marsh, botanist", and other titles as they are."""
    head, _, description = name.partition(", ")
    words = head.split()
    is_name = 1 < len(words) <= _LONGEST_PLACE and all(word[0].isupper() for word in words)
    return head if is_name and description[:1].islower() and words[0].lower() not in FUNCTION_WORDS else name


def is_file_name(title: str) -> bool:
    """Return whether a title is written like the name of a file: one word with a digit or an underscore, or in lower case."""
    return not any(map(str.isspace, title)) and (title.islower() or "_" in title or any(map(str.isdigit, title)))


def without_diacritics(text: str) -> str:
    """Return ``text`` with accents, umlauts and the like taken off Latin letters; other scripts stay whole."""
    return "".join(_plain_letter(letter) for letter in unicodedata.normalize("NFC", text))


def _plain_letter(letter: str) -> str:
    base = unicodedata.normalize("NFD", letter)[0]
    return base if base.isascii() else letter


def topic(text: str, *, from_title: bool) -> TopicName | None:
    """Return the name that a title or heading gives, or ``None`` if it is empty, generic, longer than a name, or an excerpt."""
    if from_title and is_excerpt(text):
        return None
    name = " ".join(_FILE_ENDING.sub("", text.strip().strip("#*_`").strip()).split())
    if not from_title:
        name = _NUMBERING.sub("", name)
    if not name or len(name) > MAX_TOPIC_CHARACTERS or not normalise_name(name):
        return None
    words = normalise_name(name).split()
    if all(word in _NAMELESS or word.isdigit() for word in words) and not from_title:
        return None
    text, name = name, _without_description(name)
    bare, type_ = name, OTHER
    if name.endswith(")"):
        opening = name.rfind(" (")
        if opening > 0:
            bare, type_ = name[:opening].rstrip(), type_from_disambiguator(name[opening + 2 : -1])
    return TopicName(name, bare, type_, _head_of(bare), text)


def find_form(text: str, form: str) -> list[tuple[int, int]]:
    """Return the offsets of ``form`` in ``text`` as whole words; letter case and punctuation are ignored."""
    words = _WORD.findall(form)
    if words and words[0].lower() in ("the", "a", "an"):
        words = words[1:]
    if not words or sum(map(len, words)) < 2 or len(words) > _MAX_WORDS:
        return []
    pattern = r"(?<!\w)" + r"[\W_]{1,4}".join(re.escape(word) for word in words) + r"(?!\w)"
    return [match.span() for match in re.finditer(pattern, text, re.IGNORECASE)]
