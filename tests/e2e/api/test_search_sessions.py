"""Search sessions over HTTP, without a model: what a later request takes over, and who never sees it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.stores.catalogue.tables import search_sessions

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Who leads the Harbour Authority?"


async def ask(client: Client, session: str | None, query: str = QUESTION, **body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the response, and the session in its trace."""
    options = {**body.pop("options", {}), **({} if session is None else {"session_id": session})}
    found = (await client.post("/search", {"query": query, "strategy": "agentic", "options": options, **body})).json()
    held: dict[str, Any] = found["data"]["trace"]["details"]["agentic"].get("session")
    return found, held


async def test_facts_and_constraints_are_taken_over(world: World) -> None:
    _, first = await ask(world.alpha, "talk-1", options={"negative_constraints": ["fish market"]})
    assert (first["continued"], first["facts"]) == (False, [])
    assert first["kept"]["facts"] > 0
    found, second = await ask(world.alpha, "talk-1", "When did the barrage begin?")
    assert second["continued"]
    assert 0 < len(second["facts"]) <= first["kept"]["facts"]
    for fact in second["facts"]:
        chunk = await world.alpha.data("GET", f"/chunks/{fact['chunk_id']}")
        assert fact["fact"] in " ".join(chunk["content"].split())
    assert [each["value"] for each in second["negative_constraints"]] == ["fish market"]
    assert not [each for each in found["data"]["results"] if "fish market" in each["content"].casefold()]
    # A question about what was avoided is not refused its passages.
    found, third = await ask(world.alpha, "talk-1", "When did the Fish Market open?")
    assert (third["negative_constraints"], third["constraints_left_out"]) == ([], 1)
    assert "Fish Market" in found["data"]["results"][0]["content"]
    assert (await ask(world.alpha, None))[1] is None
    # An answer takes part in the session.
    asked = {"query": QUESTION, "strategy": "agentic", "options": {"session_id": "talk-1"}}
    answer = await world.alpha.data("POST", "/answers", json={**asked, "stream": False})
    assert answer["trace"]["details"]["agentic"]["session"]["continued"]


async def test_an_explanation_uses_a_session_and_leaves_it_as_it_is(world: World) -> None:
    eels = world.documents["alpha"]["eels"]["id"]

    async def explained(query: str, **options: Any) -> dict[str, Any]:
        body = {"query": query, "strategy": "agentic", "document_id": eels, "options": {"session_id": "explained", **options}}
        found = await world.alpha.data("POST", "/search/explain", json=body)
        session: dict[str, Any] = found["trace"]["details"]["agentic"]["session"]
        return session

    # It begins no session.
    first = await explained(QUESTION, negative_constraints=["caisson"])
    assert (first["continued"], first["kept"]) == (False, {"facts": 0, "negative_constraints": 0})
    _, begun = await ask(world.alpha, "explained")
    assert not begun["continued"]
    again = await explained(QUESTION, negative_constraints=["caisson"])
    assert again["continued"]
    assert again["facts"]
    _, after = await ask(world.alpha, "explained", "When did the barrage begin?")
    assert after["negative_constraints"] == []


async def test_no_other_key_and_no_other_tenant_has_the_session(world: World) -> None:
    await ask(world.alpha, "shared", "Who chairs the Amberquoll Society?", options={"negative_constraints": ["caisson"]})
    assert (await ask(world.alpha, "shared"))[1]["facts"]
    operator = {"Authorization": f"Bearer {world.operator.caller.key}", "X-Tenant-Id": world.alpha.caller.tenant_id}
    for client, headers in ((world.alpha_reader, {}), (world.alpha_writer, {}), (world.beta, {}), (world.alpha, operator)):
        body = {"query": QUESTION, "strategy": "agentic", "options": {"session_id": "shared"}}
        found = (await client.post("/search", body, headers=headers)).json()
        session = found["data"]["trace"]["details"]["agentic"]["session"]
        assert (session["continued"], session["facts"], session["negative_constraints"]) == (False, [], [])


async def test_a_filter_holds_for_the_facts_of_a_session(world: World) -> None:
    await ask(world.alpha, "filtered")
    eels = world.documents["alpha"]["eels"]["id"]
    _, session = await ask(world.alpha, "filtered", filters={"document_id": eels})
    assert {(await world.alpha.data("GET", f"/chunks/{each['chunk_id']}"))["document_id"] for each in session["facts"]} <= {eels}
    assert session["facts_left_out"] > 0


async def test_a_deleted_document_leaves_nothing_in_a_session(world: World) -> None:
    client = await world.tenant("forgetful")
    text = "# Ferry\n\nIsolde Quenby leads the Marrowgate Ferry. The Marrowgate Ferry belongs to Isolde Quenby.\n"
    document = await client.upload(text, key="ferry")
    await client.upload("# Ferries\n\nThe Harbour Authority began the tidal barrage in May 2019.\n", key="other")
    _, first = await ask(client, "s", "Who leads the Marrowgate Ferry?")
    assert first["kept"]["facts"] > 0
    _, second = await ask(client, "s", "Who leads the Marrowgate Ferry?")
    assert second["facts"]
    stored = select(search_sessions).where(search_sessions.c.tenant_id == client.caller.tenant_id)
    rows = await world.container.catalogue.documents._database.read(  # type: ignore[attr-defined]
        lambda connection: [dict(row) for row in connection.execute(stored).mappings()]
    )
    assert len(rows) == 1
    assert "quenby" not in str(rows).casefold()
    await client.ended((await client.data("DELETE", f"/documents/{document['id']}", status=202))["job_id"])
    found, third = await ask(client, "s", "Who leads the Harbour Authority?")
    assert (third["continued"], third["facts"]) == (True, [])
    assert third["facts_left_out"] >= len(second["facts"])
    assert "quenby" not in str(found).casefold()


def alike(value: Any) -> Any:
    """Return a response without the values of one request: its id and its answer's, and times."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name not in {"requestId", "timestamp"} and "_ms" not in name}
        return {name: alike(item) for name, item in kept.items() if not (name == "id" and str(item).startswith("a_"))}
    return [alike(item) for item in value] if isinstance(value, list) else value


async def test_sessions_of_others_and_invented_ones_are_alike(world: World) -> None:
    """Responses to the same request differ in the session id alone, and say nothing about it."""
    for _ in range(2):
        await ask(world.alpha, "of-alpha-1", options={"negative_constraints": ["fish market"]})
    answers = []
    for session in ("of-alpha-1", "invented-1"):
        # Also when the caller has begun its own session of that name, in an explanation, and in an answer.
        body = {"query": QUESTION, "strategy": "agentic", "options": {"session_id": session}}
        explained = {**body, "document_id": world.documents["beta"]["eels"]["id"]}
        responses = [
            await world.beta.post("/search/explain", explained),
            await world.beta.post("/search", body),
            await world.beta.post("/search", body),
            await world.beta.post("/answers", {**body, "stream": False}),
        ]
        answers.append([(response.status_code, sorted(response.headers), alike(response.json())) for response in responses])
    assert [status for status, *_ in answers[0]] == [200] * 4
    for of_other, invented in zip(*answers, strict=True):
        assert of_other == invented
