"""The reranker port.

The text of a candidate as a reranker reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """The result of a reranker.

    Attributes:
        scores: a score in [0, 1] by chunk id. Equal scores keep the order of the mapping. Candidates without a score stay behind
            the others, in the order of the strategy.
        warnings: about options that had no effect.
        details: for the trace, as JSON values.
    """

    scores: Mapping[str, float]
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class Reranker(Protocol):
    """Scores the candidates of a search again. It may read each of them, which is too slow for a whole corpus.

    Scores depend on the query and the candidates only, and not on the query's limit. Equal candidates have equal scores, unless
    the scores depend on the results before, as those of MMR do.
    """

    def check(self) -> None:
        """Return if the reranker can be used.

        Raises:
            RerankerUnavailable: this deployment lacks something that it requires. The message has the remedy.
            ModelUnavailable: the model behind it is known to be unavailable.
        """

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Score the candidates, which are in the order of the strategy. ``query.rerank`` has the options.

        Args:
            account: counts the model requests, also if the call fails or is cancelled.

        Raises:
            ModelUnavailable: the model behind it did not answer.
            StoreUnavailable: a store did not answer.
        """


def passage_of(hit: Hit) -> str:
    """Return the document's title, the headings above the chunk, and its text. A heading that repeats the title is left out."""
    title = hit.visible.document_title.strip()
    chunk = hit.visible.chunk
    above = [title, *(heading for heading in chunk.location.headings if heading != title)]
    return "\n".join((*(line for line in above if line and not chunk.text.startswith(line)), chunk.text))
