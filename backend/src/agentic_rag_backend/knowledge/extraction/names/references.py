"""Works that a document lists as its references, by layout and punctuation.

An entry of a section such as "References" becomes a relationship ``cites`` from the document's title to the title of the cited
work. The citing document and the cited one meet in the entity of that title.

    [7] M. Keller and J. Oduya. Tidal flow in narrow straits. Journal of Coasts, 2014.
    Keller, M. (2014). Tidal flow in narrow straits. Journal of Coasts, 12(3), 4-9.
    Keller, M., "Tidal flow in narrow straits", Proc. of Coasts, 2014.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import EntityMention, ExtractedRelationship, Extraction, normalise_name
from agentic_rag_backend.knowledge.extraction.types.entity_types import WORK
from agentic_rag_backend.language.titles import is_excerpt

CITES = "cites"
MAX_ENTRY_CHARACTERS = 1_000
MAX_TITLE_CHARACTERS = 250
MAX_ENTRIES = 2_000
"""Entries of one document that are read."""
_TITLE_WORDS = range(3, 41)
_HEADINGS = frozenset(
    {
        *("references", "bibliography", "works cited", "literature cited", "cited literature", "reference list"),
        *("literatur", "literaturverzeichnis", "quellen", "références", "bibliographie", "referencias", "bibliografía"),
        *("riferimenti bibliografici", "bibliografia", "referências", "literatuur", "referenties", "referenser"),
    }
)
_NUMBERING = re.compile(r"\A(?:\d{1,2}|[a-z])(?:\.\d{1,2}){0,3}\.? ")
_PLAIN_HEADING = re.compile(r"^[ \t#*_]{0,8}([^\n]{4,40}?)[ \t:#*_]{0,8}$", re.MULTILINE)
_START = re.compile(r"^[ \t]{0,8}(?:\[[^\]\n]{1,12}\]|\(?\d{1,3}[.)]|[-*•])[ \t]+(?=\S)", re.MULTILINE)
_AUTHOR = re.compile(r"^[ \t]{0,8}(?=[^\W\d_][\w'’-]{1,30},? [^\W\d_]\.)", re.MULTILINE)
_GAP = re.compile(r"\n[ \t]*\n")
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d[a-z]?(?!\d)")
_QUOTED = re.compile(r"[\"“„«]([^\"”“»\n]{10,300}(?:\n[^\"”“»\n]{1,300}){0,3})[\"”“»]")
_AFTER_YEAR = re.compile(r"\((?:1[5-9]|20)\d\d[a-z]?(?:, [A-Z][a-z]+(?: \d{1,2})?)?\)[.,:]?\s+")
_END = re.compile(r"[.?!](?=\s|\Z)")
_INITIAL = re.compile(r"(?:\A|[\s.-])[^\W\d_]\Z")
_INITIALS = re.compile(r"(?<![^\W_])[^\W\d_]\.")
_CAPITAL = re.compile(r"\s+[^\W\d_a-z]")
_ABBREVIATION = re.compile(r"(?:\A|\s)(?:et al|eds?|vol|no|pp|jr|sr|st|proc|conf|int|trans)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry and the title in it, by offsets in a text."""

    start: int
    end: int
    title_start: int
    title_end: int


def with_references(extractions: Sequence[Extraction], chunks: Sequence[Chunk], title: str) -> list[Extraction]:
    """Return the extractions of a document's chunks with the works that it cites. ``title`` is the document's, a work's then."""
    source = " ".join(title.split())[:MAX_TITLE_CHARACTERS]
    if not normalise_name(source) or is_excerpt(source):
        return list(extractions)
    results: list[Extraction] = []
    inside, remaining = False, MAX_ENTRIES
    for extraction, chunk in zip(extractions, chunks, strict=True):
        start, inside = _find_section(chunk, inside)
        entries = [] if start is None else list(references(chunk.text, start))[:remaining]
        remaining -= len(entries)
        results.append(_add_citations(extraction, chunk.text, source, entries) if entries else extraction)
    return results if remaining == MAX_ENTRIES else [_mark_title(extraction, normalise_name(source)) for extraction in results]


def _find_section(chunk: Chunk, inside: bool) -> tuple[int | None, bool]:
    """Return where the list of references begins in a chunk (None: nowhere), and whether it goes on in the next chunk.

    A heading decides. In a text without headings, a line of its own begins the list, which goes on to the end of the text.
    """
    if chunk.location.headings:
        return (0, False) if _is_heading(chunk.location.headings[-1]) else (None, False)
    if inside:
        return 0, True
    start = next((heading.end() for heading in _PLAIN_HEADING.finditer(chunk.text) if _is_heading(heading[1])), None)
    return start, start is not None


def _is_heading(text: str) -> bool:
    return _NUMBERING.sub("", text.casefold().strip(" .:#*_")) in _HEADINGS


