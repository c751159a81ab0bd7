"""A multi-tenant retrieval backend with a knowledge graph. ``open_embedded`` is its Python API."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentic_rag_backend.library import Embedded, open_embedded

__version__ = "0.1.0"
__all__ = ["Embedded", "__version__", "open_embedded"]


def __getattr__(name: str) -> Any:
    """Import the Python API at its first use, because it imports the stores and the model runtime."""
    if name in ("open_embedded", "Embedded"):
        return getattr(import_module("agentic_rag_backend.library"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
