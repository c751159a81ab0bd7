"""Options of a rebuild, and the share of the graph that changed since the current generation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.summaries.generations import GenerationPointer
from agentic_rag_backend.stores.graph.base import KnowledgeStore
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectionOptions

MODES = ("incremental", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildOptions:
    """One rebuild; None leaves the service's default.

    ``incremental`` starts from the current generation, ``full`` from nothing. ``levels`` is the depth of the hierarchy (1–10),
    ``summarize`` whether a model may be called, ``dry_run`` only estimates the cost.

    Raises:
        InvalidRequest: a value is outside its limits.
    """

    mode: str = "incremental"
    levels: int | None = None
    summarize: bool = True
    dry_run: bool = False
    max_cluster_size: int | None = None
    min_community_size: int | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidRequest(f"mode must be one of {', '.join(MODES)}; got {str(self.mode)[:60]!r}")
        _check_range("levels", self.levels, 1, 10)
        _check_range("max_cluster_size", self.max_cluster_size, 3, 10_000)
        _check_range("min_community_size", self.min_community_size, 1, 1_000)
        if self.resolution is not None and not (math.isfinite(self.resolution) and 0 < self.resolution <= 100):
            raise InvalidRequest(f"resolution must be above 0 and at most 100; got {self.resolution}")

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments for the job's row."""
        return asdict(self)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> RebuildOptions:
        """Return the options in `to_arguments`; a row of an older release may lack a name."""
        return cls(**{name: arguments[name] for name in cls.__dataclass_fields__ if name in arguments})

    def override_detection(self, default: DetectionOptions) -> DetectionOptions:
        """Return the default, replaced by the requested values."""
        return DetectionOptions(
            max_cluster_size=self.max_cluster_size or default.max_cluster_size,
            min_size=self.min_community_size or default.min_size,
            resolution=self.resolution or default.resolution,
            max_levels=self.levels or default.max_levels,
            max_roots=default.max_roots,
        )


def _check_range(name: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        raise InvalidRequest(f"{name} must be between {low} and {high}; got {value}")


COUNTED = "graph_relationships"
"""The detail of a generation that holds the number of relationships in the graph when it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Measures how much of the graph changed documents affect."""

    documents: DocumentCatalogue
    graph: KnowledgeStore

    async def changed_share(self, tenant: TenantId, pointer: GenerationPointer) -> float:
        """Return changed relationships ÷ earlier relationships, at least 0; 1.0 if that is not known.

        Changed relationships are those in documents that are new or changed since, plus the number by which the graph shrank.
        All relationships of an edited document count, so that the share is rather too high than too low.
        """
        before = pointer.details.get(COUNTED)
        visibility = await self.documents.visibility(tenant, since=pointer.built_from)
        if pointer.generation == 0 or visibility.whole or not isinstance(before, int) or before == 0:
            return 1.0
        fresh: set[str] = set()
        visible_documents = [document for document, version in visibility.versions.items() if version]
        if visible_documents:
            async for batch in self.graph.all_relationships(tenant, visible_documents):
                fresh.update(relationship.id for relationship in batch)
        relationship_count = (await self.graph.counts(tenant)).relationships
        return (len(fresh) + max(0, before - relationship_count)) / before
