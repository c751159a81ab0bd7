"""Contract of every catalogue for results of models about a document: paid once, and gone with the document."""

from __future__ import annotations

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    Check,
    equal,
    ingest,
    nothing,
    raises,
    stage,
    submission,
    tenant,
)

PAID = Usage(100, 10, 1)


async def a_model_result_is_reused_by_its_recipe(catalogue: Catalogue) -> None:
    """A failed call has no value. Its cost, and that of a repetition, are counted for the version that paid."""
    owner, held = await tenant(catalogue), catalogue.model_results
    document = await ingest(catalogue, owner, "report")
    await held.save(owner, document.id, 1, "boundaries", [1, 4], PAID)
    await held.save(owner, document.id, 1, "failed", None, Usage(100, 0, 2, 2))
    equal(await held.reuse(owner, document.id, 1, ["boundaries", "failed", "unknown"]), {"boundaries": [1, 4]})
    equal(await held.usage(owner, document.id, 1), Usage(200, 10, 3, 2))
    await held.save(owner, document.id, 1, "failed", {"a": "b"}, PAID)
    equal(await held.usage(owner, document.id, 1), Usage(300, 20, 4, 2), "a repetition is paid as well")
    equal(await held.reuse(owner, document.id, 1, ["failed"]), {"failed": {"a": "b"}})
    await held.save(owner, document.id, 1, "boundaries", None, Usage())
    equal(await held.reuse(owner, document.id, 1, ["boundaries"]), {"boundaries": [1, 4]}, "a failure removes no value")
    other = await ingest(catalogue, owner, "other")
    equal(await held.reuse(owner, other.id, 1, ["boundaries"]), {}, "results belong to one document")
    many = [f"recipe {number}" for number in range(1203)]
    equal(await held.reuse(owner, document.id, 1, [*many, "boundaries"]), {"boundaries": [1, 4]})


async def a_model_result_stays_as_long_as_a_version_uses_it(catalogue: Catalogue) -> None:
    """A version that becomes visible removes the results that it did not use. A purge removes all of them."""
    owner, held = await tenant(catalogue), catalogue.model_results
    document = await ingest(catalogue, owner, "report")
    await held.save(owner, document.id, 1, "used", [1], PAID)
    await held.save(owner, document.id, 1, "unused", [2], PAID)
    second = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    equal(await held.reuse(owner, document.id, 2, ["used"]), {"used": [1]})
    equal(await held.usage(owner, document.id, 2), Usage(), "the first version paid")
    await stage(catalogue, owner, second, LINES[0])
    await catalogue.documents.publish(owner, document.id, 2)
    equal(await held.reuse(owner, document.id, 2, ["used", "unused"]), {"used": [1]})
    equal((await catalogue.documents.remains(owner, document.id))["model_results"], 1)
    await catalogue.documents.tombstone(owner, document.id, nothing)
    await raises(NotFound, held.save(owner, document.id, 2, "late", [3], PAID), "a deleted document")
    equal((await catalogue.documents.purge(owner, document.id, up_to_version=2))["model_results"], 1)
    equal(await held.reuse(owner, document.id, 2, ["used"]), {})
    await raises(NotFound, held.save(owner, "unknown", 1, "used", [1], PAID), "an unknown document")


CHECKS: tuple[Check, ...] = (a_model_result_is_reused_by_its_recipe, a_model_result_stays_as_long_as_a_version_uses_it)
