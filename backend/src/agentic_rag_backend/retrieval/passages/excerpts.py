"""The excerpts around matched chunks: neighbouring chunks that are read together.

Matches are placed one after the other, best first, so that a match never changes the place of a better one. Matches of one
excerpt are one result, so no text is returned twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import Chunk, ChunkSpan, ParentPassage
from agentic_rag_backend.domain.query import Hit, MatchedChunk
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

NEIGHBOURS = 1
"""Chunks on each side of a match without a parent, if a request does not set their number."""
MATCHED_SHARE = 0.5
"""Least score of a match relative to the best one of its excerpt. Every chunk of a small corpus is found, however weak."""


@dataclass(frozen=True, slots=True)
class Match:
    """A matched chunk: its place in its document, and the parent around it, if its document was cut with parents."""

    id: str
    document_id: str
    ordinal: int
    parent_id: str | None
    score: float


@dataclass(slots=True)
class Excerpt:
    """The chunks with ordinals from ``first`` to ``last`` of one document. ``matches`` are within it, best first."""

    first: int
    last: int
    matches: list[Match] = field(default_factory=list)

    @property
    def best(self) -> Match:
        """The match that the excerpt was made for."""
        return self.matches[0]

    def holds(self, ordinal: int) -> bool:
        """Return whether a chunk is in the excerpt."""
        return self.first <= ordinal <= self.last


def window(ordinal: int, reach: int, limit: int) -> tuple[int, int]:
    """Return the first and the last ordinal of ``reach`` chunks on each side of a chunk, ``limit`` chunks in all at most."""
    size = min(2 * reach + 1, limit)
    return max(0, ordinal - (size - 1) // 2), ordinal + size // 2


def excerpts(matches: Sequence[Match], *, reach: int | None, limit: int) -> list[Excerpt]:
    """Return the excerpts around matches, best first. No chunk is in two excerpts, and each excerpt has ``limit`` chunks at most.

    A match joins an excerpt that its own window touches, if there is room and it is not much weaker than the excerpt's best one.
    Matches in one parent have one excerpt: a match that does not join it is left out.

    Args:
        matches: best first.
        reach: chunks on each side of a match. None: the whole parent, or `NEIGHBOURS` chunks on each side of a match without it.
            The ends of a parent are not known here, so the excerpt of a whole parent holds all matches in it.
    """
    excerpts_by_parent: dict[tuple[str, str | None], list[Excerpt]] = {}
    order: list[Excerpt] = []
    for match in matches:
        siblings = excerpts_by_parent.setdefault((match.document_id, match.parent_id), [])
        whole_parent = reach is None and match.parent_id is not None
        side = 0 if whole_parent else NEIGHBOURS if reach is None else reach
        holder = _find_holder(siblings, match, side, limit, whole_parent=whole_parent)
        if holder is None and (match.parent_id is None or not siblings):
            holder = Excerpt(*_find_free(siblings, match.ordinal, window(match.ordinal, side, limit)))
            siblings.append(holder)
            order.append(holder)
        if holder is not None and (not holder.matches or _as_good(match, holder)):
            holder.matches.append(match)
    return order


def _find_holder(siblings: Sequence[Excerpt], match: Match, reach: int, limit: int, *, whole_parent: bool) -> Excerpt | None:
    """Return the excerpt that a match is in, or that it joins; None if there is none."""
    if whole_parent:
        return siblings[0] if siblings else None
    return next((excerpt for excerpt in siblings if excerpt.holds(match.ordinal)), None) or _grow_excerpt(
        siblings, match, reach, limit
    )


def _as_good(match: Match, excerpt: Excerpt) -> bool:
    return match.score >= MATCHED_SHARE * excerpt.best.score


def _grow_excerpt(siblings: Sequence[Excerpt], match: Match, reach: int, limit: int) -> Excerpt | None:
    """Return the excerpt that a match joins, made larger; None if no excerpt touches its window or has room."""
    free_start, free_end = _find_free(siblings, match.ordinal, window(match.ordinal, reach, limit))
    for excerpt in siblings:
        start, end = min(free_start, excerpt.first), max(free_end, excerpt.last)
        touches = free_start <= excerpt.last + 1 and excerpt.first <= free_end + 1
        if touches and end - start < limit and _as_good(match, excerpt):
            excerpt.first, excerpt.last = start, end
            return excerpt
    return None


def _find_free(siblings: Sequence[Excerpt], ordinal: int, span: tuple[int, int]) -> tuple[int, int]:
    """Return a window around a chunk that is in no excerpt, without chunks of excerpts."""
    start = max((excerpt.last + 1 for excerpt in siblings if excerpt.last < ordinal), default=0)
    end = min((excerpt.first - 1 for excerpt in siblings if excerpt.first > ordinal), default=span[1])
    return max(span[0], start), min(span[1], end)


async def read_excerpts(
    documents: DocumentCatalogue, tenant: TenantId, found_excerpts: Sequence[Excerpt], *, whole: bool, most: int
) -> Mapping[str, ParentPassage]:
    """Return the passage of each excerpt by the id of its best match.

    Args:
        whole: read whole parents, if documents have them, with ``most`` chunks at most.
    """
    parents = {
        excerpt.best.id: excerpt.best.parent_id for excerpt in found_excerpts if whole and excerpt.best.parent_id is not None
    }
    spans = {
        excerpt.best.id: ChunkSpan(excerpt.best.document_id, excerpt.first, excerpt.last)
        for excerpt in found_excerpts
        if excerpt.best.id not in parents
    }
    passages = await documents.parents(tenant, list(parents)) if parents else {}
    spread = await documents.passages(tenant, list(spans.values())) if spans else {}
    passages_by_id: dict[str, ParentPassage] = {}
    for excerpt in found_excerpts:
        best = excerpt.best
        passage = passages.get(parents[best.id]) if best.id in parents else spread.get(spans[best.id])
        if passage is not None and (chunks := _select_siblings(passage.chunks, best, most)):
            passages_by_id[best.id] = passage.cut_part(chunks)
    return passages_by_id


def match_of(hit: Hit) -> Match:
    """Return the place of a hit in its document."""
    chunk = hit.visible.chunk
    return Match(chunk.id, chunk.document_id, chunk.ordinal, chunk.parent_id, hit.score)


def _select_siblings(chunks: Sequence[Chunk], best: Match, limit: int) -> Sequence[Chunk]:
    """Return the chunks of the match's parent, at most ``limit`` around the match; none if the match is not among them.

    It is not if another version became visible since the search.
    """
    siblings = [chunk for chunk in chunks if chunk.parent_id == best.parent_id]
    at = next(
        (position for position, chunk in enumerate(siblings) if chunk.id == best.id and chunk.ordinal == best.ordinal), None
    )
    if at is None:
        return ()
    start = max(0, min(at - (limit - 1) // 2, len(siblings) - limit))
    return siblings[start : start + limit]


def hits_of(pairs: Sequence[tuple[Hit, Excerpt]], passages_by_id: Mapping[str, ParentPassage]) -> tuple[Hit, ...]:
    """Return the hits with their passages. Text that a better passage has is left out, and hits without any other text."""
    hits: list[Hit] = []
    passages: dict[str, list[ParentPassage]] = {}
    for hit, excerpt in pairs:
        passage, chunk = passages_by_id.get(hit.id), hit.visible.chunk
        if passage is None or passage.chunks[0].version != chunk.version:
            # Another version became visible since the search.
            hits.append(_hit(hit, excerpt, None))
            continue
        better = passages.setdefault(chunk.document_id, [])
        passage = passage.without_overlap(better)
        if passage is not None:
            better.append(passage)
            hits.append(_hit(hit, excerpt, passage))
    return tuple(hits)


def _hit(hit: Hit, excerpt: Excerpt, passage: ParentPassage | None) -> Hit:
    """Return the hit with its passage, and with its matches in the passage."""
    ids = {chunk.id for chunk in passage.chunks} if passage is not None else {hit.id}
    matched = tuple(MatchedChunk(match.id, match.score) for match in excerpt.matches if match.id in ids)
    return replace(hit, parent=passage, matched=matched)
