"""Relations of source code: modules and classes define, files import, functions call.

A call is kept if its name leads to a definition of the file or to an imported name. In languages whose files see each other's
functions without naming them, a plain name that is defined nowhere in the file is kept as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter

from agentic_rag_backend.documents.parsing.code.definitions import (
    Definition,
    DefinitionWalk,
    character_offsets,
    in_characters,
    nodes_of,
    tree_of,
)
from agentic_rag_backend.documents.parsing.code.grammars import LANGUAGES
from agentic_rag_backend.documents.parsing.code.imports import read_import
from agentic_rag_backend.domain.document import CALLS, DEFINES, IMPORTS, CodeName, CodeRelation

MAX_RELATIONS = 5_000
"""Different relations of a file. Later ones are left out."""
MAX_FACT_BYTES = 300
MAX_NAME_CHARACTERS = 120
_CALL_NODES = frozenset(
    {
        "call",
        "call_expression",
        "command",
        "function_call_expression",
        "invocation_expression",
        "member_call_expression",
        "method_invocation",
        "new_expression",
        "object_creation_expression",
        "scoped_call_expression",
    }
)
_CALLEE = re.compile(r"(?:new )?\$?([^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*){0,8})")
_STEP = re.compile(r"\.|::|->")
_OWN = frozenset({"self", "this", "cls", "Self", "static"})
_BY_SCOPE = frozenset({"java", "c_sharp", "kotlin", "swift", "scala", "cpp", "ruby"})
"""Languages in which a method calls another method of its class by its plain name."""
_OPEN = frozenset({"c", "cpp", "go", "php", "ruby", "swift", "kotlin", "bash"})
"""Languages in which a file calls functions of other files by their plain names."""
_FILE = CodeName(())
Span = tuple[int, int]


@dataclass(slots=True)
class _File:
    """Everything that one walk finds in a file. Spans are bytes."""

    content: bytes
    language: str
    definitions: list[Definition] = field(default_factory=list)
    defined: dict[tuple[str, ...], Span] = field(default_factory=dict)
    classes: set[tuple[str, ...]] = field(default_factory=set)
    modules: dict[str, Span] = field(default_factory=dict)
    imported: dict[str, tuple[str, ...]] = field(default_factory=dict)
    calls: dict[tuple[tuple[str, ...], tuple[str, ...]], Span] = field(default_factory=dict)

    def list_relations(self) -> Iterator[tuple[CodeName, str, CodeName, Span]]:
        for path, span in self.defined.items():
            outer = path[:-1] if path[:-1] in self.defined else ()
            yield CodeName(outer), DEFINES, CodeName(path), span
        for module, span in self.modules.items():
            yield _FILE, IMPORTS, CodeName((module,), own=False), span
        for (caller, callee), span in self.calls.items():
            target = self._resolve_call(caller, callee)
            if target is not None and target != CodeName(caller):
                yield CodeName(caller), CALLS, target, span

    def _resolve_call(self, caller: tuple[str, ...], callee: tuple[str, ...]) -> CodeName | None:
        head, *tail = callee
        if head in _OWN:
            return self._find_member(caller, tuple(tail)) if tail else None
        if not tail:
            return self._find_plain_name(caller, head)
        if callee in self.defined:
            return CodeName(callee)
        if head in self.imported:
            return CodeName((*self.imported[head], *tail), own=False)
        return None

    def _find_member(self, caller: tuple[str, ...], name: tuple[str, ...]) -> CodeName | None:
        for depth in range(len(caller) - 1, 0, -1):
            if caller[:depth] in self.classes:
                path = (*caller[:depth], *name)
                return CodeName(path) if path in self.defined else None
        return None

    def _find_plain_name(self, caller: tuple[str, ...], name: str) -> CodeName | None:
        for depth in range(len(caller), -1, -1):
            if caller[:depth] in self.classes and self.language not in _BY_SCOPE:
                continue
            if (*caller[:depth], name) in self.defined:
                return CodeName((*caller[:depth], name))
        if name in self.imported:
            return CodeName(self.imported[name], own=False)
        return CodeName((name,), own=False) if self.language in _OPEN else None


@dataclass(frozen=True, slots=True)
class CodeStructure:
    """Definitions and relations of a file, in the order of their places in it."""

    definitions: tuple[Definition, ...] = ()
    relations: tuple[CodeRelation, ...] = ()


def structure_of(text: str, language: str) -> CodeStructure:
    """Return the definitions of source code, and at most `MAX_RELATIONS` relations. ``language`` is a key of `LANGUAGES`.

    Errors in the code are tolerated. The result is empty if the code is too large or too complicated for its syntax tree.
    """
    content = text.encode("utf-8", "replace")
    tree = tree_of(content, LANGUAGES[language])
    if tree is None:
        return CodeStructure()
    file = _File(content, language)
    walk = DefinitionWalk(content, LANGUAGES[language])
    for node in nodes_of(tree):
        definition = walk.visit_node(node)
        if definition is not None:
            file.definitions.append(definition)
            _add_definition(file, definition, (node.start_byte, node.end_byte))
        elif node.type in _CALL_NODES:
            _add_call(file, walk, (node.start_byte, _arguments_start(node)))
    return CodeStructure(tuple(in_characters(iter(file.definitions), content)), _locate_relations(content, file))


def _add_definition(file: _File, definition: Definition, span: Span) -> None:
    if definition.kind == "import":
        import_ = read_import(file.content[slice(*span)].decode("utf-8", "replace"), file.language)
        for module in import_.modules:
            file.modules.setdefault(module, span)
        file.imported |= import_.names
        return
    path = tuple(part for name in definition.path for part in _STEP.split(name))
    file.defined.setdefault(path, span)
    if definition.kind == "class":
        file.classes.add(path)


def _add_call(file: _File, walk: DefinitionWalk, span: Span) -> None:
    if span[1] - span[0] > MAX_NAME_CHARACTERS or len(file.calls) >= 4 * MAX_RELATIONS:
        return
    call_text = file.content[slice(*span)].decode("utf-8", "replace").strip()
    matched = _CALLEE.fullmatch(call_text)
    if matched is not None:
        caller = tuple(part for name in walk.path_at(span[0]) for part in _STEP.split(name))
        file.calls.setdefault((caller, tuple(_STEP.split(matched[1]))), span)


def _arguments_start(node: tree_sitter.Node) -> int:
    """Return where the arguments of a call begin."""
    for child in node.children:
        if child.type.endswith(("arguments", "argument_list", "call_suffix")) or child.type == "word":
            return child.start_byte
    return node.end_byte


def _locate_relations(content: bytes, file: _File) -> tuple[CodeRelation, ...]:
    """Return the relations with their lines, in the order of the text."""
    unique: dict[tuple[CodeName, str, CodeName], Span] = {}
    for source, relation, target, span in file.list_relations():
        unique.setdefault((source, relation, target), _find_line(content, span[0]))
        if len(unique) >= MAX_RELATIONS:
            break
    places = sorted({offset for span in unique.values() for offset in span})
    characters = dict(zip(places, places if content.isascii() else character_offsets(places, content), strict=True))
    relations = [CodeRelation(*key, characters[start], characters[end]) for key, (start, end) in unique.items()]
    return tuple(sorted(relations, key=lambda relation: (relation.start_char, relation.end_char, relation.relation)))


def _find_line(content: bytes, start: int) -> Span:
    """Return the line around a byte, without space around it. A long line is cut to begin at the byte."""
    begin = content.rfind(b"\n", 0, start) + 1
    end = content.find(b"\n", start)
    end = len(content) if end < 0 else end
    if end - begin > MAX_FACT_BYTES:
        begin, end = start, _align_to_character(content, min(end, start + MAX_FACT_BYTES))
    line = content[begin:end]
    return begin + len(line) - len(line.lstrip()), begin + len(line.rstrip())


def _align_to_character(content: bytes, end: int) -> int:
    """Return ``end``, or the place before it where a character begins."""
    while 0 < end < len(content) and content[end] & 0xC0 == 0x80:
        end -= 1
    return end
