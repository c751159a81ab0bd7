"""Community search: finds the themes of the current generation whose summaries match the question."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.options.model import MAX_NAMES, Name, ThemesOptions, optional_field
from agentic_rag_backend.retrieval.passages.hydration import time_detail
from agentic_rag_backend.retrieval.passages.linked_chunks import find_named_entities
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.backing import PassagesBehind
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder, ThemeSearch

MAX_EXAMINED = 50
"""Communities whose texts are read, regardless of the request's limit. Their texts determine the weights of the question's
words, so a fixed number keeps scores independent of the limit. Relatives and hidden communities are removed from them.
"""
RATED = 20
"""The number if a model rates them: as many as fit into one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityOptions:
    """Deployment defaults: token budget of all themes together, and model calls for rating if a request asks for it."""

    budget_tokens: int = 4000
    rating_calls: int = 3


def theme_search(query: Query, *, budget_tokens: int) -> ThemeSearch:
    """Return the parameters of a theme search. ``budget_tokens`` applies if the query's options set no budget."""
    rated = query.options.get("rate") == "model"
    return ThemeSearch(
        limit=query.high_limit,
        budget_tokens=int(query.options.get("budget_tokens", budget_tokens)),
        max_examined=RATED if rated else MAX_EXAMINED,
        rated=rated,
    )


class CommunityRequestOptions(ThemesOptions):
    entities: list[Name] = optional_field(
        max_length=MAX_NAMES, description="names or ids; only communities that contain one of these entities"
    )


class CommunityRetriever:
    """Returns communities. `ThemeFinder` finds them, `themes.theme_selection` selects among them.

    Args:
        behind: finds the passages that support an answer. None if another level finds passages.
        graphs: resolves ``options.entities``, which keeps the communities of these entities. None: another level uses the option.
    """

    def __init__(
        self,
        finder: ThemeFinder,
        options: CommunityOptions | None = None,
        *,
        behind: PassagesBehind | None = None,
        graphs: TenantGraphs | None = None,
    ) -> None:
        self._graphs = graphs
        self._finder = finder
        self._options = options or CommunityOptions()
        self._behind = behind

    async def retrieve(self, query: Query) -> Retrieval:
        """Return at most ``query.high_limit`` themes. No theme is an ancestor of another.

        Empty before the first generation is built.
        """
        spending = Spending(int(query.options.get("max_calls", self._options.rating_calls)))
        search = theme_search(query, budget_tokens=self._options.budget_tokens)
        entities, unknown = await self._entities(query)
        search = replace(search, entities=entities)
        themes = await self._finder.find(query, search, spending)
        # The question was embedded for the search.
        backing = (
            await self._behind.find(replace(query, embedding=themes.question), themes.themes)
            if self._behind is not None
            else None
        )
        return Retrieval(
            themes=themes.themes,
            backing=backing,
            relevance=max((theme.score for theme in themes.themes), default=0.0),
            usage=spending.usage,
            trace=Trace(
                strategy="community",
                methods_used=("community",),
                failures=themes.failures,
                warnings=(*unknown, *themes.warnings),
                details={
                    **time_detail(query),
                    "generation": themes.pointer.generation,
                    "communities_stale": themes.pointer.stale,
                    "themes": dict(themes.details),
                },
            ),
        )

    async def _entities(self, query: Query) -> tuple[frozenset[str] | None, tuple[str, ...]]:
        """Return the ids of the entities that the request names, and a warning for each unknown name. None: it names none."""
        names = query.options.get("entities") or ()
        if self._graphs is None or not names:
            return None, ()
        graph = await self._graphs.graph(query.tenant)
        numbers_by_name = {str(name): find_named_entities(graph, str(name)) for name in names}
        ids = frozenset(graph.entity(number).id for numbers in numbers_by_name.values() for number in numbers)
        return ids, tuple(
            f"options.entities: the graph knows no {name!r}" for name, numbers in numbers_by_name.items() if not numbers
        )
