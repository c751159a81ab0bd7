"""Search in the tree over passages: all levels at once, or from the roots down (Sarthi et al. 2024, section 4).

*Collapsed*: passages and summaries are ranked on one scale. A summary is represented by the passage below it that is nearest
to the question. *Levels*: the nearest nodes of the highest level, then the nearest of their children, and so on down to
passages. Both return passages, which answers can cite, and summaries as themes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs import chunk_candidates
from agentic_rag_backend.retrieval.options.model import SyntheticQuestionsOption, optional_field, unknown_levels
from agentic_rag_backend.retrieval.passages.hydration import entities_of, passes, time_detail, visible_chunks, visible_in_order
from agentic_rag_backend.retrieval.scoring import MEASURED, best_coverage, cover, rank_scores, relevance, weighted_min_max
from agentic_rag_backend.stores.catalogue.base import GenerationPointer
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, Vector, VectorSearch
from agentic_rag_backend.themes.raptor.node_views import TreeNodeView, TreeReader
from agentic_rag_backend.themes.raptor.tree_publication import LEVEL

SEARCHES = ("collapsed", "levels")
ORDERS = ("mixed", "leaves_first")
PASSAGES = 0
"""The level of passages. Higher levels hold summaries."""

_NODE_LIMIT = 50
_READ = 50
"""Nodes whose texts are read, regardless of how many themes are requested, so that scores do not depend on the limit."""
_BROUGHT = 10
"""Number of best nodes that add their nearest passages to the results."""
_WEIGHTS = {"dense": 0.7, "sparse": 0.3}
_REPRESENTATIVES = 3
"""Passages that represent a summary: the nearest to the question. The first is ranked among the passages that search found
directly. Adding a share of a summary's score to all passages below it was measured and is worse (MuSiQue R@5 .60 with a fifth
of the score, .63 without).
"""
_BEAM = 5
"""Nodes that are kept on each level on the way down."""
_COSINE_SHARE = 0.8
"""Share of the cosine in a theme's score, as for communities. The rest is the coverage of the question by its text."""


@dataclass(slots=True)
class _Found:
    """Result of a tree search before visibility is checked.

    ``passages`` are scores in [0, 1] by chunk. ``direct`` holds those that search found directly, ``by_node`` the score of the
    best summary above each. ``nodes`` are summaries by descending score, ``representatives`` the passages that represent them.
    """

    pointer: GenerationPointer
    passages: dict[str, float] = field(default_factory=dict)
    direct: dict[str, float] = field(default_factory=dict)
    by_node: dict[str, float] = field(default_factory=dict)
    legs: Legs = field(default_factory=Legs)
    nodes: dict[str, float] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)
    tree: dict[str, TreeNode] = field(default_factory=dict)
    representatives: dict[str, tuple[str, ...]] = field(default_factory=dict)


NO_TREE = "there is no tree over the passages yet: POST /admin/raptor/rebuild"


class RaptorRequestOptions(SyntheticQuestionsOption):
    levels: list[Annotated[int, Field(ge=0, le=10)]] = optional_field(
        min_length=1,
        max_length=11,
        description="levels of the tree to search; 0 are the passages, 1 the clusters of passages",
    )
    search: Literal["collapsed", "levels"] = "collapsed"
    order: Literal["mixed", "leaves_first"] = "mixed"
    include_summaries: bool = Field(True, description="whether to return summaries of clusters as themes")


