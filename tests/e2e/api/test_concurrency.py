"""Concurrent readers and writers: no request fails, and deleted content never reappears."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from sampling import budget
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

READERS = budget(gate=10, deep=30)
ROUNDS = 4
PAUSE_S = 0.02
"""A reader's pause after each search. Without it, many readers would leave the writer almost no time on a busy machine."""
STRATEGIES = ("dense", "sparse", "hybrid", "graph", "auto")


@pytest.mark.sampled
async def test_searches_beside_uploads_and_deletes(world: World) -> None:
    deleted: set[str] = set()
    seen: set[str] = set()
    stop = asyncio.Event()

    async def reader(number: int) -> int:
        for asked, strategy in enumerate(itertools.cycle(STRATEGIES[number % len(STRATEGIES) :] + STRATEGIES)):
            if stop.is_set():
                return asked
            gone = set(deleted)
            body = {"query": f"the buoy of marker word {number}", "strategy": strategy, "limit": 20}
            found = await world.alpha_reader.data("POST", "/search", json=body)
            text = str(found)
            seen.update(word for word in (f"marker{turn}x{n}" for turn in range(ROUNDS) for n in range(3)) if word in text)
            assert not [word for word in gone if word in text], "deleted before the search began"
            await asyncio.sleep(PAUSE_S)
        raise AssertionError("a cycle does not end")

    async def writer() -> None:
        for turn in range(ROUNDS):
            words = [f"marker{turn}x{number}" for number in range(3)]
            texts = [f"The buoy of {word} lies north of Gull Rock." for word in words]
            documents = await asyncio.gather(*(world.alpha.upload(text) for text in texts))
            await asyncio.sleep(0.1)
            for word, document in zip(words, documents, strict=True):
                await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)
                deleted.add(word)
        stop.set()

    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        readers = [group.create_task(reader(number)) for number in range(READERS)]
        group.create_task(writer())
    asked = [task.result() for task in readers]

    assert len(deleted) == 3 * ROUNDS
    assert len(seen) > ROUNDS, "the searches did find what was there"
    assert min(asked) >= 1
