"""Steps of paths: the best visible relationship between two entities."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.knowledge.paths.base import Connection
from agentic_rag_backend.knowledge.visible.facts import VisibleFact


def connect_entities(source_id: str, facts: Sequence[VisibleFact], *, min_weight: float = 0.0) -> Connection | None:
    """Return the step from the entity ``one`` over the heaviest of the facts; None if none has the least weight.

    Args:
        facts: visible facts between ``one`` and the next entity of the path.
    """
    enough = [fact for fact in facts if fact.weight >= min_weight]
    enough.sort(key=lambda fact: (-fact.weight, fact.relation, fact.id))
    if not enough:
        return None
    best = enough[0]
    support = best.passages[0].support
    return Connection(
        source=best.source,
        target=best.target,
        fact=best,
        weight=best.weight,
        chunk_id=support.chunk_id,
        document_id=support.document_id,
        forward=best.source.id == source_id,
        others=tuple(enough[1:]),
    )
