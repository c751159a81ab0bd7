"""Relations of source code as the knowledge of its chunks.

A function, class or module is an entity of the type ``code``. Its name begins with the name of its file: ``util.load`` is the
function ``load`` of ``util.py``. A distinctive name without the file, such as ``load_all`` or ``LockKeeper``, is an alias.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, normalise_name
from agentic_rag_backend.domain.source_code import DEFINES, CodeName, CodeRelation
from agentic_rag_backend.knowledge.extraction.entity_types import CODE
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
    known = {normalise_name(name) for each in relations for end in (each.source, each.target) for name in _names(end, module)}
    found: dict[str, _Found] = defaultdict(_Found)
    for each, chunk in _placed(relations, chunks):
        _add(found[chunk.id], each, chunk, module)
    return [_joined(each, found.get(each.chunk_id), known) for each in extractions]


def module_name(title: str) -> str:
    """Return the name of the module in a file: the last part of its path, without the suffix."""
    last = "" if is_excerpt(title) else re.split(r"[/\\]", title.strip())[-1]
    return (_SUFFIX.sub("", last) or _FALLBACK)[:MAX_NAME_CHARACTERS]


def _placed(relations: Iterable[CodeRelation], chunks: Sequence[Chunk]) -> Iterable[tuple[CodeRelation, Chunk]]:
    """Yield each relation with the first chunk that has its line. Both are in the order of the text."""
    ordered = sorted(chunks, key=lambda chunk: chunk.location.start_char)
    first = 0
    for each in relations:
        while first < len(ordered) and ordered[first].location.end_char <= each.start_char:
            first += 1
        for chunk in ordered[first : first + 3]:  # chunks overlap their neighbours
            if chunk.location.start_char <= each.start_char and each.end_char <= chunk.location.end_char:
                yield each, chunk
                break


def _add(found: _Found, relation: CodeRelation, chunk: Chunk, module: str) -> None:
    start, end = relation.start_char - chunk.location.start_char, relation.end_char - chunk.location.start_char
    fact = chunk.text[start:end]
    source, target = _name(relation.source, module), _name(relation.target, module)
    if not fact or source == target or max(len(source), len(target)) > MAX_NAME_CHARACTERS:
        return
    for name, last in ((source, (relation.source.path or (module,))[-1]), (target, relation.target.path[-1])):
        place = fact.find(last)
        about = place < 0  # the line is inside of the definition
        at = 0 if about else start + place
        mention = EntityMention(name=name, type=CODE, start_char=at, end_char=0 if about else at + len(last), about=about)
        found.mentions.setdefault((name, -1 if about else at), mention)
    found.relationships.append(
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
        found.aliases |= {Alias(name=target, alias=alias, type=CODE): None for alias in _names(relation.target, module)[1:]}


def _name(name: CodeName, module: str) -> str:
    """Return the name of an entity. A class of the same name as its file is not named twice."""
    if not name.own or name.path[:1] == (module,):
        return ".".join(name.path)
    return ".".join((module, *name.path))


def _names(name: CodeName, module: str) -> list[str]:
    """Return the name of an entity, and its alias if it has one."""
    full, short = _name(name, module), ".".join(name.path)
    return [full, short] if name.own and short != full and _DISTINCTIVE.search(short) else [full]


def _joined(extraction: Extraction, found: _Found | None, known: set[str]) -> Extraction:
    """Return an extraction with the relations. The rules' names of the same code are of the type ``code``."""
    added = found or _Found()
    mentions = [replace(each, type=CODE) if normalise_name(each.name) in known else each for each in extraction.mentions]
    kept = [each for each in extraction.relationships if not {normalise_name(each.source), normalise_name(each.target)} & known]
    return replace(
        extraction,
        mentions=(*mentions, *added.mentions.values()),
        relationships=(*kept, *added.relationships),
        aliases=tuple(dict.fromkeys((*extraction.aliases, *added.aliases))),
    )
