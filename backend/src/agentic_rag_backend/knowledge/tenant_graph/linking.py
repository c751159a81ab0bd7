"""Finds entities of a tenant's graph by name: names in a question, longest match first, and names that a request gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from agentic_rag_backend.domain.graph import name_words, normalise_name
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.language.words import MAX_NAME_WORDS, STOP_WORDS

_WORD = re.compile(r"\S+")
COMMON_WORD_WEIGHT = 0.3
"""Weight of a single lower-case word that is also a name, such as the title "Seahorse": a weak link."""


MAX_LINKED_WORDS = 1_500
"""Words of a question whose names are looked up: as many as the longest question has in ordinary language."""


@dataclass(frozen=True, slots=True)
class NamedSpan:
    """A name in a question: its characters [``start``, ``end``), and the entities of this name. ``weight`` is in (0, 1]."""

    start: int
    end: int
    name: str
    entities: tuple[int, ...]
    weight: float


def link_question(graph: TenantGraph, text: str) -> Mapping[int, float]:
    """Return the entities that ``text`` names, with weights in (0, 1].

    A name that several entities share links all of them with equal shares.
    """
    linked: dict[int, float] = {}
    for span in named_spans(graph, text):
        for number in span.entities:
            linked[number] = max(linked.get(number, 0.0), span.weight / len(span.entities))
    return linked


def named_spans(graph: TenantGraph, text: str) -> list[NamedSpan]:
    """Return the names of entities in ``text``, longest first.

    Every run of words is looked up, longest first. Each word is used once, so "Journal of Mathematical Physics" does not also
    link "Physics".
    """
    # Word by word, articles included: only leading articles of a name are dropped, not the "A" in "Vitamin A-Z".
    words: list[tuple[str, bool, tuple[int, int]]] = []
    for raw in _WORD.finditer(text):
        if len(words) >= MAX_LINKED_WORDS:
            break
        marked, characters = _has_mark(raw[0]), _find_characters(raw)  # once, however many words there are in "A-A-A-A"
        words += [(form, marked, characters) for form in name_words(raw[0])][: MAX_LINKED_WORDS - len(words)]
    forms = [form for form, _, _ in words]
    spans: list[NamedSpan] = []
    used = bytearray(len(words))
    for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            stop = start + length
            name = " ".join(forms[start:stop])
            numbers = graph.names.get(name)
            if numbers is None or any(used[start:stop]):
                continue
            weight = _link_strength([word[:2] for word in words[start:stop]])
            if weight <= 0:
                continue
            used[start:stop] = b"\1" * length
            spans.append(NamedSpan(words[start][2][0], words[stop - 1][2][1], name, tuple(numbers), weight))
    return spans


def _find_characters(word: re.Match[str]) -> tuple[int, int]:
    """Return the characters of a word in the text, without the punctuation around it and without a possessive ending."""
    inner = [index for index, character in enumerate(word[0]) if character.isalnum() or character in "+#"]
    if not inner:
        return word.span()
    start, end = inner[0], inner[-1] + 1
    if end - start > len("'s") and word[0][:end].endswith(("'s", "’s")):
        end -= len("'s")
    return word.start() + start, word.start() + end


def _has_mark(word: str) -> bool:
    """Tell whether a word contains a capital letter or a digit, as names do."""
    return any(character.isupper() or character.isdigit() for character in word)


def _link_strength(window: list[tuple[str, bool]]) -> float:
    if len(window) > 1:
        return 1.0 if any(form not in STOP_WORDS for form, _ in window) else 0.0
    form, marked = window[0]
    if form in STOP_WORDS or len(form) < 2:
        return 0.0
    return 1.0 if marked else COMMON_WORD_WEIGHT


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
