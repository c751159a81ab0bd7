"""Properties of the embedded store: its folder, its lock, crashes, and yielding to the event loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from turns import turns_of_others

from agentic_rag_backend.errors import ReindexRequired, StoreLocked, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.bm25 import Bm25Parameters
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, A, chunk, find, point_id

CHUNKS = Collection.CHUNKS
WRITE_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from agentic_rag_backend.stores.vector.base import Collection
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore
from agentic_rag_testing.stores.vector_samples import DIMENSIONS, chunk
from agentic_rag_testing.stores.vector_samples import A

async def main():
    store = await EdgeVectorStore.open(Path(sys.argv[1]), dimensions=DIMENSIONS, embedder_fingerprint="test")
    await store.upsert(A, Collection.CHUNKS, [chunk(number) for number in range(300)])
    await store.delete_document(A, "d1", up_to_version=1, keep=[chunk(number).id for number in range(1, 300)])
    await store.update_metadata(A, "d1", {"year": 7}, title="t", key=None, up_to_version=9)
    print("written", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def homes(folder: Path) -> list[Path]:
    return [record.parent for record in folder.glob("*/fingerprint.json")]


async def opened(
    folder: Path, *, embedder: str = "test", dimensions: int = DIMENSIONS, bm25: Bm25Parameters | None = None
) -> EdgeVectorStore:
    return await EdgeVectorStore.open(folder, dimensions=dimensions, embedder_fingerprint=embedder, bm25=bm25)


async def test_kill_9_loses_nothing_that_was_written_and_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITE_UNTIL_KILLED, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert writer.stdout is not None
        assert await writer.stdout.readline() == b"written\n"
        with pytest.raises(StoreLocked, match=str(writer.pid)) as locked:
            await opened(tmp_path)
        assert str(tmp_path) in locked.value.message
    finally:
        writer.send_signal(signal.SIGKILL)
        await writer.communicate()
    store = await opened(tmp_path)
    assert await store.count(A, CHUNKS) == 299
    assert len(await store.vectors(A, CHUNKS, [point_id(number) for number in range(300)])) == 299
    assert len((await find(store, A, limit=500)).sparse) == 299
    await store.close()


async def test_a_second_open_in_the_same_process_is_refused_until_the_first_is_closed(tmp_path: Path) -> None:
    first = await opened(tmp_path)
    with pytest.raises(StoreLocked, match=str(os.getpid())):
        await opened(tmp_path)
    await first.close()
    await first.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await first.ping()
    second = await opened(tmp_path)
    await second.ping()
    await second.close()


@pytest.mark.parametrize(
    "other",
    [{"embedder": "another"}, {"dimensions": DIMENSIONS + 1}, {"bm25": Bm25Parameters(average_tokens=256)}],
)
async def test_another_fingerprint_is_refused_where_there_is_data_naming_both(tmp_path: Path, other: dict[str, object]) -> None:
    store = await opened(tmp_path)
    await store.upsert(A, CHUNKS, [chunk(1)])
    await store.close()
    with pytest.raises(ReindexRequired) as refused:
        await opened(tmp_path, **other)  # type: ignore[arg-type]
    assert store.fingerprint in refused.value.message
    assert refused.value.message.count(" x float32") == 2
    again = await opened(tmp_path)
    assert await again.count(A, CHUNKS) == 1
    await again.delete_tenant(A)
    await again.close()
    empty = await opened(tmp_path, **other)  # type: ignore[arg-type]
    assert await empty.count(A, CHUNKS) == 0
    await empty.close()


async def test_the_folder_says_what_its_vectors_were_made_with(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    (home,) = homes(tmp_path)
    assert json.loads((home / "fingerprint.json").read_text())["fingerprint"] == store.fingerprint
    await store.close()


async def test_a_store_whose_making_was_interrupted_is_made_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.close()
    (home,) = homes(tmp_path)
    home.rename(home.with_suffix(".new"))
    (home.with_suffix(".new") / "nodes" / "wal").rename(tmp_path / "lost")
    store = await opened(tmp_path)
    await store.upsert(A, Collection.NODES, [])
    assert await store.count(A, CHUNKS) == 0
    await store.close()
    assert not home.with_suffix(".new").exists()


async def test_damaged_files_are_an_error_that_names_them_and_frees_the_folder(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.close()
    (home,) = homes(tmp_path)
    segments = home / "nodes" / "segments"
    segments.rename(tmp_path / "elsewhere")
    segments.write_text("no folder")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="nodes") as failed:
            await opened(tmp_path)
        assert not isinstance(failed.value, StoreLocked)


async def test_a_large_write_lets_others_run(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    async with turns_of_others() as turns:
        await store.upsert(A, CHUNKS, [chunk(number) for number in range(1000)])
    assert turns.count >= 100
    await store.close()


async def test_the_last_of_two_points_with_one_id_wins(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await store.upsert(
        A, CHUNKS, [chunk(1, "an orchard"), *(chunk(number) for number in range(2, 200)), chunk(1, "a lighthouse")]
    )
    assert (await find(store, A, text="orchard")).sparse == ()
    assert [hit.id for hit in (await find(store, A, text="lighthouse")).sparse] == [point_id(1)]
    assert await store.count(A, CHUNKS) == 199
    await store.close()


async def test_a_new_collection_does_not_hold_its_file_of_vectors_and_indexes_what_is_asked_of_it(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    for collection, own in ((Collection.CHUNKS, {"document_id", "version"}), (Collection.NODES, {"generation"})):
        (segment,) = (homes(tmp_path)[0] / collection / "segments").iterdir()
        told = json.loads((segment / "segment.json").read_text())["config"]["vector_data"]
        # InRamChunkedMmap would be read completely at each opening: 32 MB for the first vector.
        assert {each["storage_type"] for each in told.values()} == {"ChunkedMmap"}
        indexed = json.loads((segment / "payload_index" / "config.json").read_text())["indexed_types"]
        assert set(indexed) == {"scope", "tenant", "tags"} | own
    await store.close()
