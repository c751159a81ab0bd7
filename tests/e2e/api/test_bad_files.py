"""An invalid file is refused with a 4xx that names it. Unusual file names are accepted as names only."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024 * 1024


async def _files(client: Client, files: list[tuple[str, Any]], **form: str) -> tuple[int, str]:
    response = await client.request("POST", "/documents", files=files, data=form)
    return response.status_code, response.json().get("detail", "")


TEXT = ("file", ("a.txt", b"Eels are fish.", "text/plain"))
FILES: list[tuple[str, list[tuple[str, Any]], dict[str, str], int, tuple[str, ...]]] = [
    ("empty", [("file", ("a.txt", b"", "text/plain"))], {}, 422, ("no text",)),
    ("binary named .txt", [("file", ("a.txt", bytes(range(32)) * 8, "text/plain"))], {}, 422, ("control",)),
    ("PDF named .txt", [("file", ("a.txt", b"%PDF-1.7 x", "text/plain"))], {}, 422, ("PDF",)),
    ("no encoding", [("file", ("a.txt", bytes(range(256)) * 9, "text/plain; charset=utf-8"))], {}, 422, ("utf-8", "0x80", "128")),
    ("51 MiB", [("file", ("a.txt", b"eel " * (51 * MIB // 4), "text/plain"))], {}, 413, ("52428800", "53477376")),
    ("51 files", [("file", (f"{n}.txt", b"x", "text/plain")) for n in range(51)], {}, 422, ("50", "51")),
    ("30 fields", [TEXT], {f"f{n}": "x" for n in range(30)}, 422, ("20",)),
    ("no file", [("fill", ("a.txt", b"x", "text/plain"))], {}, 422, ("'fill'", "file")),
    ("field as file", [TEXT, ("title", ("t.txt", b"x", "text/plain"))], {}, 422, ("'title'",)),
    ("title for two", [TEXT, TEXT], {"title": "x"}, 422, ("title", "2")),
    ("unknown field", [TEXT], {"titel": "x"}, 422, ("'titel'", "title")),
    ("metadata is no JSON", [TEXT], {"metadata": "{"}, 422, ("'metadata'", "JSON")),
    ("metadata is a list", [TEXT], {"metadata": "[]"}, 422, ("metadata", "list")),
    ("metadata twice the same key", [TEXT], {"metadata": '{"a": 1, "a": 2}'}, 422, ("'a'", "twice")),
    ("chunking is a list", [TEXT], {"chunking": "[]"}, 422, ("chunking",)),
    ("unknown extraction", [TEXT], {"extraction": "guess"}, 422, ("extraction", "'guess'")),
    ("unknown suffix", [("file", ("a.exe", b"MZ text", "application/octet-stream"))], {}, 415, (".exe", ".md")),
    ("long key", [TEXT], {"key": "k" * 513}, 422, ("key", "512", "513")),
    ("large field", [TEXT], {"metadata": " " * (2 * MIB)}, 422, ("1024",)),
]


@pytest.mark.parametrize(("files", "form", "status", "says"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
async def test_a_faulty_file_is_refused(
    world: World, files: list[tuple[str, Any]], form: dict[str, str], status: int, says: tuple[str, ...]
) -> None:
    before = await world.held()
    given, detail = await _files(world.alpha, files, **form)
    assert given == status, detail
    assert [said for said in says if said not in detail] == [], detail
    assert await world.held() == before


HARMLESS = [
    {"key": "../../etc/passwd"},
    {"key": "C:\\Windows\\system32"},
    {"key": "a/b?c=d&e#f%00"},
    {"key": "'; DROP TABLE documents; --"},
    {"key": "\u202eright to left \U0001f41f"},
    {"title": "<script>alert(1)</script>"},
    {"metadata": {"__proto__": "x", "a.b": 1, "or": "x", "not": True, "\u00e9": False}},
    {"text": "Eels \x00 with NUL \ufffe and \U0001f41f."},
]


@pytest.mark.parametrize(
    "fields", HARMLESS, ids=lambda fields: next(iter(fields.items()))[1] if "key" in fields else next(iter(fields))
)
async def test_odd_names_are_only_names(world: World, fields: dict[str, Any]) -> None:
    beside = sorted(world.container.settings.data_dir.parent.iterdir())
    document = await world.alpha.upload(**{"text": "Eels are fish.", "key": "odd", **fields})
    for name in fields.keys() & {"key", "title", "metadata"}:
        assert document[name] == fields[name]
    found = await world.alpha.data("GET", "/documents", params={"key": document["key"]})
    assert [item["id"] for item in found] == [document["id"]]
    assert sorted(world.container.settings.data_dir.parent.iterdir()) == beside
    accepted = await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)
    assert (await world.alpha.ended(accepted["job_id"]))["state"] == "succeeded"


async def test_a_file_named_like_a_path_is_only_a_title(world: World) -> None:
    files = [("file", ("../../../tmp/evil.txt", b"Eels are fish.", "text/plain"))]
    (one,) = (await world.alpha.data("POST", "/documents", status=202, files=files))["documents"]
    await world.alpha.ended(one["job_id"])
    assert (await world.alpha.data("GET", f"/documents/{one['document_id']}"))["title"] == "evil"
    await world.alpha.data("DELETE", f"/documents/{one['document_id']}", status=202)
