"""Metadata of passages for other frameworks."""

from __future__ import annotations

from typing import Any

from agentic_rag_client import models
from agentic_rag_client.prompts import passage_address


def describe_passages(results: models.SearchResults) -> list[tuple[models.Result, dict[str, Any]]]:
    """Return each result with its metadata: that of the document, and the ids, title, score, page and address of the passage.

    A name of the passage replaces the same name in the metadata of the document.
    """
    origin = results.response.origin
    return [(result, _describe_passage(result, origin)) for result in results.results]


def _describe_passage(result: models.Result, origin: str) -> dict[str, Any]:
    source_fields = {
        "document_id": result.document_id,
        "chunk_id": result.id,
        "title": result.title,
        "score": result.score,
        "source": passage_address(origin, result.document_id, result.id),
        "start_char": result.location.start_char,
        "end_char": result.location.end_char,
    }
    page = {} if result.location.page is None else {"page": result.location.page}
    return {**result.metadata, **source_fields, **page}
