"""Results of models for a document: recorded by recipe, and reused by later attempts and versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, insert, select, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, lock_document, read, write
from agentic_rag_backend.stores.catalogue.tables import model_results

_COUNTS = ("prompt_tokens", "completion_tokens", "calls", "failed_calls")
_RECIPES: BindParameter[Any] = bindparam("recipes", expanding=True)
_HELD = (
    model_results.c.tenant_id == bindparam("tenant"),
    model_results.c.document_id == bindparam("document"),
    model_results.c.recipe.in_(_RECIPES),
)
_KNOWN = select(model_results.c.recipe, model_results.c.value).where(*_HELD, model_results.c.value.is_not(None))
_PAID = select(*(func.coalesce(func.sum(model_results.c[name]), 0) for name in _COUNTS)).where(
    model_results.c.tenant_id == bindparam("tenant"),
    model_results.c.document_id == bindparam("document"),
    model_results.c.paid_version == bindparam("number"),
)
_KEEP = update(model_results).where(*_HELD, model_results.c.version < bindparam("number")).values(version=bindparam("number"))


def reuse(connection: Connection, tenant: TenantId, document_id: str, version: int, recipes: Sequence[str]) -> dict[str, Any]:
    """Return the values of the ``recipes`` that are on record, and keep them as long as ``version`` needs them.

    Failed calls have no value and are absent.
    """
    values: dict[str, Any] = {}
    for batch in batches(list(dict.fromkeys(recipes))):
        bound = {"tenant": tenant.value, "document": document_id, "recipes": list(batch)}
        values |= {row.recipe: row.value for row in connection.execute(_KNOWN, bound)}
        connection.execute(_KEEP, {**bound, "number": version})
    return values


def save(
    connection: Connection, tenant: TenantId, document_id: str, version: int, recipe: str, value: Any | None, usage: Usage
) -> None:
    """Record a value, a JSON value, with its cost, which ``version`` paid. None: the call failed, but was paid.

    The cost of a repeated call is added. `NotFound` if the document does not exist or was deleted.
    """
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is not None:
        raise NotFound(f"there is no document {document_id!r}")
    key = {"tenant_id": tenant.value, "document_id": document_id, "recipe": recipe}
    of_result = [model_results.c[name] == value_of for name, value_of in key.items()]
    before = connection.execute(select(model_results).where(*of_result)).mappings().first()
    counts = {name: getattr(usage, name) for name in _COUNTS}
    if before is None:
        row = {**key, **counts, "version": version, "paid_version": version, "value": value}
        connection.execute(insert(model_results).values(row))
        return
    if before["paid_version"] == version:
        counts = {name: count + before[name] for name, count in counts.items()}
    recorded_value = before["value"] if value is None else value
    latest = max(version, before["version"])
    connection.execute(
        update(model_results).where(*of_result).values(**counts, version=latest, paid_version=version, value=recorded_value)
    )


def usage(connection: Connection, tenant: TenantId, document_id: str, version: int) -> Usage:
    """Return the cost of all calls that ``version`` paid."""
    paid = connection.execute(_PAID, {"tenant": tenant.value, "document": document_id, "number": version}).one()
    return Usage(*map(int, paid))


class ModelResultCatalogue(CataloguePart):
    """Results by *recipe*: the SHA-256 (hex) of all inputs and models. They belong to one document of one tenant.

    A result stays until a version that did not use it is visible, or until its document is purged."""

    reuse = write(reuse)
    save = write(save)
    usage = read(usage)
