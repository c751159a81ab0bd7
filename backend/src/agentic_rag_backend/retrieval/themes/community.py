"""Community search: finds the themes of the current generation whose summaries match the question.

The passages behind themes: they support an answer when no passages were found otherwise.

A theme's score measures how near its summary is to a question, which is less than how near its best passage is. The
passages, measured as in other searches, therefore decide whether the documents answer a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Backing, Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.options.model import MAX_NAMES, Name, ThemesOptions, optional_field
from agentic_rag_backend.retrieval.passages.hydration import time_detail, visible_chunks
from agentic_rag_backend.retrieval.passages.linked_chunks import find_named_entities
from agentic_rag_backend.retrieval.scoring import best_coverage, rank_scores, relevance
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder, ThemeSearch
from agentic_rag_backend.stores.vector.base import Collection

MAX_PASSAGES_BEHIND = 200
"""Passages whose vectors are compared with the question, starting with those of the best themes."""
NEAREST = 10
"""Maximum number of passages that support an answer."""


class PassagesBehind:
    """Finds the passages behind the findings of themes that are nearest to a question."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def find(self, query: Query, themes: Sequence[ThemeHit]) -> Backing | None:
        """Return the nearest visible passages. None if there are none."""
        sources = (source.chunk_id for theme in themes for finding in theme.findings for source in finding.sources)
        ids = list(dict.fromkeys(sources))[:MAX_PASSAGES_BEHIND]
        if not ids:
            return None
        vector = await self._stores.encoder.of(query)
        vectors = await self._stores.vectors.vectors(query.tenant_id, Collection.CHUNKS, ids)
        order = rank_scores((id, float(chunk_vector @ vector)) for id, chunk_vector in vectors.items())
        visible = await visible_chunks(self._stores.documents, query, [item.id for item in order])
        items = [item for item in order if item.id in visible][:NEAREST]
        if not items:
            return None
        hits = tuple(
            Hit(visible=visible[item.id], score=max(0.0, min(1.0, item.score)), scores={"dense": item.score}) for item in items
        )
        coverage = best_coverage(self._stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in hits])
        return Backing(hits=hits, relevance=relevance(items[0].score, coverage, await self._stores.calibration()))


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
