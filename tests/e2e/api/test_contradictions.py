"""Time of facts and contradictions by HTTP, from the text of documents to the response."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLDER = "Petra Novak is the chief executive of Zillerdam Waterworks. The Zillerdam Weir was opened on 4 May 1998."
NEWER = "Hugo Brandt is the chief executive of Zillerdam Waterworks. The Zillerdam Weir was opened on 9 August 1999."


async def _offices(client: Client, **options: str) -> list[dict[str, Any]]:
    found = await client.data("GET", "/graph/entities", params={"name": "Zillerdam Waterworks"})
    entity = await client.data("GET", f"/graph/entities/{found[0]['id']}", params=options)
    return [each for each in entity["relationships"] if each["relation"] == "chief_executive_of"]


async def test_a_newer_document_retires_a_fact_and_contradicts_a_date(world: World) -> None:
    alpha, asked = world.alpha, {"entity": "Zillerdam Weir"}
    newer = await alpha.upload(NEWER, key="weir-2015", title="Notice 1", metadata={"date": "2015-03-01"})
    older = await alpha.upload(OLDER, key="weir-2009", title="Notice 2", metadata={"date": "2009-06-01"})
    (now,), (then,) = await _offices(alpha), await _offices(alpha, as_of="2012")
    assert (now["source"]["name"], then["source"]["name"]) == ("Hugo Brandt", "Petra Novak")
    assert (now["valid_at"][:10], now["expired_at"]) == ("2015-03-01", None)
    assert (then["invalid_at"][:10], then["expired_at"]) == ("2015-03-01", max(then["created_at"], now["created_at"]))

    (found,) = await alpha.data("GET", "/graph/contradictions", params=asked)
    sides = {side["document_id"]: side for side in (found["a"], found["b"])}
    assert (found["kind"], found["about"]["name"], set(sides)) == ("date", "Zillerdam Weir", {older["id"], newer["id"]})
    assert (sides[older["id"]]["value"], sides[older["id"]]["date"]) == ("4 May 1998", "2009-06-01")
    assert "9 August 1999" in sides[newer["id"]]["quote"]
    assert await alpha.data("GET", "/graph/contradictions", params={**asked, "kind": "number"}) == []
    assert (await world.beta.get("/graph/contradictions", params=asked)).status_code == 404
    assert await world.beta.data("GET", "/graph/contradictions") == []

    question = {"query": "When was the Zillerdam Weir opened?"}
    searched = await alpha.data("POST", "/search", json={**question, "options": {"contradictions": True}})
    assert [each["id"] for each in searched["contradictions"]] == [found["id"]]
    assert (await alpha.data("POST", "/search", json=question))["contradictions"] == []
    answered = await alpha.data("POST", "/answers", json=question)
    assert [each["id"] for each in answered["contradictions"]] == [found["id"]]
    earlier = await alpha.data("POST", "/answers", json={**question, "filters": {"date": "2009-06-01"}})
    assert earlier["contradictions"] == [], "the other side does not pass the filter"

    accepted = await alpha.data("DELETE", f"/documents/{newer['id']}", status=202)
    assert [each["source"]["name"] for each in await _offices(alpha)] == ["Petra Novak"]
    assert await alpha.data("GET", "/graph/contradictions", params=asked) == []
    await alpha.ended(accepted["job_id"])


async def test_the_ontology_says_what_is_exclusive(world: World) -> None:
    heads = {"name": "leads", "inverse_functional": True}
    body = {"entity_types": [{"name": "person"}], "relation_types": [heads]}
    held = await world.beta.data("PUT", "/ontology", json=body)
    assert held["relation_types"] == [
        {"name": "leads", "description": "", "sources": [], "targets": [], "functional": False, "inverse_functional": True,
         "permanent": False}
    ]  # fmt: skip
    assert (await world.beta.data("GET", "/ontology"))["relation_types"] == held["relation_types"]
    await world.beta.upload("Petra Novak led Zillerdam Waterworks.", key="led-2009", title="Notice 3", metadata={"date": "2009"})
    await world.beta.upload(
        "Hugo Brandt leads Zillerdam Waterworks.", key="led-2015", title="Notice 4", metadata={"date": "2015"}
    )
    found = await world.beta.data("GET", "/graph/entities", params={"name": "Zillerdam Waterworks"})
    entity = await world.beta.data("GET", f"/graph/entities/{found[0]['id']}")
    assert [each["source"]["name"] for each in entity["relationships"] if each["relation"] == "leads"] == ["Hugo Brandt"]
    refused = await world.beta.request("PUT", "/ontology", json={**body, "relation_types": [{"name": "x", "permanent": True}]})
    assert refused.status_code == 422
    assert "permanent" in refused.json()["detail"]
