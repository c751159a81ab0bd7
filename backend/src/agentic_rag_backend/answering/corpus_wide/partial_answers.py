"""Partial answers: the contributions of a few themes to a corpus-wide question, each scored, each resting on passages.

The map half of map and reduce (after GraphRAG's global search, Edge et al. 2024), with two differences: a statement is kept
only if the passages that it names support it, and themes are packed into as few calls as their tokens need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.answering.claims.reading import MAX_MARKERS, Claim, read_claims
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage, theme_passages
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import ThemeHit
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.models.llm.base import INTEGER, NUMBER, list_of, object_of, objects_in, text_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import (
    Spending,
    StructuredCalls,
    StructuredReply,
    line_in,
    number_in,
)

MAP_TOKENS = 3_000
"""Tokens of themes and passages per call. Calls are larger if they are too few for all themes and the window has room."""
MAP_REPLY_TOKENS = 900
MAX_FINDINGS = 8
MAX_POINTS = 6
BEST_SCORE = 100.0
_LONGEST_STATEMENT = 600
_POINT = {"statement": text_of(_LONGEST_STATEMENT), "sources": list_of(INTEGER, MAX_MARKERS), "score": NUMBER}
_SCHEMA = object_of({"points": list_of(object_of(_POINT), MAX_POINTS)})


@dataclass(frozen=True, slots=True)
class ThemeWithPassages:
    """A theme and the sentences of documents behind it. ``tokens`` counts both."""

    theme: ThemeHit
    passages: tuple[Passage, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Point:
    """One statement of a partial answer with the passages that support it; ``score`` in [0, 100], 0 if nothing rated it."""

    statement: str
    passages: tuple[Passage, ...]
    score: float


@dataclass(frozen=True, slots=True)
class PartialAnswers:
    """The points, best first or in order of time, and counts of the others. ``scores`` in [0, 1] are of all useful points, merged
    or not.
    """

    points: tuple[Point, ...]
    scores: tuple[float, ...] = ()
    calls: int = 0
    failed: tuple[str, ...] = ()
    zero: int = 0
    unsupported: int = 0


def themes_with_passages(
    themes: Sequence[ThemeHit], visible: Mapping[str, VisibleChunk], *, budget_tokens: int, most_tokens: int
) -> list[ThemeWithPassages]:
    """Return themes with their passages, best first, within the token budget. A passage that two share belongs to the first.

    ``most_tokens`` bounds one theme with its passages.
    """
    selected: list[ThemeWithPassages] = []
    used: set[tuple[str, int]] = set()
    remaining = budget_tokens
    for theme in themes:
        candidates = [
            passage
            for passage in theme_passages(theme, visible, theme.score, limit=MAX_FINDINGS)
            if (passage.chunk_id, passage.start_char) not in used
        ]
        passages: list[Passage] = []
        tokens = text_tokens([theme.name, theme.summary])
        for passage in candidates:
            size = text_tokens([passage.title, passage.text])
            if tokens + size <= min(remaining, most_tokens):
                passages.append(passage)
                tokens += size
        if passages:
            selected.append(ThemeWithPassages(theme, tuple(passages), tokens))
            used |= {(passage.chunk_id, passage.start_char) for passage in passages}
            remaining -= tokens
    return selected


def pack_themes(themes: Sequence[ThemeWithPassages], *, limit: int, room: int) -> list[list[ThemeWithPassages]]:
    """Divide themes over at most ``limit`` calls, neighbours together, about as many tokens in each and at most ``room``.

    The last themes are left out if the calls have no room for them.
    """
    total = sum(theme.tokens for theme in themes)
    count = max(1, min(limit, -(-total // min(MAP_TOKENS, room)), len(themes)))
    bundles: list[list[ThemeWithPassages]] = [[]]
    before = size = 0
    for theme in themes:
        full = size + theme.tokens > room
        if bundles[-1] and ((len(bundles) < count and before >= total * len(bundles) / count) or full):
            if len(bundles) == limit:
                break
            bundles.append([])
            size = 0
        bundles[-1].append(theme)
        before += theme.tokens
        size += theme.tokens
    return bundles if themes else []


async def partial_answers(
    question: str, themes: Sequence[ThemeWithPassages], calls: StructuredCalls, spending: Spending, *, room: int
) -> PartialAnswers:
    """Have the model write partial answers, a call for each bundle, all at the same time; at most ``spending.left``.

    ``room`` is the token budget of the themes and passages of one call.
    """
    bundles = pack_themes(themes, limit=spending.left, room=room) if spending.left else []
    spending.begin(len(bundles))
    numbered = [_number_passages(bundle) for bundle in bundles]
    replies = await asyncio.gather(
        *(_ask_model(question, bundle, passages, calls) for bundle, passages in zip(bundles, numbered, strict=True))
    )
    points: list[Point] = []
    failed: list[str] = []
    zero = unsupported = 0
    for passages, reply in zip(numbered, replies, strict=True):
        spending.add_call(reply)
        if reply.parsed is None:
            failed.append(reply.failure or "")
            continue
        checker = LexicalVerifier(passages)
        for item in objects_in(reply.parsed, "points")[:MAX_POINTS]:
            score = number_in(item, "score", low=0, high=BEST_SCORE) or 0.0
            if score <= 0:
                zero += 1
                continue
            point = _check_point(item, score, checker)
            unsupported += point is None
            points += [point] if point is not None else []
    order = sorted(range(len(points)), key=lambda number: (-points[number].score, number))
    return PartialAnswers(
        points=tuple(points[number] for number in order),
        scores=tuple(points[number].score / BEST_SCORE for number in order),
        calls=len(bundles),
        failed=tuple(failed),
        zero=zero,
        unsupported=unsupported,
    )


def _number_passages(bundle: Sequence[ThemeWithPassages]) -> list[Passage]:
    passages = [passage for theme in bundle for passage in theme.passages]
    return [replace(passage, marker=number) for number, passage in enumerate(passages, 1)]


async def _ask_model(
    question: str, bundle: Sequence[ThemeWithPassages], passages: Sequence[Passage], calls: StructuredCalls
) -> StructuredReply:
    values = {
        "themes": "\n".join(fence("theme", packed.theme.summary, attributes={"name": packed.theme.name}) for packed in bundle),
        "passages": "\n".join(
            fence("passage", passage.text, attributes={"id": passage.marker, "title": passage.title}) for passage in passages
        ),
        "question": fence("question", question),
    }
    return await calls.ask(built_in("global_map"), values, _SCHEMA, max_tokens=MAP_REPLY_TOKENS)


def _check_point(item: Mapping[str, Any], score: float, checker: LexicalVerifier) -> Point | None:
    """Return the point, or None if no passage supports it."""
    # A marker inside the statement would look like one of ours.
    claims = read_claims(line_in(item, "statement", limit=_LONGEST_STATEMENT))
    statement = " ".join(claim.text for claim in claims)
    values = item.get("sources")
    items = values if isinstance(values, list) else []
    sources = [number for number in items if isinstance(number, int) and not isinstance(number, bool)]
    verdict = checker.check(Claim(statement, tuple(dict.fromkeys(sources))[:MAX_MARKERS]))
    return Point(statement, tuple(support.passage for support in verdict.supports), score) if verdict.holds else None
