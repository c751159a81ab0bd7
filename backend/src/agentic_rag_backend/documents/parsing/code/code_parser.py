"""Source code: the text as it is written, with its classes and functions as headings."""

from __future__ import annotations

from collections.abc import Iterable

from agentic_rag_backend.documents.parsing.base import Heading, ParsedDocument
from agentic_rag_backend.documents.parsing.code.call_relations import structure_of
from agentic_rag_backend.documents.parsing.code.definitions import Definition
from agentic_rag_backend.documents.parsing.text import PlainTextParser


class CodeParser(PlainTextParser):
    """Parser of source code in ``language``, a key of `languages.LANGUAGES`."""

    def __init__(self, language: str) -> None:
        self._language = language

    def parse(self, text: str) -> ParsedDocument:
        """Return ``text`` with its structure."""
        return self.restore(text)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text`` with its structure: the text is the file."""
        structure = structure_of(text, self._language)
        headings = headings_of(structure.definitions)
        return ParsedDocument(text=text, headings=headings, language=self._language, code=structure.relations)


def headings_of(definitions: Iterable[Definition]) -> tuple[Heading, ...]:
    """Return a heading for each class and function, except those within functions, which a reader does not look for."""
    headings: list[Heading] = []
    local_end = 0
    for definition in definitions:
        if definition.kind == "import" or definition.start_char < local_end:
            continue
        headings.append(Heading(len(definition.path), definition.path[-1], definition.start_char))
        if definition.kind == "function":
            local_end = definition.end_char
    return tuple(headings)
