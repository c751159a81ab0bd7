"""Documents whose names cost most, and questions about them: no turn of the event loop takes long (`tests/e2e/conftest.py`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sampling import budget
from shapes_of_names import SHAPES
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

SIZE = budget(gate=1_500, deep=6_000)
"""Names of a shape."""
SAMPLE = ("a chain of aliases", "a list of names", "the same names twice")


@pytest.mark.sampled
@pytest.mark.parametrize("shape", [*SAMPLE, *sorted(SHAPES.keys() - set(SAMPLE))[: budget(gate=0, deep=len(SHAPES))]])
async def test_it_never_holds_the_event_loop(world: World, shape: str) -> None:
    corpus = await asyncio.to_thread(SHAPES[shape], SIZE)
    client = await world.tenant(f"names-{shape}")
    for name, text in corpus.documents.items():
        file = {"file": (name, text.encode(), "text/csv" if name.endswith("csv") else "text/markdown")}
        submitted = await client.data("POST", "/documents", status=202, files=file)
        job = await client.ended(submitted["documents"][0]["job_id"], within_s=500)
        assert job["state"] == "succeeded", job
    await client.rebuild()
    found: list[Any] = []
    for question in corpus.questions:
        for strategy in ("graph", "paths", "multi_query", "community"):
            found += (await client.data("POST", "/search", json={"query": question, "strategy": strategy}))["results"]
        await client.data("POST", "/answers", json={"query": question})
    assert found
    await client.data("GET", "/graph/contradictions")
