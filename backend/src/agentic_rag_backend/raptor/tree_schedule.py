"""Updates trees automatically some quiet seconds after documents changed, for tenants that enable it."""

from __future__ import annotations

from agentic_rag_backend.communities.rebuilds.schedule import ThemeSchedule
from agentic_rag_backend.stores.catalogue.base import GenerationCatalogue


class TreeSchedule(ThemeSchedule):
    """Requests builds of trees. A tenant's first tree is built on request only."""

    @property
    def generations(self) -> GenerationCatalogue:
        """The generations of trees."""
        return self._catalogue.trees
