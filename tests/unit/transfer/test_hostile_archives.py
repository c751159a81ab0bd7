"""Archives that cost time, memory or disk, or exceed a request's limits, are refused at a cost proportional to their size."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_archives import HOSTILE, Members, changed, kinds_of_places, packed, without
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.chunking.registry import check_options
from agentic_rag_backend.domain.document import content_hash
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.domain.size_limits import MAX_DOCUMENT_KEY_CHARACTERS, MAX_TITLE_CHARACTERS, printable_name, short_text
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, PayloadTooLarge
from agentic_rag_backend.transfer import verification
from agentic_rag_backend.transfer.archive import (
    FREE_BYTES,
    MAX_RATIO,
    ArchiveLimits,
    Member,
    open_archive,
    original_name,
    record_name,
)
from agentic_rag_backend.transfer.inspection import inspect_archive, read_parts
from agentic_rag_backend.transfer.record_lines import ArchivedDocument
from agentic_rag_backend.transfer.record_lines import pack_vector as vector_text
from agentic_rag_backend.transfer.records import Manifest
from agentic_rag_backend.transfer.verification import verify_archive

LIMITS = ArchiveLimits(archive=100_000_000, original=1_000_000)
TEXT = "The Halden Institute was founded in Brennmoor by Mira Voss."
ENTITY, OTHER, CHUNK, DOCUMENT = (f"00000000-0000-4000-8000-00000000000{number}" for number in range(1, 5))
COMMUNITY, INNER, NODE, ROOT = (f"00000000-0000-4000-8000-00000000001{number}" for number in range(4))
NOW = "2026-01-02T03:04:05Z"
VECTOR = vector_text(np.array([0.6, 0.8], dtype=np.float32))


def _lines(*records: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def _summary(fingerprint: str) -> dict[str, Any]:
    source = {"document_id": DOCUMENT, "version": 1, "chunk_id": CHUNK}
    label = {"text": "Halden Institute", "sources": [source]}
    return {
        "summary": {
            "fingerprint": fingerprint,
            "names": [label],
            "summary": "An institute in Brennmoor.",
            "keywords": [label],
            "findings": [{"statement": "It was founded by Mira Voss.", "sources": [source]}],
            "rating": 2.5,
            "model": "extractive",
            "prompt_version": "extractive@4",
            "tokens": 0,
            "sources": [source],
            "title": label,
        }
    }


def _extraction() -> dict[str, Any]:
    mention = {"name": "Halden Institute", "type": "organisation", "start_char": 4, "end_char": 20, "about": False}
    said = {"source": "Halden Institute", "source_type": "organisation", "target": "Mira Voss", "target_type": "person"}
    related = {**said, "relation": "founded by", "fact": TEXT, "fact_start": 0, "fact_end": 30, "confidence": 0.5}
    failure = {"stage": "extract", "code": "x", "message": "y", "chunk_id": CHUNK}
    alias = {"name": "Halden Institute", "alias": "HI", "type": "organisation"}
    return {"chunk_id": CHUNK, "mentions": [mention], "relationships": [related], "aliases": [alias], "failure": failure}


def rich() -> Members:
    """Return the members of an archive with every kind of record and every field."""
    details = {"communities": 2, "coarse": [COMMUNITY], "written_under": [["extractive@4", "extractive"]], "graph": "x"}
    generation = {"number": 3, "stale": False, "built_at": NOW, "details": details}
    manifest = {
        "format": "agentic-rag tenant",
        "version": 1,
        "release": "0.1.0",
        "written_at": NOW,
        "tenant": {"id": "t_" + "0" * 32, "name": "acme"},
        "state_version": 3,
        "flags": {"DUAL_LEVEL_RETRIEVAL_ENABLED": True},
        "embedder": "some",
        "dimensions": 2,
        "extractor": "rules",
        "documents": 1,
        "generation": generation,
        "tree": {**generation, "details": {"nodes": 2, "changed": 0, "options": {"cluster_size": 3}}},
    }
    document = {
        "kind": "document",
        "id": DOCUMENT,
        "version": 1,
        "key": "halden",
        "state": "ready",
        "title": "Halden",
        "submitted_title": "Halden",
        "metadata": {"year": 2014},
        "submitted_metadata": {"year": 2014},
        "content_hash": content_hash(TEXT),
        "media_type": "text/plain",
        "size_bytes": len(TEXT),
        "options": {
            "chunking": {"strategy": "recursive", "chunk_size": 220, "overlap": 32, "unit": "tokens"},
            "extraction": "rules",
        },
        "text": TEXT,
        "created_at": NOW,
        "updated_at": NOW,
        "version_created_at": NOW,
        "failures": [{"stage": "extract", "code": "x", "message": "y", "chunk_id": CHUNK}],
        "original": True,
    }
    chunk = {
        "kind": "chunk",
        "id": CHUNK,
        "start_char": 0,
        "end_char": 59,
        "start_line": 1,
        "end_line": 1,
        "size_tokens": 12,
        "headings": ["Halden"],
        "extraction": _extraction(),
        "recipe": "a" * 64,
        "failure": {"stage": "embed", "code": "x", "message": "y", "chunk_id": CHUNK},
        "vector": VECTOR,
    }
    entities = [
        {"kind": "entity", "id": id, "names": [name], "mentions": [{"chunk": 0, "count": 1, "about": False}]}
        for id, name in ((ENTITY, "Halden Institute"), (OTHER, "Mira Voss"))
    ]
    relationship = {
        "kind": "relationship",
        "source": ENTITY,
        "target": OTHER,
        "relation": "founded by",
        "weight": 1.0,
        "valid_at": NOW,
        "invalid_at": NOW,
        "sentences": [{"chunk": 0, "start_char": 0, "end_char": 59, "fact": TEXT}],
    }
    community = {"level": 0, "parent": None, "members": [ENTITY, OTHER], "fingerprint": "f", "current": True, "vector": VECTOR}
    node = {"size": 1, "prompt_version": "extractive@4", "model": "extractive", "vector": VECTOR}
    feedback = {
        "part": "feedback",
        "id": OTHER,
        "answer_id": "a_1",
        "key_id": "k",
        "citation": 1,
        "result": None,
        "chunk_id": CHUNK,
        "strategy": "hybrid",
        "generator": "attributed",
        "confidence": 0.5,
        "grounded": True,
        "question_hash": "a" * 32,
        "rating": "bad",
        "reason": "outdated",
        "correction": "It was 1988.",
        "question": "When was it founded?",
        "texts_removed": False,
        "created_at": NOW,
        "updated_at": NOW,
        "documents": [DOCUMENT],
    }
    case = {
        "part": "case",
        "dataset_id": NODE,
        "number": 1,
        "id": ROOT,
        "added_in": 1,
        "removed_in": 2,
        "question": "Who founded it?",
        "expected_answer": "Mira Voss",
        "must_say": ["Voss"],
        "answerable": True,
        "kind": "single",
        "tags": ["people"],
        "gold": [{"quote": TEXT, "chunk_id": CHUNK, "document": DOCUMENT}],
        "filters": {"year": {"gte": 1980}},
        "source": "graph",
        "documents": [DOCUMENT],
    }
    dataset = {"part": "dataset", "id": NODE, "name": "harbour", "version": 2, "created_at": NOW, "updated_at": NOW}
    score = {"metric": "correct", "day": NOW[:10], "strategy": "", "configuration": "", "value": 0.5, "computed": False}
    end = {"documents": 1, "entities": 2, "communities": 2, "summaries": 1, "tree_nodes": 2}
    return {
        "manifest.json": _lines(manifest),
        "entities.jsonl": _lines(
            {"id": ENTITY, "name": "Halden Institute", "type": "organisation"},
            {"id": OTHER, "name": "Mira Voss", "type": "person"},
        ),
        record_name(1): _lines(document, chunk, *entities, relationship),
        original_name(1): TEXT.encode(),
        "communities.jsonl": _lines(
            {**community, "id": COMMUNITY}, {**community, "id": INNER, "parent": COMMUNITY, "level": 1, "fingerprint": "g"}
        ),
        "summaries.jsonl": _lines(_summary("f")),
        "tree.jsonl": _lines(
            {**node, "id": NODE, "level": 1, "children": [CHUNK], "documents": [DOCUMENT], "fingerprint": "n"},
            {**node, "id": ROOT, "level": 2, "children": [NODE], "documents": [], "fingerprint": "r"},
        ),
        "tree-summaries.jsonl": _lines(_summary("n")),
        "evaluation.jsonl": _lines(dataset, case, feedback, {"part": "score", "id": OTHER, **score}),
        "end.json": _lines(end),
    }


RICH = rich()
PLACES = kinds_of_places(RICH)


def _file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "archive"
    path.write_bytes(content)
    return path


def refused(path: Path, limits: ArchiveLimits = LIMITS) -> AgenticRagError:
    with pytest.raises((InvalidRequest, PayloadTooLarge)) as caught:
        inspect_archive(path, limits)
    return caught.value


def test_an_archive_with_every_field_is_taken_in(tmp_path: Path) -> None:
    assert inspect_archive(_file(tmp_path, packed(RICH)), LIMITS).tenant.name == "acme"


def test_an_archive_of_an_earlier_release_has_no_evaluation(tmp_path: Path) -> None:
    earlier = {name: content for name, content in RICH.items() if name != "evaluation.jsonl"}
    assert inspect_archive(_file(tmp_path, packed(earlier)), LIMITS).tenant.name == "acme"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (f'"dataset_id": "{NODE}"', f'"dataset_id": "{OTHER}"', "not in a version of dataset"),
        ('"added_in": 1', '"added_in": 3', "not in a version of dataset"),
        ('"removed_in": 2', '"removed_in": 1', "not in a version of dataset"),
        (f'"documents": ["{DOCUMENT}"]', f'"documents": ["{OTHER}"]', "texts of documents that are not in the archive"),
        ('"gte": 1980', '"nosuch": 1980', "filters"),
        ('"rating": "bad"', '"rating": "worst"', "rating"),
        ('"part": "score"', '"part": "nothing"', "part"),
    ],
)
def test_evaluation_belongs_to_the_archive(tmp_path: Path, old: str, new: str, reason: str) -> None:
    content = RICH["evaluation.jsonl"].decode()
    assert old in content
    changed = {**RICH, "evaluation.jsonl": content.replace(old, new, 1).encode()}
    assert reason in refused(_file(tmp_path, packed(changed))).message


# --- values


def _hold_to_the_limits_of_a_request(path: Path) -> None:
    """Fail on a value of an accepted archive that the API would refuse."""
    with open_archive(path, LIMITS) as reader:
        for part in read_parts(reader, LIMITS):
            if isinstance(part, Manifest):
                printable_name(part.tenant.name)
            if isinstance(part, ArchivedDocument):
                line = part.document
                for title in (line.title, line.submitted_title):
                    short_text("title", title, MAX_TITLE_CHARACTERS)
                assert short_text("key", line.key, MAX_DOCUMENT_KEY_CHARACTERS)
                assert metadata_checks.check_metadata(line.metadata) == line.metadata
                assert metadata_checks.check_metadata(line.submitted_metadata) == line.submitted_metadata
                assert line.media_type in FORMATS
                check_options(line.options.chunking)
                assert line.text.strip()


def _refusal(path: Path) -> str | None:
    try:
        inspect_archive(path, LIMITS)
    except (InvalidRequest, PayloadTooLarge) as error:
        return error.message
    return None


@sampled(gate=120, deep=1000)
@given(st.data())
def test_whatever_a_field_holds_the_archive_is_refused_or_within_the_limits_of_a_request(data: st.DataObject) -> None:
    name, number, place = data.draw(st.sampled_from(PLACES))
    value = data.draw(st.sampled_from([*HOSTILE, ...]))
    members = without(RICH, name, number, place) if value is ... else changed(RICH, name, number, place, value)
    with tempfile.TemporaryDirectory() as folder:
        path = _file(Path(folder), packed(members))
        refusal = _refusal(path)
        if refusal is None:
            _hold_to_the_limits_of_a_request(path)
        else:
            assert len(refusal) < 1_000
            assert "stolen" not in refusal, "what is in a field is not repeated"


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("title", "x" * 600, ("600 characters", "the limit is 512")),
        ("key", "x" * 600, ("600 characters", "the limit is 512")),
        ("metadata", {"long": "x" * 2_000_000}, ("2000012 bytes", "the limit is 8192")),
        ("metadata", {f"key {n}": n for n in range(100)}, ("100 keys", "the limit is 64")),
        ("submitted_metadata", {"a": {"b": 1}}, ("'a'", "a string, number, boolean, null or a list")),
        ("media_type", "text/plain\r\nSet-Cookie: a=b", ("supported are text/plain",)),
        ("version", 2**31, ("at most 1073741824", "it is 2147483648")),
        ("created_at", "9999-12-31T23:59:59-14:00", ("between 0001-01-03 and 9999-12-29", "created_at")),
        ("options", {"chunking": {"chunk_size": 50_000}}, ("chunk_size must be 16 to 2048", "50000")),
        ("size_bytes", 3, ("original has 59 bytes, not 3",)),
        ("text", "  \n ", ("text is blank",)),
    ],
)
def test_a_refusal_names_line_field_limit_and_value(tmp_path: Path, field: str, value: Any, told: tuple[str, ...]) -> None:
    members = changed(RICH, record_name(1), 0, (field,), value)
    if field == "text":  # otherwise its chunks are outside of it
        members = {**members, record_name(1): members[record_name(1)].splitlines(keepends=True)[0], "tree.jsonl": b""}

    message = refused(_file(tmp_path, packed(members))).message

    assert all(part in message for part in told), message
    assert field in message
    assert f"{record_name(1)}, line 1" in message or DOCUMENT in message


def test_a_tenants_name_is_printable(tmp_path: Path) -> None:
    members = changed(RICH, "manifest.json", 0, ("tenant", "name"), "bell\a")

    assert "printable" in refused(_file(tmp_path, packed(members))).message


# --- cost


def _seconds(content: bytes) -> float:
    """Return the least CPU time, of three tries, for splitting the lines of ``content``."""
    found = []
    for _ in range(3):
        member = Member("entities.jsonl", len(content), io.BytesIO(content).read)
        began = time.thread_time()
        count = sum(1 for _ in member.read_lines(limit=len(content)))
        found.append(time.thread_time() - began)
        assert count == content.count(b"\n")
    return min(found)


def test_lines_cost_time_in_step_with_their_number() -> None:
    few, many = _seconds(b"x\n" * 100_000), _seconds(b"x\n" * 400_000)

    assert many < 10 * few, "four times as many lines; a copy of the rest for each line would take sixteen times as long"


def test_empty_lines_are_refused_at_the_first(tmp_path: Path) -> None:
    path = _file(tmp_path, packed({**RICH, "entities.jsonl": b"\n" * 500_000}))

    assert "entities.jsonl, line 1 is empty" in refused(path).message


def test_lines_of_a_member_are_counted() -> None:
    content = b"x\n" * 11
    member = Member("tree.jsonl", len(content), io.BytesIO(content).read)

    with pytest.raises(PayloadTooLarge, match=r"tree\.jsonl has more than 10 lines"):
        list(member.read_lines(limit=10, max_lines=10))


@pytest.mark.parametrize("overlapping", [True, False], ids=["the same passage", "one character further each time"])
def test_chunks_cover_a_text_a_bounded_number_of_times(tmp_path: Path, overlapping: bool) -> None:
    """20,000 chunks of one short text used to be embedded one by one, for minutes."""
    chunk = json.loads(RICH[record_name(1)].splitlines()[1])
    told = {**chunk, "extraction": None, "vector": None, "failure": None}
    document = json.loads(RICH[record_name(1)].splitlines()[0]) | {"text": "word " * 10_000}
    ends = [(0, 50) if overlapping else (number, 49_000) for number in range(20_000)]
    lines = [
        told | {"id": f"{n:08x}-0000-4000-8000-000000000000", "start_char": a, "end_char": b} for n, (a, b) in enumerate(ends)
    ]
    archive = packed({**RICH, record_name(1): _lines(document, *lines)})

    message = refused(_file(tmp_path, archive)).message

    assert ("begins at 0; the one before began at 0" if overlapping else "the limit is 800000, 16 times") in message


# --- gzip and tar


def test_what_unpacks_to_far_more_than_its_size_is_refused_early(tmp_path: Path) -> None:
    path = _file(tmp_path, packed({**RICH, "entities.jsonl": b"\0" * (2 * FREE_BYTES)}))

    message = refused(path, ArchiveLimits(archive=10**9, original=10**8)).message

    assert f"the limit is {FREE_BYTES} and {MAX_RATIO} for each byte" in message


def test_a_bomb_behind_the_end_is_refused(tmp_path: Path) -> None:
    tar = gzip.decompress(packed(RICH)) + b"\0" * (2 * FREE_BYTES)

    assert "unpack to" in refused(_file(tmp_path, gzip.compress(tar))).message


@pytest.mark.parametrize("more", [gzip.compress(b"x"), packed(RICH), b"garbage"], ids=["stream", "archive", "garbage"])
def test_an_archive_is_one_stream(tmp_path: Path, more: bytes) -> None:
    assert "one gzip stream" in refused(_file(tmp_path, packed(RICH) + more)).message


def test_a_long_name_in_the_head_of_gzip_costs_nothing(tmp_path: Path) -> None:
    """`gzip` reads such a name byte by byte, without a limit."""
    head = b"\x1f\x8b\x08\x08" + b"\0" * 6
    path = _file(tmp_path, head + b"x" * 3_000_000 + b"\0" + packed(RICH)[10:])
    began = time.thread_time()
    inspect_archive(path, LIMITS)
    long_s = time.thread_time() - began
    inspect_archive(_file(tmp_path, packed(RICH)), LIMITS)

    assert long_s < 20 * (time.thread_time() - began - long_s), "3,000,000 steps of Python would take seconds"


def test_members_come_once_and_in_their_order(tmp_path: Path) -> None:
    told = list(RICH.items())
    for position, (name, content) in enumerate(told):
        twice = [*told[: position + 1], (name, content), *told[position + 1 :]]
        swapped = [*told[:position], *told[position : position + 2][::-1], *told[position + 2 :]]
        refused(_file(tmp_path, packed(twice)))
        if position < len(told) - 1:
            refused(_file(tmp_path, packed(swapped)))


# --- a process of its own


async def test_the_process_says_what_is_wrong(tmp_path: Path) -> None:
    await verify_archive(_file(tmp_path, packed(RICH)), LIMITS)
    path = _file(tmp_path, packed(changed(RICH, record_name(1), 0, ("title",), "x" * 600)))

    with pytest.raises(InvalidRequest) as caught:
        await verify_archive(path, LIMITS)

    assert caught.value.message == refused(path).message
    with pytest.raises(PayloadTooLarge):
        await verify_archive(path, ArchiveLimits(archive=1_000, original=1_000))


async def test_the_process_ends_at_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _file(tmp_path, packed(RICH))
    monkeypatch.setattr(verification, "LEAST_CPU_S", 0)

    with pytest.raises(InvalidRequest, match="cannot be read with"):
        await verify_archive(path, LIMITS)


async def test_the_process_ends_with_whoever_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def noted(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    task = asyncio.create_task(verify_archive(_file(tmp_path, packed(RICH)), LIMITS))
    while not started:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert started[0].returncode is not None
