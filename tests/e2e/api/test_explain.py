"""Explanations of why a search returns a document or not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How many eels were counted at the eel passage?"


async def explained(client: Client, document_id: str, **body: Any) -> dict[str, Any]:
    asked = {"query": QUESTION, "document_id": document_id, "strategy": "hybrid", **body}
    data: dict[str, Any] = await client.data("POST", "/search/explain", json=asked)
    return data


async def test_a_document_that_is_found_has_its_ranks(world: World) -> None:
    eels, tide = (world.documents["alpha"][key]["id"] for key in ("eels", "tide"))
    data = await explained(world.alpha_reader, eels)
    assert (data["document_id"], data["state"], data["returned"], data["rank"]) == (eels, "ready", True, 1)
    assert data["dropped_by"] == []
    assert [leg["leg"] for leg in data["legs"]] == ["dense", "sparse"]
    assert all(leg["rank"] == 1 for leg in data["legs"])
    assert data["best"]["document_id"] == eels
    searched = await world.alpha.data("POST", "/search", json={"query": QUESTION, "strategy": "hybrid"})
    assert searched["results"][0] == data["best"]
    for leg in ("dense", "sparse"):
        found = await world.alpha.data("POST", "/search", json={"query": QUESTION, "strategy": leg, "limit": 100})
        place = next((n for n, each in enumerate(found["results"], 1) if each["document_id"] == tide), None)
        told = next(each for each in (await explained(world.alpha, tide))["legs"] if each["leg"] == leg)
        assert told["rank"] == place
    themes = await explained(world.alpha, eels, strategy="community")
    assert themes["themes"]
    assert (themes["returned"], themes["rank"]) == (False, None)


async def test_what_dropped_a_document_is_named(world: World) -> None:
    eels = world.documents["alpha"]["eels"]["id"]
    market = world.documents["alpha"]["market"]["id"]

    async def dropped(document_id: str, **body: Any) -> list[tuple[str, str]]:
        data = await explained(world.alpha, document_id, **body)
        assert data["returned"] is False
        return [(reason["by"], reason["detail"]) for reason in data["dropped_by"]]

    filters = {"category": "report", "rank": {"gte": 2}, "not": {"key": "eels"}}
    assert await dropped(eels, filters=filters) == [
        ("filters", '{"rank": {"gte": 2}} does not hold: the document has {"rank": 1}'),
        ("filters", '{"not": {"key": {"eq": "eels"}}} does not hold: the document has {"key": "eels"}'),
    ]
    ((by, detail),) = await dropped(market, limit=1)
    assert by == "limit"
    assert detail.endswith("the limit is 1")
    old = await world.alpha.upload("The eel passage of 1950 had eels.", key="old eels", metadata={"valid_to": "1960"})
    ((by, detail),) = await dropped(old["id"])
    assert by == "as_of"
    assert detail.endswith('the document has {"valid_to": "1960"}')
    assert (await explained(world.alpha, old["id"], as_of="1955"))["returned"] is True
    deleted = await world.alpha.data("DELETE", f"/documents/{old['id']}", status=202)
    await world.alpha.ended(deleted["job_id"] if "job_id" in deleted else deleted["id"])


async def test_another_tenants_document_does_not_exist(world: World) -> None:
    foreign = world.documents["beta"]["eels"]["id"]
    for id in (foreign, "00000000-0000-0000-0000-000000000000"):
        response = await world.alpha.post("/search/explain", {"query": QUESTION, "document_id": id})
        assert (response.status_code, response.json()["code"]) == (404, "not_found")
    refused = await world.alpha.post("/search/explain", {"query": QUESTION, "document_id": foreign, "depth": 3})
    assert refused.status_code == 422
