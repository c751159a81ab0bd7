"""The ``verified`` generator on a scripted model: its steps, its calls, its failures and its searches."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

WINDOW = 2400
REPLY_TOKENS = 1024
QUESTION = "Why was the tidal barrage delayed?"
DRAFT = "The barrage was delayed by two years. [1]"
REVISION = "The delay was caused by a cracked caisson, which Jorin Sorrelwick had delivered. [1]"
QUESTIONS = ("Who leads the Harbour Authority?", "When did the Fish Market of Port Sarn open?")
PLAN = json.dumps({"questions": list(QUESTIONS)})
ANSWERS = {QUESTIONS[0]: "Mara Venn leads the Harbour Authority.", QUESTIONS[1]: "The Fish Market of Port Sarn opened in 1911."}
Reply = str | Callable[[str], str]


def is_plan(prompt: str) -> bool:
    return "<answer>" in prompt and "<passage" not in prompt


def is_revision(prompt: str) -> bool:
    return "<checks>" in prompt


def answered(prompt: str) -> str:
    """Return the answer to a verification question, or the first answer."""
    return next((f"{answer} [1]" for question, answer in ANSWERS.items() if f"<question>\n{question}" in prompt), DRAFT)


@pytest.fixture
def script(server: ModelServer) -> Iterator[Callable[..., None]]:
    """Return a function that sets the replies of each step."""

    def set_replies(*, plan: Reply = PLAN, revision: Reply = REVISION, answer: Reply = answered) -> None:
        server.matchers[:] = [(is_plan, plan), (is_revision, revision), (lambda _: True, answer)]
        server.reset()

    yield set_replies
    server.matchers.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[Client]:
    """A tenant whose model `script` scripts."""
    async with open_world(
        folder, **model_at(server.base_url, "writer", verification_max_questions=2, llm_context_tokens=WINDOW)
    ) as (_, http):
        yield template.client(http)


async def verified(client: Client, **more: Any) -> dict[str, Any]:
    body = {"query": QUESTION, "generator": "verified", **more}
    answer: dict[str, Any] = await client.data("POST", "/answers", json=body)
    return answer


async def test_the_steps_are_in_the_answer_and_their_calls_in_its_usage(
    client: Client, server: ModelServer, script: Callable[..., None]
) -> None:
    script()
    answer = await verified(client)
    assert answer["answer"] == REVISION
    assert (answer["generator"], answer["grounded"], answer["trace"]["fallback_used"]) == ("verified", True, False)
    checks = answer["verification"]
    assert checks["initial_answer"] == DRAFT
    assert [(each["question"], each["answer"], each["grounded"]) for each in checks["verification_qa"]] == [
        (question, f"{ANSWERS[question]} [1]", True) for question in QUESTIONS
    ]
    assert [each["citations"][0]["quote"] for each in checks["verification_qa"]] == list(ANSWERS.values())
    total = server.stats().total
    assert total.calls == 1 + 1 + len(QUESTIONS) + 1
    assert (answer["usage"]["calls"], answer["usage"]["prompt_tokens"]) == (total.calls, total.prompt_tokens)


async def test_questions_are_answered_from_their_own_passages_without_the_first_answer(
    client: Client, script: Callable[..., None]
) -> None:
    prompts: list[str] = []

    def recorded(prompt: str) -> str:
        prompts.append(prompt)
        return answered(prompt)

    script(answer=recorded)
    await verified(client, limit=1)
    own = {question: prompt for prompt in prompts for question in QUESTIONS if f"<question>\n{question}" in prompt}
    assert "1911" in own[QUESTIONS[1]]
    assert not any("delayed by two years. [1]" in prompt or "<answer>" in prompt for prompt in own.values())


async def test_questions_are_searched_with_the_filters_of_the_request(client: Client, script: Callable[..., None]) -> None:
    script()
    answer = await verified(client, filters={"title": "Tidal barrage"})
    market = answer["verification"]["verification_qa"][1]
    assert (market["grounded"], market["citations"]) == (False, [])


async def test_a_stream_has_the_sentences_of_the_revision(
    client: Client, script: Callable[..., None], sse: Callable[[httpx.Response], Any]
) -> None:
    script()
    events = sse(await client.post("/answers", {"query": QUESTION, "generator": "verified", "stream": True}))
    assert [name for _, name, _ in events] == ["retrieval", "citation", "token", "usage", "done"]
    assert events[2][2]["text"] == events[-1][2]["answer"] == REVISION


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ({"plan": "no JSON"}, "the model did not ask verification questions: model_reply_invalid"),
        ({"plan": '{"questions": []}'}, "the model did not ask verification questions: none in its reply"),
        ({"revision": ""}, "no sentence of the revised answer was supported"),
        ({"revision": "Zebulon Quark built it. [1]"}, "no sentence of the revised answer was supported"),
    ],
)
async def test_the_first_answer_is_the_answer_if_a_step_fails(
    client: Client, script: Callable[..., None], sse: Callable[[httpx.Response], Any], replies: dict[str, str], reason: str
) -> None:
    script(**replies)
    answer = await verified(client)
    assert (answer["answer"], answer["generator"], answer["grounded"]) == (DRAFT, "attributed", True)
    assert answer["verification"] is None
    assert answer["trace"]["fallback_used"] is True
    assert f"{reason}; the attributed generator answered" in answer["trace"]["fallback_reason"]
    events = sse(await client.post("/answers", {"query": QUESTION, "generator": "verified", "stream": True}))
    assert "".join(data["text"] for _, name, data in events if name == "token") == DRAFT


SLOW: dict[str, tuple[str, Callable[[str], str]]] = {
    "draft": ("answer", lambda prompt: DRAFT),
    "questions": ("plan", lambda prompt: PLAN),
    "answers": ("answer", answered),
    "revision": ("revision", lambda prompt: REVISION),
}


@pytest.mark.parametrize("step", SLOW)
async def test_a_simpler_generator_answers_in_time_if_a_step_is_too_slow(
    client: Client, script: Callable[..., None], sse: Callable[[httpx.Response], Any], step: str
) -> None:
    name, reply = SLOW[step]
    for stream in (False, True):
        released = threading.Event()

        def slow(prompt: str, released: threading.Event = released) -> str:
            if step != "answers" or f"<question>\n{QUESTIONS[0]}" in prompt:
                released.wait(60)
            return reply(prompt)

        script(**{name: slow})
        try:
            response = await client.post(
                "/answers", {"query": QUESTION, "generator": "verified", "timeout_ms": 6000, "stream": stream}
            )
        finally:
            released.set()
        assert response.status_code == 200
        answer = sse(response)[-1][2] if stream else response.json()["data"]
        assert (answer["generator"], answer["grounded"], answer["verification"]) == ("attributed", True, None)
        assert answer["trace"]["fallback_used"] is True
        assert "the attributed generator answered" in answer["trace"]["fallback_reason"]
        assert answer["model"] == ("extractive" if step == "draft" else "writer")
        assert step == "draft" or answer["answer"] == DRAFT


async def test_a_revision_that_refuses_is_a_refusal(client: Client, script: Callable[..., None]) -> None:
    script(revision="The documents do not answer this question.")
    answer = await verified(client)
    assert (answer["grounded"], answer["citations"], answer["generator"]) == (False, [], "verified")


async def test_a_false_revision_is_marked_or_left_out(client: Client, script: Callable[..., None]) -> None:
    false = "The delay was caused by a cracked caisson, which Mara Venn had delivered. [1]"
    script(revision=f"{REVISION} {false}")
    assert (await verified(client, citation_policy="strict"))["answer"] == REVISION
    marked = await verified(client)
    assert marked["answer"] == f"{REVISION} {false} [unverified]"
    assert [(claim["supported"], claim["reason"]) for claim in marked["claims"]] == [(True, None), (False, "name")]


async def test_the_passages_of_a_revision_fit_the_window_of_the_model(client: Client, script: Callable[..., None]) -> None:
    prompts: list[str] = []

    def revised(prompt: str) -> str:
        prompts.append(prompt)
        return REVISION

    script(revision=revised)
    for number in range(3):
        visits = " ".join(f"The tidal barrage was visited by group {number}{each}." for each in range(80))
        await client.upload(f"# Notes {number}\n\n{visits}")
    answer = await verified(client, limit=20)
    assert answer["answer"] == REVISION
    assert prompts[0].count("<passage") > 1
    assert estimate_tokens(prompts[0]) + REPLY_TOKENS <= WINDOW
