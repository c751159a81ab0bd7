"""Contract of a catalogue's outbox: it lists the changes that other stores still have to apply, from their commit on."""

from __future__ import annotations

from dataclasses import replace

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import Catalogue, Change, Topic
from agentic_rag_backend.testing.catalogue.samples import Check, equal, ingest, nothing, state_version, submission, tenant, true


async def a_change_without_a_job_is_recorded(catalogue: Catalogue) -> None:
    """A change of title or metadata in place adds an entry, however it is submitted. An equal submission adds none."""
    owner = await tenant(catalogue)
    document_id = (await ingest(catalogue, owner, "minutes")).id
    equal(await catalogue.outbox.pending(owner, limit=10), [], "of a document that a job makes visible")
    for change in (Change(metadata={"shelf": 2}), Change(metadata={"shelf": 2})):
        await catalogue.documents.revise(owner, document_id, change, nothing)
        equal(await _subjects(catalogue, owner), [(Topic.LABELS, document_id)])
    await catalogue.outbox.delivered(owner, await catalogue.outbox.pending(owner, limit=10))
    equal(await _subjects(catalogue, owner), [])
    await catalogue.documents.submit(owner, replace(submission("minutes"), metadata={"shelf": 3}), nothing)
    equal(await _subjects(catalogue, owner), [(Topic.LABELS, document_id)])


async def entries_recorded_again_meanwhile_stay(catalogue: Catalogue) -> None:
    """The same subject may change again while an entry is being delivered."""
    owner = await tenant(catalogue)
    await catalogue.outbox.add(owner, Topic.LABELS, "one")
    taken = await catalogue.outbox.pending(owner, limit=10)
    await catalogue.outbox.add(owner, Topic.LABELS, "one")
    await catalogue.outbox.delivered(owner, taken)
    equal(await _subjects(catalogue, owner), [(Topic.LABELS, "one")])
    await catalogue.outbox.delivered(owner, [])
    again = await catalogue.outbox.pending(owner, limit=10)
    await catalogue.outbox.delivered(owner, again)
    equal(await _subjects(catalogue, owner), [])
    await catalogue.outbox.add(owner, Topic.LABELS, "one")
    await catalogue.outbox.delivered(owner, [*taken, *again])
    equal(await _subjects(catalogue, owner), [(Topic.LABELS, "one")], "after an old delivery ended late")


async def a_delivery_is_a_change(catalogue: Catalogue) -> None:
    """A result found between a change and its delivery is of an older state afterwards. Originals are not searched."""
    owner, other = await tenant(catalogue, "one"), await tenant(catalogue, "other")
    for topic, raised in ((Topic.LABELS, 1), (Topic.LEFTOVERS, 1), (Topic.KNOWLEDGE, 1), (Topic.ORIGINAL, 0)):
        await catalogue.outbox.add(owner, topic, "x")
        entries, before = await catalogue.outbox.pending(owner, limit=10), await state_version(catalogue, owner)
        await catalogue.outbox.delivered(owner, entries)
        equal(await state_version(catalogue, owner), before + raised, topic)
    equal(await state_version(catalogue, other), 0)


async def entries_keep_their_order(catalogue: Catalogue) -> None:
    """Oldest first, up to a limit. An entry that is recorded again keeps its position."""
    owner = await tenant(catalogue)
    for subject in ("c", "a", "b", "c"):
        await catalogue.outbox.add(owner, Topic.LEFTOVERS, subject)
    equal([subject for _, subject in await _subjects(catalogue, owner)], ["c", "a", "b"])
    equal([each.subject for each in await catalogue.outbox.pending(owner, limit=2)], ["c", "a"])


async def tenants_with_entries_are_found(catalogue: Catalogue) -> None:
    """A tenant in deletion is included until it is removed. A missing tenant has no entries."""
    one, other = await tenant(catalogue, "one"), await tenant(catalogue, "other")
    equal(await catalogue.outbox.tenants(limit=10), [])
    await catalogue.outbox.add(one, Topic.LABELS, "x")
    await catalogue.tenants.mark_deleting(other)
    await catalogue.outbox.add(TenantId.new(), Topic.LABELS, "x")
    equal(set(await catalogue.outbox.tenants(limit=10)), {one, other})
    first, last = sorted((one, other), key=lambda tenant: tenant.value)
    equal(await catalogue.outbox.tenants(limit=1), [first])
    equal(await catalogue.outbox.tenants(limit=10, after=first), [last])
    equal(await catalogue.outbox.tenants(limit=10, after=last), [])
    equal(await catalogue.outbox.tenants(limit=10, topics=[Topic.LABELS]), [one])
    true((await _subjects(catalogue, other)) == [(Topic.TENANT, other.value)], "deleting a tenant is recorded")
    await catalogue.tenants.remove(other)
    equal(await catalogue.outbox.tenants(limit=10), [one])


CHECKS: tuple[Check, ...] = (
    a_change_without_a_job_is_recorded,
    entries_recorded_again_meanwhile_stay,
    a_delivery_is_a_change,
    entries_keep_their_order,
    tenants_with_entries_are_found,
)


async def _subjects(catalogue: Catalogue, owner: TenantId) -> list[tuple[Topic, str]]:
    return [(each.topic, each.subject) for each in await catalogue.outbox.pending(owner, limit=10)]
