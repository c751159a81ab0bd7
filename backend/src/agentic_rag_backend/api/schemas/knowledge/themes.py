"""Communities, the tree over passages, and their rebuilds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.api.schemas.jobs import JobView
from agentic_rag_backend.domain.graph import Finding, Support
from agentic_rag_backend.retrieval.options.filters import Number, Switch, Whole
from agentic_rag_backend.themes.communities.theme_index import CommunityView
from agentic_rag_backend.themes.raptor.node_views import TreeNodeView


class RebuildBody(Body):
    """Options of a rebuild. Absent fields have the deployment's settings."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"mode": "full", "dry_run": False}]})

    mode: Literal["incremental", "full"] = "incremental"
    levels: Whole | None = Field(None, ge=1, le=10, description="levels of the hierarchy")
    summarize: Switch = Field(True, description="false: only extractive summaries, no model call")
    dry_run: Switch = Field(False, description="estimate model calls and tokens, change nothing")
    max_cluster_size: Whole | None = Field(None, ge=3, le=10000)
    min_community_size: Whole | None = Field(None, ge=1, le=1000)
    resolution: Number | None = Field(None, gt=0, le=100)


class SourceView(View):
    document_id: str
    chunk_id: str

    @classmethod
    def every(cls, supports: Iterable[Support]) -> list[SourceView]:
        """Return the response for each passage."""
        return [cls(document_id=support.document_id, chunk_id=support.chunk_id) for support in supports]


class FindingView(View):
    statement: str
    sources: list[SourceView]

    @classmethod
    def every(cls, findings: Iterable[Finding]) -> list[FindingView]:
        """Return the response for each finding."""
        return [cls(statement=finding.statement, sources=SourceView.every(finding.sources)) for finding in findings]


class CommunityOut(View):
    """A community. Parts that rest on passages that are no longer visible are withheld."""

    id: str
    name: str
    summary: str
    keywords: list[str]
    findings: list[FindingView]
    entity_count: int
    level: int
    parent: str | None
    generation: int
    rating: float
    sources: list[SourceView]
    stale: bool

    @classmethod
    def of(cls, view: CommunityView) -> CommunityOut:
        """Return the response for a community."""
        return cls(
            id=view.id,
            name=view.name,
            summary=view.summary,
            keywords=list(view.keywords),
            findings=FindingView.every(view.findings),
            entity_count=view.entity_count,
            level=view.level,
            parent=view.parent_id,
            generation=view.generation,
            rating=view.rating,
            sources=SourceView.every(view.sources),
            stale=view.stale,
        )


class ThemeIndexStatus(View):
    """State of an index of themes, and figures of its last rebuild."""

    model_config = ConfigDict(extra="allow")

    generation: int
    stale: bool
    built_at: datetime | None
    last_job: JobView | None

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> Self:
        """Return the response for a status of the index's service."""
        last_job = status["last_job"]
        return cls(**{**status, "last_job": JobView.of(last_job) if last_job else None})


class CommunityStatus(ThemeIndexStatus):
    """State of the communities, and figures of their last rebuild."""


class BuildBody(Body):
    """Options of a build. Absent fields have the deployment's settings."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"mode": "full", "dry_run": False}]})

    mode: Literal["incremental", "full"] = "incremental"
    summarize: Switch = Field(True, description="false: only extractive summaries, no model call")
    dry_run: Switch = Field(False, description="estimate model calls and tokens, change nothing")
    max_levels: Whole | None = Field(None, ge=1, le=10, description="levels of summaries above the passages")
    cluster_size: Whole | None = Field(None, ge=2, le=100, description="approximate number of children of a node")
    max_clusters_per_level: Whole | None = Field(None, ge=1, le=1_000_000)
    method: Literal["mixture", "kmeans"] | None = None


class NodeOut(View):
    """A node of the tree. Parts that rest on passages that are no longer visible are withheld."""

    id: str
    name: str
    summary: str
    keywords: list[str]
    findings: list[FindingView]
    level: int
    passage_count: int
    children: list[str]
    generation: int
    sources: list[SourceView]
    stale: bool
    written_by: str

    @classmethod
    def of(cls, view: TreeNodeView) -> NodeOut:
        """Return the response for a node."""
        return cls(
            id=view.id,
            name=view.name,
            summary=view.summary,
            keywords=list(view.keywords),
            findings=FindingView.every(view.findings),
            level=view.level,
            passage_count=view.size,
            children=list(view.children),
            generation=view.generation,
            sources=SourceView.every(view.sources),
            stale=view.stale,
            written_by=view.written_by,
        )


class TreeStatus(ThemeIndexStatus):
    """State of the tree, and figures of its last build."""
