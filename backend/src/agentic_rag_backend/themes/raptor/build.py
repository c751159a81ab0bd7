"""Builds a tenant's tree or applies changes to it: cluster, summarise, embed, and publish in one step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.domain.usage import calls_and_tokens
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue, GenerationPointer
from agentic_rag_backend.themes.communities.summaries.recording import SummaryTally, count_levels
from agentic_rag_backend.themes.communities.theme_index import RebuildProgress
from agentic_rag_backend.themes.raptor.build_options import BuildOptions, TreeOptions
from agentic_rag_backend.themes.raptor.node_writing import NodeWriter
from agentic_rag_backend.themes.raptor.reading import PassageReader
from agentic_rag_backend.themes.raptor.structure.clustering import plan_tree
from agentic_rag_backend.themes.raptor.structure.growing_tree import GrowingTree
from agentic_rag_backend.themes.raptor.structure.insertion import Insertion, find_difference, map_vectors_to_nodes
from agentic_rag_backend.themes.raptor.tree_publication import TreePublisher

MAX_CHANGED = 0.3
"""Share of a tree's passages that may change after a full clustering; beyond it, the tree is clustered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BuildPlan:
    """The plan of a build.

    ``written`` are nodes to write, ``before`` the nodes of the current tree by id; ``removed`` are deleted. If ``whole``, the
    tree
    is clustered again and only summaries of equal clusters are reused. ``changed`` counts the passages added and removed since
    the
    last full clustering.
    """

    whole: bool
    built_from: int
    written: list[TreeNode]
    before: dict[str, TreeNode] = field(default_factory=dict)
    kept: dict[str, TreeNode] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    changed: int = 0


