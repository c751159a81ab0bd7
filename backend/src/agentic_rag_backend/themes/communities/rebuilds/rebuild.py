"""Rebuild a tenant's communities: read, detect, summarise, write a new generation, flip the pointer."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agentic_rag_backend.domain.graph import Community, CommunitySummary, WeightedEdge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage, calls_and_tokens
from agentic_rag_backend.stores.catalogue.base import Catalogue, GenerationPointer
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore
from agentic_rag_backend.themes.communities.detection.community_plan import (
    PlannedCommunity,
    plan_communities,
    previous_detection,
    previous_division,
)
from agentic_rag_backend.themes.communities.detection.documents import add_documents
from agentic_rag_backend.themes.communities.detection.hierarchy import Detection, DetectionOptions, detect_communities
from agentic_rag_backend.themes.communities.detection.knowledge import (
    VisibleKnowledge,
    graph_digest,
    list_contexts,
    read_visible,
    weighted_edges,
)
from agentic_rag_backend.themes.communities.detection.top_level import DocumentMentions
from agentic_rag_backend.themes.communities.generations import MIN_SEARCHABLE, GenerationDraft, Publisher
from agentic_rag_backend.themes.communities.rebuilds.basis import UpToDateCheck, compute_basis, divided_under
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import COUNTED, RebuildOptions
from agentic_rag_backend.themes.communities.summaries.evidence_gatherer import EvidenceGatherer
from agentic_rag_backend.themes.communities.summaries.recording import SummaryTally, count_levels, write_summaries
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser
from agentic_rag_backend.themes.communities.theme_index import SUMMARISE, CommunityReader, RebuildProgress

_BATCH = 32


@dataclass(slots=True)
class _TimedTally(SummaryTally):
    """The results of a rebuild, and the duration of each stage."""

    stages_ms: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GraphReading:
    """The graph as it was read, and the result of the detection."""

    state_version: int
    pointer: GenerationPointer
    versions: dict[str, int]
    knowledge: VisibleKnowledge
    edges: list[WeightedEdge]
    planned: list[PlannedCommunity]
    modularity: float
    digest: str
    basis: str
    relationships: int
    afresh: bool


class Rebuilder:
    """Runs one rebuild after another; `CommunityService` calls it."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        graph: GraphStore,
        reader: CommunityReader,
        summariser: Summariser,
        publisher: Publisher,
        up_to_date: UpToDateCheck,
        detection: DetectionOptions,
        vectors: VectorStore,
    ) -> None:
        self._vectors = vectors
        self._catalogue = catalogue
        self._graph = graph
        self._reader = reader
        self._summariser = summariser
        self._publisher = publisher
        self._up_to_date = up_to_date
        self._detection = detection

    async def run(self, tenant: TenantId, options: RebuildOptions, report: RebuildProgress) -> dict[str, Any]:
        """Run the rebuild and return the result: counts per level, summaries written and reused, tokens, modularity.

        If nothing has changed since the current generation was built, an incremental rebuild keeps that generation.

        Raises:
            Stopped: the job was asked to stop; the old generation stays.
        """
        tally = _TimedTally()
        if options.mode == "incremental" and not options.dry_run:
            unchanged = await self._reuse_generation(tenant, options, report)
            if unchanged is not None:
                return unchanged
        reading = await self._read_graph(tenant, options, report, tally)
        if options.dry_run:
            return await self._estimate_cost(tenant, options, reading, report)
        summaries = await self._summarise_communities(tenant, options, reading, report, tally)
        details = self._make_details(options, reading, tally, summaries)
        if details["written_under"] != reading.pointer.details.get("written_under"):
            # readers show the summary written last: save reused summaries again
            await self._catalogue.communities.save_summaries(tenant, list(summaries.values()))
        draft = GenerationDraft(
            planned=reading.planned,
            summaries=summaries,
            rewritten=frozenset(tally.rewritten),
            built_from=reading.state_version,
            details=details,
        )
        started = time.perf_counter()
        generation = await self._publisher.publish(tenant, draft, previous=reading.pointer, report=report)
        tally.stages_ms["publish"] = _elapsed_ms(started)
        return {"generation": generation, **public_details(draft.details), "stages_ms": tally.stages_ms}

    async def _reuse_generation(
        self, tenant: TenantId, options: RebuildOptions, report: RebuildProgress
    ) -> dict[str, Any] | None:
        """Return the result of a rebuild with no work, or None if there may be work."""
        await report("compare", 0, 1)
        started = time.perf_counter()
        pointer = await self._catalogue.communities.pointer(tenant)
        if not await self._up_to_date.is_up_to_date(tenant, pointer, await self._compute_basis(tenant, options)):
            return None
        await self._publisher.remove_leftovers(tenant, pointer.generation)
        await report("compare", 1, 1)
        nothing = {"mode": "incremental", "summaries_written": 0, **calls_and_tokens(Usage())}
        return {
            "generation": pointer.generation,
            **public_details(pointer.details),
            **nothing,
            "summaries_reused": pointer.details["communities"],
            "unchanged": True,
            "stages_ms": {"compare": _elapsed_ms(started)},
        }

    async def _compute_basis(self, tenant: TenantId, options: RebuildOptions) -> str:
        revision = await self._graph.revision(tenant)
        return compute_basis(revision, options, options.override_detection(self._detection), self._summariser.keys)

    async def _read_graph(
        self, tenant: TenantId, options: RebuildOptions, report: RebuildProgress, tally: _TimedTally
    ) -> _GraphReading:
        await report("read", 0, 1)
        started = time.perf_counter()
        # read first: a later change makes the new generation stale, never silently complete
        state_version = (await self._catalogue.tenants.tenant(tenant)).state_version
        basis = await self._compute_basis(tenant, options)
        relationships = (await self._graph.counts(tenant)).relationships
        pointer, previous = await self._reader.read(tenant)
        versions = await self._catalogue.documents.visible_versions(tenant)
        order = await self._catalogue.documents.visible_chunks_in_order(tenant)
        knowledge = await read_visible(self._graph, tenant, versions, order)
        knowledge, documents = await add_documents(tenant, knowledge, self._catalogue.documents, self._vectors)
        tally.stages_ms["read"] = _elapsed_ms(started)
        await report("detect", 0, 1)
        started = time.perf_counter()
        detected = await asyncio.to_thread(
            _detect_communities,
            (knowledge, documents),
            options.override_detection(self._detection),
            previous=previous,
            details=pointer.details,
            incremental=options.mode == "incremental",
        )
        planned = await asyncio.to_thread(plan_communities, tenant, detected.detection, knowledge, previous)
        tally.stages_ms["detect"] = _elapsed_ms(started)
        return _GraphReading(
            state_version=state_version,
            pointer=pointer,
            versions=versions,
            knowledge=knowledge,
            edges=detected.edges,
            planned=planned,
            modularity=detected.detection.modularity,
            digest=detected.digest,
            basis=basis,
            relationships=relationships,
            afresh=detected.detection.afresh,
        )

    async def _summarise_communities(
        self, tenant: TenantId, options: RebuildOptions, reading: _GraphReading, report: RebuildProgress, tally: _TimedTally
    ) -> dict[str, CommunitySummary]:
        """Return every community's summary by fingerprint, children before their parents."""
        started = time.perf_counter()
        summaries = await self._read_summaries(tenant, options, reading)
        unsummarised = [community for community in reading.planned if community.fingerprint not in summaries]
        tally.reused = len(reading.planned) - len(unsummarised)
        gatherer = self._make_gatherer(tenant, reading)
        count_done = 0
        for batch in _deepest_first(unsummarised):
            progress = partial(report, SUMMARISE, count_done, len(unsummarised))
            await progress()
            evidence = await gatherer.gather_evidence(batch, _group_children(reading.planned, batch, summaries))
            writers = [
                partial(
                    self._summariser.write_summary,
                    community_evidence,
                    reading.knowledge.term_weights,
                    by_model=self._by_model(options, planned),
                )
                for planned, community_evidence in zip(batch, evidence, strict=True)
            ]
            save = partial(self._catalogue.communities.save_summaries, tenant)
            written_summaries = await write_summaries(writers, save, progress, report.wait_for_model)
            for planned, written_summary in zip(batch, written_summaries, strict=True):
                tally.count_summary(planned.id, written_summary)
            summaries |= {written_summary.summary.fingerprint: written_summary.summary for written_summary in written_summaries}
            count_done += len(batch)
        await report(SUMMARISE, count_done, len(unsummarised))
        tally.stages_ms[SUMMARISE] = _elapsed_ms(started)
        return summaries

    async def _read_summaries(
        self, tenant: TenantId, options: RebuildOptions, reading: _GraphReading
    ) -> dict[str, CommunitySummary]:
        """Return the existing summaries: the best writer's, or the extractive one if no model would write."""
        best, plain = self._summariser.keys[0], self._summariser.keys[-1]
        summaries = await self._read_summaries_under(tenant, [community.fingerprint for community in reading.planned], best)
        plain_fingerprints = [community.fingerprint for community in reading.planned if not self._by_model(options, community)]
        return summaries | await self._read_summaries_under(
            tenant, [fingerprint for fingerprint in plain_fingerprints if fingerprint not in summaries], plain
        )

    async def _read_summaries_under(
        self, tenant: TenantId, fingerprints: list[str], key: tuple[str, str]
    ) -> dict[str, CommunitySummary]:
        if not fingerprints:
            return {}
        prompt_version, model = key
        return await self._catalogue.communities.summaries(tenant, fingerprints, prompt_version=prompt_version, model=model)

    def _by_model(self, options: RebuildOptions, community: PlannedCommunity) -> bool:
        least = options.override_detection(self._detection).min_size
        return options.summarize and self._summariser.generative and len(community.members) >= least

    def _make_gatherer(self, tenant: TenantId, reading: _GraphReading) -> EvidenceGatherer:
        return EvidenceGatherer(
            tenant,
            graph=self._graph,
            documents=self._catalogue.documents,
            knowledge=reading.knowledge,
            versions=reading.versions,
            weights={(edge.source_id, edge.target_id): edge.weight for edge in reading.edges},
        )

    async def _estimate_cost(
        self, tenant: TenantId, options: RebuildOptions, reading: _GraphReading, report: RebuildProgress
    ) -> dict[str, Any]:
        """Return the cost of a rebuild; changes nothing."""
        summaries = await self._read_summaries(tenant, options, reading)
        unsummarised = [community for community in reading.planned if community.fingerprint not in summaries]
        paid = [community for community in unsummarised if self._by_model(options, community)]
        gatherer = self._make_gatherer(tenant, reading)
        usage = Usage()
        for start in range(0, len(paid), _BATCH):
            await report("estimate", start, len(paid))
            batch = paid[start : start + _BATCH]
            for evidence in await gatherer.gather_evidence(batch, _group_children(reading.planned, batch, summaries)):
                usage += self._summariser.estimate_usage(evidence)
        return {
            "dry_run": True,
            "communities": len(reading.planned),
            "levels": count_levels(community.level for community in reading.planned),
            "summaries_to_write": len(unsummarised),
            "summaries_reused": len(reading.planned) - len(unsummarised),
            **calls_and_tokens(usage),
            "cost": self._summariser.estimate_cost(usage),
            "modularity": round(reading.modularity, 4),
        }

    def _make_details(
        self, options: RebuildOptions, reading: _GraphReading, tally: _TimedTally, summaries: dict[str, CommunitySummary]
    ) -> dict[str, Any]:
        under = {(summary.prompt_version, summary.model) for summary in summaries.values()}
        order = [key for key in self._summariser.keys if key in under] + sorted(under - set(self._summariser.keys))
        return {
            "mode": "full" if reading.afresh else "incremental",
            "communities": len(reading.planned),
            "levels": count_levels(community.level for community in reading.planned),
            "entities": len(reading.knowledge.entities),
            "relationships": len(reading.knowledge.edges),
            **tally.make_details(),
            "modularity": round(reading.modularity, 4),
            "coverage": _measure_coverage(reading.planned),
            "sizes": _measure_sizes(reading.planned),
            "graph": reading.digest,
            "divided_under": divided_under(options.override_detection(self._detection)),
            "basis": reading.basis,
            COUNTED: reading.relationships,
            "coarse": [community.id for community in reading.planned if community.level == 0 and not community.base],
            "written_under": [list(key) for key in order],
        }


