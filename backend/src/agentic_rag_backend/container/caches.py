"""The caches of searches in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.memory import MIB
from agentic_rag_backend.retrieval.caching.cache_entries import TenantCache
from agentic_rag_backend.retrieval.stages.results import ResultCache
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.telemetry.metrics import PASSAGES_CACHE, THEMES_CACHE


@dataclass(frozen=True, slots=True)
class SearchCaches:
    """Results, themes and passages by tenant. Vectors of questions are kept by `QueryEncoder`."""

    results: ResultCache
    themes: TenantCache[Any]
    passages: TenantCache[Any]

    @classmethod
    def of(cls, settings: Settings) -> SearchCaches:
        """Return empty caches of the sizes in the settings."""
        return cls(
            results=ResultCache(settings.search_cache_mb * MIB),
            themes=TenantCache(THEMES_CACHE, settings.theme_cache_mb * MIB),
            passages=TenantCache(PASSAGES_CACHE, settings.passage_cache_mb * MIB),
        )

    def forget(self, tenant: TenantId) -> None:
        """Drop everything of a tenant."""
        for cache in (self.results.entries, self.themes, self.passages):
            cache.forget(tenant)
