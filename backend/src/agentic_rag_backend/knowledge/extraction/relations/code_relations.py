"""Relations of source code as the knowledge of its chunks.

A function, class or module is an entity of the type ``code``. Its name begins with the name of its file: ``util.load`` is the
function ``load`` of ``util.py``. A distinctive name without the file, such as ``load_all`` or ``LockKeeper``, is an alias.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import DEFINES, Chunk, CodeName, CodeRelation
from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, normalise_name
from agentic_rag_backend.knowledge.extraction.types.entity_types import CODE
from agentic_rag_backend.language.titles import is_excerpt

MAX_NAME_CHARACTERS = 160
_DISTINCTIVE = re.compile(r"[^\W_]_+[^\W_]|[^\W\d_A-Z][A-Z]")
_SUFFIX = re.compile(r"\.[A-Za-z]{1,6}\Z")
_FALLBACK = "file"


@dataclass(slots=True)
class _Found:
    """Knowledge that the relations add to one chunk."""

    mentions: dict[tuple[str, int], EntityMention] = field(default_factory=dict)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    aliases: dict[Alias, None] = field(default_factory=dict)


def with_code(
    extractions: Sequence[Extraction], chunks: Sequence[Chunk], title: str, relations: Sequence[CodeRelation]
) -> list[Extraction]:
    """Return the extractions of a file's chunks with its relations. ``title`` is the name of the file."""
    if not relations:
        return list(extractions)
    module = module_name(title)
    code_names = {
        normalise_name(name)
        for relation in relations
        for end in (relation.source, relation.target)
        for name in _names_of(end, module)
    }
    additions: dict[str, _Found] = defaultdict(_Found)
    for relation, chunk in _place_relations(relations, chunks):
        _add_relation(additions[chunk.id], relation, chunk, module)
    return [_join_addition(relation, additions.get(relation.chunk_id), code_names) for relation in extractions]


def module_name(title: str) -> str:
    """Return the name of the module in a file: the last part of its path, without the suffix."""
    file_name = "" if is_excerpt(title) else re.split(r"[/\\]", title.strip())[-1]
    return (_SUFFIX.sub("", file_name) or _FALLBACK)[:MAX_NAME_CHARACTERS]


def _place_relations(relations: Iterable[CodeRelation], chunks: Sequence[Chunk]) -> Iterable[tuple[CodeRelation, Chunk]]:
    """Yield each relation with the first chunk that has its line. Both are in the order of the text."""
    ordered = sorted(chunks, key=lambda chunk: chunk.location.start_char)
    position = 0
    for relation in relations:
        while position < len(ordered) and ordered[position].location.end_char <= relation.start_char:
            position += 1
        for chunk in ordered[position : position + 3]:  # chunks overlap their neighbours
            if chunk.location.start_char <= relation.start_char and relation.end_char <= chunk.location.end_char:
                yield relation, chunk
                break


def _add_relation(addition: _Found, relation: CodeRelation, chunk: Chunk, module: str) -> None:
    start, end = relation.start_char - chunk.location.start_char, relation.end_char - chunk.location.start_char
    fact = chunk.text[start:end]
    source, target = _full_name(relation.source, module), _full_name(relation.target, module)
    if not fact or source == target or max(len(source), len(target)) > MAX_NAME_CHARACTERS:
        return
    for name, end_name in ((source, (relation.source.path or (module,))[-1]), (target, relation.target.path[-1])):
        offset = fact.find(end_name)
        about = offset < 0  # the line is inside of the definition
        at = 0 if about else start + offset
        mention = EntityMention(name=name, type=CODE, start_char=at, end_char=0 if about else at + len(end_name), about=about)
        addition.mentions.setdefault((name, -1 if about else at), mention)
    addition.relationships.append(
        ExtractedRelationship(
            source=source,
            source_type=CODE,
            target=target,
            target_type=CODE,
            relation=relation.relation,
            fact=fact,
            fact_start=start,
            fact_end=end,
        )
    )
    if relation.relation == DEFINES:
        addition.aliases |= {Alias(name=target, alias=alias, type=CODE): None for alias in _names_of(relation.target, module)[1:]}


def _full_name(name: CodeName, module: str) -> str:
    """Return the name of an entity. A class of the same name as its file is not named twice."""
    if not name.own or name.path[:1] == (module,):
        return ".".join(name.path)
    return ".".join((module, *name.path))


def _names_of(name: CodeName, module: str) -> list[str]:
    """Return the name of an entity, and its alias if it has one."""
    full, short = _full_name(name, module), ".".join(name.path)
    return [full, short] if name.own and short != full and _DISTINCTIVE.search(short) else [full]


def _join_addition(extraction: Extraction, addition: _Found | None, code_names: set[str]) -> Extraction:
    """Return an extraction with the relations. The rules' names of the same code are of the type ``code``."""
    added = addition or _Found()
    mentions = [
        replace(mention, type=CODE) if normalise_name(mention.name) in code_names else mention for mention in extraction.mentions
    ]
    remaining = [
        relationship
        for relationship in extraction.relationships
        if not {normalise_name(relationship.source), normalise_name(relationship.target)} & code_names
    ]
    return replace(
        extraction,
        mentions=(*mentions, *added.mentions.values()),
        relationships=(*remaining, *added.relationships),
        aliases=tuple(dict.fromkeys((*extraction.aliases, *added.aliases))),
    )
