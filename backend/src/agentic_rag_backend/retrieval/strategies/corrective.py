"""Corrective retrieval over a strategy that the request names. See `retrieval.stages.correction`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.retrieval.base import Strategies
from agentic_rag_backend.retrieval.options.model import correction_of
from agentic_rag_backend.retrieval.stages.correction import Corrector


class Corrective:
    """Corrects the searches of ``options.base``."""

    def __init__(self, strategies: Strategies, corrector: Corrector) -> None:
        self._strategies = strategies
        self._corrector = corrector

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the results of the best attempt, in the order and with the scores of the base strategy.

        Raises:
            AgenticRagError: the search of the question itself failed.
        """
        search = partial(self._strategies.retrieve, str(query.options.get("base", "hybrid")))
        retrieval = await self._corrector.correct(query, correction_of(query.options), search)
        return replace(retrieval, trace=replace(retrieval.trace, strategy="corrective"))
