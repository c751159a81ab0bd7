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
    kept = _match_continuing(communities, previous)
    taken = {each.id for each in previous}
    ids = []
    for index, each in enumerate(communities):
        ids.append(kept[index] if index in kept else _make_id(tenant, each.members, taken))
        taken.add(ids[-1])
    return ids


def _match_continuing(communities: Sequence[DetectedCommunity], previous: Sequence[Community]) -> dict[int, str]:
    """Return, by index, the ids of the communities that continue: the pairs of the largest overlap first."""
    held: defaultdict[str, list[int]] = defaultdict(list)
    for number, old in enumerate(previous):
        for entity in old.entity_ids:
            held[entity].append(number)
    pairs: list[tuple[float, bool, int, int]] = []
    for index, each in enumerate(communities):
        shared = Counter(number for entity in each.members for number in held.get(entity, ()))
        for number, both in shared.items():
            old = previous[number]
            overlap = both / (len(each.members) + len(old.entity_ids) - both)
            if overlap > KEPT_ABOVE:
                pairs.append((-overlap, old.level != each.level, index, number))
    kept: dict[int, str] = {}
    used: set[int] = set()
    for _, _, index, number in sorted(pairs):
        if index not in kept and number not in used:
            kept[index] = previous[number].id
            used.add(number)
    return kept


def _make_id(tenant: TenantId, members: Sequence[str], taken: set[str]) -> str:
    """Return an unused id. A community that continues under its old id may once have had these members."""
    parts = sorted(members)
    made = stable_id("community", tenant, *parts)
    again = 1
    while made in taken:
        again += 1
        made = stable_id("community", tenant, *parts, again)
    return made
