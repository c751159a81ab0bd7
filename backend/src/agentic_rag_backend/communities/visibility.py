"""What of a summary may be shown now: no statement outlives the passages it rests on.

Names and keywords have no passages of their own on record: the name stays until the next rebuild, keywords go with the prose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentic_rag_backend.domain.graph import CommunitySummary, Support


def supporting_chunks(summaries: Iterable[CommunitySummary]) -> list[str]:
    """Return the ids of every chunk that the summaries' prose or findings rest on, each once, sorted."""
    return sorted(
        {
            support.chunk_id
            for summary in summaries
            for supports in (summary.sources, *(finding.sources for finding in summary.findings))
            for support in supports
        }
    )


def visible_summary(summary: CommunitySummary, shown: Mapping[str, int]) -> CommunitySummary:
    """Withhold prose and keywords if a passage they used is gone, and each finding whose passages are not all there.

    Args:
        shown: version by chunk id, for the chunks that the catalogue shows now.
    """

    def held(supports: Iterable[Support]) -> bool:
        # A chunk that the next version kept has the same id: its text is the same, so the statement still stands.
        return all(support.chunk_id in shown for support in supports)

    whole = held(summary.sources)
    return replace(
        summary,
        summary=summary.summary if whole else "",
        keywords=summary.keywords if whole else (),
        findings=tuple(finding for finding in summary.findings if held(finding.sources)),
    )
