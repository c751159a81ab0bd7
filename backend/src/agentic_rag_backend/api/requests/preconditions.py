"""Optimistic concurrency: ``ETag`` is a document's revision, and ``If-Match`` makes a change conditional on it."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, Response

from agentic_rag_backend.domain.document import Document
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.base import ANY_REVISION, Expected

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
