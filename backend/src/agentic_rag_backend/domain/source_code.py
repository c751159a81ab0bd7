"""Relations between the parts of source code, as a parser finds them."""

from __future__ import annotations

from dataclasses import dataclass

CALLS, IMPORTS, DEFINES = "calls", "imports", "defines"


@dataclass(frozen=True, slots=True)
class CodeName:
    """A function, class or module. ``path`` has its names, outermost first.

    A name of the file itself is ``own``: its path begins in the file, and an empty path is the file. The path of any other name
    is complete.
    """

    path: tuple[str, ...]
    own: bool = True


@dataclass(frozen=True, slots=True)
class CodeRelation:
    """A relation that the characters [``start_char``, ``end_char``) of the text state: one line, without space around it."""

    source: CodeName
    relation: str
    target: CodeName
    start_char: int
    end_char: int
