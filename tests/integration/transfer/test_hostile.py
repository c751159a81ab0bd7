"""Manipulated archives in a whole application: refused ones leave no data, and other requests are served meanwhile."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hostile_archives import Members, changed, members_of, packed
from moved_tenants import Application, Opens
from sampling import budget

from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.errors import Conflict, InvalidRequest
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.stores.catalogue.base import PreparedChunk
from agentic_rag_backend.transfer import inspection, service
from agentic_rag_backend.transfer.archive import record_name
from agentic_rag_backend.transfer.identity import Identity
from agentic_rag_backend.transfer.importing import TenantImport
from agentic_rag_backend.transfer.record_lines import ArchivedDocument

SWITCH, SHARE = "DUAL_LEVEL_RETRIEVAL_ENABLED", "DUAL_LEVEL_LOW_WEIGHT"


@pytest.fixture
async def exported(opens: Opens, tmp_path: Path) -> tuple[TenantId, Members]:
    """Return the members of an archive, and its tenant."""
    async with opens("from") as source:
        tenant = await source.filled("acme", 2)
        path = await source.archive(tenant, tmp_path / "acme.tar.gz")
        return tenant, members_of(path.read_bytes())


async def _nothing_is_left(target: Application, tenant: TenantId) -> None:
    assert (await target.container.tenants.get(tenant)).state is TenantState.ACTIVE
    assert set(map(len, target.graph(tenant).values())) == {0}
    assert set(map(len, (await target.points(tenant)).values())) == {0}
    assert await target.container.catalogue.transfer.staged(tenant) == frozenset()  # type: ignore[attr-defined]
    assert await target.container.blobs.delete_tenant(tenant) == 0
    assert list((target.folder / "transfer").iterdir()) == []


REFUSED: dict[str, Callable[[Members], Members]] = {
    "two megabytes of metadata": lambda held: changed(held, record_name(1), 0, ("metadata",), {"a": "x" * 2_000_000}),
    "a header inside a media type": lambda held: changed(held, record_name(1), 0, ("media_type",), "a/b\r\nX-Evil: 1"),
    "the last record is of another shape": lambda held: changed(held, "tree-summaries.jsonl", 0, ("summary", "rating"), -1),
    "the end counts other documents": lambda held: changed(held, "end.json", 0, ("documents",), 7),
}


async def test_a_refused_archive_leaves_nothing_and_writes_nothing(
    exported: tuple[TenantId, Members], opens: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, members = exported
    begun: list[TenantImport] = []
    monkeypatch.setattr(TenantImport, "load_staged_state", lambda own: begun.append(own))
    async with opens("to") as target:
        for number, (what, change) in enumerate(REFUSED.items()):
            path = tmp_path / f"hostile-{number}"
            path.write_bytes(packed(change(members)))
            tenant, job = await target.imported(path)

            assert (job.state, (job.error or {}).get("code")) == (JobState.FAILED, "invalid_request"), what
            await _nothing_is_left(target, tenant)
    assert not begun, "all of it is read before anything is written"


async def test_names_and_flags_are_refused_before_there_is_a_tenant(
    exported: tuple[TenantId, Members], opens: Opens, tmp_path: Path
) -> None:
    _, members = exported
    path = tmp_path / "hostile"
    async with opens("to") as target:
        before = len((await target.container.tenants.list(limit=100)).items)
        flags = ({"NO_SUCH_FLAG": True}, {SHARE: 1.5}, {SHARE: "0.7"}, {SHARE: True}, {SWITCH: 1}, {SWITCH: 0.5})
        for place, value in ((("tenant", "name"), "bell\a"), *((("flags",), each) for each in flags)):
            path.write_bytes(packed(changed(members, "manifest.json", 0, place, value)))
            with pytest.raises(InvalidRequest):
                await target.container.transfer.begin_import(path)
        path.write_bytes(packed(members))
        with pytest.raises(InvalidRequest, match="printable"):
            await target.container.transfer.begin_import(path, name="bell\a")

        assert len((await target.container.tenants.list(limit=100)).items) == before


async def test_a_tenant_is_filled_by_one_import_at_a_time(
    exported: tuple[TenantId, Members], opens: Opens, tmp_path: Path
) -> None:
    tenant, members = exported
    path = tmp_path / "archive"
    path.write_bytes(packed(members))
    async with opens("to") as target:
        first = await target.container.transfer.begin_import(path)
        with pytest.raises(Conflict, match="jobs that have not ended"):
            await target.container.transfer.begin_import(path)

        assert (await target.ended(tenant, first.job)).state is JobState.SUCCEEDED


async def test_ids_of_another_tenant_reach_nothing_of_it(opens: Opens, tmp_path: Path) -> None:
    """The archive of a new tenant contains the ids of another tenant's documents, entities, communities and nodes."""
    async with opens() as target:
        victim = await target.filled("victim", 2)
        members = members_of((await target.archive(victim, tmp_path / "victim")).read_bytes())
        before = (await target.answers(victim), target.graph(victim), await target.points(victim))
        path = tmp_path / "hostile"
        path.write_bytes(
            packed(changed(members, "manifest.json", 0, ("tenant",), {"id": f"t_{uuid.uuid4().hex}", "name": "thief"}))
        )

        thief, job = await target.imported(path)

        assert (job.state, job.error) == (JobState.SUCCEEDED, None)
        assert (await target.answers(victim), target.graph(victim), await target.points(victim)) == before
        assert await target.differences(victim) == {}
        await target.container.tenants.delete(thief)
        assert (await target.answers(victim), target.graph(victim), await target.points(victim)) == before


