"""The fingerprints of given communities over the current knowledge."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.communities.detection.knowledge import Edge, VisibleKnowledge, fingerprint_community
from agentic_rag_backend.domain.graph import Community


def fingerprint_communities(knowledge: VisibleKnowledge, communities: Sequence[Community]) -> dict[str, str]:
    """Return fingerprints by community id, except of communities that have lost a member."""
    complete = [community for community in communities if all(member in knowledge.entities for member in community.entity_ids)]
    by_community: dict[str, str] = {}
    for level in {community.level for community in complete}:
        here = [community for community in complete if community.level == level]
        owner = {member: community.id for community in here for member in community.entity_ids}
        inside: dict[str, list[Edge]] = {}
        for edge in knowledge.edges:
            community_id = owner.get(edge.source_id)
            if community_id is not None and community_id == owner.get(edge.target_id):
                inside.setdefault(community_id, []).append(edge)
        by_community.update(
            (community.id, fingerprint_community(knowledge, community.entity_ids, inside.get(community.id, ())))
            for community in here
        )
    return by_community
