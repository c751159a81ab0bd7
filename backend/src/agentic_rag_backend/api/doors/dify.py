"""Dify's protocol of an external knowledge base: `POST /retrieval`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.doors.openai_protocol.conversations import PRESETS
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.doors.protocol_route import ProtocolRoute
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, reads
from agentic_rag_backend.api.responses.error_responses import problem_headers
from agentic_rag_backend.api.schemas.questions.questions import QUESTION_BYTES
from agentic_rag_backend.application.questions import read_request
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound, Unauthenticated
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS, SearchRequest

MAX_CONDITIONS = 20
_MALFORMED, _REFUSED, _UNKNOWN = 1001, 1002, 2001
"""Codes of errors: no valid header, a refused key, an unknown knowledge base."""
_OPERATORS: Mapping[str, str] = {
    "contains": "contains",
    "start with": "prefix",
    "is": "eq",
    "=": "eq",
    "is not": "ne",
    "≠": "ne",
    ">": "gt",
    "<": "lt",
    "≥": "gte",
    "≤": "lte",
    "before": "lt",
    "after": "gt",
    "in": "in",
    "not in": "nin",
}
_NUMBERS = frozenset({"=", "≠", ">", "<", "≥", "≤"})


class _DifyRoute(ProtocolRoute):
    """A route whose errors have Dify's form. Those that Dify does not number have their HTTP status as the code."""

    @staticmethod
    def respond_with_error(error: AgenticRagError) -> JSONResponse:
        if isinstance(error, Unauthenticated):
            code = _MALFORMED if "Bearer" in error.message else _REFUSED
        else:
            code = _UNKNOWN if isinstance(error, NotFound) else error.status
        body = {"error_code": code, "error_msg": error.message}
        return JSONResponse(body, status_code=error.status, headers=problem_headers(error))


class DifyError(BaseModel):
    """An error: 1001 for a malformed header, 1002 for a refused key, 2001 for an unknown knowledge base, or the HTTP status."""

    error_code: int
    error_msg: str


class RetrievalRecord(BaseModel):
    """A passage. ``metadata`` is that of its document, with its ids and its address."""

    content: str
    score: float
    title: str
    metadata: dict[str, Any]


class RetrievalView(BaseModel):
    """Passages, best first."""

    records: list[RetrievalRecord]


router = APIRouter(tags=["dify"], route_class=_DifyRoute, responses={"default": {"model": DifyError, "description": "an error"}})


class RetrievalSetting(BaseModel):
    """Number of records, and their least score."""

    model_config = ConfigDict(extra="ignore")

    top_k: int = Field(5, ge=1, le=100)
    score_threshold: float = Field(0.0, ge=0, le=1)


class Condition(BaseModel):
    """A comparison of metadata."""

    model_config = ConfigDict(extra="ignore")

    name: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(min_length=1, max_length=10)
    comparison_operator: str = Field(max_length=40)
    value: str | int | float | list[str] | None = None


class MetadataCondition(BaseModel):
    """Comparisons of metadata, of which all or one must hold."""

    model_config = ConfigDict(extra="ignore")

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[Condition] = Field(default_factory=list, max_length=MAX_CONDITIONS)


class RetrievalBody(BaseModel):
    """A question for a knowledge base."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"query": "Why was the tidal barrage delayed?"}]})

    knowledge_id: str = Field("auto", max_length=200, description="how to search: auto, dual, local or agentic")
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    retrieval_setting: RetrievalSetting = Field(default_factory=lambda: RetrievalSetting.model_validate({}))
    metadata_condition: MetadataCondition | None = None


@router.post("/retrieval", summary="Search for Dify", responses={200: {"model": RetrievalView}})
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES)
async def retrieve(request: Request, services: Services, caller: Reader, body: RetrievalBody) -> dict[str, Any]:
    """Return passages as records. The key decides the tenant; the knowledge id names a preset of the search."""
    presets = [name for name in PRESETS if name != "themes"]  # which finds no passages
    if body.knowledge_id not in presets:
        raise NotFound(f"no knowledge base is named {body.knowledge_id[:80]!r}; the names are {', '.join(presets)}")
    values = {
        **PRESETS[body.knowledge_id],
        "query": body.query,
        "limit": body.retrieval_setting.top_k,
        "min_score": body.retrieval_setting.score_threshold,
        "filters": read_condition(body.metadata_condition),
    }
    retrieval = await services.search.run_search(caller, read_request(SearchRequest, values))
    links = Permalinks.of(request)
    return {
        "records": [
            {
                "content": hit.visible.chunk.text,
                "score": hit.score,
                "title": hit.visible.document_title,
                "metadata": {
                    **hit.visible.metadata,
                    "document_id": hit.visible.chunk.document_id,
                    "chunk_id": hit.id,
                    "url": links.passage(hit.visible.chunk.document_id, hit.id),
                },
            }
            for hit in retrieval.hits
        ]
    }


def read_condition(condition: MetadataCondition | None) -> dict[str, Any] | None:
    """Return the filter of a search. None: there is no condition.

    Raises:
        InvalidRequest: an operator is unknown, or its value is missing.
    """
    if condition is None or not condition.conditions:
        return None
    return {condition.logical_operator: [_any_of(item.name, _compare(item)) for item in condition.conditions]}


def _any_of(names: Sequence[str], comparison: Mapping[str, Any]) -> dict[str, Any]:
    filters = [{f"metadata.{name}": dict(comparison)} for name in names]
    return filters[0] if len(filters) == 1 else {"or": filters}


def _compare(condition: Condition) -> dict[str, Any]:
    operator, value = condition.comparison_operator, condition.value
    if operator in ("empty", "not empty"):
        return {"missing": operator == "empty"}
    if operator not in _OPERATORS:
        raise InvalidRequest(
            f"comparison_operator must be one of {', '.join((*_OPERATORS, 'empty', 'not empty'))}; got {operator[:40]!r}"
        )
    if value is None:
        raise InvalidRequest(f"comparison_operator {operator!r} needs a value")
    if operator in ("in", "not in") and isinstance(value, str):
        value = [item.strip() for item in value.split(",")]
    if operator in _NUMBERS and isinstance(value, str):
        value = _as_number(value)
    return {_OPERATORS[operator]: value}


def _as_number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
