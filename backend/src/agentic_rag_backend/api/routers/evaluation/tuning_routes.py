"""Proposals of tuning: request, evidence, acceptance, rollback."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from agentic_rag_backend.api.dependencies import Administrator, Services
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.tuning_views import ProposalView, TuningAccepted, TuningBody, TuningEstimateView

router = APIRouter(prefix="/admin/tuning", tags=["admin"], route_class=IdempotentRoute)


@router.post(
    "",
    status_code=202,
    response_model=Envelope[TuningAccepted],
    summary="Propose better values for the tenant's searches",
    responses={200: {"model": Envelope[TuningAccepted], "description": "the expected work of a dry run"}},
)
async def request_proposal(
    request: Request, response: Response, services: Services, caller: Administrator, body: TuningBody
) -> dict[str, Any]:
    """Queue a job that learns values on one half of the cases and checks them on the other. Nothing changes before `accept`.

    With `dry_run`, the response is the number of cases and searches.
    """
    if body.dry_run:
        response.status_code = 200
        estimate = TuningEstimateView.of(await services.tuning.estimate_proposal(caller, body.to_plan(), body.datasets))
        return wrap_data(request, TuningAccepted(proposal_id=None, job_id=None, state=None, dry_run=True, estimate=estimate))
    proposal = await services.tuning.request_proposal(caller, body.to_plan(), body.datasets)
    accepted = TuningAccepted(proposal_id=proposal.id, job_id=proposal.job_id, state=proposal.state, dry_run=False, estimate=None)
    return wrap_data(request, accepted)


@router.get("", response_model=ListEnvelope[ProposalView], summary="List proposals of tuning, newest first")
async def list_proposals(
    request: Request, services: Services, caller: Administrator, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List the tenant's proposals without their evidence."""
    page = await services.tuning.list_proposals(caller, limit=limit, cursor=cursor)
    return wrap_page(request, [ProposalView.of(item, with_result=False) for item in page.items], page.next_cursor)


@router.get("/{proposal_id}", response_model=Envelope[ProposalView], summary="Get a proposal of tuning with its evidence")
async def get_proposal(request: Request, services: Services, caller: Administrator, proposal_id: str) -> dict[str, Any]:
    """Return a proposal: the values before and after, and their measures on both halves of the cases."""
    return wrap_data(request, ProposalView.of(await services.tuning.get_proposal(caller, proposal_id)))


@router.post("/{proposal_id}/accept", response_model=Envelope[ProposalView], summary="Use the proposed values")
async def accept_proposal(request: Request, services: Services, caller: Administrator, proposal_id: str) -> dict[str, Any]:
    """Use the proposed values in every search of the tenant that does not set them itself, from the next request on.

    If documents changed since the proposal was measured, `warnings` says so. If the embedder or other values changed, it is
    refused with 409.
    """
    acceptance = await services.tuning.accept_proposal(caller, proposal_id)
    return wrap_data(request, ProposalView.of(acceptance.proposal, warnings=acceptance.warnings))


@router.post("/{proposal_id}/rollback", response_model=Envelope[ProposalView], summary="Restore the values before")
async def roll_back_proposal(request: Request, services: Services, caller: Administrator, proposal_id: str) -> dict[str, Any]:
    """Restore the values that an accepted proposal replaced, from the next request on."""
    return wrap_data(request, ProposalView.of(await services.tuning.roll_back_proposal(caller, proposal_id)))


@router.delete("/{proposal_id}", status_code=204, summary="Delete a proposal of tuning")
async def delete_proposal(services: Services, caller: Administrator, proposal_id: str) -> Response:
    """Delete a proposal that has ended and whose values are not in use."""
    await services.tuning.delete_proposal(caller, proposal_id)
    return Response(status_code=204)
