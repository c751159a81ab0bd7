"""Contract of every catalogue for edits of the graph: numbered, in order, undone but not removed, and recorded for the relay."""

from __future__ import annotations

from unittest.mock import patch

from agentic_rag_backend.domain.graph_edits import EditDraft, EditKind
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, Topic
from agentic_rag_backend.stores.catalogue.tenants import graph_edits
from agentic_rag_backend.testing.catalogue.samples import Check, equal, raises, tenant, true

MERGE = EditDraft(
    kind=EditKind.MERGE, entity_id="a", entity_name="Ada", entity_ids=("b", "c"), entity_names=("B", "C"), reason="é"
)
SPLIT = EditDraft(
    kind=EditKind.SPLIT, entity_id="a", entity_name="Ada", document_ids=("d",), new_id="n", name="Ada B", type="person"
)
DELETE = EditDraft(kind=EditKind.DELETE, entity_id="x", entity_name="X")


async def edits_are_numbered_and_undone(catalogue: Catalogue) -> None:
    """An edit that was undone stays on record. Numbers are not used again."""
    owner, edits = await tenant(catalogue), catalogue.graph_edits
    added = [await edits.add(owner, draft) for draft in (MERGE, SPLIT, DELETE)]
    equal([(each.number, each.draft) for each in added], [(1, MERGE), (2, SPLIT), (3, DELETE)])
    undone = await edits.undo(owner, 2)
    true(undone.undone_at is not None, "the time is recorded")
    equal(await edits.undo(owner, 2), undone, "once more")
    equal(await edits.edit(owner, 2), undone)
    equal([each.number for each in await edits.in_effect(owner)], [1, 3])
    await edits.undo(owner, 3)
    equal((await edits.add(owner, DELETE)).number, 4)
    first = await edits.page(owner, limit=3)
    equal([each.number for each in first.items], [4, 3, 2])
    equal([each.number for each in (await edits.page(owner, limit=3, cursor=first.next_cursor)).items], [1])
    for number in (0, -1, 9, 2**40):
        await raises(NotFound, edits.edit(owner, number), str(number))
    await raises(NotFound, edits.undo(owner, 9), "an unknown edit")


async def edits_are_recorded_for_the_relay(catalogue: Catalogue) -> None:
    """An edit and its undoing add an entry and raise ``state_version``, so that no cached answer outlives them."""
    owner, edits = await tenant(catalogue), catalogue.graph_edits
    for change in (edits.add(owner, MERGE), edits.undo(owner, 1)):
        known = await edits.changes(owner)
        before = (await catalogue.tenants.tenant(owner)).state_version
        await change
        equal(await edits.changes(owner), known + 1)
        true((await catalogue.tenants.tenant(owner)).state_version > before, "state_version")
        equal([(each.topic, each.subject) for each in await catalogue.outbox.pending(owner, limit=9)], [(Topic.EDITS, "1")])
        true(await catalogue.outbox.holds(owner, [Topic.NAMES, Topic.EDITS]), "an entry of one of the topics")
        await catalogue.outbox.delivered(owner, await catalogue.outbox.pending(owner, limit=9))
        true(not await catalogue.outbox.holds(owner, [Topic.EDITS]), "no entry is left")


async def the_number_of_edits_is_bounded(catalogue: Catalogue) -> None:
    """Edits that were undone do not count."""
    owner, edits = await tenant(catalogue), catalogue.graph_edits
    with patch.object(graph_edits, "MAX_GRAPH_EDITS", 2):
        await edits.add(owner, MERGE)
        await edits.add(owner, SPLIT)
        await raises(InvalidRequest, edits.add(owner, DELETE), "one too many")
        await edits.undo(owner, 1)
        await edits.add(owner, DELETE)
    equal([each.number for each in await edits.in_effect(owner)], [2, 3])


CHECKS: tuple[Check, ...] = (edits_are_numbered_and_undone, edits_are_recorded_for_the_relay, the_number_of_edits_is_bounded)
