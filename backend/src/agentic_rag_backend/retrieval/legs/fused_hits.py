"""Fuses the hits of several searches into one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import FactHit, Hit, Retrieval, ThemeHit
from agentic_rag_backend.retrieval.scoring.rank_fusion import FUSIONS, rank_scores
from agentic_rag_backend.stores.vector.base import ScoredId

DEFAULT_FUSION = "min_max"
"""The best of three on MuSiQue and HotpotQA. Reciprocal ranks lose most: scores say how sure a search is, and ranks do not."""
DEPTH = 100
"""Candidates of each search that are fused. It does not depend on the request's limit, so that no score moves with it."""


def fused_hits(
    retrievals: Mapping[str, Retrieval], weights: Mapping[str, float], fusion: str, *, named: bool = True
) -> tuple[Hit, ...]:
    """Return each chunk once, best first, with its fused score in [0, 1] as ``score`` and ``scores.combined``.

    Args:
        retrievals: the searches by name. The first one that found a chunk gives its path and its matched question.
        weights: by the same names.
        fusion: a name of `scoring.rank_fusion.FUSIONS`.
        named: whether ``scores`` gets the score of each search under its name.
    """
    lists = {name: retrieval.hits[:DEPTH] for name, retrieval in retrievals.items()}
    scores = FUSIONS[fusion]({name: [ScoredId(hit.id, hit.score) for hit in hits] for name, hits in lists.items()}, weights)
    merged: dict[str, Hit] = {}
    for name, hits in lists.items():
        for hit in hits:
            earlier = merged.get(hit.id)
            own_scores = {**hit.scores, name: hit.score} if named else hit.scores
            merged[hit.id] = replace(hit, scores=own_scores) if earlier is None else _with(earlier, hit, own_scores)
    order = [(item.id, max(0.0, min(1.0, item.score))) for item in rank_scores(scores)]
    return tuple(replace(merged[id], score=score, scores={**merged[id].scores, "combined": score}) for id, score in order)


def united_facts(retrievals: Sequence[Retrieval]) -> tuple[FactHit, ...]:
    """Return the facts of all searches, each once with its best score, best first."""
    best: dict[str, FactHit] = {}
    for fact in (fact for retrieval in retrievals for fact in retrieval.facts):
        if fact.id not in best or fact.score > best[fact.id].score:
            best[fact.id] = fact
    return tuple(sorted(best.values(), key=lambda fact: (-fact.score, fact.id)))


def united_themes(retrievals: Sequence[Retrieval]) -> tuple[ThemeHit, ...]:
    """Return the themes of all searches, each once with its best score, best first."""
    best: dict[str, ThemeHit] = {}
    for theme in (theme for retrieval in retrievals for theme in retrieval.themes):
        if theme.id not in best or theme.score > best[theme.id].score:
            best[theme.id] = theme
    return tuple(sorted(best.values(), key=lambda theme: (-theme.score, theme.id)))


def _with(hit: Hit, addition: Hit, scores: Mapping[str, float]) -> Hit:
    """Return a hit with the scores of another search, and the path and the question that it lacks."""
    return replace(
        hit,
        scores={**scores, **hit.scores},
        entities=hit.entities or addition.entities,
        graph_path=hit.graph_path or addition.graph_path,
        matched_question=hit.matched_question or addition.matched_question,
    )
