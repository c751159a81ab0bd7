"""Replies of the tools. Their schemas are the tools' output schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class SearchEntry(BaseModel):
    """A passage. ``id`` is for the tool `fetch`."""

    id: str
    title: str
    url: str
    text: str
    score: float


class SearchReply(BaseModel):
    """Passages, best first."""

    results: list[SearchEntry]


class FetchReply(BaseModel):
    """The text of a passage with its neighbours, or of a document."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class AskCitation(BaseModel):
    """A citation: ``quote`` is verbatim in the document."""

    marker: int
    title: str
    quote: str
    url: str
    document_id: str
    chunk_id: str


class AskReply(BaseModel):
    """An answer with markers such as [1], or a refusal (``grounded`` is false)."""

    answer: str
    grounded: bool
    confidence: float = Field(description="estimated probability that the answer is right, 0 to 1")
    citations: list[AskCitation]
    answer_id: str


class ThemeEntry(BaseModel):
    """A theme of the documents."""

    id: str
    name: str
    summary: str
    keywords: list[str]
    level: int


class ThemesReply(BaseModel):
    """Themes, the largest first."""

    themes: list[ThemeEntry]


class EntityReply(BaseModel):
    """Entities of a name. One entity has its facts and its documents; several are listed with their ids."""

    entities: list[dict[str, Any]]


class PathsReply(BaseModel):
    """Paths between entities, best first. Each step has its sentence and its passage."""

    paths: list[dict[str, Any]]


class ContradictionsReply(BaseModel):
    """Pairs of statements that cannot both be true."""

    contradictions: list[dict[str, Any]]


class AcceptedDocument(BaseModel):
    """A document that is being processed. It can be found when the job has succeeded."""

    document_id: str
    job_id: str | None = Field(description="null: the document is known, and nothing has to be done")


class DocumentReply(BaseModel):
    """A document: state, title, metadata, warnings."""

    document: dict[str, Any]


class JobReply(BaseModel):
    """A job: state, stage, progress, error."""

    job: dict[str, Any]
