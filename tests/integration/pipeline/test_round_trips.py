"""The number of Neo4j statements for one document is constant, regardless of its length."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from neo4j import AsyncManagedTransaction

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress

MOST = 16
"""Twelve writes. The others read known entities and earlier versions. More than 256 names are read in several batches."""
NAMES = [
    f"{first}{second}"
    for first in ("Bel", "Cor", "Dar", "Fen", "Gal", "Hol", "Mar", "Nor")
    for second in ("an", "eth", "ing", "o", "us")
]


def document(sentences: int, *, seed: int) -> str:
    draw = random.Random(seed)
    said = []
    for _ in range(sentences):
        person, family, place = (draw.choice(NAMES) for _ in range(3))
        said.append(f"{person} {family} {draw.choice(['founded', 'joined', 'directs'])} the {place} Institute.")
    return f"# Register {seed}\n\n" + "\n\n".join(" ".join(said[first : first + 5]) for first in range(0, sentences, 5))


async def test_statements_for_a_document_do_not_depend_on_its_entities(
    opens: Any, empty_neo4j: Neo4jAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    run = AsyncManagedTransaction.run

    async def counted(self: AsyncManagedTransaction, query: Any, *arguments: Any, **values: Any) -> Any:
        sent.append(" ".join(str(query).split())[:60])
        return await run(self, query, *arguments, **values)

    monkeypatch.setattr(AsyncManagedTransaction, "run", counted)
    address = {"neo4j_uri": empty_neo4j.uri, "neo4j_user": empty_neo4j.user, "neo4j_password": empty_neo4j.password}
    async with opens(graph_store="neo4j", neo4j_timeout_s=60.0, **address) as application:
        graph = application.container.graph
        costs: dict[str, list[list[str]]] = {"new": [], "changed": []}
        entities = [0]
        for size in (5, 40, 100):
            for what, text in (("new", document(size, seed=size)), ("changed", document(size, seed=size + 1))):
                sent.clear()
                submitted = await application.submit(text, key=f"of-{size}")
                job = await application.ended(submitted.job)
                assert job.state is JobState.SUCCEEDED, job.error
                costs[what].append(list(sent))
            entities.append((await graph.counts(application.tenant)).entities)

    assert [one < two for one, two in pairwise(entities)] == [True] * 3
    for what, statements in costs.items():
        counts = [len(each) for each in statements]
        assert len(set(counts)) == 1, (what, counts, statements[-1])
    assert len(costs["new"][0]) <= MOST, costs["new"][0]
