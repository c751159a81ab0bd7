"""Temporal search: understands the time that a question names, and searches as the world stood then.

"In 2019", "before March 2012", "since the merger" (if a fact or a sentence dates it), "now". Facts must hold then, documents
must be valid then, and passages with a date of that time, or from documents of that time, come first. A question without a time
is searched by the inner strategy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.language.times.time_phrases import TimePhrase, time_phrase
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.options.model import EntitiesOption, LowStrategyOption, SyntheticQuestionsOption
from agentic_rag_backend.retrieval.scoring.time_fit import TIME_SHARE, TimeWindow, fit, window_of
from agentic_rag_backend.retrieval.strategies.event_dates import EventDates

DEPTH = 30
"""Results of the inner strategy that are compared with the time."""


@dataclass(frozen=True, slots=True)
class _Time:
    """The time of a query. Without a window, no time is used. ``details`` are shown in the trace."""

    window: TimeWindow | None = None
    details: Mapping[str, Any] | None = None
    warning: str | None = None


class TemporalRequestOptions(EntitiesOption, LowStrategyOption, SyntheticQuestionsOption):
    pass


class Temporal:
    """Runs the strategies of the low level at the time of the question. ``options.low_strategy`` selects one of them."""

    def __init__(self, inner: Retriever, events: EventDates) -> None:
        self._inner = inner
        self._events = events

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the results of the inner strategy at the time of the question. ``trace.details.time`` has the time."""
        time = await self._time(query)
        if time.window is None:
            retrieval = await self._inner.retrieve(query)
        else:
            at = query if query.as_of is not None else replace(query, as_of=time.window.as_of)
            # Passages about several times are similar, and only their times differ.
            alike = replace(at.with_candidates(DEPTH), diverse=False)
            retrieval = preferring(await self._inner.retrieve(alike), time.window)
        trace = retrieval.trace
        return replace(
            retrieval,
            trace=replace(
                trace,
                strategy="temporal",
                methods_used=tuple(dict.fromkeys((trace.strategy, *trace.methods_used))),
                warnings=(*trace.warnings, *([time.warning] if time.warning else [])),
                details={**trace.details, "time": time.details},
            ),
        )

    async def _time(self, query: Query) -> _Time:
        """Return the time that a query means. A time of the request (``as_of``) overrides that of the question."""
        if query.as_of is not None:
            window = TimeWindow(query.as_of, query.as_of, query.as_of)
            return _Time(window, {"source": "request", **_shown(window)})
        phrase = time_phrase(query.text, query.asked_at)
        if phrase is None:
            return _Time()
        if phrase.period is not None:
            window = window_of(phrase.relation, phrase.period, query.asked_at)
            return _Time(window, {"source": "question", **_named(phrase), **_shown(window)})
        dated = await self._events.find(query, phrase.event)
        if dated is None:
            missing = f"the time {phrase.text[:80]!r} is not used: no document dates the event"
            return _Time(None, {"source": None, **_named(phrase)}, missing)
        window = window_of(phrase.relation, dated.period, query.asked_at)
        by = {"source": dated.source, "event": phrase.event, "fact": dated.sentence, "chunk_id": dated.chunk_id}
        return _Time(window, {**by, **_named(phrase), **_shown(window)})


def preferring(retrieval: Retrieval, window: TimeWindow) -> Retrieval:
    """Return the results by ``.7 × score + .3 × fit``, best first. Equal scores keep their order."""
    fits = {hit.id: fit(hit.visible, window) for hit in retrieval.hits}
    hits = (
        replace(
            hit,
            score=min(1.0, (1 - TIME_SHARE) * hit.score + TIME_SHARE * fits[hit.id]),
            scores={**hit.scores, "time": fits[hit.id]},
        )
        for hit in retrieval.hits
    )
    return replace(retrieval, hits=tuple(sorted(hits, key=lambda hit: -hit.score)))


def _named(phrase: TimePhrase) -> dict[str, Any]:
    return {"phrase": phrase.text, "relation": phrase.relation}


def _shown(window: TimeWindow) -> dict[str, Any]:
    return {
        "from": window.begin.isoformat(),
        "to": window.end.isoformat(),
        "as_of": "now" if window.as_of is None else window.as_of.isoformat(),
    }
