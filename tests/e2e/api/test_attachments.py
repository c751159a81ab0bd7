"""Attachments over HTTP: facts with their own place, the relation to the message, deletion, export, and other tenants."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mail_messages import quarry_message
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def upload(client: Client, **form: str) -> dict[str, Any]:
    """Upload the message, wait for it and for its attachments, and return its document."""
    files = {"file": ("quarry.eml", quarry_message().as_bytes(), "application/octet-stream")}
    (submitted,) = (await client.data("POST", "/documents", status=202, files=files, data=form))["documents"]
    waiting = [submitted["job_id"]]
    while waiting:
        job = await client.ended(waiting.pop())
        assert job["state"] == "succeeded", job
        waiting += [each["job_id"] for each in job["result"].get("attachments", ())]
    document: dict[str, Any] = await client.data("GET", f"/documents/{submitted['document_id']}")
    return document


async def regions(client: Client, question: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the document and the regions of the first citation of an answer."""
    answer = await client.data("POST", "/answers", json={"query": question, "strategy": "hybrid"})
    assert answer["grounded"], answer
    citation = answer["citations"][0]
    return citation["document_id"], citation["regions"]


async def moved(world: World, source: Client, target: Client) -> None:
    """Import an archive of a tenant into an empty one."""
    archive = (await world.operator.post(f"/tenants/{source.caller.tenant_id}/export")).content
    options = {"params": {"tenant": target.caller.tenant_id}, "headers": {"Content-Type": "application/gzip"}}
    accepted = await world.operator.data("POST", "/tenants/import", status=202, content=archive, **options)
    asked = {"X-Tenant-Id": target.caller.tenant_id}
    async with asyncio.timeout(60):
        while (await world.operator.data("GET", f"/jobs/{accepted['job_id']}", headers=asked))["state"] != "succeeded":
            await asyncio.sleep(0.05)


async def others_see_nothing(world: World, message: dict[str, Any]) -> None:
    """Another tenant can neither read nor list the attachments."""
    assert (await world.beta.get(f"/documents/{message['attachments'][0]['id']}")).status_code == 404
    assert (await world.beta.get("/documents", params={"parent_id": message["id"]})).json()["data"] == []


async def bad_uploads_are_refused(client: Client) -> None:
    """The key of an attachment is not for another document, and the use of attachments is one of three."""
    taken = await client.post("/documents", {"text": "Mine.", "key": "quarry.eml#1/staff.xlsx"})
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    refused = await client.post("/documents", files={"file": ("a.md", b"A.")}, data={"attachments": "all"})
    assert (refused.status_code, "documents, sections, ignore; got 'all'" in refused.json()["detail"]) == (422, True)


