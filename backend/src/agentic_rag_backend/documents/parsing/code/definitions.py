"""Classes, functions and imports of source code, with their names and exact places in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import tree_sitter

from agentic_rag_backend.documents.parsing.code.grammars import FUNCTION_VALUES, LANGUAGES, CodeLanguage, load_grammar

MAX_BYTES = 2 * 1024 * 1024
"""Larger files have no definitions. They are generated, and a syntax tree takes about 200 bytes a byte."""
MAX_DEPTH = 250
"""Syntax nodes nested deeper are not visited."""
MAX_STEPS = 500_000
"""Steps that the grammar may report for one file. Code of `MAX_BYTES` takes about 100,000."""
MAX_NAME_CHARACTERS = 200

_CHUNK_BYTES = 65_536
_BEFORE_NAME = re.compile(r"[({\[:=\n]")
_OTHER_CODE = re.compile(r"[{};]")
_NAME_FIELDS = ("name", "left", "declarator", "type", "property")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A class, function or import: the characters [``start_char``, ``end_char``) of the text.

    A definition begins with the comments, decorators and attributes directly above it, at the start of a line if nothing else
    is on the line. ``path`` holds the names of the definitions around it and its own, outermost first; it is empty for an import.
    """

    kind: Literal["class", "function", "import"]
    path: tuple[str, ...]
    start_char: int
    end_char: int


def find_definitions(text: str, language: str) -> tuple[Definition, ...]:
    """Return the definitions of source code in the order of their starts; outer ones precede those within them.

    ``language`` is a key of `LANGUAGES`. Errors in the code are tolerated. The result is empty if the code is too large or too
    complicated for its syntax tree.
    """
    content = text.encode("utf-8", "replace")
    node_kinds = LANGUAGES[language]
    tree = tree_of(content, node_kinds)
    if tree is None:
        return ()
    return tuple(in_characters(DefinitionWalk(content, node_kinds).find_all(tree), content))


def tree_of(content: bytes, language: CodeLanguage) -> tree_sitter.Tree | None:
    """Return the syntax tree of the first grammar that finds no error, else of the first grammar. None: the code is too large
    or too complicated.
    """
    if len(content) > MAX_BYTES:
        return None
    trees = (tree for name in language.grammars if (tree := _parse_code(content, load_grammar(name))) is not None)
    parsed_tree = next(trees, None)
    if parsed_tree is None or not parsed_tree.root_node.has_error:
        return parsed_tree
    return next((tree for tree in trees if not tree.root_node.has_error), parsed_tree)


def _parse_code(content: bytes, language: tree_sitter.Language) -> tree_sitter.Tree | None:
    steps = 0

    def has_exhausted_steps(_offset: int, _has_error: bool) -> bool:
        nonlocal steps
        steps += 1
        return steps > MAX_STEPS

    def read_chunk(offset: int, _point: object) -> bytes:
        return content[offset : offset + _CHUNK_BYTES]

    try:
        return tree_sitter.Parser(language).parse(read_chunk, progress_callback=has_exhausted_steps)
    except ValueError:  # the callback ended it
        return None


