"""Entities from the metadata of a document. Its chunks are about them, like about the subject of the title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_rag_backend.domain.graph import EntityMention, Extraction, normalise_name
from agentic_rag_backend.domain.ontology import Ontology

MAX_NAMED = 50
"""Entities that the metadata of a document gives."""
MAX_NAME_CHARACTERS = 160


def with_fields(extractions: Sequence[Extraction], metadata: Mapping[str, Any], ontology: Ontology | None) -> list[Extraction]:
    """Return the extractions of a document, each with the entities that the ontology's fields name in the metadata."""
    entities = entities_of(metadata, ontology)
    if not entities:
        return list(extractions)
    return [replace(extraction, mentions=(*extraction.mentions, *entities)) for extraction in extractions]


def entities_of(metadata: Mapping[str, Any], ontology: Ontology | None) -> tuple[EntityMention, ...]:
    """Return the entities that the metadata names, at most `MAX_NAMED`. Values that are no names are skipped."""
    mentions: dict[tuple[str, str], EntityMention] = {}
    for field in ontology.entity_fields if ontology is not None else ():
        value = metadata.get(field.name)
        for item in value if isinstance(value, list | tuple) else (value,):
            name = " ".join(item.split()) if isinstance(item, str) else ""
            key = (normalise_name(name), field.type)
            if key[0] and len(name) <= MAX_NAME_CHARACTERS and len(mentions) < MAX_NAMED:
                mentions.setdefault(key, EntityMention(name=name, type=field.type, start_char=0, end_char=0, about=True))
    return tuple(mentions.values())
