"""Questions about names that several bear, and about things on which documents disagree."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ambiguous_worlds import HELD_OUT, WORLDS, Asked, World

from agentic_rag_backend import open_embedded
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.library import Embedded

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Embedded]:
    async with open_embedded(tmp_path_factory.mktemp("worlds")) as rag:
        yield rag


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(world, marks=[pytest.mark.deep] if n % 2 else [], id=world.name)
        for n, world in enumerate([*WORLDS, *HELD_OUT])
    ],
)
async def test_an_answer_is_about_whom_the_question_means(embedded: Embedded, world: World) -> None:
    for number, source in enumerate(world.documents):
        metadata = {"world": world.name, **({"date": source.date} if source.date else {})}
        await embedded.ingest(text=source.text, title=source.title, key=f"{world.name} {number}", metadata=metadata)
    wrong = {}
    for asked in world.questions:
        answer = await embedded.ask(asked.question, filters={"world": world.name})
        if problems := _problems(asked, answer):
            wrong[asked.question] = (problems, answer.text)
    assert not wrong


def _problems(asked: Asked, answer: Answer) -> list[str]:
    found = [f"shows {text!r}" for text in asked.hides if text in answer.text]
    places = [answer.text.find(text) for text in asked.shows]
    if -1 in places or places != sorted(places):
        found.append(f"does not show {asked.shows} in this order")
    if answer.grounded == asked.refused:
        found.append("is answered" if asked.refused else "is refused")
    details = answer.retrieval.trace.details
    expected = {"conflict": asked.conflict, "namesakes": asked.namesakes}
    found += [f"{name} is {details.get(name)}" for name, wanted in expected.items() if wanted != bool(details.get(name))]
    if not answer.text.startswith(answer.introduction) or (asked.conflict and not answer.introduction):
        found.append(f"introduction {answer.introduction!r}")
    return found
