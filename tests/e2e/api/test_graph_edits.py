"""Edits of the graph by HTTP: entities are merged, split, renamed and deleted, also in later documents, until it is undone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def entities(client: Client) -> dict[str, Any]:
    """Return the entities by name."""
    return {each["name"]: each for each in await client.data("GET", "/graph/entities", params={"limit": 100})}


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _undone(world: World) -> AsyncIterator[None]:
    """Undo edits that a failed test left."""
    yield
    for each in await world.alpha.data("GET", "/graph/edits", params={"limit": 100}):
        if each["undone_at"] is None:
            await undo(world.alpha, each)


async def edit(client: Client, id: str, kind: str, **body: Any) -> Mapping[str, Any]:
    made: Mapping[str, Any] = await client.data("POST", f"/graph/entities/{id}/{kind}", status=202, json=body)
    assert made["applied"], "a small edit is applied when the response comes"
    return made


async def undo(client: Client, made: Mapping[str, Any]) -> None:
    undone = await client.data("DELETE", f"/graph/edits/{made['number']}", status=202)
    assert undone["undone_at"] is not None
    assert undone["applied"]


async def test_merged_entities_are_one_until_it_is_undone(world: World) -> None:
    alpha, before = world.alpha, await entities(world.alpha)
    venn, society = before["Mara Venn"], before["Amberquoll Society"]
    made = await edit(alpha, venn["id"], "merge", entity_ids=[society["id"]], reason="a test")
    after = await entities(alpha)
    assert before.keys() - after.keys() == {"Amberquoll Society"}
    assert after["Mara Venn"]["mention_count"] >= max(venn["mention_count"], society["mention_count"])
    assert (await alpha.request("GET", f"/graph/entities/{society['id']}")).status_code == 404
    merged = await alpha.data("GET", f"/graph/entities/{venn['id']}")
    assert {"Mara Venn", "Amberquoll Society"} <= set(merged["names"])

    late = await alpha.upload("The Amberquoll Society was praised by Mara Venn.", key="late")
    assert "Amberquoll Society" not in await entities(alpha)
    split = await edit(alpha, venn["id"], "split", entity_ids=[society["id"]])
    assert "Amberquoll Society" in await entities(alpha)
    for each in (split, made):
        await undo(alpha, each)
    await alpha.ended((await alpha.data("DELETE", f"/documents/{late['id']}", status=202))["job_id"])
    assert await entities(alpha) == before


async def test_a_renamed_entity_keeps_its_other_names(world: World) -> None:
    alpha, before = world.alpha, await entities(world.alpha)
    id = before["Mara Venn"]["id"]
    made = await edit(alpha, id, "rename", name="Mara  Venn-Aster", type="Officer")
    shown = await alpha.data("GET", f"/graph/entities/{id}")
    assert (shown["name"], shown["type"], shown["names"]) == ("Mara Venn-Aster", "officer", ["Mara Venn-Aster", "Mara Venn"])
    assert "Mara Venn-Aster" in (await alpha.request("GET", "/graph/export")).text
    await undo(alpha, made)
    assert await entities(alpha) == before


async def test_a_deleted_entity_is_nowhere(world: World) -> None:
    alpha, before = world.alpha, await entities(world.alpha)
    id = before["Harbour Authority"]["id"]
    made = await alpha.data("DELETE", f"/graph/entities/{id}", status=202, params={"reason": "noise"})
    assert (made["kind"], made["reason"], made["applied"]) == ("delete", "noise", True)
    assert "Harbour Authority" not in await entities(alpha)
    for path in (f"/graph/entities/{id}", f"/graph/entities/{id}/neighbourhood"):
        assert (await alpha.request("GET", path)).status_code == 404
    assert id not in (await alpha.request("GET", "/graph/export", params={"format": "json"})).text
    found = await alpha.data("POST", "/search", json={"query": "Who leads the Harbour Authority?", "strategy": "graph"})
    assert found["results"]
    assert id not in str(found)
    await undo(alpha, made)
    assert await entities(alpha) == before


async def test_documents_are_taken_out_of_an_entity(world: World) -> None:
    alpha, before = world.alpha, await entities(world.alpha)
    venn = await alpha.data("GET", f"/graph/entities/{before['Mara Venn']['id']}")
    (document, *_) = (each["id"] for each in venn["documents"])
    made = await edit(alpha, venn["id"], "split", document_ids=[document], name="Mara Venn of the market")
    own = await alpha.data("GET", f"/graph/entities/{made['new_entity_id']}")
    assert (own["name"], [each["id"] for each in own["documents"]]) == ("Mara Venn of the market", [document])
    rest = await alpha.data("GET", f"/graph/entities/{venn['id']}")
    assert document not in {each["id"] for each in rest["documents"]}
    assert own["names"] == ["Mara Venn of the market", "Mara Venn"]
    listed = await alpha.data("GET", "/graph/edits", params={"limit": 1})
    assert [each["number"] for each in listed] == [made["number"]]
    await undo(alpha, made)
    assert await entities(alpha) == before


async def test_an_edit_that_cannot_be_made_changes_nothing(world: World) -> None:
    body: Any
    for kind, body, status, named in [
        ("merge", {"entity_ids": []}, 422, "at least 1"),
        ("merge", {"entity_ids": ["x"] * 101}, 422, "at most 100"),
        ("merge", {"entity_ids": ["{own}"]}, 422, "must not name the entity"),
        ("merge", {"entity_ids": ["nobody"]}, 404, "there is no entity 'nobody'"),
        ("split", {}, 422, "exactly one of document_ids, names and entity_ids"),
        ("split", {"names": ["Mara Venn"], "document_ids": ["d"]}, 422, "exactly one"),
        ("split", {"names": ["Nobody"]}, 422, "the entity has no name 'Nobody'"),
        ("split", {"names": ["Mara Venn"]}, 422, "at least one name"),
        ("split", {"document_ids": ["none"]}, 422, "no name in document 'none'"),
        ("split", {"entity_ids": ["other"]}, 422, "no entity 'other' was merged"),
        ("split", {"names": ["Mara Venn"], "type": "person"}, 422, "label the new entity"),
        ("rename", {}, 422, "give a name, a type, or both"),
        ("rename", {"name": "…"}, 422, "a letter or a digit"),
        ("rename", {"name": "x" * 257}, 422, "at most 256"),
        ("rename", {"name": "a\u0000b"}, 422, "NUL"),
        ("rename", {"type": "date"}, 422, "only for names that mean the same"),
        ("rename", {"name": "A", "reason": "x" * 501}, 422, "at most 500"),
        ("rename", {"name": "A", "other": 1}, 422, "other"),
    ]:
        before, edits = await entities(world.alpha), await world.alpha.data("GET", "/graph/edits")
        own = before["Mara Venn"]["id"]
        if body.get("entity_ids") == ["{own}"]:
            body = {"entity_ids": [own]}
        refused = await world.alpha.request("POST", f"/graph/entities/{own}/{kind}", json=body)
        assert (refused.status_code, named in refused.text) == (status, True), refused.text
        assert await entities(world.alpha) == before
        assert await world.alpha.data("GET", "/graph/edits") == edits


async def test_edits_of_another_tenant_are_not_there(world: World) -> None:
    id = (await entities(world.alpha))["Mara Venn"]["id"]
    made = await edit(world.alpha, id, "rename", name="Mara V.")
    assert "Mara V." not in await entities(world.beta)
    assert await world.beta.data("GET", "/graph/edits") == []
    for method in ("GET", "DELETE"):
        assert (await world.beta.request(method, f"/graph/edits/{made['number']}")).status_code == 404
    await undo(world.alpha, made)
