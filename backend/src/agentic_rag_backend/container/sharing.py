"""Whether several processes may be on the same stores, and what is in the way where they may not."""

from __future__ import annotations

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings

STORES = 3
"""Catalogue, graph and vectors."""


def shares_catalogue(settings: Settings) -> bool:
    """Tell whether other processes may be on the same catalogue; one in SQLite belongs to who has DATA_DIR open."""
    return not (settings.database_url or "sqlite").startswith("sqlite")


def of_one_process(settings: Settings) -> list[str]:
    """Return the settings of stores that belong to one process, as they are; none where processes can share everything."""
    found = []
    if not shares_catalogue(settings):
        found.append("DATABASE_URL=postgresql://… instead of SQLite")
    if settings.graph_store == "sqlite":
        found.append("GRAPH_STORE=neo4j instead of sqlite")
    if settings.vector_store == "edge":
        found.append("VECTOR_STORE=qdrant instead of edge")
    return found


def require_shared(settings: Settings, what: str) -> None:
    """Refuse ``what``, which leaves the jobs to other processes or takes them from some, unless processes share the stores.

    Raises:
        ConfigurationError: naming each store that is in the way, and the setting that helps.
    """
    missing = of_one_process(settings)
    if settings.blob_url is None:
        missing.append("BLOB_URL, a folder or bucket that every process reaches, instead of a folder in DATA_DIR")
    if missing:
        raise ConfigurationError(f"{what} needs stores that several processes share: {'; '.join(missing)}")
