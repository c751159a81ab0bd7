"""The catalogue's contract on SQLite, and on catalogues with planted faults."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from catalogue_checks import contract
from catalogue_checks.document_sets import make_set
from catalogue_checks.samples import ingest
from planted_statements import plant
from sqlalchemy import ColumnElement, Table, true
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, Conflict, InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.catalogue import operations
from agentic_rag_backend.stores.catalogue.base import Catalogue, DocumentCatalogue, Enqueue, HandOn, Submission, Submitted
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.documents import document_catalogue as documents
from agentic_rag_backend.stores.catalogue.documents import (
    revisions,
    set_catalogue,
    submissions,
    tombstones,
    versions,
    visible_documents,
)
from agentic_rag_backend.stores.catalogue.documents.revisions import _label_versions
from agentic_rag_backend.stores.catalogue.documents.versions import _publish_version
from agentic_rag_backend.stores.catalogue.jobs import outbox
from agentic_rag_backend.stores.catalogue.operations import write_arriving
from agentic_rag_backend.stores.catalogue.pages import beyond
from agentic_rag_backend.stores.catalogue.summaries import generations
from agentic_rag_backend.stores.catalogue.tenants import tenant_directory as tenants


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:  # type: ignore[name-defined]
    await check(catalogue)


async def test_sets_and_their_members_are_limited(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_catalogue, "MAX_SETS", 2)
    monkeypatch.setattr(set_catalogue, "MAX_MEMBERS", 2)
    owner, sets = (await catalogue.tenants.create("first")).id, catalogue.document_sets
    ids = [(await ingest(catalogue, owner, key)).id for key in ("one", "two", "three")]
    await sets.create(owner, make_set("mine"), ids[:2])
    await sets.add_members(owner, "mine", ids[:2])
    for call in (sets.add_members(owner, "mine", ids[2:]), sets.create(owner, make_set("large"), ids)):
        with pytest.raises(Conflict, match="at most 2 documents; it would have 3"):
            await call
    assert await sets.member_ids(owner, ["mine", "large"]) == set(ids[:2])
    await sets.create(owner, make_set("second"))
    with pytest.raises(Conflict, match="at most 2 sets"):
        await sets.create(owner, make_set("third"))


Fault = Callable[[pytest.MonkeyPatch], None]

UNSCOPED = [
    ("SELECT", "evaluation_datasets"),
    ("DELETE", "evaluation_cases"),
    ("SELECT", "evaluation_runs"),
    ("SELECT", "tuning_proposals"),
    ("SELECT", "experiments"),
    ("SELECT", "experiment_outcomes"),
    ("SELECT", "document_sets"),
    ("UPDATE", "document_sets"),
    ("DELETE", "document_sets"),
    ("SELECT", "document_set_members"),
    ("DELETE", "document_set_members"),
    ("SELECT", "documents"),
    ("UPDATE", "documents"),
    ("DELETE", "documents"),
    ("UPDATE", "document_versions"),
    ("DELETE", "document_versions"),
    ("SELECT", "chunks"),
    ("DELETE", "chunks"),
    ("SELECT", "model_results"),
    ("UPDATE", "model_results"),
    ("DELETE", "model_results"),
    ("SELECT", "chunk_questions"),
    ("DELETE", "chunk_questions"),
    ("SELECT", "jobs"),
    ("UPDATE", "jobs"),
    ("SELECT", "api_keys"),
    ("UPDATE", "api_keys"),
    ("UPDATE", "tenants"),
    ("UPDATE", "community_pointers"),
    ("SELECT", "community_summaries"),
    ("DELETE", "community_summaries"),
    ("UPDATE", "raptor_pointers"),
    ("SELECT", "raptor_nodes"),
    ("DELETE", "raptor_nodes"),
    ("SELECT", "raptor_links"),
    ("DELETE", "raptor_links"),
    ("SELECT", "raptor_summaries"),
    ("DELETE", "raptor_summaries"),
]


@pytest.mark.parametrize(("kind", "table"), UNSCOPED, ids=[f"{kind}-{table}" for kind, table in UNSCOPED])
async def test_a_tenant_that_is_ignored_is_noticed(catalogue: Catalogue, kind: str, table: str) -> None:
    """Remove the tenant condition from each kind of statement on each table."""
    planted = plant(catalogue, kind, f"{table}.tenant_id = ?", f"({table}.tenant_id = ? OR 1)")
    # A fault that breaks the sample itself, because a statement meets rows of two tenants, counts as noticed.
    with pytest.raises((AssertionError, AgenticRagError, SQLAlchemyError)):
        await contract.other_tenants_are_isolated(catalogue)
    assert planted


STATEMENTS = [
    ("a_set_has_its_members", "SELECT documents", "document_set_members.set_id = ?", "? <> ''"),
    ("a_set_has_its_members", "SELECT documents", "document_set_members.batch_id = ?", "? <> ''"),
    ("a_set_has_its_members", "DELETE FROM document_set_members", "document_set_members.document_id = ?", "? = ''"),
    ("members_exist", "SELECT", "documents.deleted_at IS NULL", "1"),
    ("documents_that_pass_filters_are_counted", "SELECT", "documents.deleted_at IS NULL", "1"),
    ("changed_content_or_options_create_a_version", "SELECT", "documents.current_version = chunks.version AND", ""),
    ("a_tombstone_hides_immediately", "SELECT", "documents.deleted_at IS NULL", "1"),
    ("a_tombstone_hides_immediately", "UPDATE documents", "AND documents.deleted_at IS NULL", ""),
    ("publish_and_tombstone_exclude_each_other", "SELECT", "documents.deleted_at IS NULL", "1"),
    ("a_purge_removes_only_tombstoned_versions", "DELETE FROM document_versions", "document_versions.version <= ?", "? > 0"),
    ("attachments_are_identified_by_their_place", "SELECT documents", "documents.place = ?", "? <> ''"),
    ("attachments_are_identified_by_their_place", "SELECT documents", "documents.parent_id = ?", "? <> ''"),
    ("a_tombstone_hides_attachments", "SELECT documents", "documents.parent_id IN", "'' IN"),
    ("superseded_versions_are_removed", "DELETE FROM chunk_texts", "NOT (EXISTS", "(1 OR EXISTS"),
    ("results_of_a_stopped_version_are_reused", "DELETE FROM prepared_chunks", "prepared_chunks.version < ?", "? < 0"),
    ("a_model_result_stays_as_long_as_a_version_uses_it", "DELETE FROM model_results", "model_results.version < ?", "? < 0"),
    ("a_version_reuses_unchanged_results", "DELETE FROM prepared_chunks", "version < ?", "version <= ?"),
    ("a_version_reuses_unchanged_results", "INSERT INTO prepared_chunks", "recipe) IN", "recipe) NOT IN"),
    (
        "another_recipe_reuses_no_result",
        "SELECT chunks.chunk_id",
        "(chunks.chunk_id, prepared_chunks.recipe) IN",
        "(chunks.chunk_id, chunks.chunk_id) NOT IN",
    ),
    (
        "results_belong_to_one_document_of_one_tenant",
        "SELECT chunks.chunk_id",
        "chunks.tenant_id = ?",
        "(chunks.tenant_id = ? OR 1)",
    ),
    ("questions_are_shown_with_their_version", "SELECT chunk_questions", "documents.deleted_at IS NULL", "1"),
    (
        "questions_are_shown_with_their_version",
        "SELECT chunk_questions",
        "documents.current_version = chunk_questions.version",
        "1",
    ),
    ("unchanged_questions_are_reused", "SELECT chunks.chunk_id", "question_recipe) IN", "question_recipe) NOT IN"),
    ("unchanged_questions_are_reused", "INSERT INTO chunk_questions", "held.version) IN", "held.version) NOT IN"),
    (
        "unchanged_questions_are_reused",
        "DELETE FROM chunk_questions",
        "chunk_questions.version < ?",
        "chunk_questions.version <= ?",
    ),
    ("failed_questions_are_not_reused", "SELECT chunks.chunk_id", "prepared_chunks.question_failure IS NULL", "1"),
    ("changes_are_returned_since_any_moment", "SELECT document_changes", "document_changes.tenant_id = ?", "? <> ''"),
    (
        "changes_are_returned_since_any_moment",
        "SELECT document_changes",
        "ORDER BY document_changes.state_version",
        "ORDER BY 1, 2 DESC",
    ),
    ("changes_are_returned_since_any_moment", "SELECT document_changes", "document_changes.state_version > ?", "? >= 0"),
    (
        "documents_have_a_status",
        "SELECT documents",
        "jobs.document_id = documents.id",
        "jobs.document_id <> documents.id",
    ),
    ("documents_have_a_status", "SELECT documents", "visible.version = documents.current_version", "visible.version > 1"),
    ("statuses_are_ordered_by_id", "SELECT documents", "documents.id > ?", "documents.id >= ?"),
    ("visible_chunks_are_returned_by_document", "SELECT chunks", "documents.current_version = chunks.version", "1"),
    ("visible_chunks_are_returned_by_document", "SELECT chunks", "documents.deleted_at IS NULL", "1"),
    ("unfinished_documents_get_a_job", "SELECT jobs.id", "jobs.document_id = ?", "? = ''"),
    ("a_job_ends_only_once", "UPDATE jobs", "AND jobs.state IN (?, ?)", "AND ? <> ?"),
    ("names_of_keys_are_unique", "SELECT api_keys", "AND api_keys.revoked_at IS NULL", ""),
    ("names_of_keys_are_unique", "SELECT api_keys", "api_keys.expires_at > ?", "api_keys.expires_at <> ?"),
    ("keys_are_rotated_once", "UPDATE api_keys", "replaced_by=?", "replaced_by=? || 'x'"),
    ("uses_of_keys_only_advance", "UPDATE api_keys", "api_keys.last_used_at <= ?", "'x' <> ?"),
    ("keys_authenticate_their_tenant", "SELECT api_keys", "AND tenants.state != ?", "AND 'x' != ?"),
    ("generations_are_numbered_in_order", "UPDATE community_pointers", "community_pointers.generation < ?", "? > 0"),
    ("documents_are_listed_in_pages", "SELECT documents", "documents.created_at < ?", "documents.created_at <= ?"),
    ("documents_are_listed_in_pages", "SELECT documents", "DESC", "ASC"),
    (
        "a_failed_version_keeps_the_visible_one",
        "UPDATE document_versions SET state=?, failures",
        "state=?",
        "state=state || substr(?, 99)",
    ),
    ("summaries_are_kept_by_fingerprint", "SELECT", "AND community_summaries.model = ?", "AND ? <> ''"),
    ("summaries_are_kept_by_fingerprint", "INSERT INTO community_summaries", "title = excluded.title, ", ""),
    *(
        ("summaries_are_found_by_their_sources", "SELECT", f"CAST(community_summaries.{column} AS TEXT)", "''")
        for column in ("title", "names", "keywords", "findings", "sources")
    ),
    ("summaries_are_found_by_their_sources", "DELETE", "community_summaries.fingerprint IN", "'' IN"),
    ("summaries_are_kept_by_fingerprint", "INSERT INTO community_summaries", "names = excluded.names, ", ""),
    ("trees_are_published_completely", "UPDATE raptor_pointers", "raptor_pointers.generation < ?", "? > 0"),
    ("trees_are_published_completely", "DELETE FROM raptor_nodes", "raptor_nodes.generation != ?", "? > 0"),
    ("nodes_are_found_by_their_properties", "SELECT raptor_links", "raptor_links.ordinal", "raptor_links.ordinal DESC"),
    ("nodes_are_found_by_their_properties", "SELECT DISTINCT raptor_links", "raptor_links.document_id = ?", "? <> ''"),
    ("tree_changes_are_atomic", "DELETE FROM raptor_links", "raptor_links.generation = ?", "0 = ?"),
    ("stale_trees_are_due", "SELECT tenants", "tenants.content_version > coalesce(raptor_pointers.built_from, ?)", "? = 0"),
    ("stale_trees_are_due", "SELECT tenants", "raptor_pointers.asked_at < ", "1 < "),
]


@pytest.mark.parametrize(("check", "kind", "old", "new"), STATEMENTS, ids=[f"{row[0]}-{row[2]}" for row in STATEMENTS])
async def test_faulty_statements_fail(catalogue: Catalogue, check: str, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError, SQLAlchemyError)):
        await contract.BY_NAME[check](catalogue)
    assert planted


def _uncounted(module: ModuleType) -> Fault:
    return lambda patch: patch.setattr(module, "raise_state_version", lambda *_, **__: None)


def _content(patch: pytest.MonkeyPatch) -> None:
    """Mark communities as stale on every change."""
    patch.setattr(tenants, "raise_state_version", lambda c, t: operations.raise_state_version(c, t, content=True))


def _forgiving(patch: pytest.MonkeyPatch) -> None:
    """Enqueue after the commit: if the queue is unavailable, the job is lost and the document stays."""
    original = submissions.submit

    def submit(connection: Connection, tenant: TenantId, submission: Submission, enqueue: Enqueue) -> Submitted:
        with suppress(ConnectionRefusedError):
            return original(connection, tenant, submission, enqueue)
        raise ConnectionRefusedError

    def commit(self: Database, work: Callable[[Connection], Any]) -> Any:
        with self._write_engine.connect() as connection:
            try:
                return work(connection)
            finally:
                connection.commit()

    patch.setattr(DocumentCatalogue, "submit", write_arriving(submit))
    patch.setattr(Database, "_write", commit)


def _unlocked(patch: pytest.MonkeyPatch) -> None:
    """Lock at the first write instead of the first read: SQLAlchemy's default with SQLite."""

    def write(self: Database, work: Callable[[Connection], Any]) -> Any:
        with self._engine.begin() as connection:
            return work(connection)

    patch.setattr(Database, "_write", write)
    original = Database.__init__

    def several_writers(self: Database, url: str, *rest: Any) -> None:
        original(self, url, *rest)
        self._writers = self._readers

    patch.setattr(Database, "__init__", several_writers)


