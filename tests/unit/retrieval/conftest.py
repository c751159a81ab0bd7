"""Builders for graphs, queries and found chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sample_passages import visible_of
from tenant_graphs import graph_of as graph_of
from tenant_graphs import query as query
from tenant_graphs import random_graph as random_graph
from tenant_graphs import tenant as tenant

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit


@pytest.fixture
def visible() -> Callable[..., VisibleChunk]:
    """Return a function that creates a chunk in the form of the catalogue."""

    def make(id: str, text: str = "", *, document_id: str | None = None, **metadata: Any) -> VisibleChunk:
        about = {"title": f"Title of {id}", "key": id, "metadata": metadata}
        return visible_of(text or f"text of {id}", id, document_id=document_id or f"d:{id}", **about)

    return make


@pytest.fixture
def hit(visible: Callable[..., VisibleChunk]) -> Callable[..., Hit]:
    """Return a function that creates a hit."""
    return lambda id, score=1.0: Hit(visible=visible(id), score=score)