def _many_lines(members: Members, count: int) -> Members:
    """Return the archive with ``count`` chunks in its first document, without computed results."""
    first, *others = [json.loads(line) for line in members[record_name(1)].splitlines()]
    chunk = next(each for each in others if each["kind"] == "chunk")
    text = "Scarrow is a town. " * count
    lines = [
        chunk
        | {"id": str(uuid.UUID(int=number + 1)), "start_char": 19 * number, "end_char": 19 * number + 18}
        | {"extraction": None, "recipe": None, "failure": None, "vector": None}
        for number in range(count)
    ]
    told = b"".join(json.dumps(line).encode() + b"\n" for line in (first | {"text": text}, *lines))
    return {**members, record_name(1): told, "tree.jsonl": b"", "tree-summaries.jsonl": b""}


async def test_others_are_served_while_a_large_document_is_imported(
    exported: tuple[TenantId, Members], opens: Opens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, members = exported
    path = tmp_path / "hostile"
    path.write_bytes(packed(_many_lines(members, 3_000)))
    loop_thread = threading.get_ident()
    on_the_loop: list[str] = []
    groups: list[int] = []

    def watched(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() == loop_thread:
                on_the_loop.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, noted)

    for owner, name in (
        (inspection, "decode_record"),
        (ArchivedDocument, "check_references"),
        (Identity, "make_chunks"),
        (TenantImport, "_make_knowledge"),
    ):
        watched(owner, name)
    monkeypatch.setattr(service, "verify_archive", _verified_already)
    async with opens("to") as target:
        neighbour = (await target.container.catalogue.tenants.create("neighbour")).id
        await target.take_in(neighbour, "note", "The harbour of Scarrow was dredged in May.")
        monkeypatch.setattr(Computation, "compute", _stand_in(groups))
        begun = await target.container.transfer.begin_import(path)
        importing = asyncio.create_task(target.ended(begun.tenant.id, begun.job))
        served = 0
        while not importing.done():
            assert await _asked(target, neighbour)
            served += 1
        job = importing.result()

    assert (job.state, (job.error or {}).get("message")) == (JobState.FAILED, "far enough")
    assert on_the_loop == []
    assert max(groups) <= 64
    assert served > 5


async def _verified_already(path: Path, limits: Any) -> None:
    """Replace the process that inspects archives, whose refusals are not tested here."""


def _stand_in(groups: list[int]) -> Callable[..., Any]:
    async def compute(own: Computation, title: str, group: Sequence[Any], recipes: Sequence[str]) -> Any:
        groups.append(len(group))
        if len(groups) == 40:
            raise InvalidRequest("far enough")
        await asyncio.sleep(0.01)  # the time an embedder takes for some of them, during which this process is idle
        return [
            PreparedChunk(chunk, None, Extraction(chunk_id=chunk.id), recipe=recipe)
            for chunk, recipe in zip(group, recipes, strict=True)
        ]

    return compute


async def _asked(target: Application, tenant: TenantId) -> bool:
    current = await target.container.catalogue.tenants.tenant(tenant)
    retrieval = await target.container.retrievers.get("hybrid").retrieve(
        Query(tenant=current, text="When was the harbour dredged?")
    )
    return bool(retrieval.hits)


@pytest.mark.sampled
async def test_a_changed_archive_is_imported_under_its_own_and_under_other_ids_or_not_at_all(
    exported: tuple[TenantId, Members], opens: Opens, tmp_path: Path
) -> None:
    """Archives that pass the inspection are imported without unexpected errors, and can be read afterwards."""
    _, members = exported
    harmless: Sequence[tuple[str, int, tuple[str | int, ...], Any]] = (
        (record_name(1), 0, ("title",), "tab\tand \x1b[31m"),
        (record_name(1), 0, ("created_at",), "0001-01-03T00:00:00Z"),
        (record_name(1), 0, ("version",), 2**30),
        ("entities.jsonl", 0, ("name",), "' OR 1=1 --"),
        ("communities.jsonl", 0, ("fingerprint",), "x" * 200),
        ("manifest.json", 0, ("state_version",), 2**30),
        ("manifest.json", 0, ("generation", "number"), 2**30),
        ("manifest.json", 0, ("tree", "number"), 2**30),
        ("manifest.json", 0, ("generation", "details"), {}),
        ("manifest.json", 0, ("tree", "details"), {}),
    )
    # The gate makes half of the changes in each of two archives, `make test-deep` each change in an archive of its own.
    archives = [harmless[start :: budget(gate=2, deep=len(harmless))] for start in range(budget(gate=2, deep=len(harmless)))]
    async with opens("to") as target:
        for number, change in enumerate(archives):
            path = tmp_path / f"changed-{number}"
            path.write_bytes(packed(functools.reduce(lambda held, each: changed(held, *each), change, members)))
            empty = (await target.container.catalogue.tenants.create(f"empty {number}")).id
            arrived, job = await target.imported(path, empty)

            assert (job.state, job.error) == (JobState.SUCCEEDED, None), change
            assert any(each[2] for each in await target.answers(arrived, ["Who was born in Scarrow?"])), change
            await target.take_in(arrived, "report-0", "Scarrow has a harbour.")
            await target.rebuilt(arrived, "incremental")
            await target.container.tenants.delete(arrived)
