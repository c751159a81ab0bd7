"""Archives over HTTP have the same limits as requests, and the job reports a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from hostile_archives import Members, changed, members_of, packed
from tests.e2e.api.conftest import World

from agentic_rag_backend.stores.catalogue.tables import document_versions, documents
from agentic_rag_backend.transfer.archive import record_name

pytestmark = pytest.mark.asyncio(loop_scope="module")

GZIP = {"Content-Type": "application/gzip"}
CASES: Sequence[tuple[tuple[str, int, tuple[str | int, ...]], Any, str]] = (
    ((record_name(1), 0, ("metadata",)), {"a": "x" * 2_000_000}, "the limit is 8192"),
    ((record_name(1), 0, ("media_type",)), "text/plain\r\nX-Evil: 1", "supported are text/plain"),
    ((record_name(1), 0, ("title",)), "x" * 600, "the limit is 512"),
    ((record_name(1), 1, ("vector",)), "AAAA", "dimensions take"),
    (("communities.jsonl", 0, ("level",)), 7_000, "must be at most 20; it is 7000"),
)


async def _exported(world: World) -> Members:
    response = await world.operator.post(f"/tenants/{world.alpha.caller.tenant_id}/export")
    return members_of(response.content)


async def _ended(world: World, tenant_id: str, job_id: str) -> dict[str, Any]:
    """Wait until the job has ended and return it. Until then, the tenant's own keys are not accepted."""
    async with asyncio.timeout(120):
        while True:
            job: dict[str, Any] = await world.operator.data("GET", f"/jobs/{job_id}", headers={"X-Tenant-Id": tenant_id})
            if job["state"] in {"succeeded", "failed"}:
                return job
            await asyncio.sleep(0.05)


async def test_what_a_request_may_not_bring_an_archive_may_not_either(world: World) -> None:
    members = await _exported(world)
    for number, (place, value, told) in enumerate(CASES):
        empty = await world.tenant(f"hostile-{number}")
        archive = packed(changed(members, *place, value))
        accepted = await world.operator.data(
            "POST", "/tenants/import", status=202, params={"tenant": empty.caller.tenant_id}, headers=GZIP, content=archive
        )
        job = await _ended(world, empty.caller.tenant_id, accepted["job_id"])

        assert (job["state"], job["error"]["code"]) == ("failed", "invalid_request"), job
        assert told in job["error"]["message"], job
        assert (await empty.data("GET", "/status"))["counts"]["documents"] == 0
    assert (await world.beta.data("GET", "/status"))["counts"]["documents"] == 3


@pytest.mark.parametrize("recorded", ["text/plain\r\nX-Evil: 1", "text/html; charset=utf-8", "é", ""])
async def test_content_is_one_response_whatever_type_is_on_record(world: World, recorded: str) -> None:
    document = world.documents["alpha"]["tide"]
    engine = world.container.catalogue.sync_engine  # type: ignore[attr-defined]

    def record(media_type: str) -> None:
        with engine.begin() as connection:
            for table, id in ((documents, documents.c.id), (document_versions, document_versions.c.document_id)):
                connection.execute(sa.update(table).where(id == document["id"]).values(media_type=media_type))

    record(recorded)
    try:
        response = await world.alpha.get(f"/documents/{document['id']}/content")
    finally:
        record(document["media_type"])

    assert (response.status_code, response.headers["content-type"]) == (200, "application/octet-stream")
    assert "x-evil" not in response.headers
