"""The deployment's identity: one row, written by the first process."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import new_deployment_id
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import deployments

_SLOT = 1
_FIND = select(deployments.c.deployment_id, deployments.c.name).where(deployments.c.slot == _SLOT)


@dataclass(frozen=True, slots=True)
class RecordedDeployment:
    """The catalogue's deployment: its id, and the name under which its vectors were written."""

    id: str
    name: str


def _find_deployment(connection: Connection) -> RecordedDeployment | None:
    row = connection.execute(_FIND).first()
    return None if row is None else RecordedDeployment(row.deployment_id, row.name)


def _create(connection: Connection, name: str) -> RecordedDeployment:
    row = {"slot": _SLOT, "deployment_id": new_deployment_id(), "name": name, "created_at": utc_now()}
    # Without `replace`, the row of a faster process stays.
    upsert(connection, deployments, [row], keys=("slot",))
    deployment_row = connection.execute(_FIND).one()
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
