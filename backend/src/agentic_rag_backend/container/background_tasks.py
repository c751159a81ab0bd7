"""Background tasks: comparison of the stores, automatic rebuilds, and removal of data that is no longer needed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from agentic_rag_backend.container.services import Container
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.reconciliation.comparison_schedule import Schedule
from agentic_rag_backend.ingestion.reconciliation.service import Reconciler
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.tenancy.features import COMMUNITY_AUTO_REBUILD, RAPTOR_AUTO_UPDATE
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import Changes
from agentic_rag_backend.themes.communities.rebuilds.schedule import RebuildSchedule
from agentic_rag_backend.themes.raptor.service import TreeSchedule

_SWEPT_EVERY_S = 600.0

_log = get_logger(__name__)


async def sweep_originals(reconciler: Reconciler) -> None:
    """Remove files that killed processes left in the blob store."""
    try:
        await reconciler.sweep()
    except AgenticRagError as error:
        _log.warning("sweep_failed", code=error.code, reason=error.message)


class BackgroundTasks:
    """Scheduled tasks of a process that runs jobs. If there are several such processes, one of them runs the tasks."""

    def __init__(self, container: Container) -> None:
        self._container = container

    def begin(self, stack: AsyncExitStack) -> None:
        """Start the tasks. They end with ``stack``."""
        container, leads = self._container, self._container.queue.leads
        running = {
            "expired-rows": self._sweep_expired_rows(),
            "outbox": container.relay.run(leads),
            "community-rebuilds": self._rebuilds().run(leads),
            "raptor-updates": self._updates().run(leads),
        }
        interval_s = container.settings.reconcile_interval_s
        if interval_s:
            comparisons = Schedule(container.reconciler, container.catalogue.tenants, interval_s=interval_s)
            running["reconciliation"] = comparisons.run(leads)
        tasks = [asyncio.create_task(work, name=name) for name, work in running.items()]
        stack.push_async_callback(asyncio.wait, tasks)
        for task in tasks:
            stack.callback(task.cancel)

    def _rebuilds(self) -> RebuildSchedule:
        container, settings = self._container, self._container.settings
        return RebuildSchedule(
            container.catalogue,
            container.communities.request_rebuild,
            delay_s=settings.community_rebuild_delay_s,
            max_wait_s=settings.rebuild_max_wait_s,
            enabled=lambda flags: container.features.is_on(COMMUNITY_AUTO_REBUILD, flags),
            changes=Changes(documents=container.catalogue.documents, graph=container.graph),
            threshold=settings.community_rebuild_threshold,
        )

    def _updates(self) -> TreeSchedule:
        container = self._container
        return TreeSchedule(
            container.catalogue,
            container.raptor.request_build,
            delay_s=container.settings.raptor_update_delay_s,
            max_wait_s=container.settings.rebuild_max_wait_s,
            enabled=lambda flags: container.features.is_on(RAPTOR_AUTO_UPDATE, flags),
        )

    async def _sweep_expired_rows(self) -> None:
        """Remove expired responses of idempotency keys, and expired search sessions."""
        catalogue = self._container.catalogue
        while True:
            try:
                if await self._container.queue.leads():
                    await catalogue.idempotency.sweep()
                    await catalogue.search_sessions.sweep()
            except AgenticRagError as error:
                _log.warning("expired_rows_not_swept", code=error.code, reason=error.message)
            await asyncio.sleep(_SWEPT_EVERY_S)
