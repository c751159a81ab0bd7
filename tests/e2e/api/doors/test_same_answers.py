"""An answer through every door is the answer of the API: text, quotes and refusal, whole or streamed, for generated questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sampling import sampled
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.conftest import QUESTIONS
from tests.e2e.api.doors.test_mcp import connect
from tests.e2e.api.doors.test_openai_clients import ask_streamed
from watched_loops import take_long_turns

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = (
    *("the Harbour Authority", "Mara Venn", "the Amberquoll Society", "Jorin Sorrelwick", "the Fish Market", "the eel passage"),
    *("the tidal barrage", "the caisson", "Port Sarn", "the Brimwhistle Society", "Queen Victoria", "the moon"),
)
FORMS = (
    *("Who leads {}?", "What is {}?", "When was {} opened?", "Why was {} delayed?", "How many eels did {} count?"),
    *("What connects {} with {}?", "Did {} pay {}?", "Who objected to {} in June 2019?", "what about {}", "{} {}"),
)


@st.composite
def questions(draw: st.DrawFn) -> str:
    """Return a question about names of the documents, of others, and of nothing."""
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(QUESTIONS))
    form = draw(st.sampled_from(FORMS))
    question = form.format(*(draw(st.sampled_from(NAMES)) for _ in range(form.count("{}"))))
    return draw(st.sampled_from([question, question.upper(), f"  {question}", f"Please: {question}"]))


@pytest.fixture(autouse=True)
def _short_turns(_long_turns: None) -> Iterator[None]:
    """Leave long turns out: the clients import modules and build models in the server's event loop."""
    yield
    take_long_turns()


@sampled(gate=6, deep=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=questions())
async def test_every_door_gives_the_answer_of_the_api(world: World, client: openai.AsyncOpenAI, question: str) -> None:
    answer = await world.alpha_reader.data("POST", "/answers", json={"query": question, "strategy": "auto"})
    cited = [(item["title"], item["quote"], item["chunk_id"]) for item in answer["citations"]]
    reports: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append(message or "")

    async with connect(world, world.alpha_reader) as agent:
        whole: Any = (await agent.call_tool("ask", {"question": question})).structured_content
        streamed: Any = (await agent.call_tool("ask", {"question": question}, progress_callback=report)).structured_content
    for asked in (whole, streamed):
        assert (asked["answer"], asked["grounded"]) == (answer["answer"], answer["grounded"])
        assert [(item["title"], item["quote"], item["chunk_id"]) for item in asked["citations"]] == cited
    assert "".join("".join(reports[1:]).split()) == "".join(answer["answer"].split())

    text, annotations, _ = await ask_streamed(client, question)
    written, _, sources = text.partition("\n\n**")
    assert written == answer["answer"]
    links = [item["url_citation"] for item in annotations]
    assert [(link["title"], link["url"].partition("chunk=")[2]) for link in links] == [(title, id) for title, _, id in cited]
    assert all(f"[{item['marker']}]" in sources for item in answer["citations"])
    response: Any = await client.responses.create(model="auto", input=question)
    assert (response.output_text, response.model_extra["grounded"]) == (answer["answer"], answer["grounded"])
