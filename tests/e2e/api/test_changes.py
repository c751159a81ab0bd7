"""Changes of documents: metadata, chunks, concurrent writers, originals, bulk deletion."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import Matching

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRONT = "---\nauthor: Ilse Harrow\nyear: 1932\n---\n# Locks\n\nThe lock of Sarn was rebuilt in 1932 by Ilse Harrow.\n"
LONG = "\n\n".join(f"Paragraph {number} tells of the keeper of lamp {number} at the pier of Sarn." for number in range(30))


async def _removed(client: Client, document_id: str) -> None:
    accepted = await client.data("DELETE", f"/documents/{document_id}", status=202)
    assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"


async def _version(client: Client) -> int:
    version: int = (await client.data("GET", "/status"))["state_version"]
    return version


async def test_metadata_is_merged_and_found_by_filters_at_once(world: World) -> None:
    document = await world.alpha.upload(FRONT, key="locks", metadata={"shelf": 3})
    before = await _version(world.alpha)
    change = {"title": "The locks", "metadata": {"author": None, "shelf": 4, "tags": ["water"]}}
    changed = await world.alpha.data("PATCH", f"/documents/{document['id']}", json=change)

    assert (changed["title"], changed["metadata"]) == ("The locks", {"year": 1932, "shelf": 4, "tags": ["water"]})
    assert (changed["version"], changed["latest_version"], changed["job_id"]) == (1, 1, document["job_id"])
    assert await world.alpha.data("GET", f"/documents/{document['id']}") == {**changed, "attachments": []}
    assert await _version(world.alpha) > before
    for filters, found in (
        ({"shelf": 4}, True),
        ({"shelf": 3}, False),
        ({"author": "Ilse Harrow"}, False),
        ({"tags": "water"}, True),
    ):
        for strategy in ("dense", "sparse"):
            body = {"query": "Who rebuilt the lock of Sarn?", "strategy": strategy, "filters": filters}
            results = (await world.alpha.data("POST", "/search", json=body))["results"]
            assert ([item["title"] for item in results] == ["The locks"]) == found
    before = await _version(world.alpha)
    assert await world.alpha.data("PATCH", f"/documents/{document['id']}", json=change) == changed
    answered = await world.alpha.patch(f"/documents/{document['id']}", change)
    assert answered.json()["meta"]["search"] == "current"
    assert await _version(world.alpha) == before, "nothing has changed"
    await world.alpha.data("PATCH", f"/documents/{document['id']}", json={"metadata": {}})

    cut = await world.alpha.data("POST", f"/documents/{document['id']}/chunks", status=202, json={"chunk_size": 60, "overlap": 0})
    assert (await world.alpha.ended(cut["job_id"]))["state"] == "succeeded"
    again = await world.alpha.data("GET", f"/documents/{document['id']}")
    assert (again["title"], again["metadata"]) == (changed["title"], changed["metadata"]), "the file's own author stays away"
    await _removed(world.alpha, document["id"])


async def test_a_change_while_a_version_is_on_its_way_comes_after_it(world: World) -> None:
    submitted = await world.alpha.data("POST", "/documents", status=202, json={"text": LONG, "key": "piers"})
    response = await world.alpha.patch(f"/documents/{submitted['document_id']}", {"metadata": {"shelf": 5}})
    assert response.status_code in (200, 202)
    document = response.json()["data"]
    assert document["metadata"] == {"shelf": 5}
    assert (await world.alpha.ended(document["job_id"]))["state"] == "succeeded"
    after = await world.alpha.data("GET", f"/documents/{document['id']}")
    assert (after["state"], after["metadata"], after["version"]) == ("ready", {"shelf": 5}, after["latest_version"])
    await _removed(world.alpha, document["id"])


async def test_metadata_has_the_same_limits_after_merging(world: World) -> None:
    document = await world.alpha.upload("Sixty fields.", metadata={f"f{number}": number for number in range(60)})
    path = f"/documents/{document['id']}"
    bad: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({}, ("title", "metadata")),
        ({"metadata": {f"g{number}": number for number in range(5)}}, ("65", "64")),
        ({"metadata": {"big": "x" * 9000}}, ("8192",)),
        ({"metadata": {"inner": {"a": 1}}}, ("inner", "dict")),
        ({"metadata": {"key": "x"}}, ("key",)),
        ({"metadata": [1]}, ("metadata",)),
        ({"title": ""}, ("title", "1")),
        ({"title": " \n"}, ("title", "blank")),
        ({"title": "x" * 600}, ("title", "512", "600")),
        ({"title": "x", "text": "y"}, ("text",)),
    ]
    for body, says in bad:
        response = await world.alpha.patch(path, body)
        assert response.status_code == 422, body
        assert all(word in response.text for word in says), response.text
    assert await world.alpha.data("GET", path) == document
    for body in ({"chunk_size": 5}, {"overlap": 300}, {"strategy": "sawing"}, {"size": 100}, {"unit": "words"}):
        assert (await world.alpha.post(f"{path}/chunks", body)).status_code == 422, body
    assert (await world.alpha_reader.patch(path, {"title": "x"})).status_code == 403
    assert (await world.alpha_reader.post(f"{path}/chunks", {"chunk_size": 60, "overlap": 0})).status_code == 403
    assert (await world.alpha_reader.delete("/documents", params={"key": "x"})).status_code == 403
    assert await world.alpha.data("GET", path) == document
    await _removed(world.alpha, document["id"])


async def test_cutting_again_swaps_the_chunks(world: World) -> None:
    document = await world.alpha.upload(LONG, key="piers", title="Piers", metadata={"shelf": 3})
    path = f"/documents/{document['id']}/chunks"
    same = await world.alpha.data("POST", path, json={"chunk_size": 220, "overlap": 32})
    assert (same["state"], same["job_id"], same["unchanged"]) == ("unchanged", None, True)

    counts: set[int] = set()
    accepted = await world.alpha_writer.data("POST", path, status=202, json={"chunk_size": 40, "overlap": 0})
    assert accepted["document_id"] == document["id"]
    while (await world.alpha.data("GET", f"/jobs/{accepted['job_id']}"))["state"] in {"queued", "running"}:
        counts.add(len(await world.alpha.pages(path, limit=100)))
    job = await world.alpha.ended(accepted["job_id"])
    after = await world.alpha.data("GET", f"/documents/{document['id']}")
    chunks = await world.alpha.pages(path, limit=100)

    assert job["state"] == "succeeded"
    assert job["done"] == job["total"] == after["chunk_count"] == len(chunks) > document["chunk_count"]
    assert counts <= {document["chunk_count"], after["chunk_count"]}, "the old chunks or the new ones, never a mixture"
    assert (after["version"], after["title"], after["metadata"]) == (2, "Piers", {"shelf": 3})
    assert all(LONG[c["location"]["start_char"] : c["location"]["end_char"]] == c["content"] for c in chunks)
    assert " ".join(chunk["content"] for chunk in chunks).split() == LONG.split()
    found = await world.alpha.data("POST", "/search", json={"query": "keeper of lamp 7", "strategy": "sparse", "limit": 100})
    assert {item["id"] for item in found["results"] if item["document_id"] == document["id"]} <= {chunk["id"] for chunk in chunks}
    assert (await world.alpha.get(f"/documents/{document['id']}/content")).text == LONG
    await _removed(world.alpha, document["id"])


async def test_what_cannot_be_read_cannot_be_cut(world: World) -> None:
    text = b"The beginning is text.\n" * 60_000 + b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\xff" * 4_000
    form = [("file", ("large.txt", text, "text/plain"))]
    submitted = (await world.alpha.data("POST", "/documents", status=202, files=form))["documents"][0]
    assert (await world.alpha.ended(submitted["job_id"]))["state"] == "failed"
    path = f"/documents/{submitted['document_id']}"
    assert (await world.alpha.data("GET", path))["state"] == "unreadable"
    refused = await world.alpha.post(f"{path}/chunks", {"chunk_size": 60, "overlap": 0})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    await _removed(world.alpha, submitted["document_id"])
    assert (await world.alpha.post(f"{path}/chunks", {"chunk_size": 60, "overlap": 0})).status_code == 404
    assert (await world.alpha.patch(path, {"title": "x"})).status_code == 404
    assert (await world.alpha.get(f"{path}/content")).status_code == 404


async def test_of_two_writers_one_wins(world: World) -> None:
    document = await world.alpha.upload("The ferry sails at noon.", key="ferry")
    path = f"/documents/{document['id']}"
    response = await world.alpha.get(path)
    tag = response.headers["etag"]
    assert tag == (await world.alpha.get(path)).headers["etag"] == (await world.alpha.get(f"{path}/content")).headers["etag"]

    seen = {"headers": {"If-Match": tag}}
    answers = await asyncio.gather(
        *(world.alpha.patch(path, {"metadata": {f"by{number}": number}}, **seen) for number in range(12)),
        world.alpha.post("/documents", {"text": "The ferry sails at dawn.", "key": "ferry"}, **seen),
        world.alpha.post(f"{path}/chunks", {"chunk_size": 60, "overlap": 0}, **seen),
    )
    lost = [answer for answer in answers if answer.status_code == 412]
    (won,) = (answer for answer in answers if answer.status_code in (200, 202))
    assert len(lost) == len(answers) - 1
    assert {answer.json()["code"] for answer in lost} == {"precondition_failed"}
    after = await world.alpha.get(path)
    assert after.headers["etag"] == won.headers["etag"] != tag
    assert len(after.json()["data"]["metadata"]) <= 1
    assert after.json()["data"]["latest_version"] == (1 if after.json()["data"]["metadata"] else 2)
    if won.status_code == 202:
        await world.alpha.ended(won.json()["data"]["job_id"])

    assert (await world.alpha.delete(path, **seen)).status_code == 412
    stale = await world.alpha.post("/documents", {"text": "The ferry sails at dusk.", "key": "ferry"}, **seen)
    assert stale.status_code == 412
    new = await world.alpha.post("/documents", {"text": "A canoe.", "key": "canoe"}, headers={"If-Match": "*"})
    assert new.status_code == 412, "there is nothing to match"
    assert await world.alpha.data("GET", "/documents", params={"key": "canoe"}) == []
    assert (await world.alpha.patch(path, {"title": "x"}, headers={"If-Match": "etag"})).status_code == 422
    assert (await world.alpha.patch(path, {"title": "x"}, headers={"If-Match": f"W/{tag}"})).status_code == 412
    two = [("file", (f"{name}.txt", b"Text.", "text/plain")) for name in ("one", "two")]
    assert (await world.alpha.request("POST", "/documents", files=two, **seen)).status_code == 422

    current = (await world.alpha.get(path)).headers["etag"]
    newer = await world.alpha.post(
        "/documents", {"text": "The ferry sails at dusk.", "key": "ferry"}, headers={"If-Match": f'"x", {current}'}
    )
    assert newer.status_code == 202
    await world.alpha.ended(newer.json()["data"]["job_id"])
    current = (await world.alpha.get(path)).headers["etag"]
    deleted = await world.alpha.delete(path, headers={"If-Match": current})
    assert deleted.status_code == 202
    await world.alpha.ended(deleted.json()["data"]["job_id"])


async def test_processing_alone_changes_no_tag(world: World) -> None:
    body = {"text": "The canoe is red.", "key": "canoe", "title": "Canoe", "metadata": {"shelf": 3}}
    for text in ("The canoe is red.", "The canoe is blue."):
        response = await world.alpha.post("/documents", {**body, "text": text})
        submitted = response.json()["data"]
        assert (await world.alpha.ended(submitted["job_id"]))["state"] == "succeeded"
        document = await world.alpha.get(f"/documents/{submitted['document_id']}")
        assert document.headers["etag"] == response.headers["etag"]
    await _removed(world.alpha, submitted["document_id"])


async def test_the_vectors_have_what_the_catalogue_has_after_many_changes(world: World) -> None:
    document = await world.alpha.upload("The beacon of Gull Rock is lit by Wenna Pascoe.", key="beacon")
    path = f"/documents/{document['id']}"
    await asyncio.gather(*(world.alpha.patch(path, {"metadata": {"turn": number}}) for number in range(10)))
    turn = (await world.alpha.data("GET", path))["metadata"]["turn"]
    for number in range(10):
        body = {"query": "beacon of Gull Rock", "strategy": "dense", "filters": {"turn": number}}
        assert bool((await world.alpha.data("POST", "/search", json=body))["results"]) == (number == turn)
    await _removed(world.alpha, document["id"])


async def test_the_original_comes_back_as_a_file(world: World) -> None:
    content = "﻿# Dépôt\r\n\r\nThe dépôt of Sarn opened in 1911.\r\n".encode("utf-16")
    form = [("file", ("dépôt/Überblick.md", content, "text/markdown"))]
    submitted = (await world.alpha.data("POST", "/documents", status=202, files=form))["documents"][0]
    await world.alpha.ended(submitted["job_id"])
    path = f"/documents/{submitted['document_id']}/content"

    response = await world.alpha_reader.get(path)
    assert response.status_code == 200
    assert response.content == content
    assert response.headers["content-type"] == "text/markdown", "no charset is claimed: this one is UTF-16"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-disposition"].startswith("attachment; filename=\"Uberblick.md\"; filename*=UTF-8''%C3%9C")
    assert (await world.nobody.get(path)).status_code == 401
    await _removed(world.alpha, submitted["document_id"])
    assert (await world.alpha.get(path)).status_code == 404

    titled = await world.alpha.upload("<script>alert(1)</script> is text.", title='../x"\r\ny', media_type="text/plain")
    response = await world.alpha.get(f"/documents/{titled['id']}/content")
    assert response.headers["content-disposition"] == 'attachment; filename="_x_ y.txt"'
    assert response.headers["content-type"] == "text/plain"
    await world.alpha.delete(f"/documents/{titled['id']}")
    assert (await world.alpha.get(f"/documents/{titled['id']}/content")).status_code == 404, "hidden at once"


async def test_many_are_deleted_by_what_they_have_in_common(world: World) -> None:
    before = (await world.alpha.data("GET", "/status"))["counts"]["documents"]
    bodies = [{"text": f"Buoy {n} of the fairway.", "key": f"buoy/{n}", "metadata": {"what": "buoy", "n": n}} for n in range(8)]
    await asyncio.gather(*(world.alpha.upload(**body) for body in bodies))

    async def deleted(**params: Any) -> list[str]:
        data = await world.alpha.data("DELETE", "/documents", status=202, params=params)
        jobs = [await world.alpha.ended(item["job_id"]) for item in data["documents"]]
        assert (data["count"], data["remaining"]) == (len(jobs), False)
        assert all(job["state"] == "succeeded" and not any(job["result"]["leftovers"].values()) for job in jobs)
        assert [job["document_id"] for job in jobs] == [item["document_id"] for item in data["documents"]]
        return [item["document_id"] for item in data["documents"]]

    listed = await world.alpha.data("GET", "/documents", params={"filter": json.dumps({"n": {"gte": 5}, "what": "buoy"})})
    assert sorted(item["key"] for item in listed) == ["buoy/5", "buoy/6", "buoy/7"]
    assert sorted(await deleted(filter=json.dumps({"n": {"gte": 5}, "what": "buoy"}))) == sorted(item["id"] for item in listed)
    assert len(await deleted(**{"metadata.what": "buoy", "metadata.n": "2"})) == 1
    assert len(await deleted(key="buoy/4", filter='{"n": 3}')) == 0
    assert len(await deleted(key="buoy/4", state="ready")) == 1
    assert len(await deleted(state="failed")) == 0
    assert len(await deleted(filter='{"what": "buoy"}')) == 3
    assert len(await deleted(filter='{"what": "buoy"}')) == 0
    assert (await world.alpha.data("GET", "/status"))["counts"]["documents"] == before


async def test_nothing_is_deleted_by_a_request_that_does_not_say_what(world: World) -> None:
    for params, says in [
        ({}, "filter"),
        ({"filter": "{}"}, "filter"),
        ({"filter": "[]"}, "object"),
        ({"filter": "null"}, "object"),
        ({"filter": "{"}, "JSON"),
        ({"filter": '{"n": {"near": 1}}'}, "near"),
        ({"filter": '{"tenant_id": "x"}'}, "tenant_id"),
        ({"filter": '{"a": 1, "a": 2}'}, "twice"),
        ({"filter": f'{{"a": "{"x" * 9000}"}}'}, "8192"),
        ({"state": "deleting"}, "deleting"),
        ({"state": "gone"}, "state"),
        ({"fitler": '{"n": 1}'}, "fitler"),
        ({"limit": "5"}, "limit"),
    ]:
        before = await world.alpha.pages("/documents", limit=100)
        response = await world.alpha.delete("/documents", params=params)
        assert response.status_code == 422
        assert says in response.json()["detail"]
        after = await world.alpha.pages("/documents", limit=100)
        assert [item["id"] for item in after] == [item["id"] for item in before]


async def test_more_than_one_request_deletes_says_that_some_remain(world: World) -> None:
    await asyncio.gather(*(world.alpha.upload(f"Mooring {n}.", metadata={"what": "mooring"}) for n in range(5)))
    moorings = Matching(filter=Comparison("what", "eq", "mooring"))
    tenant = TenantId(world.alpha.caller.tenant_id)
    counts = []
    for _ in range(3):
        deleting = await world.container.ingestion.delete_matching(tenant, moorings, limit=2)
        counts.append((len(deleting.jobs), deleting.remaining))
        for job in deleting.jobs:
            await world.alpha.ended(job.id)
    assert counts == [(2, True), (2, True), (1, False)]
