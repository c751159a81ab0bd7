"""The fingerprints of given communities over the current knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.communities.detection.knowledge import Edge, VisibleKnowledge, fingerprint
from agentic_rag_backend.domain.graph import Community


def fingerprints(knowledge: VisibleKnowledge, communities: Sequence[Community]) -> dict[str, str]:
    """Return fingerprints by community id, except of communities that have lost a member."""
    whole = [each for each in communities if all(member in knowledge.entities for member in each.entity_ids)]
    found: dict[str, str] = {}
    for level in {each.level for each in whole}:
        here = [each for each in whole if each.level == level]
        owner = {member: each.id for each in here for member in each.entity_ids}
        inside: dict[str, list[Edge]] = {}
        for edge in knowledge.edges:
            own = owner.get(edge.source_id)
            if own is not None and own == owner.get(edge.target_id):
                inside.setdefault(own, []).append(edge)
        found.update((each.id, fingerprint(knowledge, each.entity_ids, inside.get(each.id, ()))) for each in here)
    return found
