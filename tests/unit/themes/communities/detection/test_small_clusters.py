"""Small clusters join large ones in a time that grows with the number of entities."""

from __future__ import annotations

from collections import defaultdict

import pytest
from cpu_time import cpu_s

from agentic_rag_backend.themes.communities.detection.small_clusters import join_small_clusters

LARGE = 3


def joined(large: int, small: int, contexts: list[tuple[int, list[int]]]) -> list[list[int]]:
    """Join ``small`` single nodes to ``large`` clusters, whose nodes come first."""
    clusters = [[LARGE * number + member for member in range(LARGE)] for number in range(large)]
    clusters += [[LARGE * large + number] for number in range(small)]
    no_links = defaultdict[int, defaultdict[int, float]](lambda: defaultdict(float))
    return join_small_clusters(clusters, links=lambda _: no_links, contexts=contexts, min_size=2)


@pytest.mark.parametrize("large", [2, 30, 31, 200])
def test_a_small_cluster_joins_the_large_one_with_most_members_in_its_context(large: int) -> None:
    """The heaviest large cluster of one context stays among those compared, and of equal ones the first."""
    alone = LARGE * large
    best = large - 1
    context = [*(LARGE * number for number in range(large)), LARGE * best + 1, alone]
    assert [LARGE * best, LARGE * best + 1, LARGE * best + 2, alone] in joined(large, 1, [(1, context)])
    equal = [*(LARGE * number for number in range(large)), alone]
    assert [0, 1, 2, alone] in joined(large, 1, [(1, equal)])


def test_one_context_costs_in_proportion_to_its_entities() -> None:
    def seconds(size: int) -> float:
        everything = list(range(LARGE * size + size))
        return cpu_s(lambda: joined(size, size, [(1, everything)]))

    assert seconds(2_000) < 12 * seconds(500)
