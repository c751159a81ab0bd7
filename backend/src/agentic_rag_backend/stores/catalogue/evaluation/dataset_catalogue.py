"""Datasets and their cases."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.asked_questions import RatingCounts, hash_question
from agentic_rag_backend.domain.evaluation import MAX_CASES, MAX_DATASETS, CaseSource, Dataset, EvaluationCase, GoldItem
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue
from agentic_rag_backend.stores.catalogue.feedback import count_ratings
from agentic_rag_backend.stores.catalogue.jobs.job_rows import cancel_jobs, new_job
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, find_undeleted, lock_tenant, read, write
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, decode_cursor, encode_cursor, time_cursor
from agentic_rag_backend.stores.catalogue.tables import (
    evaluation_case_documents,
    evaluation_cases,
    evaluation_datasets,
    evaluation_outcomes,
    evaluation_runs,
    evaluation_verdicts,
    jobs,
)

_DATASETS, _CASES = "datasets", "cases"
_cases, _documents = evaluation_cases.c, evaluation_case_documents.c
IN_COLUMNS = frozenset({"id", "kind", "source", "documents", "ratings"})
"""Fields of a case that are columns or in other tables. The others are its ``content``."""


def create_dataset(
    connection: Connection,
    tenant: TenantId,
    name: str,
    cases: Sequence[EvaluationCase],
    *,
    generation: Mapping[str, Any] | None = None,
    enqueue: Enqueue | None = None,
) -> Dataset:
    """Create a dataset with its cases as version 1; without cases, version 0.

    Args:
        generation: arguments of a job that will generate the cases, which ``enqueue`` adds to the queue.

    Raises:
        InvalidRequest: the tenant has `MAX_DATASETS` datasets, or there are more than `MAX_CASES` cases.
    """
    lock_tenant(connection, tenant)
    count = connection.execute(
        select(func.count()).select_from(evaluation_datasets).where(evaluation_datasets.c.tenant_id == tenant.value)
    ).scalar_one()
    if count >= MAX_DATASETS:
        raise InvalidRequest(f"a tenant may have at most {MAX_DATASETS} datasets; it has {count}. Delete some first")
    dataset_id, job, now = str(uuid.uuid4()), None, utc_now()
    if generation is not None and enqueue is not None:
        job = new_job(connection, tenant, JobKind.GENERATE, arguments={**generation, "dataset_id": dataset_id})
        enqueue(connection, tenant, job)
    row = {"tenant_id": tenant.value, "id": dataset_id, "name": name, "version": 0, "created_at": now, "updated_at": now}
    connection.execute(insert(evaluation_datasets), {**row, "job_id": job.id if job is not None else None})
    return add_cases(connection, tenant, dataset_id, cases) if cases else read_dataset(connection, tenant, dataset_id)


def read_dataset(connection: Connection, tenant: TenantId, dataset_id: str) -> Dataset:
    """Return a dataset, or raise `NotFound`."""
    row = _read_row(connection, tenant, dataset_id)
    return _dataset_from(row, _count_kinds(connection, tenant, [dataset_id]).get(dataset_id, {}))


def _read_row(connection: Connection, tenant: TenantId, dataset_id: str) -> RowMapping:
    its = (evaluation_datasets.c.tenant_id == tenant.value, evaluation_datasets.c.id == dataset_id)
    row = connection.execute(select(evaluation_datasets).where(*its)).mappings().first()
    if row is None:
        raise NotFound(f"there is no dataset {dataset_id!r}")
    return row


def _count_kinds(connection: Connection, tenant: TenantId, dataset_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    statement = (
        select(_cases.dataset_id, _cases.kind, func.count())
        .where(_cases.tenant_id == tenant.value, _cases.dataset_id.in_(dataset_ids), _cases.removed_in.is_(None))
        .group_by(_cases.dataset_id, _cases.kind)
        .order_by(_cases.kind)
    )
    kinds: dict[str, dict[str, int]] = {}
    for dataset_id, kind, count in connection.execute(statement):
        kinds.setdefault(dataset_id, {})[kind] = count
    return kinds


def _dataset_from(row: RowMapping, kinds: Mapping[str, int]) -> Dataset:
    fields = {name: row[name] for name in ("id", "name", "version", "job_id", "created_at", "updated_at")}
    return Dataset(**fields, case_count=sum(kinds.values()), kinds=kinds)


def list_datasets(connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None) -> Page[Dataset]:
    """List datasets, newest first."""
    statement = select(evaluation_datasets).where(evaluation_datasets.c.tenant_id == tenant.value)
    if cursor is not None:
        statement = statement.where(beyond(evaluation_datasets, _DATASETS, cursor, newest_first=True))
    statement = statement.order_by(evaluation_datasets.c.created_at.desc(), evaluation_datasets.c.id.desc())
    rows = connection.execute(statement.limit(check_limit(limit) + 1)).mappings().all()
    kinds = _count_kinds(connection, tenant, [row["id"] for row in rows])
    last_row = rows[limit - 1] if len(rows) > limit else None
    next_cursor = time_cursor(_DATASETS, last_row["created_at"], last_row["id"]) if last_row is not None else None
    return Page(tuple(_dataset_from(row, kinds.get(row["id"], {})) for row in rows[:limit]), next_cursor)


def add_cases(
    connection: Connection,
    tenant: TenantId,
    dataset_id: str,
    cases: Sequence[EvaluationCase],
    *,
    generated: bool = False,
    new_only: bool = False,
) -> Dataset:
    """Add cases as a new version of a dataset, and return it.

    Texts of documents that were deleted since the caller read them are left out, as `forget_document` does.

    Args:
        generated: the dataset's job made the cases. A dataset that has such cases is returned unchanged, so that a repeated job
            adds nothing twice.
        new_only: leave out cases whose question the current version has.

    Raises:
        NotFound: there is no such dataset.
        InvalidRequest: it would have more than `MAX_CASES` cases, removed ones included, or an answer's document was deleted.
    """
    lock_tenant(connection, tenant)
    version = _read_row(connection, tenant, dataset_id)["version"]
    of_dataset = (_cases.tenant_id == tenant.value, _cases.dataset_id == dataset_id)
    repeated = select(exists().where(*of_dataset, _cases.source == CaseSource.GRAPH.value))
    cases = _leave_out_deleted(connection, tenant, cases)
    if new_only:
        cases = _select_new_cases(connection, cases, of_dataset)
    if not cases or (generated and connection.execute(repeated).scalar()):
        return read_dataset(connection, tenant, dataset_id)
    last_number = connection.execute(select(func.coalesce(func.max(_cases.number), 0)).where(*of_dataset)).scalar_one()
    if last_number + len(cases) > MAX_CASES:
        raise InvalidRequest(
            f"a dataset may have at most {MAX_CASES} cases, removed ones included; it would have {last_number + len(cases)}"
        )
    shared = {"tenant_id": tenant.value, "dataset_id": dataset_id}
    _insert_cases(connection, {**shared, "added_in": version + 1}, list(enumerate(cases, start=last_number + 1)))
    _set_version(connection, tenant, dataset_id, version + 1)
    return read_dataset(connection, tenant, dataset_id)


def _select_new_cases(
    connection: Connection, cases: Sequence[EvaluationCase], of_dataset: Sequence[ColumnElement[bool]]
) -> list[EvaluationCase]:
    present = select(_cases.question_hash).where(*of_dataset, _cases.removed_in.is_(None))
    hashes = set(connection.execute(present).scalars())
    return [case for case in cases if hash_question(case.question) not in hashes]


def _leave_out_deleted(connection: Connection, tenant: TenantId, cases: Sequence[EvaluationCase]) -> list[EvaluationCase]:
    named = {document_id for case in cases for document_id in case.documents}
    deleted = named - find_undeleted(connection, tenant, sorted(named))
    remaining: list[EvaluationCase] = []
    for case in cases:
        if deleted.isdisjoint(case.documents):
            remaining.append(case)
        elif case.source is CaseSource.ANSWER:
            raise InvalidRequest("a document that the answer cites was deleted")
        elif case.source is CaseSource.UPLOAD:
            documents = tuple(document_id for document_id in case.documents if document_id not in deleted)
            remaining.append(replace(case, gold=without_quotes(case.gold, deleted), documents=documents))
    return remaining


def _insert_cases(connection: Connection, shared: Mapping[str, Any], cases: Sequence[tuple[int, EvaluationCase]]) -> None:
    rows = [{**shared, "number": number, **_row_of(case)} for number, case in cases]
    dataset = {name: shared[name] for name in ("tenant_id", "dataset_id")}
    sources = [
        {**dataset, "number": number, "document_id": document_id}
        for number, case in cases
        for document_id in dict.fromkeys(case.documents)
    ]
    for batch in batches(rows):
        connection.execute(insert(evaluation_cases), batch)
    for batch in batches(sources):
        connection.execute(insert(evaluation_case_documents), batch)


def _row_of(case: EvaluationCase) -> dict[str, Any]:
    content = {name: value for name, value in asdict(case).items() if name not in IN_COLUMNS}
    return {
        "id": str(uuid.uuid4()),
        "source": case.source.value,
        "kind": case.kind,
        "question_hash": hash_question(case.question),
        "content": plain(content),
    }


def _set_version(connection: Connection, tenant: TenantId, dataset_id: str, version: int) -> None:
    its = (evaluation_datasets.c.tenant_id == tenant.value, evaluation_datasets.c.id == dataset_id)
    connection.execute(update(evaluation_datasets).where(*its).values(version=version, updated_at=utc_now()))


def list_cases(
    connection: Connection,
    tenant: TenantId,
    dataset_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    version: int | None = None,
) -> Page[EvaluationCase]:
    """List the cases of a version (None: the current one) in the order in which they were added.

    Raises:
        NotFound: there is no such dataset or version.
    """
    version = _check_version(connection, tenant, dataset_id, version)
    after = 0 if cursor is None else decode_cursor(_CASES, cursor, int)[0]
    statement = (
        select(evaluation_cases)
        .where(_cases.tenant_id == tenant.value, _cases.dataset_id == dataset_id, _cases.number > after, _belongs_to(version))
        .order_by(_cases.number)
        .limit(check_limit(limit) + 1)
    )
    rows = connection.execute(statement).mappings().all()
    next_cursor = encode_cursor(_CASES, (rows[limit - 1]["number"],)) if len(rows) > limit else None
    ratings = count_ratings(connection, tenant, [row["question_hash"] for row in rows[:limit]])
    cases = [_case_from(row, ratings.get(row["question_hash"], RatingCounts())) for row in rows[:limit]]
    return Page(tuple(cases), next_cursor)


def count_cases(connection: Connection, tenant: TenantId, dataset_id: str, *, version: int | None = None) -> int:
    """Return the number of cases of a version (None: the current one). `NotFound` if there is no such dataset or version."""
    of_version = _belongs_to(_check_version(connection, tenant, dataset_id, version))
    its = (_cases.tenant_id == tenant.value, _cases.dataset_id == dataset_id, of_version)
    return connection.execute(select(func.count()).select_from(evaluation_cases).where(*its)).scalar_one()


def rate_questions(
    connection: Connection, tenant: TenantId, dataset_id: str, *, version: int | None = None
) -> list[RatingCounts]:
    """Return the ratings of each question of a version that has any. `NotFound` if there is no such dataset or version."""
    of_version = _belongs_to(_check_version(connection, tenant, dataset_id, version))
    its = (_cases.tenant_id == tenant.value, _cases.dataset_id == dataset_id, of_version)
    return list(count_ratings(connection, tenant, select(_cases.question_hash).where(*its)).values())


def _check_version(connection: Connection, tenant: TenantId, dataset_id: str, version: int | None) -> int:
    newest_version: int = _read_row(connection, tenant, dataset_id)["version"]
    if version is not None and not 0 <= version <= newest_version:
        raise NotFound(f"dataset {dataset_id!r} has the versions 1 to {newest_version}; got {version}")
    return newest_version if version is None else version


def _belongs_to(version: int) -> ColumnElement[bool]:
    return and_(_cases.added_in <= version, or_(_cases.removed_in.is_(None), _cases.removed_in > version))


def _case_from(row: RowMapping, ratings: RatingCounts) -> EvaluationCase:
    return EvaluationCase(**read_case_fields(row), id=row["id"], ratings=ratings)


def read_case_fields(row: RowMapping) -> dict[str, Any]:
    """Return the fields of the case in a row, without its id, documents and ratings."""
    content: dict[str, Any] = dict(row["content"])
    lists = {name: tuple(content[name]) for name in ("must_say", "tags")}
    gold = tuple(GoldItem(**item) for item in content["gold"])
    return {**content, **lists, "gold": gold, "kind": row["kind"], "source": CaseSource(row["source"])}


def remove_case(connection: Connection, tenant: TenantId, dataset_id: str, case_id: str) -> Dataset:
    """Remove a case from the dataset's next version, and return the dataset. Earlier versions keep it.

    Raises:
        NotFound: the current version has no such case.
    """
    lock_tenant(connection, tenant)
    version = _read_row(connection, tenant, dataset_id)["version"]
    statement = (
        update(evaluation_cases)
        .where(
            _cases.tenant_id == tenant.value,
            _cases.dataset_id == dataset_id,
            _cases.id == case_id,
            _cases.removed_in.is_(None),
        )
        .values(removed_in=version + 1)
    )
    if connection.execute(statement).rowcount == 0:
        raise NotFound(f"there is no case {case_id!r} in dataset {dataset_id!r}")
    _set_version(connection, tenant, dataset_id, version + 1)
    return read_dataset(connection, tenant, dataset_id)


def delete_dataset(connection: Connection, tenant: TenantId, dataset_id: str) -> None:
    """Delete a dataset with its cases, its runs and their outcomes, and ask their jobs to stop. `NotFound` if there is none."""
    lock_tenant(connection, tenant)
    dataset = _read_row(connection, tenant, dataset_id)
    of_dataset = (evaluation_runs.c.tenant_id == tenant.value, evaluation_runs.c.dataset_id == dataset_id)
    run_jobs, runs = (select(column).where(*of_dataset) for column in (evaluation_runs.c.job_id, evaluation_runs.c.id))
    cancel_jobs(connection, tenant, jobs.c.id.in_(run_jobs) | (jobs.c.id == dataset["job_id"]))
    for table in (evaluation_outcomes, evaluation_verdicts):
        connection.execute(delete(table).where(table.c.tenant_id == tenant.value, table.c.run_id.in_(runs)))
    for table in (evaluation_runs, evaluation_case_documents, evaluation_cases):
        connection.execute(delete(table).where(table.c.tenant_id == tenant.value, table.c.dataset_id == dataset_id))
    its = (evaluation_datasets.c.tenant_id == tenant.value, evaluation_datasets.c.id == dataset_id)
    connection.execute(delete(evaluation_datasets).where(*its))


def forget_document(connection: Connection, tenant: TenantId, document_id: str) -> int:
    """Remove the texts of a document from all cases, and return the number of cases that had any.

    Cases that were made from the document are deleted in all versions. Uploaded cases lose the quotes that were looked up for
    their chunk ids.
    """
    join = and_(
        _documents.tenant_id == _cases.tenant_id,
        _documents.dataset_id == _cases.dataset_id,
        _documents.number == _cases.number,
    )
    statement = (
        select(evaluation_cases)
        .select_from(evaluation_cases.join(evaluation_case_documents, join))
        .where(_documents.tenant_id == tenant.value, _documents.document_id == document_id)
    )
    rows = connection.execute(statement).mappings().all()
    for row in rows:
        its = (_cases.tenant_id == tenant.value, _cases.dataset_id == row["dataset_id"], _cases.number == row["number"])
        sources = (
            _documents.tenant_id == tenant.value,
            _documents.dataset_id == row["dataset_id"],
            _documents.number == row["number"],
        )
        if row["source"] == CaseSource.UPLOAD.value:
            connection.execute(delete(evaluation_case_documents).where(*sources, _documents.document_id == document_id))
            gold = without_quotes([GoldItem(**item) for item in row["content"]["gold"]], {document_id})
            content = {**row["content"], "gold": list(map(asdict, gold))}
            connection.execute(update(evaluation_cases).where(*its).values(content=content))
        else:
            connection.execute(delete(evaluation_case_documents).where(*sources))
            connection.execute(delete(evaluation_cases).where(*its))
    return len(rows)


def without_quotes(gold: Sequence[GoldItem], document_ids: Collection[str]) -> tuple[GoldItem, ...]:
    """Return evidence without the quotes that were looked up for chunks of these documents."""
    return tuple(
        replace(item, quote="", document=None) if item.chunk_id is not None and item.document in document_ids else item
        for item in gold
    )


def count_of_document(connection: Connection, tenant: TenantId, document_id: str) -> int:
    """Return the number of cases that have texts of a document."""
    its = (_documents.tenant_id == tenant.value, _documents.document_id == document_id)
    return connection.execute(select(func.count()).select_from(evaluation_case_documents).where(*its)).scalar_one()


class DatasetCatalogue(CataloguePart):
    """Datasets of questions. A change of their cases makes a new version; earlier versions stay readable."""

    create = write(create_dataset)
    dataset = read(read_dataset)
    datasets = read(list_datasets)
    add_cases = write(add_cases)
    cases = read(list_cases)
    count_cases = read(count_cases)
    rate_questions = read(rate_questions)
    remove_case = write(remove_case)
    delete = write(delete_dataset)
