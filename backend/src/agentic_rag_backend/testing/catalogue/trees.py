"""Contract of every catalogue for trees over passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.base import Catalogue, SummaryKey
from agentic_rag_backend.testing.catalogue.directory import BARE, SUMMARY
from agentic_rag_backend.testing.catalogue.samples import (
    Check,
    equal,
    ingest,
    nothing,
    raises,
    state_version,
    tenant,
    true,
)

KEY: SummaryKey = (SUMMARY.fingerprint, SUMMARY.prompt_version, SUMMARY.model)
LEAF = TreeNode(
    id="leaf",
    level=1,
    children=("chunk 2", "chunk 1"),
    documents=("paper 2", "paper 1"),
    fingerprint="f1",
    size=2,
    prompt_version="v1",
    model="extractive",
)
OTHER = replace(LEAF, id="other", children=("chunk 3",), documents=("paper 1",), fingerprint="f2", size=1)
ROOT = replace(LEAF, id="root", level=2, children=("other", "leaf"), documents=(), fingerprint="f3", size=3)
TREE = [LEAF, OTHER, ROOT]


async def grow(catalogue: Catalogue, owner: TenantId, nodes: Sequence[TreeNode] = TREE) -> int:
    """Give ``owner`` a tree, and return its generation."""
    await catalogue.trees.save_summaries(owner, [SUMMARY])
    generation = await catalogue.trees.next_generation(owner)
    await catalogue.trees.write_nodes(owner, generation, nodes)
    built_from = await state_version(catalogue, owner)
    await catalogue.trees.publish(owner, generation, built_from=built_from, details={"of": "A"})
    return generation


async def trees_are_published_completely(catalogue: Catalogue) -> None:
    """Nodes of a new generation are invisible until it is published. That raises ``state_version``, and older ones cannot replace
    it.
    """
    owner, trees = await tenant(catalogue), catalogue.trees
    equal(((await trees.pointer(owner)).generation, (await trees.pointer(owner)).stale), (0, False))
    await ingest(catalogue, owner, "report")
    true((await trees.pointer(owner)).stale, "documents and no tree")
    first = await grow(catalogue, owner)
    pointer = await trees.pointer(owner)
    equal((pointer.generation, pointer.stale, pointer.details), (first, False, {"of": "A"}))
    true(pointer.built_at is not None, "when it was built")
    await raises(Conflict, trees.write_nodes(owner, first, [ROOT]), "the current generation")
    await raises(Conflict, trees.write_nodes(owner, 99, [ROOT]), "a number never given")
    await raises(Conflict, trees.publish(owner, 99, built_from=0, details={}), "a number never given")
    second = await trees.next_generation(owner)
    await trees.write_nodes(owner, second, [LEAF])
    await trees.write_nodes(owner, second, [LEAF])
    equal((await trees.generations(owner), (await trees.pointer(owner)).generation), ([first, second], first))
    equal(await trees.nodes(owner, first), TREE)
    before = await state_version(catalogue, owner)
    await trees.publish(owner, second, built_from=pointer.built_from, details={})
    true(await state_version(catalogue, owner) > before, "a tree changes answers")
    before = await state_version(catalogue, owner)
    await trees.publish(owner, second, built_from=pointer.built_from, details={})
    equal(await state_version(catalogue, owner), before, "repeated")
    await raises(Conflict, trees.publish(owner, first, built_from=99, details={}), "an older generation")
    equal(await trees.delete_generations(owner, keep=second), len(TREE))
    equal((await trees.nodes(owner, second), await trees.nodes(owner, first)), ([LEAF], []))


async def nodes_are_found_by_their_properties(catalogue: Catalogue) -> None:
    """By level, id, vector, children and document. Children keep their order."""
    owner, trees = await tenant(catalogue), catalogue.trees
    generation = await grow(catalogue, owner)
    equal(await trees.nodes(owner, generation, level=1), [LEAF, OTHER])
    equal(await trees.nodes(owner, generation, ids=["root", "leaf", "unknown"]), [LEAF, ROOT])
    equal(await trees.nodes(owner, generation, ids=[]), [])
    equal(await trees.nodes(owner, generation, point_ids=[OTHER.point_id(owner), "unknown"]), [OTHER])
    equal(await trees.nodes(owner, generation + 1), [])
    above = await trees.above(owner, generation, ["chunk 1", "leaf", "other", "root"])
    equal(above, {"chunk 1": ("leaf",), "leaf": ("root",), "other": ("root",)})
    equal(await trees.resting_on(owner, generation, "paper 1"), ["leaf", "other"])
    equal(await trees.resting_on(owner, generation, "paper 3"), [])


async def tree_changes_are_atomic(catalogue: Catalogue) -> None:
    """Nodes are replaced and removed, others stay. Only the current generation can change."""
    owner, trees = await tenant(catalogue), catalogue.trees
    generation = await grow(catalogue, owner)
    grown = replace(LEAF, children=("chunk 4",), documents=("paper 4",), fingerprint="f4", size=1)
    root = replace(ROOT, children=("leaf",), fingerprint="f5", size=1)
    before = await state_version(catalogue, owner)
    await trees.change(owner, generation, written=[grown, root], removed=["other"], built_from=before, details={"n": 1})
    true(await state_version(catalogue, owner) > before, "a changed tree changes answers")
    equal(await trees.nodes(owner, generation), [grown, root])
    pointer = await trees.pointer(owner)
    equal((pointer.built_from, pointer.details, await trees.resting_on(owner, generation, "paper 1")), (before, {"n": 1}, []))
    late = trees.change(owner, generation + 1, written=[LEAF], removed=[], built_from=0, details={})
    await raises(Conflict, late, "a generation that is not current")
    equal(await trees.nodes(owner, generation), [grown, root])


async def summaries_of_nodes_are_kept_by_key(catalogue: Catalogue) -> None:
    """By fingerprint, prompt and model, separately from communities' summaries."""
    owner, trees = await tenant(catalogue), catalogue.trees
    many = [replace(BARE, fingerprint=f"f{number}") for number in range(600)]
    await trees.save_summaries(owner, many)
    await trees.save_summaries(owner, [SUMMARY])
    keys = [(one.fingerprint, one.prompt_version, one.model) for one in many]
    found = await trees.summaries(owner, [*keys, ("f1", "v2", "extractive"), ("f1", "v1", "other")])
    equal((len(found), found[KEY], found[keys[599]]), (600, SUMMARY, many[599]))
    equal(await catalogue.communities.summaries(owner, ["f1"]), {})
    equal(await trees.drop_summaries(owner, keep=["f1", *(f"g{number}" for number in range(2_000))]), 599)
    equal(await trees.summaries(owner, keys), {KEY: SUMMARY})