class RaptorRetriever:
    """Returns passages, and summaries of clusters of passages as themes.

    ``options.levels`` selects levels (0: passages; default: all), ``options.search`` the method. ``options.order`` can put
    passages that search found directly first. Without ``options.include_summaries`` there are no themes.
    """

    def __init__(self, stores: Stores, graphs: TenantGraphs) -> None:
        self._stores = stores
        self._graphs = graphs
        self._reader = TreeReader(documents=stores.documents, trees=stores.trees)

    async def retrieve(self, query: Query) -> Retrieval:
        """Return passages, and at most ``query.high_limit`` themes. Without a tree, return the passages that `hybrid` finds."""
        pointer = await self._stores.trees.pointer(query.tenant_id)
        vector = await self._stores.encoder.of(query)
        levels = set(query.options.get("levels", ()))
        down = query.options.get("search", SEARCHES[0]) == "levels" and pointer.generation > 0
        search_result = await (
            self._search_down(query, pointer, vector) if down else self._search_collapsed_tree(query, pointer, vector, levels)
        )
        hits = await self._hits(query.with_candidates(MEASURED), search_result)
        measured = hits[:MEASURED]
        themes: tuple[ThemeHit, ...] = ()
        if query.options.get("include_summaries", True):
            themes = await self._themes(query, search_result, levels, vector)
        cosine = max((item.score for item in search_result.legs.dense if item.id in {hit.id for hit in measured}), default=0.0)
        coverage = best_coverage(self._stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in measured])
        no_tree = pointer.generation == 0
        return Retrieval(
            hits=hits,
            themes=themes,
            relevance=relevance(cosine, coverage, await self._stores.calibration()) if hits else 0.0,
            trace=Trace(
                strategy="raptor",
                methods_used=("dense", "sparse") if no_tree else ("dense", "sparse", "raptor"),
                fusion="min_max",
                fallbacks=(NO_TREE,) if no_tree else (),
                warnings=unknown_levels("levels", levels - {PASSAGES}, pointer.levels),
                details={
                    **time_detail(query),
                    "generation": pointer.generation,
                    "tree_stale": pointer.stale,
                    "search": "levels" if down else "collapsed",
                    "nodes": [
                        {"id": id, "level": search_result.tree[id].level, "score": round(s, 4)}
                        for id, s in search_result.nodes.items()
                    ][: query.high_limit],
                },
            ),
        )

    async def _search_collapsed_tree(self, query: Query, pointer: GenerationPointer, vector: Vector, levels: set[int]) -> _Found:
        result = _Found(pointer)
        if not levels or PASSAGES in levels or pointer.generation == 0:
            candidates = await chunk_candidates(self._stores, query, weighted_min_max, _WEIGHTS)
            result.legs, result.direct = candidates.legs, dict(candidates.scores)
        above = {level for level in levels if level > PASSAGES}
        if pointer.generation and (above or not levels):
            await self._search_nodes(query, vector, above, result)
            await self._bring(query, vector, result)
        for chunk in {*result.direct, *result.by_node}:
            result.passages[chunk] = max(result.direct.get(chunk, 0.0), result.by_node.get(chunk, 0.0))
        return result

    async def _search_nodes(self, query: Query, vector: Vector, levels: set[int], result: _Found) -> None:
        """Find nodes by the vectors and the words of their summaries."""
        level_filter = Comparison(LEVEL, "in", tuple(sorted(levels))) if levels else None
        search = VectorSearch(kind=NodeKind.RAPTOR, dense=vector, text=query.text, limit=_NODE_LIMIT, filter=level_filter)
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [search]))[0]
        order = rank_scores(weighted_min_max({"dense": legs.dense, "sparse": legs.sparse}, _WEIGHTS))
        cosines = {item.id: item.score for item in legs.dense}
        result.pointer, nodes = await self._reader.read(query.tenant_id, point_ids=[item.id for item in order])
        by_point = {node.point_id(query.tenant_id): node for node in nodes}
        for item in order:
            if (node := by_point.get(item.id)) is not None:
                result.nodes[node.id] = item.score
                result.cosines[node.id] = cosines.get(item.id, 0.0)
                result.tree[node.id] = node

    async def _bring(self, query: Query, vector: Vector, result: _Found) -> None:
        """Add the nearest passages of the best nodes to the results."""
        best = list(result.nodes)[:_BROUGHT]
        cosines = await self._find_representatives(query, vector, result, best)
        for id in best:
            representatives = result.representatives[id]
            for chunk in representatives[:1] if result.direct else representatives:
                # Use the scale of the direct passages if there are any, so that the summary's cosine is comparable with theirs.
                closeness = max(0.0, cosines[chunk]) / max(cosines[representatives[0]], 1e-9)
                score = _scale_scores(result.cosines[id], result.legs) if result.direct else result.nodes[id] * closeness
                result.by_node[chunk] = max(result.by_node.get(chunk, 0.0), score)

    async def _find_representatives(self, query: Query, vector: Vector, result: _Found, ids: Sequence[str]) -> dict[str, float]:
        """Record the passages below each node that are nearest to the question. Return the cosines of all passages below them."""
        leaves = await self._descend_levels(query, vector, [result.tree[id] for id in ids])
        chunks = {chunk for nodes in leaves.values() for node in nodes for chunk in node.children}
        cosines = await self._cosines(query, Collection.CHUNKS, vector, sorted(chunks))
        for id in ids:
            chunk_ids = {chunk for node in leaves[id] for chunk in node.children if chunk in cosines}
            result.representatives[id] = tuple(sorted(chunk_ids, key=lambda chunk: (-cosines[chunk], chunk))[:_REPRESENTATIVES])
        return cosines

    async def _descend_levels(self, query: Query, vector: Vector, nodes: Sequence[TreeNode]) -> dict[str, list[TreeNode]]:
        """Return, for each node, the nodes of level 1 that are reached by following the nearest children."""
        at: dict[str, list[TreeNode]] = {node.id: [node] for node in nodes}
        while any(node.level > 1 for nodes in at.values() for node in nodes):
            children = {id for nodes in at.values() for node in nodes if node.level > 1 for id in node.children}
            _, child_nodes = await self._reader.read(query.tenant_id, ids=sorted(children))
            points = {node.id: node.point_id(query.tenant_id) for node in child_nodes}
            cosines = await self._cosines(query, Collection.NODES, vector, sorted(points.values()))
            below = {node.id: node for node in child_nodes}
            for id, nodes_of_tree in at.items():
                following = [node for node in nodes_of_tree if node.level == 1]
                for node in nodes_of_tree:
                    if node.level > 1:
                        children_below = [below[child] for child in node.children if child in below]
                        children_below.sort(key=lambda child: (-cosines.get(points[child.id], -1.0), child.id))
                        following += children_below[:2]
                at[id] = following
        return at

    async def _search_down(self, query: Query, pointer: GenerationPointer, vector: Vector) -> _Found:
        """Search from the highest level down to the passages, keeping the nearest nodes of each level."""
        result = _Found(pointer)
        height = max(pointer.levels, default=0)
        result.pointer, nodes = await self._reader.read(query.tenant_id, level=height)
        chunks: dict[str, str] = {}
        while nodes:
            points = {node.id: node.point_id(query.tenant_id) for node in nodes}
            cosines = await self._cosines(query, Collection.NODES, vector, sorted(points.values()))
            nodes = sorted(nodes, key=lambda node: (-cosines.get(points[node.id], -1.0), node.id))[:_BEAM]
            for node in nodes:
                result.tree[node.id] = node
                result.cosines[node.id] = result.nodes[node.id] = max(0.0, cosines.get(points[node.id], 0.0))
            for node in nodes:
                if node.level == 1:
                    chunks |= {chunk: node.id for chunk in node.children if chunk not in chunks}
            ids = sorted({child for node in nodes if node.level > 1 for child in node.children})
            nodes = (await self._reader.read(query.tenant_id, ids=ids))[1] if ids else []
        chunk_cosines = await self._cosines(query, Collection.CHUNKS, vector, sorted(chunks))
        result.passages = {chunk: max(0.0, score) for chunk, score in chunk_cosines.items()}
        result.direct = dict(result.passages)
        result.by_node = {chunk: result.nodes[node] for chunk, node in chunks.items()}
        result.legs = Legs(dense=tuple(rank_scores(chunk_cosines)))
        result.nodes = {item.id: item.score for item in rank_scores(result.nodes)}
        for node in sorted(result.tree.values(), key=lambda node: node.level):
            # A higher node is represented by the representatives of its visited children.
            parts = [(id,) if node.level == 1 else result.representatives.get(id, ()) for id in node.children]
            below = {chunk for part in parts for chunk in part if chunk in chunk_cosines}
            result.representatives[node.id] = tuple(
                sorted(below, key=lambda chunk: (-chunk_cosines[chunk], chunk))[:_REPRESENTATIVES]
            )
        return result

    async def _cosines(self, query: Query, collection: Collection, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        vectors = await self._stores.vectors.vectors(query.tenant_id, collection, ids) if ids else {}
        return {id: float(np.dot(vector, node_vector)) for id, node_vector in vectors.items()}

    async def _hits(self, query: Query, result: _Found) -> tuple[Hit, ...]:
        order = [item.id for item in rank_scores(result.passages)]
        if query.options.get("order", ORDERS[0]) == "leaves_first":
            order.sort(key=lambda id: id not in result.direct)  # stable: by score among themselves
        visible = await visible_in_order(self._stores.documents, query, order, {})
        graph = await self._graphs.graph(query.tenant)
        parts = _parts(result)
        return tuple(
            Hit(
                visible=visible[id],
                score=result.passages[id],
                scores={**parts.get(id, {}), "combined": result.passages[id]},
                entities=entities_of(graph, id),
            )
            for id in [id for id in order if id in visible][: query.candidates]
        )

    async def _themes(self, query: Query, result: _Found, levels: set[int], vector: Vector) -> tuple[ThemeHit, ...]:
        nodes = [result.tree[id] for id in result.nodes if not levels or result.tree[id].level in levels]
        narrowed = query.filters is not None or query.as_of is not None
        viewed_nodes = nodes if narrowed else nodes[:_READ]
        views = await self._reader.make_views(query.tenant_id, result.pointer, viewed_nodes, passes=partial(passes, query))
        # A node that has only a visible name is no evidence.
        tellable = [view for view in views if view.summary or view.findings]
        terms = {number: self._stores.vectors.terms(_text(view)) for number, view in enumerate(tellable)}
        coverage = cover(self._stores.vectors.terms(query.text), terms)
        scale = (await self._stores.calibration()).questions
        scored = [
            _theme(view, _theme_score(scale.convert_cosine(result.cosines[view.id]), coverage.of(coverage.held[number])))
            for number, view in enumerate(tellable)
        ]
        themes = sorted(scored, key=lambda theme: (-theme.score, theme.id))[: query.high_limit]
        await self._find_representatives(
            query, vector, result, [theme.id for theme in themes if theme.id not in result.representatives]
        )
        passages_by_theme = await self._show_passages(query, result, [theme.id for theme in themes])
        return tuple(replace(theme, representatives=passages_by_theme.get(theme.id, ())) for theme in themes)

    async def _show_passages(self, query: Query, result: _Found, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return each node's representatives that are visible."""
        chunks = {chunk for id in ids for chunk in result.representatives.get(id, ())}
        visible: Mapping[str, VisibleChunk] = (
            await visible_chunks(self._stores.documents, query, sorted(chunks)) if chunks else {}
        )
        return {id: tuple(chunk for chunk in result.representatives.get(id, ()) if chunk in visible) for id in ids}


def _scale_scores(cosine: float, legs: Legs) -> float:
    """Return a cosine on the dense leg's min-max scale, in [0, 1]."""
    low, high = (legs.dense[-1].score, legs.dense[0].score) if legs.dense else (0.0, 1.0)
    return max(0.0, min(1.0, (cosine - low) / (high - low))) if high > low else float(cosine >= high)


def _parts(result: _Found) -> dict[str, dict[str, float]]:
    parts: dict[str, dict[str, float]] = {}
    for name, leg in (("dense", result.legs.dense), ("sparse", result.legs.sparse)):
        for item in leg:
            parts.setdefault(item.id, {})[name] = item.score
    for chunk, score in result.by_node.items():
        parts.setdefault(chunk, {})["raptor"] = score
    return parts


def _text(view: TreeNodeView) -> str:
    findings = " ".join(finding.statement for finding in view.findings)
    return f"{view.name}. {view.summary} {' '.join(view.keywords)} {findings}"


def _theme_score(cosine: float, covered: float) -> float:
    return max(0.0, min(1.0, _COSINE_SHARE * max(cosine, 0.0) + (1 - _COSINE_SHARE) * covered))


def _theme(view: TreeNodeView, score: float) -> ThemeHit:
    return ThemeHit(
        id=view.id,
        kind="raptor",
        name=view.name,
        summary=view.summary,
        keywords=view.keywords,
        entity_count=0,
        passage_count=view.size,
        level=view.level,
        generation=view.generation,
        score=score,
        findings=view.findings,
    )
