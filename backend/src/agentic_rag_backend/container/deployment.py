"""The deployment of a process, and the stores that its processes share.

Each folder has a file with its own id, and the catalogue stores the ids. A folder that was moved, or that hosts mount at
different paths, keeps its id. A new, empty folder has another id.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import uuid
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sqlalchemy import make_url

from agentic_rag_backend.domain.tenant import Deployment
from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import parse_url
from agentic_rag_backend.stores.catalogue.deployments import StoreFolder
from agentic_rag_backend.stores.ownership import Owner


async def identify(settings: Settings, catalogue: Catalogue, *, renaming: bool = False) -> Owner:
    """Return the catalogue's deployment under its configured name.

    Args:
        renaming: the caller writes vectors under that name, and then calls `record_name`.

    Raises:
        ConfigurationError: the vectors on the Qdrant server are under another name.
    """
    row = await catalogue.deployments.identify(settings.deployment)
    if row.name != settings.deployment:
        if settings.vector_store != "qdrant":
            await record_name(settings, catalogue)
        elif not renaming:
            raise ConfigurationError(
                f"the vectors of this deployment, {row.id}, are in the Qdrant collections of DEPLOYMENT={row.name}, but "
                f"DEPLOYMENT is {settings.deployment}. Restore the name, or run 'agentic-rag reindex', which writes them under "
                "the new name"
            )
    deployment = Deployment(id=row.id, name=settings.deployment, described=_describe_deployment(settings))
    return Owner(deployment=deployment, known_tenants=catalogue.tenants.known)


async def record_name(settings: Settings, catalogue: Catalogue) -> None:
    """Record that the vectors are stored under the configured name."""
    await catalogue.deployments.rename(settings.deployment)


def _describe_deployment(settings: Settings) -> str:
    """Return the location of the catalogue without credentials."""
    if settings.database_url is not None:
        url = make_url(settings.database_url)
        if url.host is not None:
            return f"{url.host}/{url.database}"
        return f"{socket.gethostname()}:{url.database}"
    return f"{socket.gethostname()}:{settings.data_dir.absolute()}"


STORES = 3
"""Stores that several processes must share: catalogue, graph and vectors."""


def shares_catalogue(settings: Settings) -> bool:
    """Return whether other processes may use the same catalogue. A catalogue in SQLite belongs to one process."""
    return not (settings.database_url or "sqlite").startswith("sqlite")


def of_one_process(settings: Settings) -> list[str]:
    """Return the settings of stores that belong to one process. Empty if processes can share everything."""
    stores = []
    if not shares_catalogue(settings):
        stores.append("DATABASE_URL=postgresql://… instead of SQLite")
    if settings.graph_store == "sqlite":
        stores.append("GRAPH_STORE=neo4j instead of sqlite")
    if settings.vector_store == "edge":
        stores.append("VECTOR_STORE=qdrant instead of edge")
    return stores


def require_shared_stores(settings: Settings, what: str) -> None:
    """Refuse ``what``, a feature that divides work between processes, unless processes can share the stores.

    Raises:
        ConfigurationError: the message names each store that prevents it, and the required setting.
    """
    requirements = of_one_process(settings)
    if settings.blob_url is None:
        requirements.append("BLOB_URL, a folder or bucket that every process can reach, instead of a folder in DATA_DIR")
    if requirements:
        raise ConfigurationError(f"{what} requires stores that several processes can share: {'; '.join(requirements)}")


VECTORS = "vectors"
_REMEDIES = {
    VECTORS: "VECTOR_STORE=qdrant for several processes, or 'agentic-rag reindex', which writes lost vectors again",
    "graph": "GRAPH_STORE=neo4j for several processes",
    "originals": "BLOB_URL, a folder or bucket that every process can reach",
}


async def require_store_folders(settings: Settings, catalogue: Catalogue, *, but: str | None = None) -> None:
    """Refuse folders that do not belong to the catalogue. The folders of its first process do.

    Args:
        but: store that is not checked.

    Raises:
        ConfigurationError: the message names both folders and the remedies.
        StoreUnavailable: a folder cannot be read or written.
    """
    if not shares_catalogue(settings):
        return
    for name, marker in _markers(settings).items():
        if name == but:
            continue
        ours = await asyncio.to_thread(_folder_of, marker)
        theirs = await catalogue.store_folders.claim(name, ours)
        if theirs.id != ours.id:
            raise ConfigurationError(
                f"the {name} of this catalogue are in {theirs.described}, but this process uses {ours.described}, so each "
                f"process would see a part. Use the same DATA_DIR, {_REMEDIES[name]}. If this folder is a copy of the "
                f"other, write {theirs.id} into {marker}"
            )


async def record_vector_folder(settings: Settings, catalogue: Catalogue) -> None:
    """Record this process's vectors as those of the catalogue, after all of them were written."""
    marker = _markers(settings).get(VECTORS)
    if marker is not None and shares_catalogue(settings):
        await catalogue.store_folders.replace(VECTORS, await asyncio.to_thread(_folder_of, marker))


def local_folders(settings: Settings) -> dict[str, Path]:
    """Return the folder of each local store that requests write to, by the name that messages have for the store."""
    folders = {}
    if settings.database_url is None:
        folders["the catalogue"] = settings.data_dir
    elif not shares_catalogue(settings):
        folders["the catalogue"] = Path(str(parse_url(settings.database_url).database)).parent
    if settings.blob_url is None:
        folders["the blob store"] = settings.data_dir / "blobs"
    elif (url := urlsplit(settings.blob_url)).scheme == "file":
        folders["the blob store"] = Path(url2pathname(url.path))
    return folders


def _markers(settings: Settings) -> dict[str, Path]:
    """Return the file with the id of each store in a folder."""
    markers = {}
    if settings.vector_store == "edge":
        markers[VECTORS] = settings.data_dir / "vectors" / ".place"
    if settings.graph_store == "sqlite":
        markers["graph"] = settings.data_dir / "graph.db.place"
    if settings.blob_url is None:
        markers["originals"] = settings.data_dir / "blobs" / ".place"
    elif (url := urlsplit(settings.blob_url)).scheme == "file":
        markers["originals"] = Path(url2pathname(url.path)) / ".place"
    return markers


def _folder_of(marker: Path) -> StoreFolder:
    """Return the folder of a marker file. Create the file if it is missing; of concurrent processes, one creates it."""
    try:
        if not marker.exists():
            marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = marker.with_name(f"{marker.name}.{secrets.token_hex(4)}")
            unfinished.write_text(f"{uuid.uuid4()}\n")
            with suppress(FileExistsError):
                os.link(unfinished, marker)
            unfinished.unlink()
        text = marker.read_text().strip()
    except OSError as error:
        raise StoreUnavailable(f"{marker} cannot be read or created: {error.strerror or error}") from error
    return StoreFolder(text, f"{socket.gethostname()}:{marker.parent.absolute()}")
