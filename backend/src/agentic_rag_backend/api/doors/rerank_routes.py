"""Reranking in the form of Cohere and Jina: `POST /v1/rerank` and `POST /v2/rerank`."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.doors.protocol_route import ProtocolRoute
from agentic_rag_backend.api.requests.bodies import reads
from agentic_rag_backend.api.responses.error_responses import problem_headers
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS
from agentic_rag_backend.retrieval.rerank.text_reranking import AUTO

MAX_TEXTS = 100
MAX_TEXT_CHARACTERS = 8000
_BODY_BYTES = 4 * 1024 * 1024
_CHARACTERS_PER_TOKEN = 4


class _RerankRoute(ProtocolRoute):
    """A route whose errors have Cohere's form."""

    @staticmethod
    def respond_with_error(error: AgenticRagError) -> JSONResponse:
        body = {"message": error.message, "code": error.code}
        return JSONResponse(body, status_code=error.status, headers=problem_headers(error))


class RerankError(BaseModel):
    """An error."""

    message: str
    code: str


router = APIRouter(
    tags=["rerank"], route_class=_RerankRoute, responses={"default": {"model": RerankError, "description": "an error"}}
)
_Text = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class RerankText(BaseModel):
    """A text to score."""

    text: _Text


class RerankBody(BaseModel):
    """Texts to order by a question. Parameters that are not listed are accepted, and have no effect."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={"examples": [{"model": AUTO, "query": "Why was it late?", "documents": ["It cracked.", "Eels."]}]},
    )

    model: Annotated[str, Field(max_length=200)] = AUTO
    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    documents: Annotated[list[_Text | RerankText], Field(min_length=1, max_length=MAX_TEXTS)]
    top_n: int | None = Field(None, ge=1)
    return_documents: bool | None = False


class RerankedText(BaseModel):
    """A text: its place in the request, and its score in [0, 1]."""

    index: int
    relevance_score: float
    document: RerankText | None = None


class RerankTokens(BaseModel):
    """Estimated tokens of the question and the texts."""

    prompt_tokens: int
    total_tokens: int


class RerankResults(BaseModel):
    """Texts, best first. ``meta`` is Cohere's, ``usage`` Jina's, and ``model`` the reranker that was used."""

    id: str
    model: str
    results: list[RerankedText]
    meta: dict[str, Any]
    usage: RerankTokens


@router.post("/v2/rerank", summary="Order texts by a question")
@router.post("/v1/rerank", summary="Order texts by a question (first version)")
@reads(lambda _: _BODY_BYTES)
async def rerank_texts(request: Request, services: Services, caller: Reader, body: RerankBody) -> RerankResults:
    """Score texts by a reranker that reads nothing else: `http`, `cross_encoder`, `late_interaction`, `llm`, or `auto`."""
    texts = [document if isinstance(document, str) else document.text for document in body.documents]
    ranked = await services.search.rank_texts(caller, body.query, texts, body.model)
    order = sorted(range(len(texts)), key=lambda index: -ranked.scores[index])[: body.top_n]
    results = [
        RerankedText(
            index=index,
            relevance_score=ranked.scores[index],
            document=RerankText(text=texts[index]) if body.return_documents else None,
        )
        for index in order
    ]
    tokens = sum(len(text) // _CHARACTERS_PER_TOKEN + 1 for text in (body.query, *texts))
    version = request.url.path.split("/")[1].removeprefix("v")
    return RerankResults(
        id=str(uuid.uuid4()),
        model=ranked.reranker,
        results=results,
        meta={"api_version": {"version": version}, "billed_units": {"search_units": 1}, "tokens": {"input_tokens": tokens}},
        usage=RerankTokens(prompt_tokens=tokens, total_tokens=tokens),
    )
