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

    @asynccontextmanager
    async def opened(name: str = "data", **settings: Any) -> AsyncIterator[Application]:
        usual = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02, "reconcile_interval_s": 0}
        folder = tmp_path / name
        async with open_container(Settings(_env_file=None, data_dir=folder, **{**usual, **settings})) as container:
            yield Application(container, folder)

    return opened
