"""Contract of every document catalogue for listing changed documents."""

from __future__ import annotations

from agentic_rag_backend.stores.catalogue.base import Catalogue, Visibility
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    Check,
    equal,
    ingest,
    nothing,
    stage,
    state_version,
    submission,
    tenant,
    true,
)


async def changes_are_returned_since_any_moment(catalogue: Catalogue) -> None:
    """From each state, the visible documents plus the changes equal the documents visible now, also after a purge."""
    owner, other = await tenant(catalogue), await tenant(catalogue, "other")
    docs = catalogue.documents
    moments: list[tuple[int, dict[str, int]]] = []

    async def look() -> None:
        found = await docs.visibility(owner)
        equal(found, Visibility(await state_version(catalogue, owner), await docs.visible_versions(owner), whole=True))
        moments.append((found.state_version, dict(found.versions)))
        for since, before in moments:
            told = await docs.visibility(owner, since=since)
            equal((told.state_version, told.whole), (found.state_version, False))
            after = {id: version for id, version in {**before, **told.versions}.items() if version}
            equal(after, found.versions, f"told since {since}: {told.versions}")

    await look()
    report = await ingest(catalogue, owner, "report")
    await ingest(catalogue, other, "foreign")
    await look()
    await ingest(catalogue, owner, "minutes")
    await catalogue.tenants.set_flags(owner, {"colour": "red"})
    await look()
    await ingest(catalogue, owner, "report", LINES[0])
    await look()
    await docs.tombstone(owner, report.id, nothing)
    await look()
    await docs.purge(owner, report.id, up_to_version=9)
    await look()
    await ingest(catalogue, owner, "report")
    await look()
    told = await docs.visibility(owner, since=moments[-1][0])
    equal(told.versions, {}, "nothing changed")
    told = await docs.visibility(owner, since=moments[-2][0])
    equal(len(told.versions), 1, "only what changed is told")


async def unfinished_versions_are_no_change(catalogue: Catalogue) -> None:
    """A prepared version, or a version that failed to replace the visible one, is not a change."""
    owner = await tenant(catalogue)
    await ingest(catalogue, owner, "report")
    before = await catalogue.documents.visibility(owner)
    submitted = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    await stage(catalogue, owner, submitted, LINES[0])
    told = await catalogue.documents.visibility(owner, since=before.state_version)
    equal(told.versions, {})


async def an_unknown_past_returns_the_whole_state(catalogue: Catalogue) -> None:
    """A caller with an unknown state, too old or of another database, gets everything."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    now = await state_version(catalogue, owner)
    for since in (now + 1, -1_000_000):
        told = await catalogue.documents.visibility(owner, since=since)
        equal(told, Visibility(now, {document.id: 1}, whole=True))
    true(not (await catalogue.documents.visibility(owner, since=0)).whole, "a young tenant's past is on record whole")


CHECKS: tuple[Check, ...] = (
    changes_are_returned_since_any_moment,
    unfinished_versions_are_no_change,
    an_unknown_past_returns_the_whole_state,
)