class TreeBuilder:
    """Runs builds. `RaptorService` calls it."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        passages: PassageReader,
        writer: NodeWriter,
        publisher: TreePublisher,
        options: TreeOptions,
    ) -> None:
        self._catalogue = catalogue
        self._passages = passages
        self._writer = writer
        self._publisher = publisher
        self._options = options

    async def run(self, tenant: TenantId, build_options: BuildOptions, report: RebuildProgress) -> dict[str, Any]:
        """Run the build and return the result: nodes per level, summaries written and reused, tokens, times.

        An exception of ``report`` ends it; the tree stays unchanged.
        """
        options = build_options.override_tree(self._options)
        report = clock = _Clock(report)
        plan = await self._make_plan(tenant, build_options, options, report)
        if build_options.dry_run:
            return await self._estimate_cost(tenant, build_options, plan, report)
        signed, tally = await self._writer.write_nodes(
            tenant, plan.written, plan.kept, by_model=build_options.summarize, report=report
        )
        details = _make_details(options, plan, tally)
        if plan.whole:
            generation = await self._publisher.publish(tenant, signed, built_from=plan.built_from, details=details, report=report)
        else:
            generation = (await self._catalogue.trees.pointer(tenant)).generation
            await self._publisher.change_tree(
                tenant,
                generation,
                signed,
                before=plan.before,
                removed=plan.removed,
                built_from=plan.built_from,
                details=details,
                report=report,
            )
        return {
            "generation": generation,
            **public_details(details),
            "rewritten": sorted(tally.rewritten)[:_LISTED],
            "stages_ms": clock.list_times(),
        }

    async def _make_plan(
        self, tenant: TenantId, build_options: BuildOptions, options: TreeOptions, report: RebuildProgress
    ) -> _BuildPlan:
        await report("read", 0, 1)
        pointer = await self._catalogue.trees.pointer(tenant)
        if build_options.mode == "incremental" and pointer.generation and pointer.details.get("options") == asdict(options):
            grown = await self._plan_growth(tenant, pointer, options, report)
            if grown is not None:
                return grown
        # Read first: a later change then marks the tree as stale.
        built_from = (await self._catalogue.tenants.tenant(tenant)).state_version
        versions = await self._catalogue.documents.visible_versions(tenant)
        leaves = await self._passages.read_leaves(tenant, versions)
        await report("cluster", 0, 1)
        nodes = await asyncio.to_thread(plan_tree, tenant, leaves, options)
        return _BuildPlan(whole=True, built_from=built_from, written=nodes)

    async def _plan_growth(
        self, tenant: TenantId, pointer: GenerationPointer, options: TreeOptions, report: RebuildProgress
    ) -> _BuildPlan | None:
        """Return a plan that adds and removes changed passages; None if a full build is better."""
        visibility = await self._catalogue.documents.visibility(tenant, since=pointer.built_from)
        nodes = await self._catalogue.trees.nodes(tenant, pointer.generation)
        tree = GrowingTree(tenant, nodes)
        passage_count = len(tree.map_passages())
        changes = await find_difference(self._passages, tenant, tree, visibility)
        changed = int(pointer.details.get("changed", 0)) + len(changes)
        if not passage_count or changed > MAX_CHANGED * passage_count:
            return None
        await report("cluster", 0, 1)
        new = await self._passages.select_leaves(tenant, changes.new)
        insertion = Insertion(tenant, self._passages, tree, map_vectors_to_nodes(tenant, nodes), options)
        await insertion.apply_difference(changes.gone, new)
        grown = tree.take_growth()
        if not tree.height:
            return None
        return _BuildPlan(
            whole=False,
            built_from=visibility.state_version,
            written=grown.written,
            before={node.id: node for node in nodes},
            kept=tree.unchanged_nodes(),
            removed=grown.removed,
            changed=changed,
        )

    async def _estimate_cost(
        self, tenant: TenantId, build_options: BuildOptions, plan: _BuildPlan, report: RebuildProgress
    ) -> dict[str, Any]:
        """Return the cost of a build; changes nothing."""
        count, usage = await self._writer.estimate_usage(tenant, plan.written, by_model=build_options.summarize, report=report)
        nodes = [*plan.written, *plan.kept.values()]
        return {
            "dry_run": True,
            "mode": _mode_of(plan),
            "nodes": len(nodes),
            "levels": count_levels(node.level for node in nodes),
            "summaries_to_write": count,
            "summaries_reused": len(plan.written) - count,
            **calls_and_tokens(usage),
            "cost": self._writer.summariser.estimate_cost(usage),
        }


_LISTED = 100
"""Nodes that a job's result names."""
_INTERNAL = frozenset({"options", "changed"})


def public_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a generation that a user is shown."""
    return {name: value for name, value in details.items() if name not in _INTERNAL}


def _make_details(options: TreeOptions, plan: _BuildPlan, tally: SummaryTally) -> dict[str, Any]:
    nodes = [*plan.written, *plan.kept.values()]
    return {
        "mode": _mode_of(plan),
        "nodes": len(nodes),
        "levels": count_levels(node.level for node in nodes),
        "passages": len({chunk for node in nodes if node.level == 1 for chunk in node.children}),
        "nodes_changed": len(plan.written),
        **tally.make_details(),
        "options": asdict(options),
        "changed": plan.changed,
    }


def _mode_of(plan: _BuildPlan) -> str:
    return "full" if plan.whole else "incremental"


class _Clock:
    """A report that notes how long each stage takes."""

    def __init__(self, report: RebuildProgress) -> None:
        self._report = report
        self._began: list[tuple[str, float]] = []

    async def __call__(self, stage: str, done: int, total: int) -> None:
        self._began.append((stage, time.perf_counter()))
        await self._report(stage, done, total)

    async def wait_for_model(self, error: ModelUnavailable) -> bool:
        return await self._report.wait_for_model(error)

    def list_times(self) -> dict[str, float]:
        """Return the milliseconds of each stage. The last stage counts until now."""
        durations: dict[str, float] = {}
        ends = [*(at for _, at in self._began[1:]), time.perf_counter()]
        for (stage, began), end in zip(self._began, ends, strict=True):
            durations[stage] = durations.get(stage, 0.0) + 1000 * (end - began)
        return {stage: round(spent, 1) for stage, spent in durations.items()}
