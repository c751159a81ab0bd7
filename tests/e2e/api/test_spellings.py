"""Types of relationships and entities in any case and in either English spelling."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _relationship(client: Client) -> dict[str, Any]:
    """Return a relationship of Mara Venn with her as one end."""
    listed = await client.data("GET", "/graph/entities", params={"name": "Mara Venn"})
    detail = await client.data("GET", f"/graph/entities/{listed[0]['id']}")
    return {**detail["relationships"][0], "entity": detail["id"]}


async def test_types_of_relationships_match_in_any_case(world: World) -> None:
    known = await _relationship(world.alpha)
    stored = known["relation"]
    for written in (stored.upper(), stored.title(), stored.replace("_", " ").upper()):
        params = {"relation_types": written}
        detail = await world.alpha.data("GET", f"/graph/entities/{known['entity']}", params=params)
        assert {each["relation"] for each in detail["relationships"]} == {stored}, written
        near = await world.alpha.data("GET", f"/graph/entities/{known['entity']}/neighbourhood", params=params)
        assert {edge["relation"] for edge in near["edges"]} == {stored}, written
        ends = {"source": known["entity"], "target": known["other"]["id"]}
        paths = await world.alpha.data("POST", "/graph/paths", json={**ends, "relation_types": [written]})
        assert paths["paths"], written
        body = {"query": "What does Mara Venn do?", "strategy": "paths", "options": {"relation_types": [written]}}
        found = await world.alpha.data("POST", "/search", json=body)
        assert any(step["relation"] == stored for result in found["results"] for step in result["graph_path"]), written


async def test_types_of_entities_match_in_either_spelling(world: World) -> None:
    listed = await world.alpha.data("GET", "/graph/entities", params={"type": "organisation"})
    assert listed
    for written in ("organization", "Organization", "ORGANISATION", " organization "):
        assert await world.alpha.data("GET", "/graph/entities", params={"type": written}) == listed, written
        body = {"query": "barrage", "filters": {"entity_type": written}}
        found = (await world.alpha.post("/search", body)).json()
        assert found["data"]["results"], written
        assert not [text for text in found["meta"]["warnings"] if "entity_type" in text]
    assert await world.alpha.data("GET", "/graph/entities", params={"type": "organism"}) == []
