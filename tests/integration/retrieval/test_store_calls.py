"""A query makes a bounded number of store calls, whatever it finds, and embeds its question once."""

from __future__ import annotations

import inspect
from collections import Counter
from functools import wraps
from typing import Any

import pytest

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTIONS = (
    "Who founded the Sound Tidal Energy Company?",
    "What links the Narrows Accord with the Scarrow Fishers' Association?",
    "Why do public projects around Brannoc Sound so often finish late?",
    "zzyzx",
)
AT_MOST = {"dense": 4, "sparse": 4, "hybrid": 4, "graph": 14, "auto": 29, "dual_level": 16, "community": 8}
"""Store calls of a search. Two describe the people who share a name, if the question or the results have such a name. Two to
five of `graph` find the relationships on the way to its results. `auto` may search a second round."""


def counted(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], name: str, store: object) -> None:
    """Count the calls of a store's public coroutine methods."""
    for attribute in dir(type(store)):
        method = inspect.getattr_static(type(store), attribute)
        if attribute.startswith("_") or not inspect.iscoroutinefunction(method):
            continue

        def watched(method: Any, label: str) -> Any:
            @wraps(method)
            async def call(*arguments: Any, **options: Any) -> Any:
                calls[label] += 1
                return await method(*arguments, **options)

            return call

        monkeypatch.setattr(type(store), attribute, watched(method, f"{name}.{attribute}"))


@pytest.mark.parametrize("strategy", AT_MOST)
async def test_store_calls_of_a_search(
    examples: tuple[Container, TenantId], monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    container, tenant = examples
    owner = await container.tenants.get(tenant)

    def query(text: str) -> Query:
        return Query(tenant=owner, text=text, limit=10, dual_level=strategy == "dual_level")

    await container.retrievers.get(strategy).retrieve(query("the tenant's graph is read once"))
    calls: Counter[str] = Counter()
    catalogue = container.catalogue
    stores = {
        "vectors": container.vectors,
        "graph": container.graph,
        "documents": catalogue.documents,
        "communities": catalogue.communities,
        "trees": catalogue.trees,
        "questions": catalogue.questions,
    }
    for name, store in stores.items():
        counted(monkeypatch, calls, name, store)
    embedded: Counter[str] = Counter()
    counted(monkeypatch, embedded, "embedder", container.embedder)
    for question in QUESTIONS:
        calls.clear()
        embedded.clear()
        await container.retrievers.get(strategy).retrieve(query(question))
        assert calls.total() <= AT_MOST[strategy], (question, calls)
        # The levels share an embedding that overlaps or is kept. Nothing is kept here, and under load they may not overlap.
        # A second round embeds its own question, and its passages are measured with the first one.
        most = {"dual_level": 2, "auto": 3}.get(strategy, 1)
        assert (strategy != "sparse") <= embedded["embedder.embed_query"] <= most * (strategy != "sparse"), (question, embedded)
