"""The deployment's identity, and the folders that belong to its catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import new_deployment_id
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import deployments, store_folders

_SLOT = 1
_FIND_DEPLOYMENT = select(deployments.c.deployment_id, deployments.c.name).where(deployments.c.slot == _SLOT)


@dataclass(frozen=True, slots=True)
class RecordedDeployment:
    """The catalogue's deployment: its id, and the name under which its vectors were written."""

    id: str
    name: str


def _find_deployment(connection: Connection) -> RecordedDeployment | None:
    row = connection.execute(_FIND_DEPLOYMENT).first()
    return None if row is None else RecordedDeployment(row.deployment_id, row.name)


def _create(connection: Connection, name: str) -> RecordedDeployment:
    row = {"slot": _SLOT, "deployment_id": new_deployment_id(), "name": name, "created_at": utc_now()}
    # Without `replace`, the row of a faster process stays.
    upsert(connection, deployments, [row], keys=("slot",))
    deployment_row = connection.execute(_FIND_DEPLOYMENT).one()
    return RecordedDeployment(deployment_row.deployment_id, deployment_row.name)


def rename(connection: Connection, name: str) -> None:
    """Record ``name`` as the name under which the vectors are stored."""
    connection.execute(update(deployments).where(deployments.c.slot == _SLOT).values(name=name))


class DeploymentCatalogue(CataloguePart):
    """Creates the deployment's id once, and returns it on every call."""

    _find = read(_find_deployment)
    _create = write(_create)
    rename = write(rename)

    async def identify(self, name: str) -> RecordedDeployment:
        """Return the deployment. The first call creates it with a new id and ``name``."""
        # Read first: only the first start has to write.
        return await self._find() or await self._create(name)


_FIND_FOLDER = select(store_folders.c.place_id, store_folders.c.described).where(store_folders.c.name == bindparam("of"))


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
    row = connection.execute(_FIND_FOLDER, {"of": name}).first()
    if row is None:
        upsert(connection, store_folders, [_row_of(name, folder)], keys=("name",))
        row = connection.execute(_FIND_FOLDER, {"of": name}).one()
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
