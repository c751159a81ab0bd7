"""Turn detected clusters into communities with ids and fingerprints.

Gives communities the ids of the communities that they continue, so that references stay valid after a rebuild.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import Community
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectedCommunity, Detection
from agentic_rag_backend.themes.communities.detection.knowledge import Edge, VisibleKnowledge, fingerprint_community
from agentic_rag_backend.themes.communities.detection.leiden import PreviousDivision

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommunity:
    """A community before it belongs to a generation; ``inside`` are the relationships among its members."""

    id: str
    level: int
    parent_id: str | None
    members: tuple[str, ...]
    fingerprint: str
    inside: tuple[Edge, ...]
    base: bool

    def make_community(self, generation: int) -> Community:
        """Return the community for the graph store."""
        return Community(
            id=self.id,
            generation=generation,
            level=self.level,
            parent_id=self.parent_id,
            entity_ids=self.members,
            fingerprint=self.fingerprint,
            entity_count=len(self.members),
        )


def plan_communities(
    tenant: TenantId, detection: Detection, knowledge: VisibleKnowledge, previous: Sequence[Community] = ()
) -> list[PlannedCommunity]:
    """Return the communities, parents before children; a community that continues one of ``previous`` has its id."""
    ids = community_ids(tenant, detection.communities, previous)
    inside = _edges_inside(detection, knowledge.edges)
    return [
        PlannedCommunity(
            id=ids[index],
            level=community.level,
            parent_id=None if community.parent is None else ids[community.parent],
            members=community.members,
            fingerprint=fingerprint_community(knowledge, community.members, inside[index]),
            inside=tuple(inside[index]),
            base=community.base,
        )
        for index, community in enumerate(detection.communities)
    ]


def previous_detection(communities: Sequence[Community], details: Mapping[str, object]) -> Detection:
    """Return the hierarchy of a published generation, for a graph that has not changed since."""
    coarse = _read_coarse(details)
    ordered = sorted(communities, key=lambda community: (community.level, community.id))
    index = {community.id: position for position, community in enumerate(ordered)}
    modularity = details.get("modularity")
    return Detection(
        tuple(
            DetectedCommunity(
                level=community.level,
                parent=None if community.parent_id is None else index[community.parent_id],
                members=community.entity_ids,
                base=_is_base(community, coarse),
            )
            for community in ordered
        ),
        float(modularity) if isinstance(modularity, int | float) else 0.0,
        afresh=False,
    )


def previous_division(
    communities: Sequence[Community], details: Mapping[str, object], knowledge: VisibleKnowledge, *, comparable: bool = True
) -> PreviousDivision:
    """Return a published generation's division of the graph, as the start of the next detection.

    A community is unchanged if its fingerprint still matches its content; ``comparable`` is true if the same options led to the
    generation. ``details["coarse"]`` names the roots that only group clusters.
    """
    detection = previous_detection(communities, details)
    levels: dict[int, dict[str, int]] = {}
    base: dict[str, int] = {}
    for number, community in enumerate(detection.communities):
        levels.setdefault(community.level, {}).update(dict.fromkeys(community.members, number))
        if community.base:
            base.update(dict.fromkeys(community.members, number))
    return PreviousDivision(
        base, levels, _find_unchanged_members(communities, detection, knowledge) if comparable else frozenset()
    )


def _find_unchanged_members(
    communities: Sequence[Community], detection: Detection, knowledge: VisibleKnowledge
) -> frozenset[frozenset[str]]:
    fingerprints = {community.entity_ids: community.fingerprint for community in communities}
    inside = _edges_inside(detection, knowledge.edges)
    return frozenset(
        frozenset(community.members)
        for community, edges in zip(detection.communities, inside, strict=True)
        if all(member in knowledge.entities for member in community.members)
        and fingerprint_community(knowledge, community.members, edges) == fingerprints[community.members]
    )


def _read_coarse(details: Mapping[str, object]) -> frozenset[str]:
    coarse_ids = details.get("coarse")
    return frozenset(coarse_ids) if isinstance(coarse_ids, list | tuple) else frozenset()


def _is_base(community: Community, coarse: frozenset[str]) -> bool:
    return community.id not in coarse and (community.parent_id is None or community.parent_id in coarse)


def _edges_inside(detection: Detection, edges: Sequence[Edge]) -> list[list[Edge]]:
    """Return the relationships inside each community; relationships of entities without a community are left out."""
    deepest: dict[str, int] = {}
    for index, community in enumerate(detection.communities):
        deepest.update(dict.fromkeys(community.members, index))
    chains: dict[int, tuple[int, ...]] = {}
    for index, community in enumerate(detection.communities):
        chains[index] = (*(() if community.parent is None else chains[community.parent]), index)
    inside: list[list[Edge]] = [[] for _ in detection.communities]
    for edge in edges:
        if edge.source_id in deepest and edge.target_id in deepest:
            for source_community, target_community in zip(
                chains[deepest[edge.source_id]], chains[deepest[edge.target_id]], strict=False
            ):
                if source_community != target_community:
                    break
                inside[source_community].append(edge)
    return inside
