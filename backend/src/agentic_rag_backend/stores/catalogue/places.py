"""Folders that belong to a catalogue: the places of vectors, graph or originals. All processes use the same folders."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.stores.catalogue.operations import SqlPort, write
from agentic_rag_backend.stores.catalogue.rows import upsert
from agentic_rag_backend.stores.catalogue.tables import places

_FIND = select(places.c.place_id, places.c.described).where(places.c.name == bindparam("of"))


@dataclass(frozen=True, slots=True)
class Place:
    """A folder. ``id`` is written in it and moves with it. ``described`` shows people its last location."""

    id: str
    described: str


def _row(name: str, place: Place) -> dict[str, str]:
    return {"name": name, "place_id": place.id, "described": place.described}


def claim(connection: Connection, name: str, place: Place) -> Place:
    """Record ``place`` unless the name has a place. Return the recorded place with its current description."""
    # Read first: only the first start has to write.
    row = connection.execute(_FIND, {"of": name}).first()
    if row is None:
        upsert(connection, places, [_row(name, place)], keys=("name",))
        row = connection.execute(_FIND, {"of": name}).one()
    if row.place_id != place.id:
        return Place(row.place_id, row.described)
    if row.described != place.described:
        connection.execute(update(places).where(places.c.name == name).values(described=place.described))
    return place


def replace(connection: Connection, name: str, place: Place) -> None:
    """Record ``place`` and replace the name's earlier place."""
    upsert(connection, places, [_row(name, place)], keys=("name",), replace=("place_id", "described"))


class SqlPlaces(SqlPort):
    """Records one place per name. The first place claimed stays until it is replaced."""

    claim = write(claim)
    replace = write(replace)
