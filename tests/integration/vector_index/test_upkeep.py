"""An index is built when it is worthwhile, during other work, and replaces the old state without loss or change."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_scenarios import A, B, Write, contents, interleaved, opened, pair
from qdrant_edge import Distance, EdgeConfig, EdgeOptimizersConfig, EdgeSparseVectorParams, EdgeVectorParams, Modifier

from agentic_rag_backend.errors import StoreLocked, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection, IndexState, NodeKind, VectorSearch
from agentic_rag_backend.stores.vector.edge import replacement, shard
from agentic_rag_backend.stores.vector.edge.edge_engine import Layout, field_indexes
from agentic_rag_backend.stores.vector.edge.shard import Shard
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.edge.upkeep import UpkeepOptions
from agentic_rag_backend.stores.vector.points import DENSE, SPARSE
from agentic_rag_testing.stores.vector_samples import chunk, vector

CHUNKS, NODES = Collection.CHUNKS, Collection.NODES
ASKED = UpkeepOptions(min_points=50, first_look_s=3600.0)
"""Runs on request only."""


def homes(folder: Path) -> list[str]:
    """Return the names of the shards' folders."""
    (home,) = (record.parent for record in folder.glob("*/fingerprint.json"))
    return sorted(path.name.partition(".")[0] for path in home.iterdir() if path.is_dir())


async def filled(folder: Path, count: int, options: UpkeepOptions = ASKED) -> EdgeVectorStore:
    store = await opened(folder, options)
    await store.upsert(A, CHUNKS, [chunk(number) for number in range(count)])
    return store


# --- no data is lost or changed

numbers = st.integers(0, 60)
writes = st.one_of(
    st.builds(
        Write,
        st.just("upsert"),
        st.sampled_from([A, B]),
        st.sampled_from(Collection),
        st.lists(numbers, min_size=1, max_size=12, unique=True).map(tuple),
        st.sampled_from(["a harbour at night", "the pier", "of the"]),
    ),
    st.builds(
        Write,
        st.sampled_from(["delete", "delete_document", "delete_generations", "update_metadata", "flush"]),
        st.sampled_from([A, B]),
        st.sampled_from(Collection),
        st.lists(numbers, min_size=1, max_size=4, unique=True).map(tuple),
    ),
    st.builds(Write, st.just("delete_tenant"), st.sampled_from([A, B])),
)


def test_a_store_whose_index_was_built_meanwhile_equals_one_that_has_none(tmp_path: Path) -> None:
    some = st.lists(writes, max_size=8)

    @settings(max_examples=25)
    @given(writes_in=st.tuples(some, some, some), collection=st.sampled_from(Collection), copied_first=st.booleans())
    def equal(writes_in: tuple[list[Write], ...], collection: Collection, copied_first: bool) -> None:
        # The index of the previous example stays in use, because creating stores costs more than the test.
        emptied = [Write("delete_tenant", A), Write("delete_tenant", B)]
        before, copying, swapping = writes_in
        begin = len(emptied) + len(before)
        moments = {"begin": begin, "until": begin + len(copying), "copied_first": copied_first}
        runner.run(interleaved(stores, [*emptied, *before, *copying, *swapping], collection=collection, **moments))

    with asyncio.Runner() as runner:
        opening = pair(tmp_path)
        stores = runner.run(opening.__aenter__())
        equal()
        runner.run(opening.__aexit__(None, None, None))


FIRST = Write("upsert", numbers=tuple(range(40)))
MEANWHILE = {
    "a new point": Write("upsert", numbers=(50,)),
    "another text": Write("upsert", numbers=(1,), text="the pier"),
    "deleted points": Write("delete", numbers=(2, 3)),
    "a deleted document": Write("delete_document", numbers=(4,)),
    "a deleted tenant": Write("delete_tenant"),
    "other metadata": Write("update_metadata", numbers=(6,)),
}


