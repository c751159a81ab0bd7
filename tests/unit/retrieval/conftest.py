"""Builders for graphs, queries and found chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.graph import Mention, Naming, Support
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.retrieval.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.tenant_graph.ledger import build_tenant_graph

from .worlds import known

ABOUT = "*"
"""Prefix of an entity's name in `graph_of`: the chunk is about it."""


def naming(document: str, name: str, *, entity: str | None = None, label: str | None = None, version: int = 1) -> Naming:
    """Return a naming: a document uses a name for an entity."""
    return Naming(
        document_id=document,
        version=version,
        entity_id=entity or f"e:{name}",
        name=name,
        entity_name=label or name,
        entity_type="thing",
    )


@pytest.fixture
def tenant() -> Tenant:
    return Tenant(TenantId("t_" + "0" * 32), "acme", TenantState.ACTIVE, 1, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def query(tenant: Tenant) -> Callable[..., Query]:
    """Return a function that creates a query of the tenant."""

    def make(text: str = "who built the array", **fields: Any) -> Query:
        return Query(tenant=fields.pop("tenant", tenant), text=text, **fields)

    return make


@pytest.fixture
def graph_of() -> Callable[..., TenantGraph]:
    """Return a function that builds a graph from ``{chunk id: [entity names]}``. The prefix `ABOUT` marks the chunk's topic.

    ``aliases`` adds other names. Every entity in ``extra`` exists and has no mentions.
    """

    def build(
        chunks: Mapping[str, Sequence[str]],
        *,
        aliases: Mapping[str, Sequence[str]] | None = None,
        extra: Sequence[str] = (),
    ) -> TenantGraph:
        said = {f"d:{chunk}": [name.removeprefix(ABOUT) for name in held] for chunk, held in chunks.items()}
        said["extra"] = list(extra)
        namings = [
            naming(document, text, entity=f"e:{name}", label=name)
            for document, names in said.items()
            for name in dict.fromkeys(names)
            for text in (name, *(aliases or {}).get(name, ()))
        ]
        mentions = [
            Mention(f"e:{name.removeprefix(ABOUT)}", Support(f"d:{chunk}", 1, chunk), about=name.startswith(ABOUT))
            for chunk, held in chunks.items()
            for name in held
        ]
        return build_tenant_graph(known(dict.fromkeys(said, 1), mentions, namings))

    return build


@pytest.fixture
def random_graph() -> Callable[..., TenantGraph]:
    """Return a function that builds a graph of a given size. Entities are named with the skew of names in a corpus."""

    def build(*, chunks: int, entities: int, per_chunk: int = 6, seed: int = 7) -> TenantGraph:
        random = np.random.default_rng(seed)
        popularity = 1.0 / np.arange(1, entities + 1) ** 0.7
        chosen = random.choice(entities, size=(chunks, per_chunk), p=popularity / popularity.sum())
        about = random.random((chunks, per_chunk)) < 0.15
        mentions = [
            Mention(f"e{entity}", Support(f"d{chunk}", 1, f"c{chunk:06d}"), about=bool(about[chunk, column]))
            for chunk in range(chunks)
            for column, entity in enumerate(chosen[chunk].tolist())
            if entity not in chosen[chunk, :column].tolist()
        ]
        namings = [naming(each.support.document_id, f"Name {each.entity_id[1:]}", entity=each.entity_id) for each in mentions]
        namings += [naming("names", f"Name {number}", entity=f"e{number}") for number in range(entities)]
        documents = ["names", *(f"d{chunk}" for chunk in range(chunks))]
        return build_tenant_graph(known(dict.fromkeys(documents, 1), mentions, namings))

    return build


@pytest.fixture
def visible() -> Callable[..., VisibleChunk]:
    """Return a function that creates a chunk in the form of the catalogue."""

    def make(id: str, text: str = "", *, document_id: str | None = None, **metadata: Any) -> VisibleChunk:
        document = document_id or f"d:{id}"
        chunk = Chunk(
            id=id,
            document_id=document,
            version=1,
            ordinal=0,
            text=text or f"text of {id}",
            size_tokens=1,
            content_hash=id,
            location=Location(start_char=0, end_char=len(text), start_line=1, end_line=1),
        )
        return VisibleChunk(chunk=chunk, document_title=f"Title of {id}", document_key=id, metadata=metadata)

    return make


@pytest.fixture
def hit(visible: Callable[..., VisibleChunk]) -> Callable[..., Hit]:
    """Return a function that creates a hit."""
    return lambda id, score=1.0: Hit(visible=visible(id), score=score)