async def stale_trees_are_due(catalogue: Catalogue) -> None:
    """Existing trees whose documents changed some time before, and without a request since."""
    owner, trees = await tenant(catalogue), catalogue.trees
    past, ahead = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)
    await ingest(catalogue, owner, "report")

    async def due(quiet_since: datetime, asked_before: datetime, stale_since: datetime = past) -> list[TenantId]:
        return await trees.due(quiet_since, asked_before, stale_since=stale_since, limit=5)

    equal(await due(ahead, past, ahead), [], "a first tree is built when somebody asks")
    await grow(catalogue, owner)
    equal(await due(ahead, past, ahead), [], "built from all there is")
    await ingest(catalogue, owner, "minutes")
    true((await trees.pointer(owner)).stale, "a document came")
    equal((await due(past, past), await due(ahead, past), await due(past, past, ahead)), ([], [owner], [owner]))
    job = await catalogue.jobs.create(owner, JobKind.RAPTOR, {}, nothing)
    equal(await due(ahead, past, ahead), [], "one is under way")
    await catalogue.jobs.finish(owner, job.id, JobState.FAILED)
    await trees.asked(owner)
    equal((await due(ahead, past), await due(ahead, ahead)), ([], [owner]))


CHECKS: tuple[Check, ...] = (
    trees_are_published_completely,
    nodes_are_found_by_their_properties,
    tree_changes_are_atomic,
    summaries_of_nodes_are_kept_by_key,
    stale_trees_are_due,
)
