"""Labels of a caller's texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.application.questions import read_request
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.labelling.labeller import (
    CHUNKS_PER_DOCUMENT,
    MAX_LABEL_CHARACTERS,
    Labelling,
    Method,
    restrict_to_labelled,
)
from agentic_rag_backend.retrieval.options.filters import RequestModel, Whole
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS, SearchRequest

MAX_VOTERS = 50
DEFAULT_STRATEGY = "hybrid"


class LabelRequest(RequestModel):
    """A text to label."""

    text: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="the text, 1 to 8,000 characters")
    limit: Whole = Field(20, ge=1, le=MAX_VOTERS, description="number of labelled documents that vote")
    strategy: str | None = Field(
        None, max_length=64, description=f"how labelled documents are found, see GET /strategies; default: {DEFAULT_STRATEGY}"
    )
    labels: list[Annotated[str, StringConstraints(min_length=1, max_length=MAX_LABEL_CHARACTERS)]] | None = Field(
        None, min_length=1, max_length=100, description="labels to choose from; default: those of the documents that vote"
    )
    filters: dict[str, Any] | None = Field(
        None, description="filter of the labelled documents; see docs/reference/filters.md", examples=[{"project": "support"}]
    )
    method: Method | None = Field(
        None,
        description="`votes`: the documents decide; `model`: a language model decides, and reads them as examples; default: "
        "`model` if one is configured",
    )


@dataclass(frozen=True, slots=True)
class LabellingService:
    """Labels texts by the labels of the tenant's documents."""

    container: Container

    @requires(Scope.READ, filtered=True)
    async def label_text(self, caller: Principal, request: LabelRequest) -> Labelling:
        """Return the label of a text, with the votes for each label and the documents that voted.

        Raises:
            InvalidRequest: a value is outside its limits, or the method needs a model and none is configured.
        """
        labeller = self.container.labeller
        if request.method == "model" and not labeller.has_model:
            raise InvalidRequest("method 'model' needs a language model (LLM); this server has none", field="method")
        labels = request.labels or ()
        built = await self.container.queries.build(
            caller,
            read_request(
                SearchRequest,
                {
                    "query": request.text,
                    "strategy": request.strategy or DEFAULT_STRATEGY,
                    "limit": CHUNKS_PER_DOCUMENT * request.limit,
                    "filters": restrict_to_labelled(request.filters, labels),
                },
            ),
        )
        return await labeller.label(
            built.query,
            self.container.retrievers.get(built.strategy),
            built.strategy,
            limit=request.limit,
            labels=labels,
            method=request.method or ("model" if labeller.has_model else "votes"),
        )
