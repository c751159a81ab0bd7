"""Links a question to entities by exact names and aliases in the tenant's graph, longest match first."""

from __future__ import annotations

from collections.abc import Mapping

from agentic_rag_backend.domain.graph import name_words
from agentic_rag_backend.domain.text.words import STOP_WORDS
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph

MAX_NAME_WORDS = 10
COMMON_WORD_WEIGHT = 0.3
"""Weight of a single lower-case word that is also a name, such as the title "Seahorse": a weak link."""


def link_question(graph: TenantGraph, text: str) -> Mapping[int, float]:
    """Return the entities that ``text`` names, with weights in (0, 1].

    Every run of words is looked up, longest first. Each word is used once, so "Journal of Mathematical Physics" does not also
    link "Physics". A name that several entities share links all of them with equal shares.
    """
    # Word by word, articles included: only leading articles of a name are dropped, not the "A" in "Vitamin A-Z".
    words = [(form, marked) for raw in text.split() for marked in (_is_marked(raw),) for form in name_words(raw)]
    linked: dict[int, float] = {}
    free = [True] * len(words)
    for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            window = range(start, start + length)
            if not all(free[position] for position in window):
                continue
            numbers = graph.names.get(" ".join(words[position][0] for position in window))
            if numbers is None:
                continue
            weight = _weight(words[start : start + length])
            if weight <= 0:
                continue
            for position in window:
                free[position] = False
            for number in numbers:
                linked[number] = max(linked.get(number, 0.0), weight / len(numbers))
    return linked


def _is_marked(word: str) -> bool:
    """Tell whether a word contains a capital letter or a digit, as names do."""
    return any(character.isupper() or character.isdigit() for character in word)


def _weight(window: list[tuple[str, bool]]) -> float:
    if len(window) > 1:
        return 1.0 if any(form not in STOP_WORDS for form, _ in window) else 0.0
    form, marked = window[0]
    if form in STOP_WORDS or len(form) < 2:
        return 0.0
    return 1.0 if marked else COMMON_WORD_WEIGHT
