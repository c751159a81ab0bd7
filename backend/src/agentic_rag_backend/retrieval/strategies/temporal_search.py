"""Temporal search: understands the time that a question names, and searches as the world stood then.

"In 2019", "before March 2012", "since 2018", "now". Facts must hold then, documents must be valid then, and passages with a date
of that time, or from documents of that time, come first. A question without a time is searched by the inner strategy alone.

How well a passage fits a time: by the dates in its text, otherwise by the time for which its document speaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import VALID_FROM, VALID_TO
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.language.times import Period, Relation, document_date, moment_period, period_of, time_phrase
from agentic_rag_backend.language.values import find_moments
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.options.model import EntitiesOption, LowStrategyOption, SyntheticQuestionsOption

BY_DOCUMENT = 0.8
"""Fit of a passage without a date in its text, in a document of exactly the time."""
UNDATED = 0.2
"""Fit of a passage of which no time is known."""
LATER = 0.5
"""Factor for documents from after the time."""
HALVED_EVERY_YEARS = 2.0
TIME_SHARE = 0.3
"""Share of the fit in the score of a result. The rest is its score in the inner strategy."""
_YEAR = timedelta(days=365.25)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A time that passages are compared with: beginning and end, and the moment at which facts must hold (None: now)."""

    begin: datetime
    end: datetime
    as_of: datetime | None


def window_of(relation: Relation, period: Period, now: datetime) -> TimeWindow:
    """Return the time that a phrase means.

    "In 2019" is the whole year, and facts must hold at its end, as for ``as_of``; for a period that has not ended, now. "Before
    2019" is the year before it. "After 2019" and "since 2019" last until now, and facts hold now.
    """
    begin, end = period
    if relation in ("before", "until"):
        limit = begin if relation == "before" else end
        return TimeWindow(_earlier(limit), limit, limit - timedelta(microseconds=1))
    if relation in ("after", "since"):
        start = end if relation == "after" else begin
        return TimeWindow(start, max(start, now), None)
    if begin == end:
        return TimeWindow(begin, end, begin)
    return TimeWindow(begin, end, min(end - timedelta(microseconds=1), now) if begin <= now else end - timedelta(microseconds=1))


def fit(passage: VisibleChunk, window: TimeWindow) -> float:
    """Return how well a passage fits a time, in [0, 1]: 1 for a date within it, half for each two years of distance.

    A document from after the time counts half: it may describe a newer state.
    """
    dates = (period for moment in find_moments(passage.chunk.text) if (period := moment_period(moment)) is not None)
    document = document_period(passage)
    by_document = UNDATED
    if document is not None:
        by_document = BY_DOCUMENT * _nearness([document], window) * (LATER if document[0] >= window.end else 1.0)
    return max(by_document, _nearness(dates, window))


def document_period(passage: VisibleChunk) -> Period | None:
    """Return the time for which a passage's document speaks: its validity, otherwise its date."""
    begin, end = (period_of(passage.metadata.get(name)) for name in (VALID_FROM, VALID_TO))
    if begin is not None:
        return begin[0], end[1] if end is not None else datetime.max.replace(tzinfo=UTC)
    return period_of(document_date(passage.document_title, passage.metadata))


def _nearness(periods: Iterable[Period], window: TimeWindow) -> float:
    gaps = (max(begin - window.end, window.begin - end, timedelta()) / _YEAR for begin, end in periods)
    return max((0.5 ** (gap / HALVED_EVERY_YEARS) for gap in gaps), default=0.0)


def _earlier(moment: datetime) -> datetime:
    """Return the moment a year earlier."""
    return moment - _YEAR if moment.year > 1 else moment


DEPTH = 30
"""Results of the inner strategy that are compared with the time."""


class TemporalRequestOptions(EntitiesOption, LowStrategyOption, SyntheticQuestionsOption):
    pass


class Temporal:
    """Runs the strategies of the low level at the time of the question. ``options.low_strategy`` selects one of them."""

    def __init__(self, inner: Retriever) -> None:
        self._inner = inner

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the results of the inner strategy at the time of the question. ``trace.details.time`` has the time."""
        window, details = _find_time(query)
        if window is None:
            retrieval = await self._inner.retrieve(query)
        else:
            at = query if query.as_of is not None else replace(query, as_of=window.as_of)
            # Passages about several times are similar, and only their times differ.
            alike = replace(at.with_candidates(DEPTH), diverse=False)
            retrieval = preferring(await self._inner.retrieve(alike), window)
        trace = retrieval.trace
        return replace(
            retrieval,
            trace=replace(
                trace,
                strategy="temporal",
                methods_used=tuple(dict.fromkeys((trace.strategy, *trace.methods_used))),
                details={**trace.details, "time": details},
            ),
        )


def _find_time(query: Query) -> tuple[TimeWindow | None, Mapping[str, Any] | None]:
    """Return the time that a query means, and its form in the trace. A time of the request (``as_of``) wins."""
    if query.as_of is not None:
        window = TimeWindow(query.as_of, query.as_of, query.as_of)
        return window, {"source": "request", **_describe_window(window)}
    phrase = time_phrase(query.text, query.asked_at)
    if phrase is None:
        return None, None
    window = window_of(phrase.relation, phrase.period, query.asked_at)
    return window, {"source": "question", "phrase": phrase.text, "relation": phrase.relation, **_describe_window(window)}


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


def _describe_window(window: TimeWindow) -> dict[str, Any]:
    return {
        "from": window.begin.isoformat(),
        "to": window.end.isoformat(),
        "as_of": "now" if window.as_of is None else window.as_of.isoformat(),
    }
