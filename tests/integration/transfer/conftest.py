"""Applications on separate folders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from moved_tenants import Application, Opens

from agentic_rag_backend.container import open_container
from agentic_rag_backend.settings import Settings


@pytest.fixture
def opens(tmp_path: Path) -> Opens:
    """Return a function that opens the application on a folder of that name repeatedly."""
    return _opens_in(tmp_path)


@pytest.fixture(scope="module")
def opens_once(tmp_path_factory: pytest.TempPathFactory) -> Opens:
    """Return ``opens`` for fixtures that a module builds once."""
    return _opens_in(tmp_path_factory.mktemp("once"))


def _opens_in(path: Path) -> Opens:
    @asynccontextmanager
    async def opened(name: str = "data", **settings: Any) -> AsyncIterator[Application]:
        usual = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02, "reconcile_interval_s": 0}
        folder = path / name
        async with open_container(Settings(_env_file=None, data_dir=folder, **{**usual, **settings})) as container:
            yield Application(container, folder)

    return opened
