"""The import of Graphiti: no telemetry, and no ``.env`` file read into the environment of the process."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import PydanticDeprecatedSince20

VERSION = "0.31.1"
"""The release that this package was written for."""
_TELEMETRY = "GRAPHITI_TELEMETRY_ENABLED"
_NO_DOTENV = "PYTHON_DOTENV_DISABLED"

# Its warnings quote documents.
logging.getLogger("graphiti_core").setLevel(logging.ERROR)
# Graphiti reads it at each event, so it is not reset.
os.environ[_TELEMETRY] = "false"


@contextmanager
def _without_dotenv() -> Iterator[None]:
    """Disable ``load_dotenv``: three of Graphiti's modules call it on import."""
    before = os.environ.get(_NO_DOTENV)
    os.environ[_NO_DOTENV] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_DOTENV]
        else:
            os.environ[_NO_DOTENV] = before


with _without_dotenv(), warnings.catch_warnings():
    # Its search interface uses a configuration of pydantic 1.
    warnings.simplefilter("ignore", PydanticDeprecatedSince20)
    from graphiti_core import Graphiti
    from graphiti_core.cross_encoder.client import CrossEncoderClient
    from graphiti_core.driver.driver import GraphDriver, GraphDriverSession, GraphProvider
    from graphiti_core.driver.graph_operations.graph_operations import GraphOperationsInterface
    from graphiti_core.driver.search_interface.search_interface import SearchInterface
    from graphiti_core.edges import EntityEdge
    from graphiti_core.embedder.client import EmbedderClient
    from graphiti_core.errors import EdgeNotFoundError, NodeNotFoundError
    from graphiti_core.graphiti import AddEpisodeResults
    from graphiti_core.llm_client.client import LLMClient
    from graphiti_core.llm_client.config import LLMConfig, ModelSize
    from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode
    from graphiti_core.prompts.models import Message
    from graphiti_core.search.search_config import SearchConfig, SearchResults
    from graphiti_core.search.search_config_recipes import COMBINED_HYBRID_SEARCH_RRF
    from graphiti_core.search.search_filters import ComparisonOperator, DateFilter, PropertyFilter, SearchFilters

__all__ = [
    "COMBINED_HYBRID_SEARCH_RRF",
    "VERSION",
    "AddEpisodeResults",
    "ComparisonOperator",
    "CrossEncoderClient",
    "DateFilter",
    "EdgeNotFoundError",
    "EmbedderClient",
    "EntityEdge",
    "EntityNode",
    "EpisodeType",
    "EpisodicNode",
    "GraphDriver",
    "GraphDriverSession",
    "GraphOperationsInterface",
    "GraphProvider",
    "Graphiti",
    "LLMClient",
    "LLMConfig",
    "Message",
    "ModelSize",
    "NodeNotFoundError",
    "PropertyFilter",
    "SearchConfig",
    "SearchFilters",
    "SearchInterface",
    "SearchResults",
]
