"""Documents, chunks and jobs from the view of a new user."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.ingestion.service import IngestionService
from agentic_rag_backend.stores.catalogue.base import Submitted

pytestmark = pytest.mark.asyncio(loop_scope="module")

Events = Callable[[httpx.Response], list[tuple[str, str, dict[str, Any]]]]


async def _removed(client: Client, document_id: str) -> dict[str, Any]:
    """Delete a document and return the ended job."""
    accepted = await client.data("DELETE", f"/documents/{document_id}", status=202)
    return await client.ended(accepted["job_id"])


async def test_a_document_as_json_becomes_ready_and_readable(world: World) -> None:
    text = "# Locks\n\nThe lock of Sarn was rebuilt in 1932 by Ilse Harrow.\n"
    document = await world.alpha.upload(text, title="The locks", key="locks/1", metadata={"tags": ["water", "stone"]})

    assert (document["state"], document["version"], document["key"]) == ("ready", 1, "locks/1")
    assert (document["title"], document["metadata"], document["failures"]) == ("The locks", {"tags": ["water", "stone"]}, [])
    assert document["size_bytes"] == len(text.encode())
    chunks = await world.alpha.data("GET", f"/documents/{document['id']}/chunks")
    assert len(chunks) == document["chunk_count"] == 1
    location = chunks[0]["location"]
    assert text[location["start_char"] : location["end_char"]] == chunks[0]["content"]
    alone = await world.alpha.data("GET", f"/chunks/{chunks[0]['id']}")
    assert {name: alone[name] for name in chunks[0]} == chunks[0]
    assert [alone[name] for name in ("previous_id", "next_id", "parent")] == [None] * 3
    await _removed(world.alpha, document["id"])


async def test_chunks_of_source_code_name_all_their_functions(world: World) -> None:
    methods = "".join(f"    def {name}(self):\n        return 1\n\n" for name in ("lift", "lower"))
    code = f"class Crane:\n{methods}\ndef haul():\n    return 3\n"
    files = [("file", ("crane.py", code.encode(), "text/x-python"))]
    sent = await world.alpha.data("POST", "/documents", status=202, files=files, data={"chunking": '{"strategy": "ast"}'})
    (document,) = sent["documents"]
    await world.alpha.ended(document["job_id"])

    (chunk,) = await world.alpha.data("GET", f"/documents/{document['document_id']}/chunks")
    assert chunk["location"]["functions"] == ["Crane", "Crane.lift", "Crane.lower", "haul"]
    assert chunk["location"]["function"] == "Crane"
    assert (await world.alpha.data("GET", f"/chunks/{chunk['id']}"))["location"] == chunk["location"]
    await _removed(world.alpha, document["document_id"])


async def test_a_title_that_nobody_gave_is_no_entity(world: World) -> None:
    document = await world.alpha.upload("Tove Harnik founded Greenholm Kelp in 2011.")

    assert document["title"] == "Tove Harnik founded Greenholm Kelp in 2011…"
    (entity,) = await world.alpha.data("GET", "/graph/entities", params={"name": "Tove Harnik"})
    found = await world.alpha.data("GET", f"/graph/entities/{entity['id']}")
    assert ("founded", "Greenholm Kelp") in {(each["relation"], each["other"]["name"]) for each in found["relationships"]}
    await _removed(world.alpha, document["id"])


async def test_chunks_page_in_reading_order_at_exact_offsets(world: World) -> None:
    text = "\n\n".join(f"Paragraph {number} tells of the keeper of lamp {number} at the pier." for number in range(40))
    document = await world.alpha.upload(text, chunking={"chunk_size": 40, "overlap": 0})

    chunks = await world.alpha.pages(f"/documents/{document['id']}/chunks", limit=3)
    assert len(chunks) == document["chunk_count"] > 6
    assert [chunk["ordinal"] for chunk in chunks] == list(range(len(chunks)))
    assert all(text[c["location"]["start_char"] : c["location"]["end_char"]] == c["content"] for c in chunks)
    assert " ".join(chunk["content"] for chunk in chunks).split() == text.split()
    await _removed(world.alpha, document["id"])


async def test_the_same_key_again(world: World) -> None:
    body = {"text": "The ferry Halcyon sails at noon.", "key": "ferry"}
    document = await world.alpha.upload(**body)

    again = await world.alpha.data("POST", "/documents", json=body)
    assert again == {
        "document_id": document["id"],
        "job_id": None,
        "state": "unchanged",
        "unchanged": True,
        "warnings": [],
        "file": None,
        "error": None,
    }
    labelled = await world.alpha.post("/documents", {**body, "metadata": {"line": 4}})
    assert labelled.json()["data"]["job_id"] is None
    assert (await world.alpha.data("GET", f"/documents/{document['id']}"))["metadata"] == {"line": 4}

    newer = await world.alpha.upload("The ferry Halcyon sails at dusk.", key="ferry")
    assert (newer["id"], newer["version"]) == (document["id"], 2)
    chunks = await world.alpha.data("GET", f"/documents/{document['id']}/chunks")
    assert [chunk["content"] for chunk in chunks] == ["The ferry Halcyon sails at dusk."]
    found = await world.alpha.data("POST", "/search", json={"query": "ferry Halcyon at noon", "strategy": "sparse"})
    assert not any("noon" in result["content"] for result in found["results"])
    await _removed(world.alpha, document["id"])


async def test_files_each_have_a_document_and_a_job_or_a_reason(world: World) -> None:
    files = [
        ("file", ("one.md", b"# One\n\nThe first file speaks of the quarry.", "text/markdown")),
        ("file", ("two.txt", b"The second file speaks of the mill.", "text/plain")),
        ("file", ("three.txt", b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10 binary", "text/plain")),
        ("file", ("four.pdf", b"GIF89a", "application/pdf")),
    ]
    form = {"metadata": json.dumps({"batch": 7}), "chunking": json.dumps({"unit": "characters"}), "extraction": "rules"}
    data = await world.alpha.data("POST", "/documents", status=202, files=files, data=form)

    one, two, three, four = data["documents"]
    assert [item["file"] for item in data["documents"]] == ["one.md", "two.txt", "three.txt", "four.pdf"]
    assert (three["state"], three["error"]["code"], three["document_id"]) == ("refused", "unreadable_document", None)
    assert (four["state"], four["error"]["code"]) == ("refused", "unsupported_media_type")
    for item, title in ((one, "One"), (two, "two")):
        assert (await world.alpha.ended(item["job_id"]))["state"] == "succeeded"
        document = await world.alpha.data("GET", f"/documents/{item['document_id']}")
        assert (document["title"], document["metadata"]) == (title, {"batch": 7})
    again = await world.alpha.request("POST", "/documents", files=files[:2], data=form)
    assert again.status_code == 200
    assert [item["state"] for item in again.json()["data"]["documents"]] == ["unchanged", "unchanged"]
    for item in (one, two):
        await _removed(world.alpha, item["document_id"])


async def test_an_unexpected_error_of_one_file_leaves_the_results_of_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = IngestionService.submit

    async def crashing(self: IngestionService, tenant: TenantId, upload: Upload) -> Submitted:
        if upload.file_name == "two.txt":
            raise KeyError("of the tenant")
        return await submit(self, tenant, upload)

    monkeypatch.setattr(IngestionService, "submit", crashing)
    files = [("file", (f"{name}.txt", f"File {name} speaks of the weir.".encode())) for name in ("one", "two", "three")]
    response = await world.alpha.post("/documents", files=files)
    assert response.status_code == 202
    one, two, three = response.json()["data"]["documents"]
    assert one["error"] is three["error"] is None
    assert (two["state"], two["error"]["code"], two["job_id"]) == ("refused", "internal_error", None)
    assert "of the tenant" not in response.text
    for item in (one, three):
        assert (await world.alpha.ended(item["job_id"]))["state"] == "succeeded"
        await _removed(world.alpha, item["document_id"])


async def test_text_in_another_encoding_is_read_as_declared_or_detected_and_reported(world: World) -> None:
    text = "Die Fähre nach Hürdal fährt täglich um neun; die Überfahrt kostet fünf Münzen."
    detected = [("file", ("fähre.txt", text.encode("cp1252"), "text/plain"))]
    (view,) = (await world.alpha.data("POST", "/documents", status=202, files=detected))["documents"]
    assert view["warnings"] == ["the text is read as windows-1252, which was detected"]
    await world.alpha.ended(view["job_id"])
    document = await world.alpha.data("GET", f"/documents/{view['document_id']}")
    assert document["metadata"] == {"language": "de", "encoding": "windows-1252", "warnings": view["warnings"]}
    (chunk,) = await world.alpha.data("GET", f"/documents/{view['document_id']}/chunks")
    assert chunk["content"] == text

    declared = [("file", ("fähre.txt", text.encode("utf-16-be"), "text/plain; charset=utf-16be"))]
    (again,) = (await world.alpha.data("POST", "/documents", status=202, files=declared))["documents"]
    assert (again["document_id"], again["warnings"]) == (view["document_id"], [])
    await world.alpha.ended(again["job_id"])
    # Rechunking parses the original again, by the charset that the upload declared.
    cut = await world.alpha.data(
        "POST", f"/documents/{view['document_id']}/chunks", status=202, json={"chunk_size": 20, "overlap": 0}
    )
    await world.alpha.ended(cut["job_id"])
    chunks = await world.alpha.data("GET", f"/documents/{view['document_id']}/chunks")
    assert " ".join(chunk["content"] for chunk in chunks) == text
    assert (await world.alpha.data("GET", f"/documents/{view['document_id']}"))["metadata"] == {
        "language": "de",
        "encoding": "utf-16be",
    }
    await _removed(world.alpha, view["document_id"])


async def test_documents_are_listed_filtered_and_paged(world: World) -> None:
    async def keys(**params: Any) -> list[str]:
        return [item["key"] for item in await world.alpha.data("GET", "/documents", params=params)]

    assert sorted(await keys()) == ["eels", "market", "tide"]
    assert await keys(key="eels") == ["eels"]
    assert await keys(key="brimless") == []
    assert sorted(await keys(state="ready")) == ["eels", "market", "tide"]
    assert await keys(state="failed") == []
    assert sorted(await keys(**{"metadata.category": "report"})) == ["eels", "market"]
    assert await keys(**{"metadata.category": "report", "metadata.rank": 1}) == ["eels"]
    assert await keys(**{"metadata.absent": "x"}) == []

    seen = [item["key"] for item in await world.alpha.pages("/documents", limit=1)]
    assert len(seen) == 3
    assert seen == await keys()


async def test_deleting_leaves_a_receipt_and_nothing_else(world: World) -> None:
    before = (await world.alpha.data("GET", "/status"))["counts"]
    document = await world.alpha.upload("Wenna Pascoe keeps the signal tower of Gull Rock.", key="tower")
    chunk_id = (await world.alpha.data("GET", f"/documents/{document['id']}/chunks"))[0]["id"]

    accepted = await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)
    gone = await world.alpha.get(f"/documents/{document['id']}/chunks")
    assert gone.status_code == 404, "the document is hidden at once"
    job = await world.alpha.ended(accepted["job_id"])

    assert job["state"] == "succeeded"
    receipt = job["result"]
    assert receipt["document_id"] == document["id"]
    assert receipt["removed"]["vectors"] >= 1
    assert receipt["removed"]["originals"] == 1
    assert receipt["leftovers"] == dict.fromkeys(receipt["leftovers"], 0)
    assert (await world.alpha.get(f"/documents/{document['id']}")).status_code == 404
    assert (await world.alpha.get(f"/chunks/{chunk_id}")).status_code == 404
    assert (await world.alpha.delete(f"/documents/{document['id']}")).status_code == 404
    assert (await world.alpha.data("GET", "/status"))["counts"] == before
    found = await world.alpha.data("POST", "/search", json={"query": "Wenna Pascoe signal tower", "limit": 100})
    assert "Pascoe" not in json.dumps(found["results"] + found["facts"])


async def test_jobs_are_listed_and_filtered(world: World) -> None:
    tide = world.documents["alpha"]["tide"]
    mine = await world.alpha.data("GET", "/jobs", params={"document_id": tide["id"]})
    assert [(job["kind"], job["state"], job["document_id"]) for job in mine] == [("ingest", "succeeded", tide["id"])]
    assert mine[0]["done"] == mine[0]["total"] > 0
    rebuilds = await world.alpha.data("GET", "/jobs", params={"kind": "rebuild"})
    assert {job["kind"] for job in rebuilds} == {"rebuild"}
    assert await world.alpha.data("GET", "/jobs", params={"state": "queued"}) == []
    page = (await world.alpha.get("/jobs", params={"limit": 1})).json()
    following = (await world.alpha.get("/jobs", params={"limit": 1, "cursor": page["meta"]["nextCursor"]})).json()
    assert page["data"][0]["id"] != following["data"][0]["id"]


async def test_a_jobs_events_end_with_the_job(world: World, sse: Events) -> None:
    submitted = await world.alpha.data("POST", "/documents", status=202, json={"text": "The bell of Gull Rock.", "key": "bell"})
    response = await world.alpha.get(f"/jobs/{submitted['job_id']}/events")

    assert response.headers["content-type"].startswith("text/event-stream")
    events = sse(response)
    assert [number for number, _, _ in events] == [str(number + 1) for number in range(len(events))]
    assert {name for _, name, _ in events[:-1]} <= {"stage", "progress"}
    _, name, job = events[-1]
    assert (name, job["v"], job["id"], job["state"]) == ("done", 1, submitted["job_id"], "succeeded")
    assert {**job, "v": 1} == {**await world.alpha.data("GET", f"/jobs/{submitted['job_id']}"), "v": 1}
    await _removed(world.alpha, submitted["document_id"])


async def test_a_job_is_cancelled_and_tried_again(world: World) -> None:
    long = "\n\n".join(f"Entry {number}: the lamp keeper of pier {number} wrote that the sea was calm." for number in range(3000))
    submitted = await world.alpha.data("POST", "/documents", status=202, json={"text": long, "key": "log"})
    await world.alpha.data("POST", f"/jobs/{submitted['job_id']}/cancel", status=202)
    job = await world.alpha.ended(submitted["job_id"])
    assert (job["state"], job["cancel_requested"]) == ("cancelled", True)
    assert await world.alpha.data("GET", "/documents", params={"key": "log", "state": "ready"}) == []

    refused = await world.alpha.post(f"/jobs/{submitted['job_id']}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    retried = await world.alpha.data("POST", f"/jobs/{submitted['job_id']}/retry", status=202)
    assert retried["job_id"] == submitted["job_id"]
    await world.alpha.data("POST", f"/jobs/{submitted['job_id']}/cancel", status=202)
    assert (await world.alpha.ended(submitted["job_id"]))["attempt"] == job["attempt"] + 1
    done = await world.alpha.data("GET", "/jobs", params={"document_id": world.documents["alpha"]["tide"]["id"]})
    assert (await world.alpha.post(f"/jobs/{done[0]['id']}/retry")).status_code == 409
    await _removed(world.alpha, submitted["document_id"])


async def test_two_submissions_of_one_key_at_once_are_one_document(world: World) -> None:
    bodies = [{"text": f"Version {number} of the tide table.", "key": "table"} for number in range(4)]
    answers = await asyncio.gather(*(world.alpha.data("POST", "/documents", status=202, json=body) for body in bodies))
    assert len({answer["document_id"] for answer in answers}) == 1
    jobs = [await world.alpha.ended(answer["job_id"]) for answer in answers]
    document = await world.alpha.data("GET", f"/documents/{answers[0]['document_id']}")
    assert (document["state"], document["version"], document["latest_version"]) == ("ready", 4, 4), jobs
    await _removed(world.alpha, document["id"])
