"""Cache of tenants' graphs in memory: loaded on first use, updated incrementally, evicted by size (least recently used)."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.ledger import GraphLedger
from agentic_rag_backend.knowledge.tenant_graph.visible_knowledge import Knowledge
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, Visibility
from agentic_rag_backend.stores.graph.base import GraphStore

ANEW_SHARE = 0.5
"""Share of changed documents above which a full reload costs less than an incremental update."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A graph, and the catalogue's ``state_version`` at which it is current."""

    state_version: int
    ledger: GraphLedger
    graph: TenantGraph


class TenantGraphs:
    """Returns a tenant's graph that is at least as new as a given ``state_version``.

    A cached graph is updated with the knowledge of the changed documents only. Everything is read for the first question, after
    more changes than the catalogue records, and if most of the graph was replaced.

    Args:
        max_bytes: memory for all graphs. The newest is kept even if it exceeds this alone. Older states of a graph that running
            queries still hold are not counted.
    """

    def __init__(self, graph: GraphStore, documents: DocumentCatalogue, *, max_bytes: int) -> None:
        self._graph = graph
        self._documents = documents
        self._max_bytes = max_bytes
        self._held: OrderedDict[TenantId, _Held] = OrderedDict()
        self._loading: dict[TenantId, asyncio.Task[_Held]] = {}
        self._forgotten: dict[TenantId, datetime] = {}
        self._outdated: set[asyncio.Task[_Held]] = set()

    async def graph(self, tenant: Tenant) -> TenantGraph:
        """Return the tenant's graph of visible knowledge.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        if tenant.created_at > self._forgotten.get(tenant.id, tenant.created_at):
            del self._forgotten[tenant.id]  # the tenant was created again under the same id
        cached = self._held.get(tenant.id)
        if cached is not None and cached.state_version >= tenant.state_version:
            self._held.move_to_end(tenant.id)
            return cached.graph
        # A running load may have begun before this question's state. The next load has not.
        loaded = await asyncio.shield(self._loading.get(tenant.id) or self._begin_load(tenant.id))
        if loaded.state_version < tenant.state_version:
            loaded = await asyncio.shield(self._loading.get(tenant.id) or self._begin_load(tenant.id))
        return loaded.graph

    def _begin_load(self, tenant: TenantId) -> asyncio.Task[_Held]:
        task = asyncio.create_task(self._load_graph(tenant))
        self._loading[tenant] = task
        task.add_done_callback(self._outdated.discard)
        task.add_done_callback(lambda task_: self._end_load(tenant, task_))
        return task

    def _end_load(self, tenant: TenantId, task: asyncio.Task[_Held]) -> None:
        if self._loading.get(tenant) is task:
            del self._loading[tenant]
        if not task.cancelled():
            task.exception()  # Retrieve the error, or asyncio logs it as never retrieved if all callers were cancelled.

    async def _load_graph(self, tenant: TenantId) -> _Held:
        cached = self._held.get(tenant)
        visibility = await self._documents.visibility(tenant, since=cached.state_version if cached is not None else None)
        changed = dict(visibility.versions)
        if cached is not None and not visibility.whole and not changed:
            # The documents are the same: a flag or a generation changed.
            loaded = _Held(visibility.state_version, cached.ledger, cached.graph)
        else:
            if cached is not None and (
                visibility.whole or cached.ledger.worn or len(changed) > ANEW_SHARE * cached.ledger.document_count
            ):
                cached = None
                visibility = visibility if visibility.whole else await self._documents.visibility(tenant)
                changed = dict(visibility.versions)
            visibility, knowledge = await self._read_knowledge(tenant, visibility, changed, everything=cached is None)
            loaded = await self._apply_knowledge(tenant, cached, knowledge, visibility.state_version)
        self._cache_graph(tenant, loaded)
        return loaded

    async def _read_knowledge(
        self, tenant: TenantId, visibility: Visibility, changed: Mapping[str, int], *, everything: bool
    ) -> tuple[Visibility, Knowledge]:
        """Read the knowledge of the changed documents. Read documents again that changed in the meantime.

        The knowledge of a version is complete while the version is visible. What was read of a version that was visible before
        and
        after the read is therefore complete.
        """
        knowledge = Knowledge(changed)
        ids = None if everything else [id for id, version in changed.items() if version]
        while True:
            async for batch in self._graph.stream_knowledge(tenant, ids):
                # In a thread: one batch takes some milliseconds.
                await asyncio.to_thread(knowledge.add, batch)
            later = await self._documents.visibility(tenant, since=visibility.state_version)
            meanwhile = _find_changes(knowledge.versions, later)
            visibility = later
            if not meanwhile:
                return visibility, knowledge
            knowledge.forget(meanwhile)
            ids = [id for id, version in meanwhile.items() if version]

    async def _apply_knowledge(self, tenant: TenantId, cached: _Held | None, knowledge: Knowledge, state_version: int) -> _Held:
        ledger = GraphLedger() if cached is None else cached.ledger

        def work() -> TenantGraph:
            ledger.apply(knowledge)
            return ledger.graph()

        try:
            graph = await asyncio.to_thread(work)
        except BaseException:
            # An error may have left the ledger incomplete, so it must not be reused.
            if cached is not None and self._held.get(tenant) is cached:
                del self._held[tenant]
            raise
        return _Held(state_version, ledger, graph)

    def _cache_graph(self, tenant: TenantId, loaded: _Held) -> None:
        if tenant in self._forgotten or asyncio.current_task() in self._outdated:
            return
        self._held[tenant] = loaded
        self._held.move_to_end(tenant)
        while len(self._held) > 1 and self.size_bytes > self._max_bytes:
            self._held.popitem(last=False)

    def read_anew(self, tenant: TenantId) -> None:
        """Reload everything at the next question, after a repair of the stores. A running load is discarded."""
        for scope in self._scopes_of(tenant):
            self._held.pop(scope, None)
            if (loading := self._loading.pop(scope, None)) is not None:
                self._outdated.add(loading)

    def forget(self, tenant: TenantId) -> None:
        """Drop a deleted tenant's graphs. A graph that is still loading, or that a late question requests, is not cached."""
        for scope in {tenant, *self._scopes_of(tenant)}:
            self._forgotten[scope] = datetime.now(UTC)
            self._held.pop(scope, None)

    def _scopes_of(self, tenant: TenantId) -> set[TenantId]:
        """Return the scopes of a tenant that have a graph, those of restricted keys included."""
        return {scope for scope in (*self._held, *self._loading) if scope.value == tenant.value}

    @property
    def size_bytes(self) -> int:
        """Memory held by all graphs."""
        return sum(cached.graph.size_bytes for cached in self._held.values())


def _find_changes(versions: Mapping[str, int], later: Visibility) -> dict[str, int]:
    """Return the documents that changed since they were read, with the visible version.

    A change may leave the version as it is: the knowledge of a document is written again if its names mean other entities.
    """
    if not later.whole:
        return dict(later.versions)
    changed = {id: version for id, version in later.versions.items() if versions.get(id) != version}
    if later.whole:
        changed |= {id: 0 for id, version in versions.items() if version and id not in later.versions}
    return changed
