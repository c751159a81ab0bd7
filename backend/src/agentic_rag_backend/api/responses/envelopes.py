"""Envelope of every successful response: ``data`` and ``meta``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from agentic_rag_backend.api.responses.error_responses import request_id_of

T = TypeVar("T")


class Meta(BaseModel):
    """Information about the response. Some routes add fields."""

    model_config = ConfigDict(extra="allow")

    requestId: str = Field(description="include it in a report of a problem")  # noqa: N815 - the contract's spelling
    timestamp: datetime


class ListMeta(Meta):
    """Information about a list."""

    nextCursor: str | None = Field(None, description="pass as `cursor` for the next page; null on the last")  # noqa: N815


class Envelope(BaseModel, Generic[T]):
    """A successful response."""

    data: T
    meta: Meta


class ListEnvelope(BaseModel, Generic[T]):
    """A page of a list."""

    data: list[T]
    meta: ListMeta


def meta_of(request: Request, **extra: Any) -> dict[str, Any]:
    """Return the ``meta`` of a response."""
    return {"requestId": request_id_of(request), "timestamp": datetime.now(UTC), **extra}


def wrap_data(request: Request, data: Any, **extra: Any) -> dict[str, Any]:
    """Return ``data`` in its envelope."""
    return {"data": data, "meta": meta_of(request, **extra)}
