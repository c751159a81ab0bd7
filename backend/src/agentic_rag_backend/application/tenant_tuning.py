"""Tuning of a caller's tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.domain.tuning import Proposal, TuningPlan
from agentic_rag_backend.evaluation.tuning.tuning_service import Acceptance, TuningEstimate
from agentic_rag_backend.stores.catalogue.base import Page


@dataclass(frozen=True, slots=True)
class TenantTuning:
    """Proposes values for the tenant's searches. A proposal of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.ADMIN)
    async def request_proposal(self, caller: Principal, plan: TuningPlan, datasets: Sequence[str] | None) -> Proposal:
        """Queue a proposal. See `TuningService.request_proposal`."""
        return await self.container.tuning.request_proposal(caller, plan, datasets)

    @requires(Scope.ADMIN)
    async def estimate_proposal(self, caller: Principal, plan: TuningPlan, datasets: Sequence[str] | None) -> TuningEstimate:
        """Return the expected work of a proposal."""
        return await self.container.tuning.estimate_proposal(caller, plan, datasets)

    @requires(Scope.ADMIN)
    async def list_proposals(self, caller: Principal, *, limit: int, cursor: str | None = None) -> Page[Proposal]:
        """List proposals without their evidence, newest first."""
        return await self.container.catalogue.tuning.proposals(caller.tenant.id, limit=limit, cursor=cursor)

    @requires(Scope.ADMIN)
    async def get_proposal(self, caller: Principal, proposal_id: str) -> Proposal:
        """Return a proposal with its evidence."""
        return await self.container.catalogue.tuning.proposal(caller.tenant.id, proposal_id)

    @requires(Scope.ADMIN)
    async def accept_proposal(self, caller: Principal, proposal_id: str) -> Acceptance:
        """Use the proposed values from the next request on. See `TuningService.accept_proposal`."""
        return await self.container.tuning.accept_proposal(caller, proposal_id)

    @requires(Scope.ADMIN)
    async def roll_back_proposal(self, caller: Principal, proposal_id: str) -> Proposal:
        """Restore the values before an acceptance."""
        return await self.container.tuning.roll_back(caller, proposal_id)

    @requires(Scope.ADMIN)
    async def delete_proposal(self, caller: Principal, proposal_id: str) -> None:
        """Delete a proposal that is not in use, with its scores."""
        await self.container.catalogue.tuning.delete(caller.tenant.id, proposal_id)
