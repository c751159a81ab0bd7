"""Dify's protocol of an external knowledge base."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import Client, World, add_tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _retrieve(world: World, caller: Client, body: Any, **headers: str) -> httpx.Response:
    sent = {"Authorization": f"Bearer {caller.caller.key}", **headers}
    return await world.alpha.http.post("/retrieval", json=body, headers=sent)


async def _records(world: World, caller: Client, **body: Any) -> list[dict[str, Any]]:
    response = await _retrieve(world, caller, {"query": "harbour lamp", "knowledge_id": "auto", **body})
    assert response.status_code == 200, response.text
    records: list[dict[str, Any]] = response.json()["records"]
    return records


async def test_records_have_metadata_and_an_address(world: World) -> None:
    client, reader = await add_tenant(world.operator.http, "dify", "admin", "read")
    for year, author in ((2019, "Mara Venn"), (2021, "Jorin Teller"), (2023, None)):
        metadata = {"year": year, **({"author": author} if author else {})}
        await client.upload(f"The harbour lamp was repaired in {year}.", title=f"Report {year}", metadata=metadata)
    (first, second) = await _records(world, reader, retrieval_setting={"top_k": 2, "score_threshold": 0.0})
    assert first["score"] >= second["score"]
    assert first["content"].startswith("The harbour lamp")
    assert first["metadata"]["url"].startswith("http://test/console/#/d/")
    assert first["metadata"]["year"] in (2019, 2021, 2023)

    def condition(*conditions: dict[str, Any], how: str = "and") -> dict[str, Any]:
        return {"metadata_condition": {"logical_operator": how, "conditions": list(conditions)}}

    def compare(name: str, operator: str, value: Any = None) -> dict[str, Any]:
        return {"name": [name], "comparison_operator": operator, "value": value}

    for conditions, years in (
        (condition(compare("year", ">", "2020")), {2021, 2023}),
        (condition(compare("author", "is", "Mara Venn")), {2019}),
        (condition(compare("author", "empty")), {2023}),
        (condition(compare("author", "contains", "venn"), compare("year", "=", 2023), how="or"), {2019, 2023}),
        (condition(compare("author", "in", "Mara Venn, Jorin Teller")), {2019, 2021}),
        (condition(), {2019, 2021, 2023}),
    ):
        assert {record["metadata"]["year"] for record in await _records(world, reader, **conditions)} == years


async def test_errors_have_their_form(world: World) -> None:
    body = {"query": "eels", "knowledge_id": "auto"}
    refused = await _retrieve(world, world.alpha, body, Authorization="Bearer wrong")
    assert (refused.status_code, refused.json()["error_code"]) == (401, 1002)
    malformed = await _retrieve(world, world.alpha, body, Authorization="Basic x")
    assert (malformed.status_code, malformed.json()["error_code"]) == (401, 1001)
    unknown = await _retrieve(world, world.alpha, {**body, "knowledge_id": "x"})
    assert (unknown.status_code, unknown.json()["error_code"]) == (404, 2001)
    condition = {"metadata_condition": {"conditions": [{"name": ["a"], "comparison_operator": "like", "value": "x"}]}}
    invalid = await _retrieve(world, world.alpha, {**body, **condition})
    assert (invalid.status_code, "like" in invalid.json()["error_msg"]) == (422, True)


async def test_a_tenant_finds_only_its_own(world: World) -> None:
    body = {"query": "Brimwhistle Society", "knowledge_id": "local"}
    own = (await _retrieve(world, world.beta, body)).text
    foreign = (await _retrieve(world, world.alpha, body)).text
    assert "brimwhistle" in own.casefold()
    world.alpha.check(await _retrieve(world, world.alpha, body))
    assert "brimwhistle" not in foreign.casefold()
