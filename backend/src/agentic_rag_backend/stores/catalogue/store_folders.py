"""Folders that belong to a catalogue: of the vectors, the graph or the originals. All processes use the same folders."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.stores.catalogue.operations import CataloguePart, upsert, write
from agentic_rag_backend.stores.catalogue.tables import store_folders

_FIND = select(store_folders.c.place_id, store_folders.c.described).where(store_folders.c.name == bindparam("of"))


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """A folder. ``id`` is written in it and moves with it. ``described`` shows people its last location."""

    id: str
    described: str


def _row_of(name: str, folder: StoreFolder) -> dict[str, str]:
    return {"name": name, "place_id": folder.id, "described": folder.described}


def claim(connection: Connection, name: str, folder: StoreFolder) -> StoreFolder:
    """Record ``folder`` unless the name has a folder. Return the recorded folder with its current description."""
    # Read first: only the first start has to write.
    row = connection.execute(_FIND, {"of": name}).first()
    if row is None:
        upsert(connection, store_folders, [_row_of(name, folder)], keys=("name",))
        row = connection.execute(_FIND, {"of": name}).one()
    if row.place_id != folder.id:
        return StoreFolder(row.place_id, row.described)
    if row.described != folder.described:
        connection.execute(update(store_folders).where(store_folders.c.name == name).values(described=folder.described))
    return folder


def replace(connection: Connection, name: str, folder: StoreFolder) -> None:
    """Record ``folder`` and replace the name's earlier folder."""
    upsert(connection, store_folders, [_row_of(name, folder)], keys=("name",), replace=("place_id", "described"))


class StoreFolderCatalogue(CataloguePart):
    """Records one folder per name. The first folder claimed stays until it is replaced."""

    claim = write(claim)
    replace = write(replace)
