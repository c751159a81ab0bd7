"""Validation of archives from untrusted sources, and reading of written archives."""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import content_hash
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, PayloadTooLarge
from agentic_rag_backend.transfer import archive
from agentic_rag_backend.transfer.archive import ArchiveLimits, ArchiveWriter, open_archive, original_name, record_name
from agentic_rag_backend.transfer.inspection import Inspection, read_parts
from agentic_rag_backend.transfer.record_lines import pack_vector, unpack_vector
from agentic_rag_backend.transfer.records import End, Manifest

LIMITS = ArchiveLimits(archive=50_000_000, original=1_000_000)
ENTITY = "00000000-0000-4000-8000-000000000001"
OTHER = "00000000-0000-4000-8000-000000000002"
DOCUMENT = "00000000-0000-4000-8000-00000000000d"
TEXT = "The Halden Institute was founded in Brennmoor."
Member = tuple[str, bytes]


def manifest(**other: Any) -> bytes:
    told = {
        "format": "agentic-rag tenant",
        "version": 1,
        "release": "0.1.0",
        "written_at": datetime.now(UTC).isoformat(),
        "tenant": {"id": "t_" + "0" * 32, "name": "acme"},
        "state_version": 3,
        "flags": {},
        "embedder": "some",
        "dimensions": 2,
        "extractor": "rules",
        "documents": 1,
        "generation": None,
    }
    return json.dumps({**told, **other}).encode()


def document(**other: Any) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "kind": "document",
        "id": DOCUMENT,
        "version": 2,
        "key": "halden",
        "state": "ready",
        "title": "Halden",
        "submitted_title": "Halden",
        "metadata": {"year": 2014},
        "submitted_metadata": {},
        "content_hash": content_hash(TEXT),
        "media_type": "text/plain",
        "size_bytes": len(TEXT),
        "options": {},
        "text": TEXT,
        "created_at": now,
        "updated_at": now,
        "version_created_at": now,
        "failures": [],
        "original": True,
        **other,
    }


def chunk(**other: Any) -> dict[str, Any]:
    return {
        "kind": "chunk",
        "id": OTHER,
        "start_char": 0,
        "end_char": 20,
        "start_line": 1,
        "end_line": 1,
        "size_tokens": 5,
        "headings": [],
        "extraction": None,
        "recipe": None,
        "failure": None,
        "vector": None,
        **other,
    }


def entity(**other: Any) -> dict[str, Any]:
    mentions = [{"chunk": 0, "count": 1, "about": False}]
    return {"kind": "entity", "id": ENTITY, "names": ["Halden Institute"], "mentions": mentions, **other}


def lines(*said: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in said)


def whole(**replaced: bytes) -> list[Member]:
    """Return the members of a small archive, with some replaced by name."""
    told = {
        "manifest.json": manifest(),
        "entities.jsonl": lines({"id": ENTITY, "name": "Halden Institute", "type": "organisation"}),
        record_name(1): lines(document(), chunk(), entity()),
        original_name(1): TEXT.encode(),
        "communities.jsonl": b"",
        "summaries.jsonl": b"",
        "tree.jsonl": b"",
        "tree-summaries.jsonl": b"",
        "end.json": json.dumps({"documents": 1, "entities": 1, "communities": 0, "summaries": 0}).encode(),
    }
    return list({**told, **replaced}.items())


def written(path: Path, members: Sequence[Member]) -> Path:
    with ArchiveWriter(path) as writer:
        for name, content in members:
            writer.add_member(name, content)
    return path


def read(path: Path, limits: ArchiveLimits = LIMITS) -> list[Any]:
    """Read every part and check each document."""
    found = []
    inspection = None
    with open_archive(path, limits) as reader:
        for part in read_parts(reader, limits):
            found.append(part)
            inspection = inspection or Inspection(part, limits)
            inspection.check_part(part)
    assert inspection is not None
    inspection.check_whole()
    return found


def refused(path: Path, *, limits: ArchiveLimits = LIMITS) -> AgenticRagError:
    with pytest.raises((InvalidRequest, PayloadTooLarge)) as raised:
        read(path, limits)
    return raised.value


