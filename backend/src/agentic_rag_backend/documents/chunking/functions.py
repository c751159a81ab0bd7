"""The functions and classes that a passage of source code defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.domain.location import MAX_FUNCTIONS

if TYPE_CHECKING:
    from agentic_rag_backend.documents.parsing.code.definitions import Definition

MAX_NAME_CHARACTERS = 200
"""A longer name of a function loses the beginning of its path."""
_MAX_INDENT = 200
_DEFINITIONS = "agentic_rag_backend.documents.parsing.code.definitions"
"""Module of the syntax trees. It is imported with the first source code, because it loads grammars."""


def definitions_of(parsed: ParsedDocument) -> Sequence[Definition]:
    """Return the definitions of source code by their starts. Empty for other texts."""
    if parsed.language is None:
        return ()
    definitions: Sequence[Definition] = import_module(_DEFINITIONS).find_definitions(parsed.text, parsed.language)
    return definitions


def with_functions(pieces: Iterable[Piece], parsed: ParsedDocument) -> Iterator[Piece]:
    """Yield the passages, which come in the order of their starts, with the definitions in them.

    A function is in every passage with a part of it, a class in the passage in which it begins.
    """
    definitions = [definition for definition in definitions_of(parsed) if definition.kind != "import"]
    number = 0
    open_definitions: list[Definition] = []
    for piece in pieces:
        while number < len(definitions) and definitions[number].start_char < piece.end:
            open_definitions.append(definitions[number])
            number += 1
        open_definitions = [definition for definition in open_definitions if definition.end_char > piece.start]
        names = [
            _name_definition(definition)
            for definition in open_definitions
            if definition.start_char < piece.end and _contains_definition(piece, definition, parsed.text)
        ]
        yield replace(piece, functions=tuple(dict.fromkeys(names))[:MAX_FUNCTIONS])


def _contains_definition(piece: Piece, definition: Definition, text: str) -> bool:
    if definition.kind == "function" or definition.start_char >= piece.start:
        return True
    indent = piece.start - definition.start_char
    return indent < _MAX_INDENT and not text[definition.start_char : piece.start].strip()


def _name_definition(definition: Definition) -> str:
    name = ".".join(definition.path)
    return name if len(name) <= MAX_NAME_CHARACTERS else "…" + name[1 - MAX_NAME_CHARACTERS :]
