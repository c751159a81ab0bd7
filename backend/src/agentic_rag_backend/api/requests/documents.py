"""Requests about documents: selection by the query string, and optimistic concurrency."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Query, Request, Response

from agentic_rag_backend.api.requests.bodies import load_json
from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.filters import And, Filter
from agentic_rag_backend.errors import InvalidRequest, in_field
from agentic_rag_backend.stores.catalogue.documents.document_values import ANY_REVISION, Expected, Matching

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
    states = frozenset(() if state is None else (state,))
    return Matching(filter=chosen, states=states, key=key, parent_id=parent_id)


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


MAX_HEADER_CHARACTERS = 2048
_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')
_TAGS = re.compile(rf"\s*{_TAG.pattern}\s*(,\s*{_TAG.pattern}\s*)*\Z")


def tag(response: Response, document: Document) -> None:
    """Set the document's revision as the ``ETag`` of the response."""
    response.headers["ETag"] = f'"{document.revision}"'


async def _if_match(
    if_match: Annotated[
        str | None,
        Header(description="expected `ETag` of the document; 412 if it has changed", max_length=MAX_HEADER_CHARACTERS),
    ] = None,
) -> Expected:
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return frozenset({ANY_REVISION})
    if not _TAGS.match(if_match):
        raise InvalidRequest(f"If-Match must be '*' or quoted tags, such as the value of ETag; got {if_match[:80]!r}")
    # A weak tag never matches (RFC 9110, 13.1.1). A quoted asterisk is a tag, not the wildcard.
    return frozenset(match_[2] for match_ in _TAG.finditer(if_match) if not match_[1]) - {ANY_REVISION}


IfMatch = Annotated[Expected, Depends(_if_match)]
