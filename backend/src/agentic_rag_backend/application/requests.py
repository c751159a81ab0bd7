"""Requests of the application that add to a search, and their validation for callers within the process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.filter_fields import RequestModel
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS, SearchRequest
from agentic_rag_backend.wording import message_of

MAX_TURNS = 20

Model = TypeVar("Model", bound=BaseModel)


class ExplainRequest(SearchRequest):
    """A search, and the document to explain."""

    document_id: str = Field(min_length=1, max_length=64)


class Turn(RequestModel):
    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)


class AnswerRequest(SearchRequest):
    """A question, and options of its answer."""

    generator: str | None = Field(
        None,
        max_length=64,
        description="`attributed` (only supported sentences), `standard` (all, unsupported ones marked) or `verified` (revised "
        "after verification questions)",
    )
    history: list[Turn] = Field(default_factory=list, max_length=MAX_TURNS)
    citation_style: Literal["numeric", "title", "none"] = Field(
        "numeric", description="form of citations in the text: [1], (Title) or none; the list of citations is the same"
    )
    citation_policy: Literal["strict", "checked", "mark"] | None = Field(
        None,
        description="sentences that are not supported: `strict` leaves them out; `checked` leaves out contradicted ones and "
        "keeps others with the mark [unverified]; `mark` also keeps contradicted ones, with the mark [unsupported]; "
        "default: `mark` for `standard`, otherwise `checked`",
    )


def read_request(model: type[Model], values: Mapping[str, Any]) -> Model:
    """Return the request that has these values.

    Raises:
        InvalidRequest: a value is unknown or outside its limits. The message names it.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}: {message_of(item)}" for item in error.errors(include_url=False))
        raise InvalidRequest("; ".join(problems)) from None
