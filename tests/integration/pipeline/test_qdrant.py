"""The container with a Qdrant server: its requirements, and the single owner of a DATA_DIR with SQLite."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from qdrant_clients import WITHOUT_INDEXES, local_client

from agentic_rag_backend.container import open_container
from agentic_rag_backend.errors import ConfigurationError, StoreLocked
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.qdrant import server as qdrant_server
from agentic_rag_backend.stores.vector.qdrant.qdrant_store import QdrantVectorStore


def settings(folder: Path, **named: Any) -> Settings:
    return Settings(data_dir=folder, vector_store="qdrant", _env_file=None, **named)


async def test_the_address_is_required(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        async with open_container(settings(tmp_path), work=False):
            pass


async def test_the_extra_is_required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "agentic_rag_backend.stores.vector.qdrant.qdrant_store", None)
    with pytest.raises(ConfigurationError, match=r"extra 'server'.*pip install './backend\[server\]'"):
        async with open_container(settings(tmp_path, qdrant_url="http://127.0.0.1:6333"), work=False):
            pass


@pytest.mark.filterwarnings(WITHOUT_INDEXES)
async def test_settings_reach_the_client_and_the_folder_has_one_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def connect(url: str, **named: Any) -> Any:
        asked.append((url, named))
        return local_client(tmp_path / f"server {len(asked)}")

    monkeypatch.setattr(qdrant_server, "connect", connect)
    chosen = settings(
        tmp_path,
        qdrant_url="https://store:443",
        qdrant_api_key="k",
        qdrant_prefer_grpc=True,
        qdrant_timeout_s=9,
        qdrant_grpc_port=7334,
    )
    async with open_container(chosen, work=False) as container:
        assert isinstance(container.vectors, QdrantVectorStore)
        await container.vectors.ping()
        with pytest.raises(StoreLocked):
            async with open_container(chosen, work=False):
                pass
    async with open_container(chosen, work=False):
        pass
    named = {"api_key": "k", "prefer_grpc": True, "grpc_port": 7334, "timeout_s": 9, "ca_file": None}
    assert asked == [("https://store:443", named)] * 2