def test_what_is_written_is_read(tmp_path: Path) -> None:
    told, entities, archived, end = read(written(tmp_path / "a", whole()))

    assert isinstance(told, Manifest)
    assert (told.tenant.name, entities.records[0].name) == ("acme", "Halden Institute")
    assert (archived.document.text, archived.original) == (TEXT, TEXT.encode())
    assert archived.text_of(archived.chunks[0]) == TEXT[:20]
    assert end == End(documents=1, entities=1, communities=0, summaries=0)


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ({"manifest.json": manifest(version=2)}, "format 2; this release reads up to 1"),
        ({"manifest.json": manifest(format="a zip of holiday pictures")}, "not an archive of a tenant"),
        ({"manifest.json": b"[1]"}, "is not a JSON object"),
        ({"manifest.json": manifest(tenant={"id": "../../etc", "name": "x"})}, "tenant.id"),
        ({"manifest.json": manifest(surprise=1)}, "surprise"),
        ({"entities.jsonl": lines({"id": "' OR 1=1 --", "name": "x", "type": ""})}, "id: must match"),
        ({record_name(1): lines(document(id="MATCH (n) DETACH DELETE n"), chunk())}, "id: must match"),
        ({record_name(1): lines(document(state="processing"), chunk())}, "state"),
        ({record_name(1): lines(document(), chunk(end_char=2_000))}, "outside its text"),
        ({record_name(1): lines(document(), chunk(start_char=5, end_char=5))}, "outside its text"),
        ({record_name(1): lines(document(), chunk(), entity(id=OTHER))}, "entities are duplicate, or not in the archive"),
        ({record_name(1): lines(document(), chunk(), entity(), entity())}, "entities are duplicate, or not in the archive"),
        ({record_name(1): lines(document(), entity())}, "in a chunk that it does not have"),
        (
            {record_name(1): lines(document(text="another text of the same length, more or less"), chunk(kind="page"))},
            "must have one of 'chunk', 'entity', 'relationship' as its 'kind'",
        ),
        ({record_name(1): lines(document(title="null \0 byte"), chunk())}, "NUL"),
        ({record_name(1): b""}, "is empty"),
        ({original_name(1): b"something else"}, "does not match its hash"),
        (
            {"end.json": json.dumps({"documents": 2, "entities": 1, "communities": 0, "summaries": 0}).encode()},
            "contains 1 documents instead of 2",
        ),
    ],
)
def test_errors_name_the_cause(tmp_path: Path, replaced: dict[str, bytes], said: str) -> None:
    assert said in refused(written(tmp_path / "a", whole(**replaced))).message


def test_what_is_refused_is_not_repeated(tmp_path: Path) -> None:
    secret = "what the document says is nobody's"
    path = written(tmp_path / "a", whole(**{record_name(1): lines(document(version=secret), chunk())}))

    assert secret not in refused(path).message


@pytest.mark.parametrize(
    "left_out", ["entities.jsonl", record_name(1), original_name(1), "summaries.jsonl", "tree.jsonl", "end.json"]
)
def test_an_archive_without_one_of_its_members_is_refused(tmp_path: Path, left_out: str) -> None:
    refused(written(tmp_path / "a", [member for member in whole() if member[0] != left_out]))


@pytest.mark.parametrize(
    "name",
    ["../../outside", "/etc/passwd", "documents/1/record.jsonl", "documents/00000001/../../x", "documents/00000007/original"],
)
def test_members_of_other_names_are_refused(tmp_path: Path, name: str) -> None:
    members = whole()

    refused(written(tmp_path / "a", [*members[:2], (name, b"x"), *members[2:]]))


def _linked(header: tarfile.TarInfo) -> None:
    header.type, header.linkname = tarfile.SYMTYPE, "/etc/passwd"


def _extended(header: tarfile.TarInfo) -> None:
    header.type, header.size = tarfile.XHDTYPE, 8**11 - 1


def _folder(header: tarfile.TarInfo) -> None:
    header.type = tarfile.DIRTYPE


@pytest.mark.parametrize("change", [_linked, _extended, _folder])
def test_what_is_no_plain_file_is_refused_before_it_is_read(tmp_path: Path, change: Callable[[tarfile.TarInfo], None]) -> None:
    header = tarfile.TarInfo("manifest.json")
    change(header)
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 1024))

    assert "contains the unknown member" in refused(path).message


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", whole(**{"entities.jsonl": b"\n" * 5_000_000}))

    assert path.stat().st_size < 20_000
    assert "unpacks to more than" in refused(path, limits=ArchiveLimits(archive=1_000_000, original=1_000_000)).message


def test_a_line_without_an_end_is_refused_before_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "PART_LINE_BYTES", 1_000_000)
    path = written(tmp_path / "a", whole(**{"entities.jsonl": random.Random(1).randbytes(1_000_000).hex().encode()}))

    refusal = refused(path, limits=ArchiveLimits(archive=100_000_000, original=100))
    assert "entities.jsonl, line 1 has more than 1000000 bytes" in refusal.message


def test_a_large_original_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", whole(**{original_name(1): b"x" * 2_000}))

    assert "has 2000 bytes; the limit is 1000" in refused(path, limits=ArchiveLimits(archive=10_000_000, original=1_000)).message


@cache
@functools.cache
def packed_up() -> bytes:
    """Return a complete archive, identical each time, because hypothesis must be able to repeat an example."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, said in whole():
            header = tarfile.TarInfo(name)
            header.size = len(said)
            tar.addfile(header, io.BytesIO(said))
    return gzip.compress(content.getvalue(), mtime=0)


def _holds_the_same(damaged: bytes) -> bool:
    try:
        return gzip.decompress(damaged) == gzip.decompress(packed_up())
    except (EOFError, OSError, zlib.error):
        return False


@given(st.data())
def test_an_archive_that_was_cut_off_or_changed_never_passes_for_whole(data: st.DataObject) -> None:
    content = bytearray(packed_up())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        # The header of gzip has unused bits.
        content[data.draw(st.integers(10, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    damaged = bytes(content)
    # The padding of a block has unused bits, too.
    assume(not _holds_the_same(damaged))
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(damaged)
        refused(Path(file.name))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False), min_size=1, max_size=20))
def test_vectors_come_back_to_the_last_bit(values: list[float]) -> None:
    vector = np.array(values, dtype=np.float32)

    assert unpack_vector(pack_vector(vector), dimensions=len(values)).tobytes() == vector.tobytes()


@pytest.mark.parametrize("text", ["AAAA", "not base64!", pack_vector(np.array([1, np.nan], dtype=np.float32))])
def test_what_is_no_vector_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        unpack_vector(text, dimensions=2)