_INTERNAL = frozenset({"graph", "divided_under", "basis", "coarse", "written_under", COUNTED})
"""Details that only the next rebuild and the readers need."""


def public_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the details of a generation that a user is shown."""
    return {name: value for name, value in details.items() if name not in _INTERNAL}


@dataclass(frozen=True, slots=True)
class _Detected:
    edges: list[WeightedEdge]
    digest: str
    detection: Detection


def _detect_communities(
    readings: tuple[VisibleKnowledge, DocumentMentions],
    options: DetectionOptions,
    *,
    previous: Sequence[Community],
    details: Mapping[str, Any],
    incremental: bool,
) -> _Detected:
    """Weigh the relationships and divide the graph; CPU-bound. An incremental run on an unchanged graph does not divide it.

    If the graph store lost a part of a generation, the run does not start from that generation.
    """
    knowledge, documents = readings
    edges = weighted_edges(knowledge)
    digest = graph_digest(knowledge, options)
    incremental = incremental and len(previous) == details.get("communities")
    if incremental and previous and details.get("graph") == digest:
        return _Detected(edges, digest, previous_detection(previous, details))
    comparable = details.get("divided_under") == divided_under(options)
    detection = detect_communities(
        edges,
        entities=knowledge.entities,
        options=options,
        contexts=list_contexts(knowledge),
        documents=documents,
        previous=previous_division(previous, details, knowledge, comparable=comparable) if incremental else None,
    )
    return _Detected(edges, digest, detection)


def _deepest_first(planned: Sequence[PlannedCommunity]) -> Iterator[list[PlannedCommunity]]:
    """Yield batches, each of one level, the finest level first."""
    for level in sorted({community.level for community in planned}, reverse=True):
        here = [community for community in planned if community.level == level]
        yield from (here[start : start + _BATCH] for start in range(0, len(here), _BATCH))


def _group_children(
    planned: Sequence[PlannedCommunity], parents: Sequence[PlannedCommunity], summaries: dict[str, CommunitySummary]
) -> dict[str, list[CommunitySummary]]:
    parent_ids = {parent.id for parent in parents}
    children: defaultdict[str, list[CommunitySummary]] = defaultdict(list)
    for community in planned:
        if community.parent_id in parent_ids and community.parent_id is not None and community.fingerprint in summaries:
            children[community.parent_id].append(summaries[community.fingerprint])
    return dict(children)


def _measure_sizes(planned: Sequence[PlannedCommunity]) -> dict[str, list[int]]:
    """Return the least, the median and the largest number of members, by level."""
    counts: defaultdict[int, list[int]] = defaultdict(list)
    for community in planned:
        counts[community.level].append(len(community.members))
    return {str(level): [min(of), sorted(of)[len(of) // 2], max(of)] for level, of in sorted(counts.items())}


def _measure_coverage(planned: Sequence[PlannedCommunity]) -> float:
    """Return the share of entities in a community that is searched for, in [0, 1]; 1 without entities."""
    roots = [len(community.members) for community in planned if community.parent_id is None]
    return round(sum(of for of in roots if of >= MIN_SEARCHABLE) / sum(roots), 4) if roots else 1.0


def _elapsed_ms(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 1)
