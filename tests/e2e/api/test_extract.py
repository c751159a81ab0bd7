"""Extraction of stored documents and chunks through HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "# The lock of Sarn\n\nDr Ines Harrow joined Corvane Ltd (CL) in 2019. CL was acquired by Belmont Group."
ONTOLOGY: dict[str, Any] = {
    "entity_types": [{"name": "person"}, {"name": "concept"}],
    "entity_fields": [{"name": "author", "type": "person"}, {"name": "label", "type": "concept"}],
}


async def test_a_chunk_is_extracted_with_and_without_writing(world: World) -> None:
    client = world.alpha
    before = await client.data("GET", "/ontology")
    document = await client.upload(TEXT, key="sarn", metadata={"author": "Mara Quill", "label": ["locks", 7]})
    (chunk,) = await client.data("GET", f"/documents/{document['id']}/chunks")
    path = f"/chunks/{chunk['id']}/extract"
    assert await client.data("PUT", "/ontology", json=ONTOLOGY) == {
        "entity_types": [{"name": "person", "description": ""}, {"name": "concept", "description": ""}],
        "relation_types": [],
        "entity_fields": ONTOLOGY["entity_fields"],
        "source": "tenant",
    }

    found = await client.data("POST", path, json={"dry_run": True})
    assert (found["chunk_id"], found["document_id"], found["extraction"]) == (chunk["id"], document["id"], "rules")
    entities = {each["name"]: each for each in found["entities"]}
    assert {"Ines Harrow", "Corvane Ltd", "Belmont Group", "Mara Quill", "locks"} <= entities.keys()
    assert entities["Mara Quill"] == {"name": "Mara Quill", "type": "person", "aliases": [], "count": 0, "about": True}
    assert entities["Corvane Ltd"]["aliases"] == ["CL"]
    assert any(each["source"] == "Ines Harrow" and each["target"] == "Corvane Ltd" for each in found["relationships"])
    assert all(each["fact"] in chunk["content"] for each in found["relationships"])
    assert (found["rejected"], found["failure"]) == (0, None)
    assert (await client.data("GET", f"/documents/{document['id']}"))["version"] == 1, "nothing is written"
    assert not await client.data("GET", "/graph/entities", params={"name": "Mara Quill"})

    for version, route in ((2, path), (3, f"/documents/{document['id']}/extract")):
        queued = await client.data("POST", route, status=202, json={"extraction": "rules"})
        assert queued["document_id"] == document["id"]
        job = await client.ended(queued["job_id"])
        assert (job["state"], job["result"]["version"], job["result"]["reused"]) == ("succeeded", version, 1)
        (listed,) = await client.data("GET", "/graph/entities", params={"name": "Mara Quill"})
        assert listed["type"] == "person"

    for body, says in (({"extraction": "magic"}, "rules"), ({"extraction": "llm"}, "language model"), ({"speed": 1}, "speed")):
        for route in (path, f"/documents/{document['id']}/extract"):
            refused = await client.post(route, body)
            assert (refused.status_code, says in refused.text) == (422, True), refused.text
    assert (await client.post(path, {"dry_run": "yes"})).status_code == 422
    assert (await world.alpha_reader.post(path, {"dry_run": True})).status_code == 403
    assert (await client.post("/chunks/unknown/extract", {"dry_run": True})).status_code == 404
    del before["source"]
    assert (await client.data("PUT", "/ontology", json=before))["source"] == "deployment"
    await client.ended((await client.data("DELETE", f"/documents/{document['id']}", status=202))["job_id"])
