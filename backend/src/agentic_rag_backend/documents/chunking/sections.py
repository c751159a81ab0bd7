"""Sections of a document: the text below a heading, on a slide, or in a sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from agentic_rag_backend.documents.parsing.base import Heading, ParsedDocument
from agentic_rag_backend.language.sentences import has_end_mark


@dataclass(frozen=True, slots=True)
class Section:
    """The text from a heading (or the beginning) to the next one; ``mixed`` if it is several that stand side by side."""

    start: int
    end: int
    path: tuple[str, ...] = ()
    mixed: bool = False

    @property
    def parent(self) -> tuple[str, ...]:
        """The headings above it."""
        return self.path if self.mixed else self.path[:-1]


Joint = Callable[[Section, Section, Section], Section | None]
"""Returns two neighbours as one section, or None. The third argument is the one of them that may be too small."""


def sections_of(text: str, headings: Sequence[Heading]) -> Iterator[Section]:
    """Yield the sections of ``text`` in order; together they are all of it."""
    starts = [heading.start_char for heading in headings]
    if not starts or starts[0] > 0:
        yield Section(0, starts[0] if starts else len(text))
    above: list[Heading] = []
    for heading, end in zip(headings, [*starts[1:], len(text)], strict=False):
        above = [outer for outer in above if outer.level < heading.level] + [heading]
        yield Section(heading.start_char, end, tuple(ancestor.title for ancestor in above))


def paged_sections(parsed: ParsedDocument) -> Iterator[Section]:
    """Yield the sections of a document, divided where a page, slide or sheet begins.

    A page that continues the sentence of the page before begins no section.
    """
    places = _page_starts(parsed)
    index = 0
    for section in sections_of(parsed.text, parsed.headings):
        start = section.start
        while index < len(places) and places[index] < section.end:
            if places[index] > start:
                yield replace(section, start=start, end=places[index])
                start = places[index]
            index += 1
        yield replace(section, start=start)


def _page_starts(parsed: ParsedDocument) -> list[int]:
    starts = []
    for before, after in pairwise(parsed.regions):
        if (before.page, before.sheet) == (after.page, after.sheet):
            continue
        character = parsed.text[after.start_char : after.start_char + 1]
        if has_end_mark(parsed.text[before.start_char : before.end_char]) or not character.islower():
            starts.append(after.start_char)
    return starts


def join_tiny_sections(sections: Iterable[Section], joint: Joint) -> Iterator[Section]:
    """Yield the sections, tiny ones joined with what follows; a tiny last one with what precedes."""
    waiting: list[Section] = []
    for section in sections:
        if len(waiting) == 2:
            yield waiting.pop(0)
        if waiting and (joined_section := joint(waiting[-1], section, waiting[-1])):
            waiting[-1] = joined_section
        else:
            waiting.append(section)
    if len(waiting) == 2 and (joined_section := joint(waiting[0], waiting[1], waiting[1])):
        waiting = [joined_section]
    yield from waiting


def shared_path(path: Sequence[str], other_path: Sequence[str]) -> tuple[str, ...]:
    """Return the beginning that two heading paths have in common."""
    return tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(path, other_path, strict=False)))