def _hasty(patch: pytest.MonkeyPatch) -> None:
    """Enqueue the next workflow in a separate transaction."""
    original = DocumentCatalogue.save_prepared

    async def save_prepared(self: DocumentCatalogue, *args: Any, hand_on: HandOn | None = None) -> None:
        await original(self, *args)
        if hand_on is not None:
            await self._database.write(hand_on.enqueue, args[0], hand_on.job)

    patch.setattr(DocumentCatalogue, "save_prepared", save_prepared)


def _credulous(patch: pytest.MonkeyPatch) -> None:
    """Treat an invalid cursor as the beginning of the list."""

    def anywhere(table: Table, scope: str, cursor: str, *, newest_first: bool) -> ColumnElement[bool]:
        try:
            return beyond(table, scope, cursor, newest_first=newest_first)
        except InvalidRequest:
            return true()

    patch.setattr(documents, "beyond", anywhere)


FAULTS: dict[str, tuple[str, Fault]] = {
    "a filter of a key that is not applied": (
        "a_restricted_scope_shows_only_documents_that_pass",
        lambda patch: patch.setattr(visible_documents, "passes_filter", lambda row, filter: True),
    ),
    "changes of metadata that are not recorded": (
        "changes_of_a_restricted_scope_follow_metadata",
        lambda patch: patch.setattr(revisions, "record_change", lambda *_: None),
    ),
    "an uncounted publish": ("processing_steps_are_repeatable", _uncounted(versions)),
    "an uncounted tombstone": ("a_tombstone_hides_immediately", _uncounted(tombstones)),
    "a tombstone that is not told": (
        "changes_are_returned_since_any_moment",
        lambda patch: patch.setattr(
            tombstones,
            "record_change",
            lambda c, t, d, version: version and visible_documents.record_change(c, t, d, version),  # type: ignore[func-returns-value]
        ),
    ),
    "attachments of a deleted message": (
        "attachments_and_a_tombstone_exclude_each_other",
        lambda patch: patch.setattr(submissions, "require_parent", lambda *_: None),
    ),
    "an uncounted metadata update": ("changed_metadata_is_an_update", _uncounted(submissions)),
    "an uncounted change of metadata": ("metadata_is_merged_by_key", _uncounted(revisions)),
    "a revision that is not compared": (
        "one_of_two_writers_wins",
        lambda patch: patch.setattr(revisions, "require_revision", lambda *_: None),
    ),
    "an uncounted delivery": ("a_delivery_is_a_change", _uncounted(outbox)),
    "an uncounted end of older versions": ("superseded_versions_are_removed", _uncounted(versions)),
    "an uncounted end of older generations": ("summaries_are_kept_by_fingerprint", _uncounted(generations)),
    "an uncounted flag": ("flags_are_counted", _uncounted(tenants)),
    "an uncounted generation": ("generations_are_numbered_in_order", _uncounted(generations)),
    "flags that make communities stale": ("generations_are_numbered_in_order", _content),
    "a check that is not asked": (
        "a_refused_change_changes_nothing",
        lambda patch: patch.setattr(
            revisions, "_label_versions", lambda source, change: _label_versions(source, replace(change, check=len))
        ),
    ),
    "a job beside its transaction": ("submissions_are_atomic", _forgiving),
    "a cancelled job that is shown": (
        "a_job_ends_in_the_transaction_of_its_publication",
        lambda patch: patch.setattr(versions, "cancel_requested", lambda *_: False),
    ),
    "a job handed on before its chunks": ("the_next_job_is_created_with_the_last_chunks", _hasty),
    "a job that ends whatever becomes visible": (
        "a_job_ends_in_the_transaction_of_its_publication",
        lambda patch: patch.setattr(versions, "_publish_version", lambda *rest: _publish_version(*rest) or True),
    ),
    "transactions that begin too late": ("flags_are_counted", _unlocked),
    "a scope that is not checked": (
        "every_method_requires_a_tenant",
        lambda patch: patch.setattr(operations, "require_tenant", lambda tenant: tenant),
    ),
    "a cursor that is not looked at": ("documents_are_listed_in_pages", _credulous),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_faulty_catalogues_fail(tmp_path: Path, migrated_sqlite: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    check, plant = FAULTS[name]
    plant(monkeypatch)
    opened = await Catalogue.open(f"sqlite:///{shutil.copy(migrated_sqlite, tmp_path / 'catalogue.db')}")
    try:
        with pytest.raises((AssertionError, AttributeError, StoreUnavailable, SQLAlchemyError)):
            await asyncio.wait_for(contract.BY_NAME[check](opened), 20)
    finally:
        await opened.close()
