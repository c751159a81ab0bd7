"""Options of trees and of builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agentic_rag_backend.errors import InvalidRequest

MODES = ("incremental", "full")
METHODS = ("mixture", "kmeans")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOptions:
    """The shape of a tree.

    ``max_levels`` is the number of levels of summaries above the passages (1–10). ``cluster_size`` is the approximate number of
    children of a node (2–100). Larger nodes are divided, at more than twice that number. ``max_clusters_per_level`` limits the
    nodes
    of a level, and so the model calls of a build, at the price of larger clusters. ``method`` is ``mixture`` or ``kmeans``.
    """

    max_levels: int = 3
    cluster_size: int = 10
    max_clusters_per_level: int = 5_000
    method: str = "mixture"

    @property
    def ceiling(self) -> int:
        """Number of children above which a growing node is divided."""
        return 2 * self.cluster_size

    @property
    def floor(self) -> int:
        """Number of children below which a cluster is joined to its nearest sibling."""
        return max(2, self.cluster_size // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """One build; None leaves the service's default.

    ``incremental`` adds and removes passages that changed since the current tree, ``full`` clusters everything again.
    ``summarize``: whether a model may be called; ``dry_run`` only estimates the cost.

    Raises:
        InvalidRequest: a value is outside its limits.
    """

    mode: str = "incremental"
    summarize: bool = True
    dry_run: bool = False
    max_levels: int | None = None
    cluster_size: int | None = None
    max_clusters_per_level: int | None = None
    method: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidRequest(f"mode must be one of {', '.join(MODES)}; got {str(self.mode)[:60]!r}")
        if self.method is not None and self.method not in METHODS:
            raise InvalidRequest(f"method must be one of {', '.join(METHODS)}; got {str(self.method)[:60]!r}")
        for name, low, high in (("max_levels", 1, 10), ("cluster_size", 2, 100), ("max_clusters_per_level", 1, 1_000_000)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InvalidRequest(f"{name} must be between {low} and {high}; got {value}")

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments for the job's row."""
        return asdict(self)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> BuildOptions:
        """Return the options in `to_arguments`; a row of an older release may lack a name."""
        return cls(**{name: arguments[name] for name in cls.__dataclass_fields__ if name in arguments})

    def override_tree(self, default: TreeOptions) -> TreeOptions:
        """Return the default, replaced by the requested values."""
        return TreeOptions(
            max_levels=self.max_levels or default.max_levels,
            cluster_size=self.cluster_size or default.cluster_size,
            max_clusters_per_level=self.max_clusters_per_level or default.max_clusters_per_level,
            method=self.method or default.method,
        )
