"""The sentence before an answer without a model. It states what the list of sentences is, and has no citation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentic_rag_backend.domain.query import ThemeHit
from agentic_rag_backend.generation.corpus_wide.overview import ordered_by_time
from agentic_rag_backend.generation.corpus_wide.partial_answers import Point
from agentic_rag_backend.language.times.dates import find_years

_NAMED_THEMES = 2
_MIN_SENTENCES = 2


def introduce_themes(points: Sequence[Point], themes: Sequence[ThemeHit], *, of_all: bool) -> str:
    """Return the introduction of an answer of these sentences; empty for less than two.

    Args:
        of_all: the question is about everything, so each sentence represents a theme.
    """
    if len(points) < _MIN_SENTENCES:
        return ""
    documents = len({passage.document_id for point in points for passage in point.passages})
    if of_all:
        return (
            f"The documents have {len(themes)} themes; each of these {len(points)} sentences from {_count_documents(documents)} "
            f"states a finding of one of the best documented themes."
        )
    dates = sorted(year for point in points for year in find_years(point.statement))
    period = f" ({dates[0]} to {dates[-1]})" if dates and dates[0] < dates[-1] else ""
    order = "in order of time, those without a date last" if ordered_by_time(points) else "nearest first"
    return (
        f"The {len(points)} sentences that are nearest to the question come from {_count_documents(documents)}{period}"
        f"{_name_themes(points, themes)} and are listed {order}."
    )


def _count_documents(count: int) -> str:
    return "one document" if count == 1 else f"{count} documents"


def _name_themes(points: Sequence[Point], themes: Sequence[ThemeHit]) -> str:
    """Return the names of the themes that most of the sentences belong to."""
    rests = [{source.chunk_id for finding in theme.findings for source in finding.sources} for theme in themes]
    counts: Counter[int] = Counter()
    for point in points:
        chunks = {passage.chunk_id for passage in point.passages}
        number = next((number for number, chunk_ids in enumerate(rests) if not chunk_ids.isdisjoint(chunks)), None)
        if number is not None:
            counts[number] += 1
    best = sorted(counts, key=lambda number: (-counts[number], number))[:_NAMED_THEMES]
    names = " and ".join(f"“{themes[number].name}”" for number in best)
    return f", mostly of the theme{'s' if len(best) > 1 else ''} {names}," if names else ""
