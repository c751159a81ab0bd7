"""Selection of documents by the query string: state, key, message, metadata and filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import Depends, Query, Request

from agentic_rag_backend.api.requests.json_body import load_json
from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.filters import And, Filter
from agentic_rag_backend.errors import InvalidRequest, in_field
from agentic_rag_backend.ingestion.service import Matching
from agentic_rag_backend.retrieval.options.filters import parse_filter

MAX_FILTER_CHARACTERS = 8192
METADATA_PARAMETER: Mapping[str, Any] = {
    "name": "metadata.NAME",
    "in": "query",
    "required": False,
    "schema": {"type": "string"},
    "description": "selects documents whose metadata NAME has this value; may be given for several names",
}
"""Parameter for the OpenAPI document. FastAPI cannot derive it, because the caller chooses its name."""


async def _matching(
    request: Request,
    state: DocumentState | None = None,
    key: Annotated[str | None, Query(max_length=512)] = None,
    parent_id: Annotated[str | None, Query(max_length=64, description="only the attachments of this document")] = None,
    filter: Annotated[
        str | None, Query(max_length=MAX_FILTER_CHARACTERS, description="the filter grammar of searches, as JSON")
    ] = None,
) -> Matching:
    fields = {name: _readings(value) for name, value in request.query_params.items() if name.startswith("metadata.")}
    parts = [part for part in (parse_filter(fields or None, of_documents=True), _filter(filter)) if part is not None]
    chosen = And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
    return Matching(filter=chosen, state=state, key=key, parent_id=parent_id)


MatchingQuery = Annotated[Matching, Depends(_matching)]


def _filter(text: str | None) -> Filter | None:
    if text is None:
        return None
    value = load_json(text, what="filter")
    with in_field("filter"):
        if not isinstance(value, dict):
            raise InvalidRequest(f"filter must be a JSON object; got {type(value).__name__}")
        return parse_filter(value, of_documents=True)


def _readings(value: str) -> list[Any]:
    """Return the possible meanings of a query string value: the text, and the JSON number or boolean that it spells."""
    try:
        spelled = orjson.loads(value)
    except orjson.JSONDecodeError:
        return [value]
    return [value, spelled] if isinstance(spelled, (bool, int, float)) else [value]