def references(text: str, start: int = 0) -> Iterator[Reference]:
    """Yield the entries of a list of references, in order. Entries without a year or a title are left out."""
    for begin, end in _split_entries(text, start):
        entry = text[begin:end]
        if len(entry) > MAX_ENTRY_CHARACTERS or _YEAR.search(entry) is None:
            continue
        span = _find_title(entry)
        if span is not None:
            yield Reference(begin, end, begin + span[0], begin + span[1])


def _split_entries(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each entry: by numbers or list marks, else by blank lines, else by authors at a line's begin."""
    for pattern, content in ((_START, "end"), (_GAP, "end"), (_AUTHOR, "start")):
        marks = [(mark.start(), mark.end() if content == "end" else mark.start()) for mark in pattern.finditer(text, start)]
        if marks:
            break
    else:
        marks = []
    if not marks or text[start : marks[0][0]].strip():
        marks.insert(0, (start, start))
    ends = [mark[0] for mark in marks[1:]] + [len(text)]
    for (_, begin), end in zip(marks, ends, strict=True):
        stripped = text[begin:end].strip()
        if stripped:
            entry_start = begin + text[begin:end].index(stripped)
            yield entry_start, entry_start + len(stripped)


def _find_title(entry: str) -> tuple[int, int] | None:
    """Return the place of the title in an entry: in quotation marks, after a year in parentheses, or after the authors."""
    quoted = _QUOTED.search(entry)
    if quoted is not None:
        return _trim_title(entry, quoted.start(1), quoted.end(1))
    dated = _AFTER_YEAR.search(entry)
    if dated is not None:
        return _trim_title(entry, dated.end(), _sentence_end(entry, dated.end()))
    authors = _sentence_end(entry, 0)
    return _trim_title(entry, authors, _sentence_end(entry, authors)) if authors < len(entry) else None


def _sentence_end(entry: str, start: int) -> int:
    """Return the end of the sentence that begins at ``start``. Initials and abbreviations do not end it."""
    for stop in _END.finditer(entry, start + 1):
        before = entry[max(start, stop.start() - 12) : stop.start()]
        abbreviated = _INITIAL.search(before) or _ABBREVIATION.search(before)
        # "et al. Title" begins a sentence, "et al., Title" does not.
        if stop[0] != "." or not abbreviated or (before.endswith("et al") and _CAPITAL.match(entry, stop.end())):
            return stop.end()
    return len(entry)


def _trim_title(entry: str, start: int, end: int) -> tuple[int, int] | None:
    """Return a place without punctuation around it. None if its text is no title: too short, too long, or a list of people."""
    text = entry[start:end]
    inner = text.strip(" \t\n.,;:\"“”'")
    words = inner.split()
    if len(words) not in _TITLE_WORDS or len(inner) > MAX_TITLE_CHARACTERS:
        return None
    if len(_INITIALS.findall(inner)) > 1 or sum(word.strip(",:;").isalpha() for word in words) < len(words) / 2:
        return None
    title_start = start + text.index(inner)
    return title_start, title_start + len(inner)


def _add_citations(extraction: Extraction, text: str, source: str, entries: Sequence[Reference]) -> Extraction:
    """Return an extraction with the cited works. Names that the rules found inside of a title are part of it."""
    titles = [(entry.title_start, entry.title_end) for entry in entries]
    works: list[EntityMention] = []
    cited: list[ExtractedRelationship] = []
    for entry in entries:
        name = " ".join(text[entry.title_start : entry.title_end].split())
        if normalise_name(name) == normalise_name(source):
            continue
        works.append(EntityMention(name=name, type=WORK, start_char=entry.title_start, end_char=entry.title_end))
        cited.append(
            ExtractedRelationship(
                source=source,
                source_type=WORK,
                target=name,
                target_type=WORK,
                relation=CITES,
                fact=text[entry.start : entry.end],
                fact_start=entry.start,
                fact_end=entry.end,
            )
        )
    if not cited:
        return extraction
    about = EntityMention(name=source, type=WORK, start_char=0, end_char=0, about=True)
    outside = [mention for mention in extraction.mentions if mention.about or not _is_within(mention, titles)]
    names = {normalise_name(entry.name) for entry in outside}
    related = [
        relationship
        for relationship in extraction.relationships
        if {normalise_name(relationship.source), normalise_name(relationship.target)} <= names
    ]
    return replace(extraction, mentions=(*outside, about, *works), relationships=(*related, *cited))


def _mark_title(extraction: Extraction, title: str) -> Extraction:
    """Return an extraction in which the document's title is a work."""
    mentions = (
        replace(mention, type=WORK) if normalise_name(mention.name) == title else mention for mention in extraction.mentions
    )
    return replace(extraction, mentions=tuple(mentions))


def _is_within(mention: EntityMention, titles: Sequence[tuple[int, int]]) -> bool:
    return any(start <= mention.start_char and mention.end_char <= end for start, end in titles)
