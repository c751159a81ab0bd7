"""Gives communities the ids of the communities that they continue, so that references stay valid after a rebuild."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from agentic_rag_backend.communities.detection.hierarchy import DetectedCommunity
from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Community
from agentic_rag_backend.domain.tenant import TenantId

KEPT_ABOVE = 0.5
"""Overlap (members of both ÷ members of either) above which a community continues an earlier one. Clusters of one level have no
common members, so above one half there is at most one match. A community continues at most one earlier community.
"""


def community_ids(tenant: TenantId, communities: Sequence[DetectedCommunity], previous: Sequence[Community]) -> list[str]:
    """Return an id for each community: the id of the previous one it continues, otherwise one derived from its members.

    If a community overlaps with several (one inside the other), the largest overlap counts, then the same level. The same
    communities and the same ``previous`` give the same ids.
    """
    kept_ids = _match_continuing(communities, previous)
    used_ids = {community.id for community in previous}
    ids = []
    for index, community in enumerate(communities):
        ids.append(kept_ids[index] if index in kept_ids else _make_id(tenant, community.members, used_ids))
        used_ids.add(ids[-1])
    return ids


def _match_continuing(communities: Sequence[DetectedCommunity], previous: Sequence[Community]) -> dict[int, str]:
    """Return, by index, the ids of the communities that continue: the pairs of the largest overlap first."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for number, old in enumerate(previous):
        for entity in old.entity_ids:
            holders[entity].append(number)
    pairs: list[tuple[float, bool, int, int]] = []
    for index, community in enumerate(communities):
        shared = Counter(number for entity in community.members for number in holders.get(entity, ()))
        for number, shared_members in shared.items():
            old = previous[number]
            overlap = shared_members / (len(community.members) + len(old.entity_ids) - shared_members)
            if overlap > KEPT_ABOVE:
                pairs.append((-overlap, old.level != community.level, index, number))
    kept_ids: dict[int, str] = {}
    used: set[int] = set()
    for _, _, index, number in sorted(pairs):
        if index not in kept_ids and number not in used:
            kept_ids[index] = previous[number].id
            used.add(number)
    return kept_ids


def _make_id(tenant: TenantId, members: Sequence[str], used_ids: set[str]) -> str:
    """Return an unused id. A community that continues under its old id may once have had these members."""
    parts = sorted(members)
    new_id = stable_id("community", tenant, *parts)
    again = 1
    while new_id in used_ids:
        again += 1
        new_id = stable_id("community", tenant, *parts, again)
    return new_id
