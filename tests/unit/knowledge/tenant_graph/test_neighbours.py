from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.graph import SharedChunks, TenantGraph, shared_count


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**16), chosen=st.integers(0, 12), left_out=st.integers(0, 12))
def test_counted_chunks_are_shared_as_pairs_of_entities_share_them(
    random_graph: Callable[..., TenantGraph], seed: int, chosen: int, left_out: int
) -> None:
    graph = random_graph(chunks=20, entities=15, per_chunk=2, seed=seed)
    random = np.random.default_rng(seed)
    everyone = range(graph.entity_places)
    numbers = random.choice(graph.entity_places, size=min(chosen, graph.entity_places), replace=False).tolist()
    without = random.choice(graph.entity_places, size=min(left_out, graph.entity_places), replace=False).tolist()
    others = set(numbers) - set(without)
    expected = {number for number in everyone if any(shared_count(graph, number, other) for other in others)}
    assert SharedChunks(graph, numbers).sharing(everyone, without=without) == expected
