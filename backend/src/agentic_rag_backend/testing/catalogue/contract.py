"""Contract of every catalogue: run `CHECKS` against an adapter, each on a new, migrated, empty database.

A check is an async function of the catalogue that raises `AssertionError`. ``tests/contract/test_catalogue.py`` shows how to run
them, and that catalogues with planted faults fail them. This module checks the tenant scope of every method of every port. The
other modules check the methods' behaviour.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from agentic_rag_backend.domain.document import ChunkSpan, DocumentState
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.ontology import EntityType, Ontology
from agentic_rag_backend.domain.tenant import Scope, TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import InvalidScope, NotFound
from agentic_rag_backend.stores.catalogue.base import (
    Catalogue,
    Change,
    CommunityCatalogue,
    DocumentCatalogue,
    Entry,
    GraphEditCatalogue,
    JobCatalogue,
    ModelResultCatalogue,
    Outbox,
    ParsedVersion,
    QuestionCatalogue,
    TenantDirectory,
    Topic,
    TreeCatalogue,
)
from agentic_rag_backend.testing.catalogue import (
    attachments,
    deletions,
    directory,
    document_status,
    documents,
    graph_edits,
    model_results,
    outbox,
    questions,
    results,
    revisions,
    trees,
    visibility,
)
from agentic_rag_backend.testing.catalogue.directory import SUMMARY
from agentic_rag_backend.testing.catalogue.samples import (
    BAD,
    TEXT,
    Check,
    equal,
    ingest,
    nothing,
    prepared,
    raises,
    submission,
    tenant,
    true,
)

A = TenantId("t_" + "a" * 32)
VISIBLE = submission("visible").document_id
STAGED = submission("staged").document_id
WANTED = [(item.chunk, item.recipe or "") for item in prepared(STAGED, 1, TEXT)]
CHUNKS = [item.chunk.id for id in (VISIBLE, STAGED) for item in prepared(id, 1, TEXT)]
QUESTIONS = [item.question.id for id in (VISIBLE, STAGED) for each in questions.questions(id, 1).values() for item in each.items]
FAR = datetime(2999, 1, 1, tzinfo=UTC)
OTHER_SECRET = "cc" * 32
UNSCOPED = {"hand_back_all", "create", "tenant_by_name", "tenants", "authenticate", "due", "known", "removed"}
"""Methods of tenants, communities, trees and the outbox that take no tenant, or that read all tenants."""

Operation = Callable[[Catalogue, Any, dict[str, str]], Awaitable[Any]]
"""Calls a method for a tenant with ids of A. ``open`` and ``ended`` are jobs, ``key`` is an API key."""


async def _visibility_counts(catalogue: Catalogue, owner: TenantId) -> dict[str, int]:
    """Return all documents that the catalogue reports as visible."""
    return dict((await catalogue.documents.visibility(owner)).versions)


async def _paid(catalogue: Catalogue, owner: TenantId) -> dict[str, int]:
    return asdict(await catalogue.model_results.usage(owner, VISIBLE, 1))


OPERATIONS: dict[str, Operation] = {
    "model_results.reuse": lambda c, t, _: c.model_results.reuse(t, VISIBLE, 1, ["r"]),
    "model_results.usage": lambda c, t, _: _paid(c, t),
    "model_results.save": lambda c, t, _: c.model_results.save(t, VISIBLE, 1, "r", ["of B"], Usage(1, 1, 1)),
    "documents.document": lambda c, t, _: c.documents.document(t, VISIBLE),
    "documents.documents": lambda c, t, _: c.documents.documents(t, limit=50),
    "documents.version": lambda c, t, _: c.documents.version(t, VISIBLE, 1),
    "documents.begin_job": lambda c, t, ids: c.documents.begin_job(t, ids["open"], 1),
    "documents.begin_processing": lambda c, t, _: c.documents.begin_processing(t, STAGED, 1),
    "documents.save_parsed": lambda c, t, _: c.documents.save_parsed(t, STAGED, 1, ParsedVersion("x", "x", {})),
    "documents.save_prepared": lambda c, t, _: c.documents.save_prepared(t, STAGED, 1, prepared(STAGED, 1, "x")),
    "documents.prepared": lambda c, t, _: c.documents.prepared(t, STAGED, 1),
    "documents.ready": lambda c, t, _: c.documents.ready(t, STAGED, 1),
    "documents.publish": lambda c, t, _: c.documents.publish(t, STAGED, 1),
    "documents.reuse": lambda c, t, _: c.documents.reuse(t, STAGED, 1, WANTED),
    "documents.save_extractions": lambda c, t, _: c.documents.save_extractions(t, STAGED, 1, [Extraction(chunk_id=CHUNKS[-1])]),
    "documents.remains": lambda c, t, _: c.documents.remains(t, STAGED),
    "documents.fail": lambda c, t, _: c.documents.fail(t, STAGED, 1, state=DocumentState.FAILED, failure=BAD),
    "documents.revise": lambda c, t, _: c.documents.revise(t, VISIBLE, Change(metadata={"of": "B"}), nothing),
    "documents.tombstone": lambda c, t, _: c.documents.tombstone(t, VISIBLE, nothing),
    "documents.retire_attachments": lambda c, t, _: c.documents.retire_attachments(t, VISIBLE, 1, [], nothing),
    "documents.forget_original": lambda c, t, _: c.documents.forget_original(t, VISIBLE, 1),
    "documents.blob_keys": lambda c, t, _: c.documents.blob_keys(t, VISIBLE, up_to_version=9),
    "documents.purge": lambda c, t, ids: c.documents.purge(t, ids["deleted"], up_to_version=9),
    "documents.drop_versions": lambda c, t, _: c.documents.drop_versions(t, VISIBLE, below=9),
    "documents.visible_versions": lambda c, t, _: c.documents.visible_versions(t),
    "documents.visibility": lambda c, t, _: _visibility_counts(c, t),
    "documents.statuses": lambda c, t, _: c.documents.statuses(t),
    "documents.visible_chunk_ids": lambda c, t, _: c.documents.visible_chunk_ids(t, [VISIBLE, STAGED]),
    "documents.visible_chunks_in_order": lambda c, t, _: c.documents.visible_chunks_in_order(t),
    "documents.take_up": lambda c, t, ids: c.documents.take_up(t, ids["deleted"], lambda kind: nothing),
    "documents.hydrate": lambda c, t, _: c.documents.hydrate(t, CHUNKS),
    "documents.parents": lambda c, t, _: c.documents.parents(t, CHUNKS),
    "documents.passages": lambda c, t, _: c.documents.passages(t, [ChunkSpan(VISIBLE, 0, 9), ChunkSpan(STAGED, 0, 9)]),
    "documents.chunks": lambda c, t, _: c.documents.chunks(t, VISIBLE, limit=50),
    "documents.counts": lambda c, t, _: c.documents.counts(t),
    "questions.save": lambda c, t, _: c.questions.save(t, STAGED, 1, questions.questions(STAGED, 1)),
    "questions.reuse": lambda c, t, _: c.questions.reuse(t, STAGED, 1, questions.recipes(STAGED, 1, TEXT)),
    "questions.of_chunks": lambda c, t, _: c.questions.of_chunks(t, CHUNKS),
    "questions.by_id": lambda c, t, _: c.questions.by_id(t, QUESTIONS),
    "questions.embedded": lambda c, t, _: c.questions.embedded(t, [VISIBLE, STAGED]),
    "graph_edits.edit": lambda c, t, _: c.graph_edits.edit(t, 1),
    "graph_edits.page": lambda c, t, _: c.graph_edits.page(t, limit=9),
    "graph_edits.in_effect": lambda c, t, _: c.graph_edits.in_effect(t),
    "graph_edits.changes": lambda c, t, _: c.graph_edits.changes(t),
    "graph_edits.undo": lambda c, t, _: c.graph_edits.undo(t, 1),
    "jobs.job": lambda c, t, ids: c.jobs.job(t, ids["open"]),
    "jobs.ended": lambda c, t, ids: c.jobs.ended(t, [ids["ended"]]),
    "jobs.jobs": lambda c, t, _: c.jobs.jobs(t, limit=50),
    "jobs.start": lambda c, t, ids: c.jobs.start(t, ids["open"]),
    "jobs.progress": lambda c, t, ids: c.jobs.progress(t, ids["open"], stage="x", done=5, total=6),
    "jobs.request_cancel": lambda c, t, ids: c.jobs.request_cancel(t, ids["open"]),
    "jobs.hand_back": lambda c, t, ids: c.jobs.hand_back(t, ids["open"], 1),
    "jobs.pending_documents": lambda c, t, _: c.jobs.pending_documents(t, queued_before=FAR),
    "jobs.remember": lambda c, t, ids: c.jobs.remember(t, ids["open"], "x", 1),
    "jobs.finish": lambda c, t, ids: c.jobs.finish(t, ids["open"], JobState.FAILED),
    "jobs.retry": lambda c, t, ids: c.jobs.retry(t, ids["ended"], nothing),
    "jobs.last": lambda c, t, _: c.jobs.last(t, JobKind.REBUILD),
    "tenants.revoke_key": lambda c, t, ids: c.tenants.revoke_key(t, ids["key"]),
    "tenants.keys": lambda c, t, _: c.tenants.keys(t),
    "tenants.flags": lambda c, t, _: c.tenants.flags(t),
    "tenants.ontology": lambda c, t, _: c.tenants.ontology(t),
    "communities.pointer": lambda c, t, _: c.communities.pointer(t),
    "communities.summaries": lambda c, t, _: c.communities.summaries(t, ["f1"], prompt_version="v1", model="extractive"),
    "communities.summaries_resting_on": lambda c, t, _: c.communities.summaries_resting_on(t, "d"),
    "communities.drop_summaries": lambda c, t, _: c.communities.drop_summaries(t, keep=[]),
    "trees.pointer": lambda c, t, _: c.trees.pointer(t),
    "trees.nodes": lambda c, t, _: c.trees.nodes(t, 1),
    "trees.above": lambda c, t, _: c.trees.above(t, 1, ["chunk 1"]),
    "trees.resting_on": lambda c, t, _: c.trees.resting_on(t, 1, "paper 1"),
    "trees.generations": lambda c, t, _: c.trees.generations(t),
    "trees.summaries": lambda c, t, _: c.trees.summaries(t, [trees.KEY]),
    "trees.drop_summaries": lambda c, t, _: c.trees.drop_summaries(t, keep=[]),
    "trees.delete_generations": lambda c, t, _: c.trees.delete_generations(t, keep=99),
    "outbox.pending": lambda c, t, _: c.outbox.pending(t, limit=10),
    # The methods from here on leave data, or return their arguments.
    "communities.next_generation": lambda c, t, _: c.communities.next_generation(t),
    "communities.publish": lambda c, t, _: c.communities.publish(t, 1, built_from=9, details={"of": "B"}),
    "communities.asked": lambda c, t, _: c.communities.asked(t),
    "communities.replace_summaries": lambda c, t, _: c.communities.replace_summaries(t, []),
    "communities.save_summaries": lambda c, t, _: c.communities.save_summaries(t, []),
    "trees.next_generation": lambda c, t, _: c.trees.next_generation(t),
    "trees.write_nodes": lambda c, t, _: _written(c, t),
    "trees.publish": lambda c, t, _: _published(c, t),
    "trees.change": lambda c, t, _: _changed(c, t),
    "trees.asked": lambda c, t, _: c.trees.asked(t),
    "trees.save_summaries": lambda c, t, _: c.trees.save_summaries(t, []),
    "graph_edits.add": lambda c, t, _: c.graph_edits.add(t, graph_edits.SPLIT),
    "outbox.holds": lambda c, t, _: c.outbox.holds(t, [Topic.LABELS]),
    "outbox.add_all": lambda c, t, _: c.outbox.add_all(t, Topic.LABELS, [VISIBLE, STAGED]),
    "outbox.add": lambda c, t, _: c.outbox.add(t, Topic.LABELS, VISIBLE),
    "outbox.delivered": lambda c, t, _: c.outbox.delivered(t, [Entry(Topic.LABELS, VISIBLE, "token")]),
    "documents.unknown_blobs": lambda c, t, _: c.documents.unknown_blobs(t, ["nobody's"]),
    "documents.record_repair": lambda c, t, _: c.documents.record_repair(t, VISIBLE, knowledge=True),
    "documents.submit": lambda c, t, _: c.documents.submit(t, submission("visible", "other text"), nothing),
    "jobs.create": lambda c, t, _: c.jobs.create(t, JobKind.REBUILD, {}, nothing, join=True),
    "tenants.tenant": lambda c, t, _: c.tenants.tenant(t),
    "tenants.add_key": lambda c, t, _: c.tenants.add_key(t, name="B's", secret_sha256=OTHER_SECRET, scopes=[]),
    "tenants.set_flags": lambda c, t, _: c.tenants.set_flags(t, {"of": "B"}),
    "tenants.set_ontology": lambda c, t, _: c.tenants.set_ontology(t, Ontology((EntityType("b"),))),
    "tenants.mark_deleting": lambda c, t, _: c.tenants.mark_deleting(t),
    "tenants.remove": lambda c, t, _: c.tenants.remove(t),
}
READING = list(OPERATIONS)[: list(OPERATIONS).index("communities.next_generation")]
"""Methods that raise `NotFound` or return nothing for a tenant without data."""
PICTURED = (
    "documents.documents",
    "documents.version",
    "documents.hydrate",
    "documents.parents",
    "documents.passages",
    "documents.chunks",
    "documents.counts",
    "documents.blob_keys",
    "documents.visible_versions",
    "documents.visibility",
    "documents.visible_chunks_in_order",
    "model_results.reuse",
    "model_results.usage",
    "questions.of_chunks",
    "questions.by_id",
    "questions.embedded",
    "graph_edits.page",
    "graph_edits.in_effect",
    "graph_edits.changes",
    "jobs.jobs",
    "tenants.tenant",
    "tenants.keys",
    "outbox.pending",
    "tenants.flags",
    "tenants.ontology",
    "communities.pointer",
    "communities.summaries",
    "trees.pointer",
    "trees.nodes",
    "trees.summaries",
    "trees.generations",
)
"""Methods that only read, and together show all data of a tenant."""


async def every_method_requires_a_tenant(catalogue: Catalogue) -> None:
    """Any value but a `TenantId` is an error and never means all tenants."""
    ids = await _fill(catalogue, A)
    before = await _picture(catalogue, A, ids)
    _equal_methods()
    for name, operation in OPERATIONS.items():
        for scope in (None, "", A.value, 0):
            await raises(InvalidScope, operation(catalogue, scope, ids), f"{name} for the scope {scope!r}")
    equal(await _picture(catalogue, A, ids), before)


async def another_tenant_sees_nothing(catalogue: Catalogue) -> None:
    """With A's ids, B gets `NotFound` or nothing, and no call of B changes A's data."""
    ids, other = await _fill(catalogue, A), await tenant(catalogue, "B")
    before = await _picture(catalogue, A, ids)
    for name, operation in OPERATIONS.items():
        try:
            found = await operation(catalogue, other, ids)
        except NotFound:
            pass
        else:
            true(name not in READING or _is_nothing(found), f"{name} showed another tenant {found!r}")
        if name not in PICTURED:
            equal(await _picture(catalogue, A, ids), before, f"{name} of another tenant changed this one")


async def equal_ids_of_two_tenants_are_separate(catalogue: Catalogue) -> None:
    """Two tenants have the same documents, chunks and fingerprints. A change of one does not affect the other."""
    ids, other = await _fill(catalogue, A), await tenant(catalogue, "B")
    before = await _picture(catalogue, A, ids)
    own = await _fill(catalogue, other, secret="b" * 64)
    equal(await _picture(catalogue, A, ids), before)
    for name, operation in OPERATIONS.items():
        await operation(catalogue, other, own)
        if name not in PICTURED:
            equal(await _picture(catalogue, A, ids), before, f"{name} of another tenant changed this one")
        if name == "documents.tombstone":
            await catalogue.documents.purge(other, VISIBLE, up_to_version=1)
            await ingest(catalogue, other, "visible")


async def other_tenants_are_isolated(catalogue: Catalogue) -> None:
    """Run both checks of another tenant on one database."""
    await another_tenant_sees_nothing(catalogue)
    await catalogue.tenants.remove(A)
    await equal_ids_of_two_tenants_are_separate(catalogue)


CHECKS: tuple[Check, ...] = (
    every_method_requires_a_tenant,
    another_tenant_sees_nothing,
    equal_ids_of_two_tenants_are_separate,
    *documents.CHECKS,
    *deletions.CHECKS,
    *attachments.CHECKS,
    *outbox.CHECKS,
    *results.CHECKS,
    *model_results.CHECKS,
    *questions.CHECKS,
    *graph_edits.CHECKS,
    *revisions.CHECKS,
    *document_status.CHECKS,
    *visibility.CHECKS,
    *directory.CHECKS,
    *trees.CHECKS,
)
BY_NAME: dict[str, Check] = {check.__name__: check for check in CHECKS}


def _equal_methods() -> None:
    """Compare `OPERATIONS` with the ports, to detect new methods without a row."""
    ports = {
        "documents": DocumentCatalogue,
        "model_results": ModelResultCatalogue,
        "questions": QuestionCatalogue,
        "graph_edits": GraphEditCatalogue,
        "jobs": JobCatalogue,
        "tenants": TenantDirectory,
        "communities": CommunityCatalogue,
        "trees": TreeCatalogue,
        "outbox": Outbox,
    }
    methods = {
        f"{noun}.{name}"
        for noun, port in ports.items()
        for name, _ in inspect.getmembers(port, inspect.isfunction)
        if not name.startswith("_")
        and not ((noun in ("tenants", "communities", "trees", "outbox") or name == "hand_back_all") and name in UNSCOPED)
    }
    equal(sorted(OPERATIONS), sorted(methods))


async def _written(catalogue: Catalogue, owner: TenantId) -> None:
    """Write a tree that is not current."""
    await catalogue.trees.write_nodes(owner, await catalogue.trees.next_generation(owner), trees.TREE)


async def _published(catalogue: Catalogue, owner: TenantId) -> None:
    """Make an empty tree current."""
    await catalogue.trees.publish(owner, await catalogue.trees.next_generation(owner), built_from=9, details={"of": "B"})


async def _changed(catalogue: Catalogue, owner: TenantId) -> None:
    """Change the current tree."""
    current = (await catalogue.trees.pointer(owner)).generation
    await catalogue.trees.change(owner, current, written=[trees.LEAF], removed=["root"], built_from=9, details={})


def _is_nothing(found: Any) -> bool:
    if hasattr(found, "items") and hasattr(found, "next_cursor"):
        return not found.items
    if hasattr(found, "generation"):
        return bool(found.generation == 0 and not found.stale)
    return not any(found.values()) if isinstance(found, dict) else not found


async def _fill(catalogue: Catalogue, owner: TenantId, *, secret: str = "a" * 64) -> dict[str, str]:
    """Give ``owner`` one item of every kind. Return the ids that are not fixed."""
    if owner == A:
        await catalogue.tenants.create("A", tenant_id=owner)
    visible = await questions.ask(catalogue, owner, "visible")
    await catalogue.documents.publish(owner, visible.id, 1)
    await questions.ask(catalogue, owner, "staged")
    await catalogue.model_results.save(owner, VISIBLE, 1, "r", ["of A"], Usage(5, 5, 1))
    deleted = await ingest(catalogue, owner, "deleted")
    await catalogue.documents.tombstone(owner, deleted.id, nothing)
    ended = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, nothing)
    await catalogue.jobs.finish(owner, ended.id, JobState.FAILED)
    opened = await catalogue.jobs.create(owner, JobKind.REBUILD, {"of": "A"}, nothing)
    key = await catalogue.tenants.add_key(owner, name="key", secret_sha256=secret, scopes=[Scope.READ])
    await catalogue.tenants.set_flags(owner, {"of": "A"})
    await catalogue.tenants.set_ontology(owner, Ontology((EntityType("a"),)))
    await catalogue.graph_edits.add(owner, graph_edits.MERGE)
    await catalogue.communities.save_summaries(owner, [SUMMARY])
    generation = await catalogue.communities.next_generation(owner)
    await catalogue.communities.publish(owner, generation, built_from=0, details={"of": "A"})
    await trees.grow(catalogue, owner)
    return {"deleted": deleted.id, "ended": ended.id, "open": opened.id, "key": key.id}


async def _picture(catalogue: Catalogue, owner: TenantId, ids: dict[str, str]) -> list[Any]:
    """Return all readable data of ``owner``."""
    found = [(name, await OPERATIONS[name](catalogue, owner, ids)) for name in PICTURED]
    staged = await catalogue.documents.prepared(owner, STAGED, 1)
    kept = [(item.chunk, item.extraction, np.asarray(item.vector).tolist(), questions.seen(item.questions)) for item in staged]
    blobs = await catalogue.documents.blob_keys(owner, ids["deleted"], up_to_version=9)
    return [*found, kept, blobs, await catalogue.documents.version(owner, STAGED, 1)]
