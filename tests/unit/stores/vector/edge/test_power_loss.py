"""After `flush`, a power loss loses nothing, whatever the state of the engine's other files on disk."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from pathlib import Path

import pytest
from sampling import budget

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.conditions import tags_of
from agentic_rag_backend.stores.vector.edge import edge_engine, shard
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, chunk, find, point_id

CHUNKS = Collection.CHUNKS
PAGE_BYTES = 4096
BEFORE, AFTER = 100, 260
WRITE_AND_COPY = f"""
import asyncio, os, shutil, sys
from pathlib import Path
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_backend.stores.vector.conditions import tags_of
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, chunk
from agentic_rag_testing.stores.vector_samples import A

async def main():
    folder = Path(sys.argv[1])
    store = await EdgeVectorStore.open(folder / "now", dimensions=DIMENSIONS, embedder_fingerprint="test")
    await store.upsert(A, Collection.CHUNKS, [chunk(number) for number in range({BEFORE})])
    for each in store._shards.values():
        each.flush()
    shutil.copytree(folder / "now", folder / "flushed")
    await store.upsert(A, Collection.CHUNKS, [chunk(number) for number in range({BEFORE}, {AFTER})])
    await store.delete_document(A, "d1", up_to_version=1, keep=[chunk(number).id for number in range(1, {AFTER})])
    await store.update_metadata(A, "d1", {{"year": 7}}, title="t", key=None, up_to_version=9)
    await store.flush()
    shutil.copytree(folder / "now", folder / "written")
    os._exit(9)

asyncio.run(main())
"""


async def opened(folder: Path) -> EdgeVectorStore:
    return await EdgeVectorStore.open(folder, dimensions=DIMENSIONS, embedder_fingerprint="test")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``flushed``, after the engine's last flush, and ``written``, after a later `flush` of ours."""
    folder = tmp_path_factory.mktemp("power")

    async def write() -> int:
        writer = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITE_AND_COPY, str(folder))
        return await writer.wait()

    assert asyncio.run(write()) == 9
    return folder


def lose_power(copies: Path, folder: Path, choose: random.Random) -> int:
    """Put ``folder`` into a possible state after a power loss: the log complete, any pages of other files. Return the
    differences.
    """
    shutil.copytree(copies / "flushed", folder)
    taken = 0
    for path in (copies / "written").rglob("*"):
        target = folder / path.relative_to(copies / "written")
        if not path.is_file():
            continue
        if "wal" in path.parts:
            shutil.copy(path, target)
            continue
        old, new = target.read_bytes() if target.exists() else b"", path.read_bytes()
        if old == new:
            continue
        mixed = bytearray(old.ljust(len(new), b"\0"))
        for start in range(0, len(new), PAGE_BYTES):
            if choose.random() < 0.5:
                mixed[start : start + PAGE_BYTES] = new[start : start + PAGE_BYTES]
                taken += 1
        target.write_bytes(mixed)
    return taken


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(budget(gate=2, deep=20)))
async def test_the_log_alone_brings_everything_back(copies: Path, tmp_path: Path, seed: int) -> None:
    taken = lose_power(copies, tmp_path / "lost", random.Random(seed))
    assert taken or seed, "the engine wrote to its files between the two"
    store = await opened(tmp_path / "lost")
    try:
        assert await store.count(A, CHUNKS) == AFTER - 1
        found = await store.vectors(A, CHUNKS, [point_id(number) for number in range(AFTER)])
        assert set(found) == {point_id(number) for number in range(1, AFTER)}
        assert len((await find(store, A, limit=2 * AFTER)).sparse) == AFTER - 1
        points = [point async for page in store.points(A, CHUNKS) for point in page]
        assert all(set(tags_of({"year": 7})) <= point.tags for point in points)
    finally:
        await store.close()


async def test_without_the_log_what_came_after_the_engines_flush_is_lost(copies: Path, tmp_path: Path) -> None:
    """The assumption of the tests above: the folders differ, and the log makes up for the difference."""
    shutil.copytree(copies / "flushed", tmp_path / "lost")
    store = await opened(tmp_path / "lost")
    assert await store.count(A, CHUNKS) == BEFORE
    await store.close()


async def test_a_flush_writes_the_logs_of_all_collections_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)
    await store.upsert(A, CHUNKS, [chunk(1)])
    synced: set[Path] = set()
    monkeypatch.setattr(edge_engine, "sync", synced.add)
    await store.flush()
    logs = {path for path in tmp_path.rglob("wal/*") if path.is_file()}
    assert len({path.parent for path in logs}) == len(Collection)
    assert logs <= synced
    await store.close()


async def test_everything_is_flushed_when_much_has_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard, "FLUSHED_AFTER", 10)
    flushes: list[Path] = []
    flush = shard.Shard.flush

    def noted(self: shard.Shard) -> None:
        flushes.append(self.folder)
        flush(self)

    monkeypatch.setattr(shard.Shard, "flush", noted)
    store = await opened(tmp_path)
    for number in range(9):
        await store.upsert(A, CHUNKS, [chunk(number)])
        await store.flush()
    assert flushes == []
    assert await store.delete_document(A, "d1", up_to_version=1, keep=[]) == 9
    await store.flush()
    assert len(flushes) == 1, "what is removed counts, too"
    await store.flush()
    assert len(flushes) == 1
    await store.close()


async def test_a_part_of_the_log_that_ends_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)
    gone: list[Path] = []

    def sync(path: Path) -> None:
        if not gone:
            gone.append(path)
            raise FileNotFoundError(path)

    monkeypatch.setattr(edge_engine, "sync", sync)
    await store.flush()
    assert len(gone) == 1
    await store.close()


async def test_a_log_that_cannot_be_written_is_an_error_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await opened(tmp_path)

    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(edge_engine, "sync", full)
        with pytest.raises(StoreUnavailable, match="No space left"):
            await store.flush()
    with monkeypatch.context() as patched:
        patched.setattr(shard, "_LOG", "elsewhere")  # an engine with the log in another place must be detected
        with pytest.raises(StoreUnavailable, match="elsewhere"):
            await store.flush()
    await store.close()