async def test_attachments_from_upload_to_deletion(world: World) -> None:
    client = await world.tenant("mail")
    message = await upload(client, metadata='{"project": "quarry"}')
    assert (message["parent_id"], message["place"], message["title"]) == (None, None, "Plans for the quarry")
    assert message["metadata"]["warnings"] == ["attachment crane.png: not read: it is a picture"]
    held = {each["place"]: each["id"] for each in message["attachments"]}
    assert held.keys() == {"1/staff.xlsx", "1/plan.pdf", "1/Older letter.eml"}
    (shown, *_) = await client.pages(f"/documents/{message['id']}/chunks", limit=10)
    assert "Attachment staff.xlsx: a document of its own" in shown["content"]
    listed = await client.pages("/documents", limit=2, parent_id=message["id"])
    assert {each["id"] for each in listed} == set(held.values())
    assert {each["metadata"]["project"] for each in listed} == {"quarry"}

    document, (row, *_) = await regions(client, "What is the phone of Ilse Harrow?")
    assert (document, row["sheet"], row["cells"]) == (held["1/staff.xlsx"], "Staff", "A2:B2")
    document, lines = await regions(client, "How much does its crane lift?")
    assert (document, lines[-1]["page"]) == (held["1/plan.pdf"], 2)
    document, _ = await regions(client, "What is the landing fee of Port Sarn?")
    fees = await client.data("GET", f"/documents/{document}")
    assert (fees["parent_id"], fees["place"]) == (held["1/Older letter.eml"], "1/fees.txt")
    original = await client.get(f"/documents/{held['1/staff.xlsx']}/content")
    assert 'filename="staff.xlsx"' in original.headers["content-disposition"]

    await others_see_nothing(world, message)
    await bad_uploads_are_refused(client)
    empty = await world.tenant("moved mail")
    await moved(world, client, empty)
    copies = await empty.pages("/documents", limit=100)
    places = {each["place"]: each for each in copies}
    assert places.keys() == {None, *held, "1/fees.txt"}
    assert not {each["id"] for each in copies} & {message["id"], fees["id"], *held.values()}
    assert places["1/fees.txt"]["parent_id"] == places["1/Older letter.eml"]["id"]
    assert places["1/plan.pdf"]["parent_id"] == places[None]["id"]

    deleted = await client.data("DELETE", f"/documents/{message['id']}", status=202)
    assert (await client.get("/documents")).json()["data"] == []
    receipt = (await client.ended(deleted["job_id"]))["result"]
    gone = {each["document_id"]: each["job_id"] for each in receipt["attachments"]}
    assert gone.keys() == {*held.values(), fees["id"]}
    for job_id in gone.values():
        assert (await client.ended(job_id))["result"]["leftovers"]["document_versions"] == 0


async def test_attachments_as_sections_or_not_at_all(world: World) -> None:
    client = await world.tenant("mail sections")
    for mode, found in (("sections", True), ("ignore", False)):
        message = await upload(client, attachments=mode, key=mode)
        assert message["attachments"] == []
        text = "".join(each["content"] for each in await client.pages(f"/documents/{message['id']}/chunks", limit=50))
        assert ("ninety tonnes" in text) is found
        assert "Attachment staff.xlsx" in text


async def test_a_message_with_long_headers_can_be_changed_and_moved(world: World) -> None:
    client = await world.tenant("long headers")
    people = ", ".join(f"person{number}@example.org" for number in range(300))
    name = "filename*=utf-8''a%00b.zip"
    content = (
        f"From: a@example.org\nTo: {people}\nCc: {people}\nSubject: =?utf-8?q?Fees=00of_Sarn?=\nMIME-Version: 1.0\n"
        "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nThe reeve of Sarn is tall.\n"
        f"--B\nContent-Type: application/zip\nContent-Disposition: attachment; {name}\n\nPK\n--B--\n"
    ).encode()
    for most, form in ((0, {}), (0, {"attachments": "sections"}), (7000, {"attachments": "sections"})):
        form["metadata"] = f'{{"note": "{"n" * most}"}}'
        answer = await client.post("/documents", files={"file": ("fees.eml", content)}, data=form)
        (submitted,) = answer.json()["data"]["documents"]
        if submitted["job_id"] is not None:
            assert (await client.ended(submitted["job_id"]))["state"] == "succeeded"
    path = f"/documents/{submitted['document_id']}"
    changed = await client.data("PATCH", path, json={"metadata": {"note": "short"}})
    assert changed["metadata"]["note"] == "short"
    empty = await world.tenant("moved headers")
    await moved(world, client, empty)
    (copy,) = await empty.pages("/documents", limit=10)
    assert copy["metadata"] == changed["metadata"]
    again = await client.post("/documents", files={"file": ("fees.eml", content)}, data={"attachments": "sections"})
    (submitted,) = again.json()["data"]["documents"]
    assert submitted["state"] != "refused"
    patched = await client.data("PATCH", path, json={"metadata": {"team": "harbour"}})
    assert patched["metadata"]["team"] == "harbour"
    assert patched["metadata"]["from"] == "a@example.org"
    assert patched["title"] == "Fees\ufffdof Sarn"