class DefinitionWalk:
    """Finds definitions with a cursor. Offsets are bytes."""

    def __init__(self, content: bytes, language: CodeLanguage) -> None:
        self._content, self._language = content, language
        self._around: list[Definition] = []
        self._above = (0, 0)
        self._wrapper = (0, 0)
        self._last_end = 0

    def find_all(self, tree: tree_sitter.Tree) -> Iterator[Definition]:
        return (definition for node in nodes_of(tree) if (definition := self.visit_node(node)) is not None)

    def visit_node(self, node: tree_sitter.Node) -> Definition | None:
        """Return the definition that begins at ``node``, which follows the nodes of earlier steps."""
        kind = node.type
        if kind in self._language.remarks:
            self._note_comment(node)
        elif kind in self._language.wrappers and node.start_byte >= self._wrapper[1]:
            self._wrapper = (self._find_start(node), node.end_byte)
        elif (definition := self._make_definition(node, kind)) is not None:
            self._last_end = definition.start_char
            return definition
        return None

    def path_at(self, start: int) -> tuple[str, ...]:
        """Return the path of the definition around the byte ``start``, which no earlier step has passed. Empty: the file."""
        return next((definition.path for definition in reversed(self._around) if start < definition.end_char), ())

    def _note_comment(self, node: tree_sitter.Node) -> None:
        start, end = self._above
        if self._are_adjacent(end, node.start_byte):
            self._above = (start, node.end_byte)
        elif not self._content[self._content.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte].strip():
            self._above = (node.start_byte, node.end_byte)

    def _make_definition(self, node: tree_sitter.Node, kind: str) -> Definition | None:
        node_kinds = self._language
        if kind in node_kinds.imports or (node_kinds.calls and self._is_import(node, kind)):
            return Definition(kind="import", path=(), start_char=self._line_start(node.start_byte), end_char=node.end_byte)
        value = node.child_by_field_name(node_kinds.values[kind]) if kind in node_kinds.values else None
        is_class = kind in node_kinds.classes and _has_members(node, kind)
        if not (is_class or kind in node_kinds.functions or (value is not None and value.type in FUNCTION_VALUES)):
            return None
        while self._around and self._around[-1].end_char <= node.start_byte:
            self._last_end = max(self._last_end, self._around.pop().end_char)
        outer = self._around[-1].path if self._around else ()
        definition = Definition(
            kind="class" if is_class else "function",
            path=(*outer, self._read_name(node)),
            start_char=self._find_beginning(node),
            end_char=node.end_byte,
        )
        self._around.append(definition)
        return definition

    def _is_import(self, node: tree_sitter.Node, kind: str) -> bool:
        if kind not in {"call", "command", "call_expression"}:
            return False
        called = node.child_by_field_name("method") or node.child_by_field_name("name") or node.child_by_field_name("function")
        return called is not None and self._read_text(called) in self._language.calls

    def _find_beginning(self, node: tree_sitter.Node) -> int:
        start, end = self._wrapper
        if start < end and node.end_byte <= end:
            self._wrapper = (0, 0)
            return max(start, self._last_end)
        return max(self._find_start(node), self._last_end)

    def _find_start(self, node: tree_sitter.Node) -> int:
        """Return where the comments directly above ``node`` begin, else its line, else itself."""
        start, end = self._above
        if self._are_adjacent(end, node.start_byte):
            return self._line_start(start)
        return self._line_start(node.start_byte)

    def _are_adjacent(self, end: int, start: int) -> bool:
        """Return whether only white space without an empty line is between a comment's end and ``start``."""
        between = self._content[end:start] if 0 < end <= start < end + 1_000 else b"-"
        return not between.strip() and between.count(b"\n") <= 1

    def _line_start(self, start: int) -> int:
        """Return where the line of ``start`` begins, unless other code precedes it in the line."""
        line = self._content.rfind(b"\n", max(0, start - 1_000), start) + 1
        before = self._content[line:start].decode("utf-8", "replace")
        return start if (not line and start > 1_000) or _OTHER_CODE.search(before) else line

    def _read_name(self, node: tree_sitter.Node) -> str:
        name_node = next((child for field in _NAME_FIELDS if (child := node.child_by_field_name(field)) is not None), None)
        while name_node is not None and (inner := _find_inner_name(name_node)) is not None:
            name_node = inner
        # A constructor without a name is called by its first words.
        text = self._read_text(name_node) if name_node is not None else _BEFORE_NAME.split(self._read_text(node), maxsplit=1)[0]
        name = " ".join(text.split())[:MAX_NAME_CHARACTERS] or node.type
        receiver = self._read_receiver(node)
        return f"{receiver}.{name}" if receiver else name

    def _read_receiver(self, node: tree_sitter.Node) -> str | None:
        receiver_node = node.child_by_field_name(self._language.receiver) if self._language.receiver else None
        words = re.findall(r"\w+", self._read_text(receiver_node).partition("[")[0]) if receiver_node is not None else []
        return words[-1] if words else None

    def _read_text(self, node: tree_sitter.Node) -> str:
        return self._content[node.start_byte : min(node.end_byte, node.start_byte + 4 * MAX_NAME_CHARACTERS)].decode(
            "utf-8", "ignore"
        )


def _find_inner_name(name_node: tree_sitter.Node) -> tree_sitter.Node | None:
    """Return the node in which the name is: of ``*f(void)`` in C, ``f``; of ``G<T>`` in Rust, ``G``."""
    if name_node.type == "parenthesized_declarator":
        return name_node.named_child(0)
    return name_node.child_by_field_name("type" if name_node.type == "generic_type" else "declarator")


def _has_members(node: tree_sitter.Node, kind: str) -> bool:
    """Return whether a node of C defines a type. It only names one otherwise, such as that of a variable."""
    if kind == "type_definition":
        node = node.child_by_field_name("type") or node
        return node.child_by_field_name("name") is None and node.child_by_field_name("body") is not None
    if kind.endswith("_specifier"):
        return node.child_by_field_name("name") is not None and node.child_by_field_name("body") is not None
    return kind != "class" or node.is_named  # the key word of Ruby's class has the type of its node


def nodes_of(tree: tree_sitter.Tree) -> Iterator[tree_sitter.Node]:
    """Yield the named nodes up to `MAX_DEPTH` in the order of their starts, without recursion."""
    cursor = tree.walk()
    if not cursor.goto_first_child():
        return
    while True:
        node = cursor.node
        if node is not None and node.is_named:
            yield node
        if cursor.depth < MAX_DEPTH and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent() or cursor.depth == 0:
                return


def in_characters(definitions_in_bytes: Iterator[Definition], content: bytes) -> Iterator[Definition]:
    """Yield the definitions with offsets in characters instead of bytes."""
    definitions = list(definitions_in_bytes)
    if content.isascii():
        yield from definitions
        return
    places = sorted({offset for definition in definitions for offset in (definition.start_char, definition.end_char)})
    characters = dict(zip(places, character_offsets(places, content), strict=True))
    for definition in definitions:
        yield replace(definition, start_char=characters[definition.start_char], end_char=characters[definition.end_char])


def character_offsets(places: Sequence[int], content: bytes) -> Iterator[int]:
    count, position = 0, 0
    for offset in places:
        count += len(content[position:offset].decode("utf-8", "replace"))
        position = offset
        yield count
