"""Checks whether several processes may use the same stores, and which settings prevent it."""

from __future__ import annotations

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings

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
