"""A full disk: writes are refused with a clear error, reads work, and writes continue once there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.container import open_container
from agentic_rag_backend.domain.tenant import KeyRequest, Scope
from agentic_rag_backend.settings import Settings

MIB = 1024 * 1024
DISK_MIB = 400
OPERATOR_KEY = "the-operators-key-of-these-tests-0123456789"
OPERATOR = {"X-API-Key": OPERATOR_KEY}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a small separate disk."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or mount is None:
        pytest.skip("a small disk is a tmpfs, which only root may mount")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.decode()[-200:]}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, leaving_bytes: int) -> Path:
    """Fill the disk except ``leaving_bytes``. Return the file that fills it."""
    filler = disk / "filler"
    with filler.open("ab") as file, suppress(OSError):
        while (left := shutil.disk_usage(disk).free - leaving_bytes) > 0:
            file.write(b"\0" * min(left, MIB))
            file.flush()
    return filler


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    fast = {"community_auto_rebuild": False, "job_polling_interval_s": 0.05}
    settings = Settings(data_dir=folder, _env_file=None, operator_key=OPERATOR_KEY, **fast, **options)
    async with open_container(settings) as container:
        tenant = await container.catalogue.tenants.create("acme")
        key = (await container.tenants.issue_key(tenant.id, KeyRequest("full", [Scope.ADMIN]))).secret
        transport = httpx.ASGITransport(create_app(container))
        async with httpx.AsyncClient(transport=transport, base_url="http://test/api/v1", headers={"X-API-Key": key}) as http:
            yield http


async def until(ask: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(150):
        while not holds(found := await ask()):
            await asyncio.sleep(0.1)
    return found


async def submit(http: httpx.AsyncClient, number: int, size: int = 0) -> httpx.Response:
    text = f"# Report {number}\n\nMara Voss founded the Tidal Institute {number} in Greenholm. " + "The tide rose. " * (
        size // 15
    )
    return await http.post("/documents", json={"text": text, "key": f"report-{number}"})


async def found(http: httpx.AsyncClient, number: int) -> list[str]:
    response = await http.post("/search", json={"query": f"Who founded the Tidal Institute {number}?", "strategy": "dense"})
    assert response.status_code == 200, response.text
    return [hit["title"] for hit in response.json()["data"]["results"]]


@pytest.mark.slow
async def test_a_full_disk_is_reported_and_recovers(disk: Path) -> None:
    async with serving(disk / "data") as http:
        job = (await submit(http, 0)).json()["data"]["job_id"]
        await until(lambda: http.get(f"/jobs/{job}"), lambda answer: answer.json()["data"]["state"] == "succeeded")
        ready = f"{http.base_url.scheme}://test/health/ready"
        assert (await http.get(ready)).status_code == 200

        filler = fill(disk, 4 * MIB)
        states = (await http.get(ready)).json()["stores"]
        assert {states[name] for name in ("catalogue", "graph", "vectors", "blobs")} == {"storage_full"}
        refused = await submit(http, 2)
        assert (refused.status_code, refused.json()["code"]) == (507, "storage_full"), refused.text
        assert str(disk) not in refused.text

        # Above 16 MiB, but below the 64 MiB of the vectors, a document is accepted, and its job waits.
        filler.unlink()
        filler = fill(disk, 30 * MIB)
        waiting = (await submit(http, 1)).json()["data"]["job_id"]
        held = await until(lambda: http.get(f"/jobs/{waiting}"), lambda answer: "full" in str(answer.json()["data"]["message"]))
        assert held.json()["data"]["state"] in ("queued", "running")
        assert await found(http, 0) == ["Report 0"]

        fill(disk, 0)
        refused = await submit(http, 2, size=MIB)
        assert (refused.status_code, refused.json()["code"]) == (507, "storage_full"), refused.text
        assert await found(http, 0) == ["Report 0"]

        filler.unlink()
        await until(lambda: http.get(f"/jobs/{waiting}"), lambda answer: answer.json()["data"]["state"] == "succeeded")
        assert (await http.get(ready)).status_code == 200
        again = (await submit(http, 2)).json()["data"]["job_id"]
        await until(lambda: http.get(f"/jobs/{again}"), lambda answer: answer.json()["data"]["state"] == "succeeded")
        assert set(await found(http, 2)) == {"Report 0", "Report 1", "Report 2"}


@pytest.mark.slow
async def test_below_the_limit_nothing_is_accepted_by_any_route(disk: Path) -> None:
    async with serving(disk / "data") as http:
        first = (await submit(http, 0)).json()["data"]
        await until(lambda: http.get(f"/jobs/{first['job_id']}"), lambda answer: answer.json()["data"]["state"] == "succeeded")
        filler = fill(disk, 24 * MIB)
        archive = {**OPERATOR, "Content-Type": "application/gzip"}
        refused = await http.post("/tenants/import", content=b"x" * (12 * MIB), headers=archive)
        assert (refused.status_code, refused.json()["detail"].split(" (")[0]) == (
            507,
            "the disk of the folder of archives is full",
        )
        assert list((disk / "data" / "transfer").iterdir()) == []
        filler.unlink()
        fill(disk, 5 * MIB)
        before = shutil.disk_usage(disk).free
        uploads = await asyncio.gather(
            *(submit(http, number) for number in range(1, 74)),
            *(http.post("/documents", files={"file": (f"{number}.txt", b"Mara Voss.")}) for number in range(72)),
        )
        assert {(answer.status_code, answer.json()["code"]) for answer in uploads} == {(507, "storage_full")}
        assert len(uploads) == 145
        document, tenant = f"/documents/{first['document_id']}", (await http.get("/tenants/me")).json()["data"]["id"]
        creating = (
            await http.patch(document, json={"title": "Another"}),
            await http.post(f"{document}/chunks", json={"chunking": {"chunk_size": 64}}),
            await http.post("/tenants", json={"name": "more"}, headers=OPERATOR),
            await http.post(f"/tenants/{tenant}/keys", json={"name": "more"}, headers=OPERATOR),
            await http.post("/tenants/import", content=b"x" * 100, headers=archive),
            await http.post("/admin/communities/rebuild", json={}),
        )
        assert [answer.status_code for answer in creating] == [507] * len(creating), [answer.text for answer in creating]
        assert before - shutil.disk_usage(disk).free < MIB
        # What reads or frees space works.
        assert (await http.post("/answers", json={"query": "Who founded the Tidal Institute 0?", "stream": False})).is_success
        assert (await http.post(f"/jobs/{first['job_id']}/cancel")).status_code == 409
        assert (await http.delete(document)).status_code == 202


@pytest.mark.slow
async def test_uploads_at_once_leave_the_least_free_space(disk: Path) -> None:
    """Each of them would fit alone. Their originals are on a disk of their own."""
    folder = disk.parent / "data"
    blobs = disk / "originals"
    text = b"The tide rose. " * (3 * MIB // 15)
    async with serving(folder, blob_url=blobs.as_uri(), max_upload_mb=8) as http:
        fill(disk, 30 * MIB)
        files = [("file", (f"{number}.txt", text + str(number).encode())) for number in range(10)]
        answers = await asyncio.gather(*(http.post("/documents", files=[file]) for file in files))
        codes = sorted(answer.status_code for answer in answers)
        assert set(codes) == {202, 507}
        accepted = codes.count(202)
        assert 1 <= accepted <= 4
        stored = [path for path in blobs.rglob("*") if path.is_file() and path.stat().st_size >= 3 * MIB // 2]
        assert len(stored) == accepted
        assert shutil.disk_usage(disk).free >= 16 * MIB
        refused = next(answer for answer in answers if answer.status_code == 507)
        assert "the disk of the blob store" in refused.json()["detail"]
