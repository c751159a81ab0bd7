"""A process that is killed during an index build leaves a folder that opens with all confirmed writes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import index_scenarios
import pytest
from index_scenarios import A, Write, assert_equal, opened

from agentic_rag_backend.stores.vector.base import Collection

BEFORE = [Write("upsert", numbers=tuple(range(60)))]
BESIDE = [
    write
    for number in range(60)
    for write in (
        Write("upsert", numbers=(100 + number, number), text="the pier"),
        Write("delete", numbers=(number + 1,)),
        Write("update_metadata", numbers=(number,)),
    )
]
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv.pop(1).split(os.pathsep)
from test_kill import BEFORE, BESIDE
from index_scenarios import opened
from agentic_rag_backend.stores.vector.edge import folder, replacement
from agentic_rag_backend.stores.vector.base import Collection

place, name, when = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def deadly(whole):
    if asyncio.iscoroutinefunction(whole):
        async def call(*args, **kwargs):
            if when == "before":
                die()
            await whole(*args, **kwargs)
            die()
    else:
        def call(*args, **kwargs):
            if when == "before":
                die()
            whole(*args, **kwargs)
            die()
    return call

async def stopped_child(target, time_limit_s):
    # The child is stopped once it has said with whom it dies, and then lives for as long as nothing ends it.
    running = asyncio.create_task(replacement_optimize(target, time_limit_s))
    while True:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        if children and os.getpriority(os.PRIO_PROCESS, int(children[0])) == 19:
            os.kill(int(children[0]), signal.SIGSTOP)
            os.write(1, f"child {children[0]}\\n".encode())
            die()
        await asyncio.sleep(0.001)

replacement_optimize = replacement._optimize_copy
owner, _, attribute = name.partition(".")
if name == "child":
    replacement._optimize_copy = stopped_child
else:
    holder = {"replacement": replacement, "folder": folder, "Replacement": replacement.Replacement}[owner]
    setattr(holder, attribute, deadly(getattr(holder, attribute)))

async def main():
    store = await opened(place)
    for write in BEFORE:
        await write.apply(store)
    running = asyncio.create_task(store.upkeep.run(Collection.CHUNKS))
    for number, write in enumerate(BESIDE):
        await write.apply(store)
        os.write(1, f"{number}\\n".encode())
        await asyncio.sleep(0.002)
    print(await running)

asyncio.run(main())
"""
MOMENTS = [
    ("replacement._copy_file", "after"),
    ("replacement._copy_points", "after"),
    ("child", "while it builds"),
    ("replacement._optimize_copy", "after"),
    ("replacement.replay", "after"),
    ("Replacement._activate", "before"),
    ("folder.sync", "after"),
    ("replacement.write_pointer", "after"),
    ("Replacement._activate", "after"),
    ("replacement.sync", "before"),
    ("replacement.sync", "after"),
]


@pytest.mark.parametrize(("name", "when"), MOMENTS)
async def test_kill_9_leaves_all_that_was_written(name: str, when: str, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        KILLED,
        os.pathsep.join([str(Path(__file__).parent), str(Path(index_scenarios.__file__).parent)]),
        str(tmp_path / "one"),
        name,
        when,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    lines = said.decode().split("\n")[:-1]
    done = [int(line) for line in lines if line.isdigit()]
    store, reference = await opened(tmp_path / "one"), await opened(tmp_path / "other")
    for write in [*BEFORE, *BESIDE[: len(done)]]:
        await write.apply(reference)
    try:
        await assert_equal(store, reference)
    except AssertionError:
        # One more write may have been made without being reported.
        await BESIDE[len(done)].apply(reference)
        await assert_equal(store, reference)
    (home,) = (record.parent for record in (tmp_path / "one").glob("*/fingerprint.json"))
    assert sorted(path.name.partition(".")[0] for path in home.iterdir() if path.is_dir()) == ["chunks", "nodes"]
    for child in (int(line.split()[1]) for line in lines if line.startswith("child")):
        _assert_gone(child)
    run = await store.upkeep.run(Collection.CHUNKS)
    assert run.failure is None
    await assert_equal(store, reference)
    assert await store.count(A, Collection.CHUNKS) > 0
    await store.close()
    await reference.close()


def _assert_gone(child: int) -> None:
    for _ in range(6000):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the process that builds the index outlived its parent")
