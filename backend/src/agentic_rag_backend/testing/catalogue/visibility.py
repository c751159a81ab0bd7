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

    async def check_changes() -> None:
        found = await docs.visibility(owner)
        equal(found, Visibility(await state_version(catalogue, owner), await docs.visible_versions(owner), whole=True))
        moments.append((found.state_version, dict(found.versions)))
        for since, before in moments:
            changed = await docs.visibility(owner, since=since)
            equal((changed.state_version, changed.whole), (found.state_version, False))
            after = {id: version for id, version in {**before, **changed.versions}.items() if version}
            equal(after, found.versions, f"changes since {since}: {changed.versions}")

    await check_changes()
    report = await ingest(catalogue, owner, "report")
    await ingest(catalogue, other, "foreign")
    await check_changes()
    await ingest(catalogue, owner, "minutes")
    await catalogue.tenants.set_flags(owner, {"colour": "red"})
    await check_changes()
    await ingest(catalogue, owner, "report", LINES[0])
    await check_changes()
    await docs.tombstone(owner, report.id, nothing)
    await check_changes()
    await docs.purge(owner, report.id, up_to_version=9)
    await check_changes()
    await ingest(catalogue, owner, "report")
    await check_changes()
    changed = await docs.visibility(owner, since=moments[-1][0])
    equal(changed.versions, {}, "nothing changed")
    changed = await docs.visibility(owner, since=moments[-2][0])
    equal(len(changed.versions), 1, "only changes are returned")


async def unfinished_versions_are_no_change(catalogue: Catalogue) -> None:
    """A prepared version, or a version that failed to replace the visible one, is not a change."""
    owner = await tenant(catalogue)
    await ingest(catalogue, owner, "report")
    before = await catalogue.documents.visibility(owner)
    submitted = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    await stage(catalogue, owner, submitted, LINES[0])
    changed = await catalogue.documents.visibility(owner, since=before.state_version)
    equal(changed.versions, {})


async def an_unknown_past_returns_the_whole_state(catalogue: Catalogue) -> None:
    """A caller with an unknown state, too old or of another database, gets everything."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    now = await state_version(catalogue, owner)
    for since in (now + 1, -1_000_000):
        changed = await catalogue.documents.visibility(owner, since=since)
        equal(changed, Visibility(now, {document.id: 1}, whole=True))
    true(not (await catalogue.documents.visibility(owner, since=0)).whole, "the whole past of a new tenant is recorded")


CHECKS: tuple[Check, ...] = (
    changes_are_returned_since_any_moment,
    unfinished_versions_are_no_change,
    an_unknown_past_returns_the_whole_state,
)
