"""The visible part of a summary: prose, findings, names and keywords disappear with the passages they rest on.

The names that may be shown: those that visible documents use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Label, Support, contains_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.facts import all_there
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue


def name_order(name: str, label: str) -> tuple[bool, str]:
    """Return the sort key of an entity's names. Of the names that visible versions use, the first one is shown.

    The entity's label in the graph store comes first, then the names in alphabetical order. The result depends on visible
    versions only, so the purge of a hidden version does not change it.
    """
    return name != label, name


def contains_label(passage: VisibleChunk, label: str) -> bool:
    """Return whether the passage, its document's title or a heading above it contains the label, in their current form."""
    texts = (passage.chunk.text, passage.document_title, *passage.chunk.location.headings)
    return any(contains_name(text, label) for text in texts)


def supporting_chunks(summaries: Iterable[CommunitySummary]) -> list[str]:
    """Return the ids of all chunks that support prose or findings, and of the first chunk of each label, without duplicates,
    sorted.
    """
    return sorted(
        {
            support.chunk_id
            for summary in summaries
            for supports in (
                summary.sources,
                *(finding.sources for finding in summary.findings),
                *(label.sources[:1] for label in _labels_of(summary)),
            )
            for support in supports
        }
    )


def all_supports(summary: CommunitySummary) -> set[Support]:
    """Return all passages on which any part of a summary rests."""
    parts = (
        summary.sources,
        *(supports.sources for supports in summary.findings),
        *(supports.sources for supports in _labels_of(summary)),
    )
    return set().union(*parts)


def further_chunks(summaries: Iterable[CommunitySummary], visible: Mapping[str, VisibleChunk]) -> list[str]:
    """Return the ids of further chunks that may support labels that no ``visible`` chunk contains."""
    return sorted(
        {
            support.chunk_id
            for summary in summaries
            for label in _labels_of(summary)
            if not _has_statement(label, visible)
            for support in label.sources
        }
        - visible.keys()
    )


def visible_sources(summary: CommunitySummary, visible: Mapping[str, VisibleChunk]) -> tuple[tuple[Support, ...], bool]:
    """Return the visible passages behind prose and findings, in the versions shown now, and whether all of them are visible."""
    behind = dict.fromkeys([*summary.sources, *(source for finding in summary.findings for source in finding.sources)])
    there = [support for support in behind if support.chunk_id in visible]
    return tuple(replace(support, version=visible[support.chunk_id].chunk.version) for support in there), len(there) == len(
        behind
    )


def visible_summary(summary: CommunitySummary, visible: Mapping[str, VisibleChunk]) -> CommunitySummary:
    """Withhold the statements that visible passages no longer support.

    The prose and a finding stay while every passage they used is visible. A name or keyword stays while one of its passages is
    visible and contains it, or, without passages of its own, as long as the prose stays. If the title goes, the names replace
    it.

    Args:
        visible: by id, the chunks that the catalogue shows now.
    """
    complete = all_there(visible, summary.sources)

    def holds(label: Label) -> bool:
        return _has_statement(label, visible) if label.sources else complete

    return replace(
        summary,
        title=summary.title if summary.title is not None and holds(summary.title) else None,
        names=tuple(filter(holds, summary.names)),
        summary=summary.summary if complete else "",
        keywords=tuple(filter(holds, summary.keywords)),
        findings=tuple(finding for finding in summary.findings if all_there(visible, finding.sources)),
    )


def is_complete(summary: CommunitySummary, visible: Mapping[str, VisibleChunk]) -> bool:
    """Return whether all of a summary rests on visible passages: prose, findings, names and keywords."""
    return visible_sources(summary, visible)[1] and visible_summary(summary, visible) == summary


async def passages_behind(
    documents: DocumentCatalogue,
    tenant: TenantId,
    summaries: Collection[CommunitySummary],
    passes: Callable[[VisibleChunk], bool] = lambda _: True,
) -> dict[str, VisibleChunk]:
    """Return the visible passages that support the summaries: enough to decide which parts may be shown.

    A passage that does not pass counts as invisible.
    """

    async def passing(ids: Sequence[str]) -> dict[str, VisibleChunk]:
        chunks = await documents.hydrate(tenant, ids) if ids else {}
        return {id: chunk for id, chunk in chunks.items() if passes(chunk)}

    visible = await passing(supporting_chunks(summaries))
    return visible | await passing(further_chunks(summaries, visible))


def _labels_of(summary: CommunitySummary) -> tuple[Label, ...]:
    return (*summary.names, *summary.keywords, *(() if summary.title is None else (summary.title,)))


def _has_statement(label: Label, visible: Mapping[str, VisibleChunk]) -> bool:
    # Read again, since titles and headings change without the chunk's id.
    passages = (visible.get(support.chunk_id) for support in label.sources)
    return any(passage is not None and contains_label(passage, label.text) for passage in passages)
