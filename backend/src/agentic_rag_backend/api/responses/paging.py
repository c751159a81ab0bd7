"""Pagination of lists by limit and cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query, Request

from agentic_rag_backend.api.responses.envelopes import wrap_data

Limit = Annotated[int, Query(ge=1, le=100, description="items per page, 1 to 100")]
Cursor = Annotated[str | None, Query(max_length=512, description="`meta.nextCursor` of the previous page")]


def wrap_page(request: Request, items: Sequence[Any], next_cursor: str | None) -> dict[str, Any]:
    """Return a page in its envelope."""
    return wrap_data(request, list(items), nextCursor=next_cursor)
