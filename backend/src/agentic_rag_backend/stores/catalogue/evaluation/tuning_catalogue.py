"""Proposals of tuning, the scores of their cases, and the tuned values of tenants."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Select, and_, delete, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tuning import (
    MAX_PROPOSALS,
    CaseScores,
    Parameter,
    Proposal,
    ProposalStatus,
    TunedValues,
    TuningPlan,
)
from agentic_rag_backend.errors import Conflict, InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue
from agentic_rag_backend.stores.catalogue.jobs.job_rows import new_job
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, raise_state_version, read, upsert, write
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, decode_cursor, encode_cursor, time_cursor
from agentic_rag_backend.stores.catalogue.tables import jobs, tenants, tuning_proposals, tuning_scores
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import read_tenant

_PROPOSALS, _SCORES = "proposals", "scores"
_proposals, _scores = tuning_proposals.c, tuning_scores.c
_JOB_FIELDS = ("state", "done", "total", "error", "finished_at")
_COPIED = ("id", "job_id", "created_at", "accepted_at", "accepted_by", "rolled_back_at", "rolled_back_by")


def create_proposal(connection: Connection, tenant: TenantId, plan: TuningPlan, enqueue: Enqueue) -> Proposal:
    """Record a proposal and its job, which ``enqueue`` adds to the queue, in one transaction.

    Raises:
        InvalidRequest: the tenant has `MAX_PROPOSALS` proposals.
    """
    lock_tenant(connection, tenant)
    of_tenant = select(func.count()).select_from(tuning_proposals).where(_proposals.tenant_id == tenant.value)
    count = connection.execute(of_tenant).scalar_one()
    if count >= MAX_PROPOSALS:
        raise InvalidRequest(f"a tenant may have at most {MAX_PROPOSALS} proposals of tuning; it has {count}. Delete some first")
    proposal_id = str(uuid.uuid4())
    job = new_job(connection, tenant, JobKind.TUNE, arguments={"proposal_id": proposal_id})
    row = {
        "tenant_id": tenant.value,
        "id": proposal_id,
        "job_id": job.id,
        "plan": plain(asdict(plan)),
        "base": plain(asdict(read_tenant(connection, tenant).tuned)),
        "created_at": utc_now(),
        "content_version": _read_content_version(connection, tenant),
    }
    connection.execute(insert(tuning_proposals), row)
    enqueue(connection, tenant, job)
    return read_proposal(connection, tenant, proposal_id)


def _read_content_version(connection: Connection, tenant: TenantId) -> int:
    statement = select(tenants.c.content_version).where(tenants.c.tenant_id == tenant.value)
    return int(connection.execute(statement).scalar_one())


def _select_proposals(tenant: TenantId) -> Select[Any]:
    of_job = and_(jobs.c.tenant_id == _proposals.tenant_id, jobs.c.id == _proposals.job_id)
    return (
        select(*(column for column in _proposals if column is not _proposals.result), *(jobs.c[name] for name in _JOB_FIELDS))
        .select_from(tuning_proposals.join(jobs, of_job))
        .where(_proposals.tenant_id == tenant.value)
    )


def _read_row(connection: Connection, tenant: TenantId, proposal_id: str) -> RowMapping:
    statement = _select_proposals(tenant).where(_proposals.id == proposal_id).add_columns(_proposals.result)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise NotFound(f"there is no proposal {proposal_id!r}")
    return row


def read_proposal(connection: Connection, tenant: TenantId, proposal_id: str) -> Proposal:
    """Return a proposal with its evidence and the state of its job, or raise `NotFound`."""
    return _proposal_from(_read_row(connection, tenant, proposal_id))


def list_proposals(connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None) -> Page[Proposal]:
    """List proposals without their evidence, newest first."""
    statement = _select_proposals(tenant)
    if cursor is not None:
        statement = statement.where(beyond(tuning_proposals, _PROPOSALS, cursor, newest_first=True))
    statement = statement.order_by(_proposals.created_at.desc(), _proposals.id.desc()).limit(check_limit(limit) + 1)
    items = [_proposal_from(row) for row in connection.execute(statement).mappings()]
    last_item = items[limit - 1] if len(items) > limit else None
    return Page(tuple(items[:limit]), time_cursor(_PROPOSALS, last_item.created_at, last_item.id) if last_item else None)


def _proposal_from(row: RowMapping) -> Proposal:
    plan = dict(row["plan"])
    return Proposal(
        **{name: row[name] for name in (*_COPIED, "done", "total", "error", "finished_at")},
        plan=TuningPlan(
            **{
                **plan,
                "datasets": tuple((dataset_id, version) for dataset_id, version in plan["datasets"]),
                "parameters": tuple(map(Parameter, plan["parameters"])),
            }
        ),
        base=TunedValues.read(row["base"]),
        state=JobState(row["state"]),
        values=None if row["proposed"] is None else TunedValues.read(row["proposed"]),
        result=row.get("result"),
    )


def save_scores(connection: Connection, tenant: TenantId, proposal_id: str, scores: CaseScores) -> None:
    """Record the scores of one case and parameter. The first ones stay.

    Raises:
        NotFound: the proposal was deleted.
    """
    lock_tenant(connection, tenant)
    _read_row(connection, tenant, proposal_id)
    row = {
        "tenant_id": tenant.value,
        "proposal_id": proposal_id,
        "case_id": scores.case_id,
        "parameter": scores.parameter.value,
        "scores": plain(scores.scores),
    }
    upsert(connection, tuning_scores, [row], keys=("tenant_id", "proposal_id", "case_id", "parameter"))


def list_scores(
    connection: Connection, tenant: TenantId, proposal_id: str, *, limit: int, cursor: str | None = None
) -> Page[CaseScores]:
    """List the scores of a proposal by case and parameter. `NotFound` if there is no such proposal."""
    _read_row(connection, tenant, proposal_id)
    statement = select(tuning_scores).where(_scores.tenant_id == tenant.value, _scores.proposal_id == proposal_id)
    if cursor is not None:
        case_id, parameter = decode_cursor(_SCORES, cursor, str, str)
        later = and_(_scores.case_id == case_id, _scores.parameter > parameter)
        statement = statement.where((_scores.case_id > case_id) | later)
    statement = statement.order_by(_scores.case_id, _scores.parameter).limit(check_limit(limit) + 1)
    rows = connection.execute(statement).mappings().all()
    last_row = rows[limit - 1] if len(rows) > limit else None
    items = tuple(
        CaseScores(case_id=row["case_id"], parameter=Parameter(row["parameter"]), scores=row["scores"]) for row in rows[:limit]
    )
    return Page(items, encode_cursor(_SCORES, (last_row["case_id"], last_row["parameter"])) if last_row is not None else None)


def save_result(
    connection: Connection, tenant: TenantId, proposal_id: str, result: Mapping[str, Any], values: TunedValues | None
) -> None:
    """Record the evidence of a proposal, and the proposed values; None: it declines to change anything.

    Raises:
        NotFound: the proposal was deleted.
    """
    its = (_proposals.tenant_id == tenant.value, _proposals.id == proposal_id)
    columns = {"result": plain(result), "proposed": None if values is None else plain(asdict(values))}
    if connection.execute(update(tuning_proposals).where(*its).values(columns)).rowcount == 0:
        raise NotFound(f"there is no proposal {proposal_id!r}")


def accept_values(connection: Connection, tenant: TenantId, proposal_id: str, key_id: str) -> tuple[Proposal, bool]:
    """Use the proposed values for the tenant, and raise ``state_version``.

    Return the proposal, and whether documents changed since it was measured. A proposal that is accepted already stays so.

    Raises:
        NotFound: there is no such proposal.
        Conflict: it proposes nothing, or the tuned values have changed since it was requested.
    """
    lock_tenant(connection, tenant)
    row = _read_row(connection, tenant, proposal_id)
    proposal = _proposal_from(row)
    changed = _read_content_version(connection, tenant) != row["content_version"]
    if proposal.status is ProposalStatus.ACCEPTED:
        return proposal, changed
    if proposal.values is None or proposal.status not in (ProposalStatus.PROPOSED, ProposalStatus.ROLLED_BACK):
        raise Conflict(f"proposal {proposal_id!r} is {proposal.status.value}; it has no values to accept")
    current = read_tenant(connection, tenant).tuned
    if current != proposal.base:
        raise Conflict(
            f"proposal {proposal_id!r} was measured against other values: {_name_proposal(proposal.base)} then, "
            f"{_name_proposal(current)} now. Tune again"
        )
    _set_tuned(connection, tenant, replace(proposal.values, proposal_id=proposal_id))
    _update_proposal(
        connection,
        tenant,
        proposal_id,
        previous=plain(asdict(current)),
        accepted_at=utc_now(),
        accepted_by=key_id,
        rolled_back_at=None,
        rolled_back_by=None,
    )
    return read_proposal(connection, tenant, proposal_id), changed


def _name_proposal(values: TunedValues) -> str:
    return f"those of proposal {values.proposal_id!r}" if values.proposal_id is not None else "nothing was tuned"


def roll_back(connection: Connection, tenant: TenantId, proposal_id: str, key_id: str) -> Proposal:
    """Restore the values that an acceptance replaced, and raise ``state_version``. A repetition changes nothing.

    Raises:
        NotFound: there is no such proposal.
        Conflict: it was not accepted, or another one was accepted later.
    """
    lock_tenant(connection, tenant)
    row = _read_row(connection, tenant, proposal_id)
    proposal = _proposal_from(row)
    if proposal.status is ProposalStatus.ROLLED_BACK:
        return proposal
    if proposal.status is not ProposalStatus.ACCEPTED:
        raise Conflict(f"proposal {proposal_id!r} is {proposal.status.value}; only an accepted one can be rolled back")
    current = read_tenant(connection, tenant).tuned
    if current.proposal_id != proposal_id:
        raise Conflict(f"proposal {current.proposal_id!r} was accepted later; roll it back first")
    _set_tuned(connection, tenant, TunedValues.read(row["previous"]))
    _update_proposal(connection, tenant, proposal_id, rolled_back_at=utc_now(), rolled_back_by=key_id)
    return read_proposal(connection, tenant, proposal_id)


def _set_tuned(connection: Connection, tenant: TenantId, values: TunedValues) -> None:
    column = {"tuned": plain(asdict(values)) if values.proposal_id is not None else None}
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(column))
    raise_state_version(connection, tenant)


def _update_proposal(connection: Connection, tenant: TenantId, proposal_id: str, **columns: Any) -> None:
    its = (_proposals.tenant_id == tenant.value, _proposals.id == proposal_id)
    connection.execute(update(tuning_proposals).where(*its).values(columns))


def delete_proposal(connection: Connection, tenant: TenantId, proposal_id: str) -> None:
    """Delete a proposal with its scores.

    Raises:
        NotFound: there is no such proposal.
        Conflict: its job has not ended, or its values are in use.
    """
    lock_tenant(connection, tenant)
    proposal = read_proposal(connection, tenant, proposal_id)
    if not proposal.state.ended:
        raise Conflict(f"proposal {proposal_id!r} is {proposal.status.value}; cancel its job {proposal.job_id!r} first")
    if proposal.status is ProposalStatus.ACCEPTED:
        raise Conflict(f"the values of proposal {proposal_id!r} are in use; roll it back first")
    connection.execute(delete(tuning_scores).where(_scores.tenant_id == tenant.value, _scores.proposal_id == proposal_id))
    connection.execute(delete(tuning_proposals).where(_proposals.tenant_id == tenant.value, _proposals.id == proposal_id))


class TuningCatalogue(CataloguePart):
    """Proposals of tuning with the scores of their cases. Their jobs have the state and the progress."""

    create = write(create_proposal)
    proposal = read(read_proposal)
    proposals = read(list_proposals)
    save_scores = write(save_scores)
    scores = read(list_scores)
    save_result = write(save_result)
    accept_values = write(accept_values)
    roll_back = write(roll_back)
    delete = write(delete_proposal)
