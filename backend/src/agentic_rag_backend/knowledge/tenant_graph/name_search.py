"""Finds entities by their names in visible documents, for lists and for requests that name an entity."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph


class NameMatch(IntEnum):
    """How a name matches a search, best first."""

    WHOLE = 0
    BEGINNING = 1
    WORD = 2
    """A later word of the name begins like the search, such as "voss" in "Mira Voss"."""


def find_named_entities(graph: TenantGraph, name: str) -> tuple[int, ...]:
    """Return the entities that have exactly this name or alias, in the form of `normalise_name`."""
    return graph.names.get(normalise_name(name), ())


def search_names(graph: TenantGraph, text: str) -> Mapping[int, NameMatch]:
    """Return the entities with a name that contains ``text`` from the beginning of a word, with their best match.

    Names and ``text`` are compared in the form of `normalise_name`. Text without letters or digits matches nothing.
    """
    words = normalise_name(text)
    name_matches: dict[int, NameMatch] = {}
    for name, entities in graph.names.matching(words) if words else ():
        match = NameMatch.WHOLE if name == words else NameMatch.BEGINNING if name.startswith(words) else NameMatch.WORD
        for entity in entities:
            name_matches[entity] = min(match, name_matches.get(entity, match))
    return name_matches
