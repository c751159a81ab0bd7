"""Summaries of communities, and the current generation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Text, cast, or_, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, write
from agentic_rag_backend.stores.catalogue.summaries.generations import GenerationStore, summary_from
from agentic_rag_backend.stores.catalogue.tables import community_pointers, community_summaries, tenants

COMMUNITIES = GenerationStore(
    pointers=community_pointers,
    summaries=community_summaries,
    asked_at=tenants.c.rebuild_asked_at,
    build=JobKind.REBUILD,
    on_request=False,
    stale_since=tenants.c.stale_since,
)
_RESTING = ("title", "names", "keywords", "findings", "sources")
"""Columns of a summary that contain the passages that support it."""


def summaries(
    connection: Connection,
    tenant: TenantId,
    fingerprints: Sequence[str],
    *,
    prompt_version: str | None = None,
    model: str | None = None,
) -> dict[str, CommunitySummary]:
    """Return the existing summaries of those fingerprints with that prompt and model.

    Without prompt and model, return the last written summary of each fingerprint.
    """
    matches = COMMUNITIES.find_summaries(connection, tenant, fingerprints, prompt_version=prompt_version, model=model)
    # The mapping keeps the last summary written.
    return {summary.fingerprint: summary for summary in matches}


def summaries_resting_on(connection: Connection, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
    """Return the summaries with a part that passages of the document support, in the order of writing."""
    # Reads all summaries of the tenant. They are few: a millisecond for some hundreds. The id is a uuid, so a text that
    # contains it refers to the document.
    columns = community_summaries.c
    statement = (
        select(community_summaries)
        .where(
            columns.tenant_id == tenant.value,
            or_(*(cast(columns[name], Text).contains(document_id, autoescape=True) for name in _RESTING)),
        )
        .order_by(columns.written_at, columns.prompt_version, columns.model)
    )
    return [summary_from(row) for row in connection.execute(statement).mappings()]


def replace_summaries(connection: Connection, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
    """Record summaries, and remove all other summaries of their fingerprints."""
    COMMUNITIES.delete_summaries(connection, tenant, [summary.fingerprint for summary in summaries])
    COMMUNITIES.save_summaries(connection, tenant, summaries)


class CommunityCatalogue(CataloguePart):
    """Generations of communities. The pointer of a tenant with documents is stale before the first build."""

    pointer = read(COMMUNITIES.pointer)
    next_generation = write(COMMUNITIES.next_generation)
    publish = write(COMMUNITIES.publish)
    asked = write(COMMUNITIES.asked)
    due = read(COMMUNITIES.due)
    summaries = read(summaries)
    summaries_resting_on = read(summaries_resting_on)
    save_summaries = write(COMMUNITIES.save_summaries)
    replace_summaries = write(replace_summaries)
    drop_summaries = write(COMMUNITIES.drop_summaries)
