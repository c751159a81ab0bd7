"""Administration of a caller's tenant: jobs, status, flags, ontology, rebuilds and comparisons of the stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.application.status import describe_status
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.quota import QuotaScope, QuotaUse
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.domain.usage_report import UsageGroup, UsageReport
from agentic_rag_backend.knowledge.ontologies import EffectiveOntology
from agentic_rag_backend.stores.catalogue.pages import Page
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Flag
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.raptor.build_options import BuildOptions


@dataclass(frozen=True, slots=True)
class WorkService:
    """Reads, cancels and retries jobs. A job of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.READ)
    async def list_jobs(
        self,
        caller: Principal,
        *,
        limit: int,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> Page[Job]:
        """List jobs, newest first."""
        jobs = self.container.catalogue.jobs
        return await jobs.jobs(caller.tenant.id, limit=limit, cursor=cursor, state=state, kind=kind, document_id=document_id)

    @requires(Scope.READ)
    async def get_job(self, caller: Principal, job_id: str) -> Job:
        """Return a job."""
        return await self.container.catalogue.jobs.job(caller.tenant.id, job_id)

    @requires(Scope.WRITE)
    async def cancel_job(self, caller: Principal, job_id: str) -> Job:
        """Request the cancellation of a job."""
        return await self.container.jobs.cancel(caller.tenant.id, job_id)

    @requires(Scope.WRITE)
    async def retry_job(self, caller: Principal, job_id: str) -> Job:
        """Queue a failed, partial or cancelled job again."""
        return await self.container.jobs.retry(caller.tenant.id, job_id)


@dataclass(frozen=True, slots=True)
class AdminService:
    """Describes and changes what applies to the whole tenant."""

    container: Container

    @requires(Scope.READ)
    async def read_status(self, caller: Principal) -> dict[str, Any]:
        """Return version, stores, models, features and counts as JSON values."""
        return await describe_status(self.container, caller)

    @requires(Scope.READ)
    async def read_usage(
        self, caller: Principal, by: UsageGroup, start: date | None = None, end: date | None = None
    ) -> UsageReport:
        """Return model calls, tokens, cost and requests of the tenant. See `UsageService.read_report`."""
        return await self.container.usage.read_report(caller.tenant.id, by, start, end)

    @requires(Scope.READ, filtered=True)
    async def list_quota_uses(self, caller: Principal) -> Sequence[QuotaUse]:
        """Return the use of each limit of the tenant and of the caller's key. A key with a filter sees its own limits alone."""
        key_id = None if caller.operator else caller.key_id
        tenant = replace(caller.tenant, id=caller.tenant.id.whole)
        uses = await self.container.quotas.list_uses(tenant, key_id, caller.key_quota)
        return uses if caller.tenant.id.access is None else [use for use in uses if use.scope is QuotaScope.KEY]

    @requires(Scope.READ, filtered=True)
    async def list_flags(self, caller: Principal) -> Sequence[Flag]:
        """Return each flag's effective value, default and source."""
        return self.container.features.list_effective(caller.flags, caller.tenant.tuned)

    @requires(Scope.ADMIN)
    async def set_flags(self, caller: Principal, changes: Mapping[str, Any]) -> Sequence[Flag]:
        """Set flags of the tenant; null restores a default. Return all flags.

        Raises:
            InvalidRequest: a flag is unknown, or has a value of another kind.
            Conflict: tuning has set the value.
        """
        features, tuned = self.container.features, caller.tenant.tuned
        flags = await self.container.catalogue.tenants.set_flags(caller.tenant.id, features.check_changes(changes, tuned))
        return features.list_effective(flags, tuned)

    @requires(Scope.READ, filtered=True)
    async def list_strategies(self, caller: Principal) -> Sequence[Mapping[str, Any]]:
        """Return the strategies with their options and, if a strategy is unavailable, the reason."""
        enabled = self.container.features.is_on(DUAL_LEVEL, caller.flags)
        return self.container.retrievers.describe(dual_level=enabled)

    @requires(Scope.READ, filtered=True)
    async def list_rerankers(self, caller: Principal) -> Sequence[Mapping[str, Any]]:
        """Return the rerankers with their options and, if a reranker is unavailable, the reason."""
        return self.container.rerankers.describe()

    @requires(Scope.READ)
    async def get_ontology(self, caller: Principal) -> EffectiveOntology:
        """Return the types that a language model uses when it extracts."""
        return await self.container.ontologies.of(caller.tenant.id)

    @requires(Scope.ADMIN)
    async def replace_ontology(self, caller: Principal, ontology: Ontology) -> EffectiveOntology:
        """Replace the tenant's ontology. It applies to documents that are processed from now on."""
        return await self.container.ontologies.put(caller.tenant.id, ontology)

    @requires(Scope.ADMIN)
    async def rebuild_communities(self, caller: Principal, options: RebuildOptions | None = None) -> Job:
        """Queue a rebuild of communities, or join a running one."""
        return await self.container.communities.request_rebuild(caller.tenant.id, options or RebuildOptions())

    @requires(Scope.ADMIN)
    async def read_community_status(self, caller: Principal) -> Mapping[str, Any]:
        """Return generation, staleness, the last job and the figures of the last rebuild."""
        return await self.container.communities.read_status(caller.tenant.id)

    @requires(Scope.ADMIN)
    async def rebuild_tree(self, caller: Principal, options: BuildOptions | None = None) -> Job:
        """Queue a build of the tree over passages, or join a running one."""
        return await self.container.raptor.request_build(caller.tenant.id, options or BuildOptions())

    @requires(Scope.ADMIN)
    async def read_tree_status(self, caller: Principal) -> Mapping[str, Any]:
        """Return generation, staleness, the last job and the figures of the last build."""
        return await self.container.raptor.read_status(caller.tenant.id)

    @requires(Scope.ADMIN)
    async def compare_stores(self, caller: Principal, *, repair: bool = False, confirmed: bool = False) -> Job:
        """Queue a comparison of the stores, or join a running one. The job's result is the report.

        Args:
            repair: mend the differences.
            confirmed: a person confirmed the removal of data that the catalogue does not have. It needs ``repair``.
        """
        return await self.container.reconciler.request_job(caller.tenant.id, repair=repair, confirmed=repair and confirmed)

    @requires(Scope.ADMIN)
    async def read_comparison(self, caller: Principal) -> tuple[float, Job | None]:
        """Return the seconds between scheduled comparisons, and the job of the last comparison."""
        return self.container.settings.reconcile_interval_s, await self.container.reconciler.find_last(caller.tenant.id)
