"""Searches in vector stores: OpenAI's filters and options, and passages as its results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agentic_rag_backend.api.doors.openai_protocol.file_objects import attributes_of, file_id_of, file_name_of
from agentic_rag_backend.api.doors.openai_protocol.vector_store_bodies import StoreModel
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

MAX_RESULTS = 50
MAX_QUERIES = 10
_PRODUCT_RANKERS = ("auto", "default")
"""Beginnings of the rankers for which a search has the product's own order."""

_Scalar = bool | int | float | str
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]


class ComparisonFilter(StoreModel):
    """A comparison of an attribute."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    value: _Scalar | list[_Scalar]


class CompoundFilter(StoreModel):
    """Filters of which all or one must hold."""

    type: Literal["and", "or"]
    filters: list[AttributeFilter]


AttributeFilter = Annotated[ComparisonFilter | CompoundFilter, Field(discriminator="type")]


def read_filter(filter: ComparisonFilter | CompoundFilter) -> dict[str, Any]:
    """Return a filter in the product's grammar. An attribute is metadata of a document."""
    if isinstance(filter, CompoundFilter):
        return {filter.type: [read_filter(part) for part in filter.filters]}
    return {f"metadata.{filter.key}": {filter.type: filter.value}}


class RankingOptions(StoreModel):
    """The reranker: ``none``, ``auto`` (the search's own), or the name of one of the product's; and the least score."""

    ranker: Annotated[str, StringConstraints(max_length=64)] | None = None
    score_threshold: float | None = Field(None, ge=0, le=1)


class FileSearchOptions(StoreModel):
    """Options of a search in files."""

    filters: AttributeFilter | None = None
    max_num_results: int | None = Field(None, ge=1, le=MAX_RESULTS)
    ranking_options: RankingOptions | None = None

    def to_values(self) -> dict[str, Any]:
        """Return the fields of a search request."""
        ranking = self.ranking_options or RankingOptions(score_threshold=None)
        values: dict[str, Any] = {"limit": self.max_num_results, "min_score": ranking.score_threshold}
        if self.filters is not None:
            values["filters"] = read_filter(self.filters)
        if ranking.ranker == "none":
            values["rerank"] = False
        elif ranking.ranker is not None and not ranking.ranker.startswith(_PRODUCT_RANKERS):
            values["rerank"] = ranking.ranker
        return values


class StoreSearch(FileSearchOptions):
    """A search in a store. ``rewrite_query`` has no effect: a search uses the query as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "Why was the tidal barrage delayed?",
                    "filters": {"type": "eq", "key": "category", "value": "minutes"},
                    "max_num_results": 5,
                }
            ]
        }
    )

    query: QueryText | Annotated[list[QueryText], Field(min_length=1, max_length=MAX_QUERIES)]
    max_num_results: int | None = Field(10, ge=1, le=MAX_RESULTS)
    rewrite_query: bool | None = None

    @property
    def queries(self) -> list[str]:
        """The queries."""
        return [self.query] if isinstance(self.query, str) else self.query


class TextContent(BaseModel):
    """The text of a result."""

    type: Literal["text"] = "text"
    text: str


class StoreResult(BaseModel):
    """A passage of a file."""

    file_id: str
    filename: str
    score: float
    attributes: dict[str, str | bool | float]
    content: list[TextContent]

    @classmethod
    def of(cls, hit: Hit) -> StoreResult:
        """Return a hit as a result."""
        visible = hit.visible
        return cls(
            file_id=file_id_of(visible.chunk.document_id),
            filename=file_name_of(visible.document_key, visible.document_title),
            score=hit.score,
            attributes=attributes_of(visible.metadata),
            content=[TextContent(text=visible.chunk.text)],
        )


class StoreResults(BaseModel):
    """The results of a search. There is only one page."""

    object: Literal["vector_store.search_results.page"] = "vector_store.search_results.page"
    search_query: list[str]
    data: list[StoreResult]
    has_more: Literal[False] = False
    next_page: None = None


def merge_hits(hits: Iterable[Hit], limit: int) -> Sequence[Hit]:
    """Return the best hits of several searches, each passage once, with its best score."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.id not in best or hit.score > best[hit.id].score:
            best[hit.id] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)[:limit]
