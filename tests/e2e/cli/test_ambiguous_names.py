"""Questions about shared names, and about things on which documents disagree: the quotations have what is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ambiguous_worlds import HELD_OUT, WORLDS, World

from agentic_rag_backend import open_embedded
from agentic_rag_backend.library import Embedded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Embedded]:
    async with open_embedded(tmp_path_factory.mktemp("worlds")) as rag:
        yield rag


@pytest.mark.parametrize(
    "world",
    [*WORLDS, *HELD_OUT],
    ids=lambda world: world.name,
)
async def test_the_values_of_all_documents_are_quoted(embedded: Embedded, world: World) -> None:
    for number, source in enumerate(world.documents):
        metadata = {"world": world.name, **({"date": source.date} if source.date else {})}
        await embedded.ingest(text=source.text, title=source.title, key=f"{world.name} {number}", metadata=metadata)
    wrong = {}
    for asked in world.questions:
        answer = await embedded.ask(asked.question, filters={"world": world.name})
        absent = [text for text in asked.shows if text not in answer.text]
        if absent or answer.grounded == asked.refused:
            wrong[asked.question] = (absent, answer.text)
    assert not wrong