def forgets_upserts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Shard, "upsert", lambda self, points: self._update(shard.UpdateOperation.upsert_points(list(points)), 0))  # type: ignore[attr-defined]


def forgets_what_filters_touch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Shard, "_note_write", Shard.count)


def swaps_without_replay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replacement, "replay", lambda shard, engine, ids: 0)


def replays_without_deleting(patch: pytest.MonkeyPatch) -> None:
    whole = replacement.replay

    def in_part(shard: Shard, engine: Any, ids: list[str]) -> int:
        return whole(shard, engine, [str(record.id) for record in shard.engine.retrieve(list(ids), False, False)])

    patch.setattr(replacement, "replay", in_part)


def journals_too_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Shard, "begin_journal", lambda self: None)


FAULTS = [
    (forgets_upserts, "a new point"),
    (forgets_upserts, "another text"),
    (forgets_what_filters_touch, "deleted points"),
    (forgets_what_filters_touch, "a deleted document"),
    (forgets_what_filters_touch, "a deleted tenant"),
    (forgets_what_filters_touch, "other metadata"),
    *((swaps_without_replay, name) for name in MEANWHILE),
    (replays_without_deleting, "deleted points"),
    (journals_too_late, "another text"),
    (journals_too_late, "other metadata"),
]


@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_points_written_during_a_build_are_in_the_index(meanwhile: str, tmp_path: Path) -> None:
    async with pair(tmp_path) as stores:
        await interleaved(stores, [FIRST, MEANWHILE[meanwhile]], begin=1, until=2)


