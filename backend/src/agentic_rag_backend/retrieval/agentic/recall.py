"""The searches of one round: its question and entities by the graph, its passage by vector, its other wordings by BM25."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.retrieval.agentic.plan import Plan
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.legs.parallel import search_all

DEPTH = 100
"""Candidates of each search: as many as the largest limit of a request, so that no score depends on the limit."""
LEG_WEIGHTS: Mapping[str, float] = {"graph": 1.0, "dense": 0.3, "sparse": 0.15}
"""Graph search includes a search by the question's vector and BM25. ``dense`` is the search by the hypothetical passage of a
plan, ``sparse`` the searches by all other wordings together."""
LATER_WEIGHT = 0.5
"""Weight of each later round relative to the first one, which searches the question itself."""
MAX_ENTITIES = 20


@dataclass(frozen=True, slots=True)
class Recalled:
    """The searches of one round by name, their weights, and what failed."""

    found: Mapping[str, Retrieval]
    weights: Mapping[str, float]
    failures: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def hits(self) -> list[Hit]:
        """All hits, each once."""
        return list({hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}.values())


class SessionRecall:
    """Runs the searches of a round at the same time."""

    def __init__(self, stores: Stores, strategies: Strategies) -> None:
        self._stores = stores
        self._strategies = strategies

    async def search(self, query: Query, plan: Plan, number: int, entities: Sequence[str], *, cascade: bool) -> Recalled:
        """Return what the searches found, at most `DEPTH` hits each.

        Args:
            query: with the filter of the round.
            number: of the round, from 1.
            entities: ids or names for the graph search, in addition to those that the first query names.
            cascade: False: search by vector alone.

        Raises:
            AgenticRagError: all searches failed.
        """
        searched = replace(query.with_candidates(DEPTH), text=plan.search_queries[0])
        vector, failure = await self._stores.encoder.mean_of(searched, [plan.hyde_passage] if plan.hyde_passage else [])
        round_weight = 1.0 if number == 1 else LATER_WEIGHT
        searches: dict[str, Awaitable[Retrieval]] = {}
        weights: dict[str, float] = {}

        def add(name: str, leg: str, query: Query, share: float) -> None:
            searches[name] = self._strategies.retrieve(leg, query)
            weights[name] = LEG_WEIGHTS[leg] * round_weight * share

        if vector is not None or not cascade:
            add(f"round_{number}_dense", "dense", searched if vector is None else replace(searched, embedding=vector), 1.0)
        if cascade:
            add(f"round_{number}_graph", "graph", with_entities(searched, entities), 1.0)
            further_queries = plan.search_queries[1:]
            for rank, text in enumerate(further_queries, start=2):
                add(f"round_{number}_sparse_{rank}", "sparse", replace(searched, text=text), 1.0 / len(further_queries))
        outcome = await search_all(query, searches)
        lost = tuple(f"{name} failed: {code}" for name, code in outcome.failed.items())
        retrievals = {name: replace(retrieval, hits=retrieval.hits[:DEPTH]) for name, retrieval in outcome.found.items()}
        failures = [
            *([failure] if failure else []),
            *(failure for retrieval in retrievals.values() for failure in retrieval.trace.failures),
            *lost,
        ]
        hidden = [*(reason for retrieval in retrievals.values() for reason in retrieval.trace.hidden), *lost]
        return Recalled(retrievals, weights, tuple(dict.fromkeys(failures)), tuple(dict.fromkeys(hidden)))


def with_entities(query: Query, entities: Sequence[str]) -> Query:
    """Return the query with further entities to start from, except those that the question does not mean."""
    names = [*query.options.get("entities", ()), *(entity for entity in entities if entity not in query.not_meant)]
    return replace(query, options={**query.options, "entities": list(dict.fromkeys(names))[:MAX_ENTITIES]})
