"""Folders that belong to a catalogue which other processes may be on: noticed where a process has others than those there are.

Each folder has a file with an id of its own, made once; the catalogue knows the id. So a folder that was moved, or that
several hosts have mounted in different places, is the same; a new, empty one is not.
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

from agentic_rag_backend.container.sharing import shares_catalogue
from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.catalogue.places import Place

VECTORS = "vectors"
_WAYS_OUT = {
    VECTORS: "VECTOR_STORE=qdrant for several processes, or, where those are lost, 'agentic-rag reindex', which writes them anew",
    "graph": "GRAPH_STORE=neo4j for several processes",
    "originals": "BLOB_URL, a folder or bucket that every process reaches",
}


async def require_places(settings: Settings, catalogue: SqlCatalogue, *, but: str | None = None) -> None:
    """Refuse folders that do not belong to the catalogue; the first process on it says which do.

    Args:
        but: not looked at.

    Raises:
        ConfigurationError: naming both folders, and what helps.
        StoreUnavailable: a folder cannot be read or written.
    """
    if not shares_catalogue(settings):
        return
    for name, marker in _markers(settings).items():
        if name == but:
            continue
        ours = await asyncio.to_thread(_place, marker)
        theirs = await catalogue.places.claim(name, ours)
        if theirs.id != ours.id:
            raise ConfigurationError(
                f"the {name} of this catalogue are in {theirs.described}, and this process has its own in {ours.described}: each "
                f"would see a part. Use the same DATA_DIR, {_WAYS_OUT[name]}; if that folder was copied or restored to here, "
                f"write {theirs.id} into {marker}"
            )


async def take_place(settings: Settings, catalogue: SqlCatalogue) -> None:
    """Have the vectors of this process be the catalogue's: all were written just now."""
    marker = _markers(settings).get(VECTORS)
    if marker is not None and shares_catalogue(settings):
        await catalogue.places.replace(VECTORS, await asyncio.to_thread(_place, marker))


def _markers(settings: Settings) -> dict[str, Path]:
    """Return the file with the id of each store that is in a folder."""
    found = {}
    if settings.vector_store == "edge":
        found[VECTORS] = settings.data_dir / "vectors" / ".place"
    if settings.graph_store == "sqlite":
        found["graph"] = settings.data_dir / "graph.db.place"
    if settings.blob_url is None:
        found["originals"] = settings.data_dir / "blobs" / ".place"
    elif (url := urlsplit(settings.blob_url)).scheme == "file":
        found["originals"] = Path(url2pathname(url.path)) / ".place"
    return found


def _place(marker: Path) -> Place:
    """Return the place that a marker is of, making the marker where there is none; of several who do, one does."""
    try:
        if not marker.exists():
            marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = marker.with_name(f"{marker.name}.{secrets.token_hex(4)}")
            unfinished.write_text(f"{uuid.uuid4()}\n")
            with suppress(FileExistsError):
                os.link(unfinished, marker)
            unfinished.unlink()
        found = marker.read_text().strip()
    except OSError as error:
        raise StoreUnavailable(f"{marker} cannot be read or made: {error.strerror or error}") from error
    return Place(found, f"{socket.gethostname()}:{marker.parent.absolute()}")
