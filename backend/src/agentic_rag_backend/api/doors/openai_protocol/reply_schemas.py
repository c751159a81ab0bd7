"""Replies of OpenAI's protocol, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class TokenCounts(BaseModel):
    """Tokens of an answer; 0 if no model wrote it."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class UrlCitation(BaseModel):
    """The place of a cited sentence in the text, and the address of the passage."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(BaseModel):
    """A citation."""

    type: str
    url_citation: UrlCitation


class CompletionMessage(BaseModel):
    """The answer."""

    role: str
    content: str
    refusal: str | None = None
    annotations: list[Annotation]


class CompletionChoice(BaseModel):
    """The only choice."""

    index: int
    message: CompletionMessage
    finish_reason: str
    logprobs: Any = None


class ChatCompletion(BaseModel):
    """A chat completion. The last two fields are not OpenAI's."""

    id: str
    object: str
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: TokenCounts
    answer_id: str | None = Field(None, description="id for POST /feedback")
    grounded: bool | None = Field(None, description="false: the documents do not contain the answer")


class ModelEntry(BaseModel):
    """A model."""

    id: str
    object: str
    created: int
    owned_by: str


class ModelPage(BaseModel):
    """All models."""

    object: str
    data: list[ModelEntry]


class EmbeddingEntry(BaseModel):
    """The vector of a text: numbers, or their little-endian float32 bytes as base64."""

    object: str
    index: int
    embedding: list[float] | str


class EmbeddingTokens(BaseModel):
    """Estimated tokens of the texts."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingPage(BaseModel):
    """Vectors in the order of the texts."""

    object: str
    model: str
    data: list[EmbeddingEntry]
    usage: EmbeddingTokens


class ResponseTokens(BaseModel):
    """Tokens of a response; 0 if no model wrote it."""

    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


class ResponseObject(BaseModel):
    """A response. ``output`` has the file search, if there is one, and the message. The last two fields are not OpenAI's."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "in_progress", "failed"]
    model: str
    output: list[dict[str, Any]]
    usage: ResponseTokens | None
    answer_id: str | None = Field(None, description="id for POST /feedback")
    grounded: bool | None = Field(None, description="false: the documents do not contain the answer")


class ErrorContent(BaseModel):
    """The reason of an error."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ProtocolError(BaseModel):
    """An error."""

    error: ErrorContent


ERRORS: dict[int | str, dict[str, Any]] = {"default": {"model": ProtocolError, "description": "an error"}}
"""Responses of every route."""
