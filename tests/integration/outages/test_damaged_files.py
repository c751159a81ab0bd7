"""Damaged files at the start: the message names the file and the remedy, without details of the error."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentic_rag_backend.container import open_container
from agentic_rag_backend.errors import AgenticRagError, StoreDamaged
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint

Damage = Callable[[bytes], bytes]
DAMAGES: dict[str, Damage] = {
    "empty": lambda held: b"",
    "garbage": lambda held: b"\x00\xffgarbage{" * 200,
    "truncated": lambda held: held[: len(held) // 2],
}
FILES = {
    "catalogue.db": ("garbage", "truncated"),
    "graph.db": ("garbage", "truncated"),
    "vectors/*/fingerprint.json": ("empty", "garbage", "truncated"),
    "vectors/*/shards.json": ("empty", "garbage", "truncated"),
    "vectors/*/chunks/edge_config.json": ("empty", "garbage", "truncated"),
    "vectors/*/chunks/segments/*/segment.json": ("empty", "garbage", "truncated"),
}


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, _env_file=None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed folder with a tenant and some points."""
    import asyncio

    folder = tmp_path_factory.mktemp("whole") / "data"

    async def made() -> None:
        async with open_container(settings(folder), work=False) as container:
            tenant = (await container.catalogue.tenants.create("acme")).id
            points = [
                VectorPoint(id=f"00000000-0000-0000-0000-{n:012}", kind=NodeKind.CHUNK, text=f"tide {n}", document_id="d")
                for n in range(5)
            ]
            await container.vectors.upsert(tenant, Collection.CHUNKS, points)
        (home,) = (folder / "vectors").glob("*/")
        in_use = ", ".join(f'"{each}": {{"name": "{each}", "points": 0, "written": 0}}' for each in Collection)
        (home / "shards.json").write_text(f"{{{in_use}}}")

    asyncio.run(made())
    return folder


@pytest.mark.parametrize(("pattern", "how"), [(file, how) for file, damages in FILES.items() for how in damages])
async def test_the_start_names_the_damaged_file_and_what_to_do(whole: Path, tmp_path: Path, pattern: str, how: str) -> None:
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    (file,) = folder.glob(pattern)
    file.write_bytes(DAMAGES[how](file.read_bytes()))
    with pytest.raises(AgenticRagError) as refused:
        async with open_container(settings(folder), work=False):
            pass
    assert isinstance(refused.value, StoreDamaged), refused.value
    # The engine's own files are identified by their collection's folder.
    named = next((parent for parent in file.parents if parent.name == "chunks"), file)
    assert str(named) in refused.value.message
    assert "from a backup" in refused.value.message
    assert ("agentic-rag reindex" in refused.value.message) is ("vectors" in pattern)