@pytest.mark.parametrize(("fault", "meanwhile"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
async def test_a_planted_fault_is_noticed(fault: Any, meanwhile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        async with pair(tmp_path) as stores:
            await interleaved(stores, [FIRST, MEANWHILE[meanwhile]], begin=1, until=2)


async def test_points_that_moved_in_number_only_are_noticed_before_the_swap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await filled(tmp_path, 40)
    monkeypatch.setattr(replacement, "_count_points", lambda engine: id(engine))
    run = await store.upkeep.run(CHUNKS)
    assert run.failure is not None
    assert "points" in run.failure
    assert await store.count(A, CHUNKS) == 40
    await store.close()


async def test_a_writer_that_never_rests_does_not_keep_an_index_from_being_swapped_in(tmp_path: Path) -> None:
    store = await filled(tmp_path, 400)

    async def write() -> None:
        number = 0
        while True:
            await store.upsert(A, CHUNKS, [chunk(number % 400 + each) for each in range(200)])
            number += 1

    writing = asyncio.create_task(write())
    run = await store.upkeep.run(CHUNKS)
    writing.cancel()
    assert run.failure is None
    await store.close()


async def test_more_changes_than_are_held_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await filled(tmp_path, 40)
    monkeypatch.setattr(shard, "_MAX_JOURNAL", 5)

    async def meanwhile(target: Path, time_limit_s: float) -> None:
        await store.upsert(A, CHUNKS, [chunk(number) for number in range(10)])

    monkeypatch.setattr(replacement, "_optimize_copy", meanwhile)
    run = await store.upkeep.run(CHUNKS)
    assert "changed while" in (run.failure or "")
    assert homes(tmp_path) == ["chunks", "nodes"]
    await store.close()


# --- conditions for a build


async def test_facts_which_have_no_vector_and_many_small_tenants_are_no_reason(tmp_path: Path) -> None:
    store = await filled(tmp_path, 50)
    await store.upsert(B, CHUNKS, [chunk(number) for number in range(50)])
    await Write("upsert", collection=NODES, numbers=tuple(range(1, 300, 3))).apply(store)
    assert not store.upkeep.due(CHUNKS)
    assert not store.upkeep.due(NODES)
    await store.upsert(B, CHUNKS, [chunk(50)])
    assert store.upkeep.due(CHUNKS)
    await store.close()


async def test_an_index_is_read_from_files_also_that_of_a_folder_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Layout, "config", lambda self, **_: config_in_memory(self.dimensions))
        patch.setattr("agentic_rag_backend.stores.vector.edge.folder.field_indexes", fields_in_memory)
        await (await filled(tmp_path, 200)).close()
    store = await opened(tmp_path, ASKED)
    search = [VectorSearch(kind=NodeKind.CHUNK, dense=vector(3), text="harbour", limit=50)]
    before, held = await store.search(A, CHUNKS, search), contents(store, CHUNKS)
    assert places(store) == {"MutableRam", "gridstore"}
    assert (await store.upkeep.run(CHUNKS)).failure is None
    assert places(store) == {"MutableRam", "gridstore", "Mmap", "on disk"}  # the first one for later writes
    assert await store.search(A, CHUNKS, search) == before
    assert contents(store, CHUNKS) == held
    await store.close()
    store = await opened(tmp_path, ASKED)
    assert places(store) == {"MutableRam", "gridstore", "Mmap", "on disk"}
    assert await store.search(A, CHUNKS, search) == before
    await store.close()


def config_in_memory(dimensions: int) -> EdgeConfig:
    """Return the configuration of collections from before it set where data is kept."""
    return EdgeConfig(
        vectors={DENSE: EdgeVectorParams(size=dimensions, distance=Distance.Cosine)},
        sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        optimizers=EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1),
    )


def fields_in_memory(collection: Collection) -> dict[str, Any]:
    return {field: type(schema)(enable_hnsw=schema.enable_hnsw) for field, schema in field_indexes(collection).items()}


def places(store: EdgeVectorStore) -> set[str]:
    """Return where the segments of the chunks keep words and fields."""
    store._shards[CHUNKS].flush()
    segments = store._shards[CHUNKS].folder / "segments"
    words = [
        json.loads(path.read_text())["config"]["sparse_vector_data"][SPARSE]["index"]["index_type"]
        for path in segments.glob("*/segment.json")
    ]
    fields = [
        each["storage_type"]
        for path in segments.glob("*/payload_index/config.json")
        for indexes in json.loads(path.read_text())["indexed_types"].values()
        for each in indexes
        if each["index_type"] != "null_index"
    ]
    told = {"gridstore": "gridstore", "{'mmap': {'is_on_disk': True}}": "on disk"}
    return {*words, *(told.get(str(field), str(field)) for field in fields)}


async def until(condition: Any) -> None:
    async with asyncio.timeout(120):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_it_is_built_by_itself_after_opening_and_again_after_writes_and_shown(tmp_path: Path) -> None:
    await (await filled(tmp_path, 200)).close()
    store = await opened(tmp_path, UpkeepOptions(min_points=50, first_look_s=0.0, pause_s=0.01))

    async def built() -> bool:
        return (await store.indexes())[0].last is not None

    await until(built)
    chunks, nodes = await store.indexes()
    assert (chunks.points, chunks.indexed_share, chunks.state) == (200, 1.0, IndexState.IDLE)
    assert (nodes.points, nodes.last) == (0, None)
    first = chunks.last
    assert first is not None
    assert first.failure is None
    assert first.reason == "200 of 200 points were not in the index"
    assert first.seconds > first.gap_s > 0
    await store.upsert(A, CHUNKS, [chunk(number) for number in range(200, 240)])
    assert (await store.indexes())[0].indexed_share == pytest.approx(200 / 240)
    await store.upsert(A, CHUNKS, [chunk(number) for number in range(240, 300)])

    async def again() -> bool:
        return (await store.indexes())[0].last != first

    await until(again)
    # Points are written a few at a time. On a busy machine, the build may begin before the last ones, too few for another build.
    assert (await store.indexes())[0].indexed_share >= 1 - UpkeepOptions().unindexed_share
    assert homes(tmp_path) == ["chunks", "nodes"]
    await store.close()


async def test_how_much_is_outside_the_index_is_known_after_reopening(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    assert (await store.indexes())[0].indexed_share == 0.0
    await store.upkeep.run(CHUNKS)
    await store.upsert(A, CHUNKS, [chunk(number) for number in range(20)])
    await store.close()
    store = await opened(tmp_path, ASKED)
    assert (await store.indexes())[0].indexed_share == 0.8
    await store.close()


# --- search results


async def searched(store: EdgeVectorStore, queries: Iterable[int]) -> list[Any]:
    searches = [VectorSearch(kind=NodeKind.CHUNK, dense=vector(10_000 + each), text="harbour", limit=10) for each in queries]
    return await store.search(A, CHUNKS, searches)


async def test_a_tenant_up_to_the_threshold_is_answered_the_same_to_the_last_bit_whoever_else_is_there(tmp_path: Path) -> None:
    alone = await filled(tmp_path / "alone", 50)
    shared = await filled(tmp_path / "shared", 50)
    await shared.upsert(B, CHUNKS, [chunk(number, f"word{number} harbour") for number in range(400)])
    assert (await shared.upkeep.run(CHUNKS)).failure is None
    await shared.upsert(B, CHUNKS, [chunk(number) for number in range(400, 420)])
    assert await searched(shared, range(40)) == await searched(alone, range(40))
    await alone.close()
    await shared.close()


async def test_a_tenant_above_it_is_searched_by_graph_and_finds_nearly_all(tmp_path: Path) -> None:
    store = await filled(tmp_path, 1500)
    exact = await searched(store, range(40))
    assert (await store.upkeep.run(CHUNKS)).failure is None
    (config,) = tmp_path.rglob("hnsw_config.json")
    assert '"full_scan_threshold":64' in config.read_text(), "2 KiB of 8 numbers: the smallest that is not below 50 points"
    found = await searched(store, range(40))
    assert [legs.sparse for legs in found] == [legs.sparse for legs in exact]
    shares = [len(set(one.dense) & set(other.dense)) / 10 for one, other in zip(found, exact, strict=True)]
    assert sum(shares) / len(shares) >= 0.95
    await store.close()


# --- failures


async def failed(store: EdgeVectorStore, says: str) -> None:
    """Run, and check that it failed without loss and that the next run works."""
    before = contents(store, CHUNKS)
    run = await store.upkeep.run(CHUNKS)
    assert run.failure is not None
    assert says in run.failure
    chunks = (await store.indexes())[0]
    assert (chunks.state, chunks.last) == (IndexState.FAILED, run)
    assert contents(store, CHUNKS) == before
    await store.upsert(A, CHUNKS, [chunk(900)])


async def test_a_crashed_process_is_reported_and_retried(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement.sys, "executable", "/bin/false")  # type: ignore[attr-defined]
        await failed(store, "ended with 1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement.sys, "executable", str(tmp_path / "no python"))  # type: ignore[attr-defined]
        await failed(store, "No such file")
    assert homes(tmp_path) == ["chunks", "nodes"]
    assert (await store.upkeep.run(CHUNKS)).failure is None
    assert (await store.indexes())[0].state is IndexState.IDLE
    await store.close()


async def test_an_unreadable_copy_is_reported_with_the_output_of_the_process(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    copied = replacement._copy_points

    async def damaged(source: Path, target: Path) -> None:
        await copied(source, target)
        for path in target.rglob("segment.json"):
            path.write_text("{")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_copy_points", damaged)
        await failed(store, "segment")
    await store.close()


async def test_a_full_disk_is_reported_before_and_during_the_copy(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_size_and_room", lambda folder: (1 << 30, 1 << 20))
        await failed(store, "1 MiB free")

    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_copy_file", full)
        await failed(store, "No space left")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "write_pointer", lambda home, places: full(home, home / "shards.json.new"))
        await failed(store, "No space left")
    assert homes(tmp_path) == ["chunks", "nodes"]
    await store.close()


async def test_building_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100, UpkeepOptions(min_points=50, first_look_s=3600, time_limit_s=0.001))
    await failed(store, "longer than 0.001 s")
    await store.close()


async def test_closing_ends_a_run_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100, UpkeepOptions(min_points=50, first_look_s=0.0))
    began = asyncio.Event()

    async def never(target: Path, time_limit_s: float) -> None:
        began.set()
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_optimize_copy", never)
        await began.wait()
        assert (await store.indexes())[0].state is IndexState.OPTIMISING
        assert homes(tmp_path) == ["chunks", "chunks", "nodes"]
        await store.close()
    assert homes(tmp_path) == ["chunks", "nodes"]
    store = await opened(tmp_path)
    assert await store.count(A, CHUNKS) == 100
    await store.close()


async def test_writers_wait_while_files_are_copied_and_readers_do_not(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    copied, release = asyncio.Event(), asyncio.Event()
    whole = replacement._copy_points

    async def slow(source: Path, target: Path) -> None:
        await whole(source, target)
        copied.set()
        await release.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replacement, "_copy_points", slow)
        running = asyncio.create_task(store.upkeep.run(CHUNKS))
        await copied.wait()
        waiting: Sequence[asyncio.Task[Any]] = [
            asyncio.create_task(coroutine)
            for coroutine in (
                store.upsert(A, CHUNKS, [chunk(500)]),
                store.delete(A, CHUNKS, [chunk(1).id]),
                store.update_metadata(A, "d1", {}, title="t", key=None, up_to_version=9),
                store.flush(),
            )
        ]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in waiting)
        assert await store.count(A, CHUNKS) == 100
        await store.upsert(A, NODES, [])
        release.set()
        await asyncio.gather(*waiting)
        assert (await running).failure is None
    assert await store.count(A, CHUNKS) == 100
    assert await store.vectors(A, CHUNKS, [chunk(1).id]) == {}
    await store.close()


# --- the folder


async def test_leftovers_of_a_run_are_removed_at_the_next_opening(tmp_path: Path) -> None:
    store = await filled(tmp_path, 100)
    await store.upkeep.run(CHUNKS)
    (current,) = (path for path in tmp_path.glob("*/chunks*"))
    shutil.copytree(current, current.with_name("chunks.0badcafe"))
    reference = contents(store, CHUNKS)
    await store.close()
    store = await opened(tmp_path)
    assert [path.name for path in tmp_path.glob("*/chunks*")] == [current.name]
    assert contents(store, CHUNKS) == reference
    await store.close()


@pytest.mark.parametrize("text", ["", "{}", '{"chunks": {"folder": "x"}, "nodes": {}}', "[]"])
async def test_a_damaged_record_is_an_error_that_names_it_and_removes_nothing(text: str, tmp_path: Path) -> None:
    store = await filled(tmp_path, 10)
    await store.upkeep.run(CHUNKS)
    await store.close()
    (pointer,) = tmp_path.glob("*/shards.json")
    kept = pointer.read_text()
    pointer.write_text(text)
    with pytest.raises(StoreUnavailable, match=r"shards\.json"):
        await opened(tmp_path)
    pointer.write_text(kept)
    store = await opened(tmp_path)
    assert await store.count(A, CHUNKS) == 10
    with pytest.raises(StoreLocked):
        await opened(tmp_path)
    await store.close()


async def test_stores_of_equal_content_stay_equal_over_several_indexes(tmp_path: Path) -> None:
    store, reference = await filled(tmp_path / "one", 120), await filled(tmp_path / "other", 120)
    for number in range(3):
        assert (await store.upkeep.run(CHUNKS)).failure is None
        for each in (store, reference):
            await each.upsert(A, CHUNKS, [chunk(200 + number), chunk(number, "the pier")])
            await each.delete(A, CHUNKS, [chunk(100 + number).id])
    assert contents(store, CHUNKS) == contents(reference, CHUNKS)
    await store.close()
    await reference.close()
