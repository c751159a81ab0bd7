"""The port of model results: what models returned for a document before it had chunks, kept so that nothing is paid twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage


class ModelResultCatalogue(Protocol):
    """Results by *recipe*: the SHA-256 (hex) of all inputs and models. They belong to one document of one tenant.

    A result stays until a version that did not use it is visible, or until its document is purged.
    """

    async def reuse(self, tenant: TenantId, document_id: str, version: int, recipes: Sequence[str]) -> dict[str, Any]:
        """Return the values of the ``recipes`` that are on record, and keep them as long as ``version`` needs them.

        Failed calls have no value and are absent.
        """

    async def save(self, tenant: TenantId, document_id: str, version: int, recipe: str, value: Any | None, usage: Usage) -> None:
        """Record a value, a JSON value, with its cost, which ``version`` paid. None: the call failed, but was paid.

        The cost of a repeated call is added. `NotFound` if the document does not exist or was deleted.
        """

    async def usage(self, tenant: TenantId, document_id: str, version: int) -> Usage:
        """Return the cost of all calls that ``version`` paid."""
