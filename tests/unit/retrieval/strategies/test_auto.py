from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.retrieval.strategies.auto import Auto


@dataclass
class Named:
    name: str
    hits: tuple[Hit, ...] = ()

    async def retrieve(self, query: Query) -> Retrieval:
        trace = Trace(strategy=self.name, methods_used=("dense", self.name), fallbacks=("why",))
        return Retrieval(hits=self.hits, relevance=0.4, trace=trace)


@pytest.mark.parametrize(("switched_on", "chosen"), [(True, "dual_level"), (False, "graph")])
async def test_the_flag_of_the_request_decides(
    query: Callable[..., Query], hit: Callable[..., Hit], switched_on: bool, chosen: str
) -> None:
    found = (hit("c1"),)
    single, dual = Named("graph", found), Named("dual_level", found)
    retrieval = await Auto(single, dual).retrieve(query(dual_level=switched_on))
    assert retrieval.trace.strategy == "auto"
    assert retrieval.trace.methods_used == (chosen, "dense")
    assert (retrieval.trace.fallback_used, retrieval.trace.fallback_reason) == (True, "why")
    assert (retrieval.hits, retrieval.relevance) == (found, 0.4)
