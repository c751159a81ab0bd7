"""The deployment of a process, which owns data on shared servers."""

from __future__ import annotations

import socket

from sqlalchemy import make_url

from agentic_rag_backend.domain.deployment import Deployment
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Catalogue
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
