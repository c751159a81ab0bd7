"""Folders that belong to a shared catalogue: a process with other folders is refused, and the error names both."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.container import open_container
from agentic_rag_backend.container.reindexing import open_reindexing
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings


def settings_of(folder: Path, url: str, **other: Any) -> Settings:
    return Settings(_env_file=None, data_dir=folder, database_url=url, **other)


async def opened(settings: Settings) -> None:
    async with open_container(settings, work=False):
        pass


async def test_other_vectors_are_refused_until_they_are_written_anew(postgres_url: str, tmp_path: Path) -> None:
    here = settings_of(tmp_path / "here", postgres_url)
    await opened(here)
    await opened(here)
    shutil.rmtree(here.data_dir / "vectors")
    with pytest.raises(ConfigurationError, match=r"the vectors of this catalogue are in .*agentic-rag reindex"):
        await opened(here)

    async def quiet(stage: str, done: int, total: int) -> None: ...

    async with open_reindexing(here) as reindexing:
        await reindexing.reindexer.run(quiet)
        await reindexing.finish()
    await opened(here)


@pytest.mark.parametrize("lost", ["vectors/.place", "graph.db.place", "blobs/.place"])
async def test_another_folder_is_refused_with_both_names(postgres_url: str, tmp_path: Path, lost: str) -> None:
    here, there = (settings_of(tmp_path / name, postgres_url) for name in ("here", "there"))
    await opened(here)
    # All but one are the same folders, according to their markers.
    for name in {"vectors/.place", "graph.db.place", "blobs/.place"} - {lost}:
        (there.data_dir / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here.data_dir / name, there.data_dir / name)
    with pytest.raises(ConfigurationError) as refused:
        await opened(there)
    places = [str((each.data_dir / lost).parent) for each in (here, there)]
    assert all(place in refused.value.message for place in places), refused.value.message
    # As the message says: after restoring a copy, an operator writes the id from the message.
    (there.data_dir / lost).write_text((here.data_dir / lost).read_text())
    await opened(there)


async def test_of_two_that_start_at_once_one_is_refused(postgres_url: str, tmp_path: Path) -> None:
    both = [settings_of(tmp_path / name, postgres_url) for name in ("here", "there")]
    done = await asyncio.gather(*(opened(each) for each in both), return_exceptions=True)
    assert sorted(type(each).__name__ for each in done) == ["ConfigurationError", "NoneType"]


async def test_a_folder_of_originals_that_is_mounted_elsewhere_is_the_same(postgres_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "originals"
    folder.mkdir()
    (tmp_path / "mounted").symlink_to(folder)
    here = settings_of(tmp_path / "here", postgres_url, blob_url=folder.as_uri())
    await opened(here)
    await opened(here.model_copy(update={"blob_url": (tmp_path / "mounted").as_uri()}))
    with pytest.raises(ConfigurationError, match="the originals of this catalogue"):
        await opened(here.model_copy(update={"blob_url": None}))


async def test_a_catalogue_of_its_own_asks_nothing(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path / "data")
    await opened(settings)
    shutil.rmtree(settings.data_dir / "vectors")
    await opened(settings)
    assert not list(settings.data_dir.rglob("*.place"))
