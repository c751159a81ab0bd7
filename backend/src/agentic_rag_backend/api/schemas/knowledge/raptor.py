"""The tree over passages and its builds."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View, Whole
from agentic_rag_backend.api.schemas.knowledge.communities import FindingView, SourceView, ThemeIndexStatus
from agentic_rag_backend.raptor.node_views import TreeNodeView


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
