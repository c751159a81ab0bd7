"""Trees end to end on the embedded stores: built, updated along paths, shown, forgotten."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.integration.raptor.conftest import THEMES, story
from theme_doubles import ScriptedModel

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.errors import InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint
from agentic_rag_backend.themes.raptor.build_options import BuildOptions, TreeOptions
from agentic_rag_backend.themes.raptor.reading import PassageReader
from agentic_rag_backend.themes.raptor.service import TreeSchedule
from agentic_rag_backend.themes.raptor.structure.growing_tree import GrowingTree
from agentic_rag_backend.themes.raptor.structure.insertion import Insertion, map_vectors_to_nodes
from agentic_rag_backend.themes.raptor.tree_publication import LEVEL, TreePublisher


async def tree(world: Any, tenant: TenantId) -> list[TreeNode]:
    """Return the current tree, after checking the invariants of every tree."""
    trees = world.catalogue.trees
    nodes: list[TreeNode] = await trees.nodes(tenant, (await trees.pointer(tenant)).generation)
    by_id = {node.id: node for node in nodes}
    levels: defaultdict[int, int] = defaultdict(int)
    for node in nodes:
        levels[node.level] += 1
        assert node.children
        assert len(set(node.children)) == len(node.children)
        for child in node.children if node.level > 1 else ():
            assert by_id[child].level == node.level - 1
    held = {chunk for node in nodes if node.level == 1 for chunk in node.children}
    versions = await world.catalogue.documents.visible_versions(tenant)
    visible = await world.catalogue.documents.visible_chunk_ids(tenant, sorted(versions))
    assert held == {chunk for ids in visible.values() for chunk in ids}
    counts = [levels[level] for level in sorted(levels)]
    assert all(above < below for below, above in pairwise(counts))
    assert {point.id for point in await world.points(tenant)} == {node.point_id(tenant) for node in nodes}
    return nodes


def shape(nodes: list[TreeNode], texts: dict[str, str]) -> set[tuple[int, frozenset[Any]]]:
    """Return the clusters by the texts of their passages, independent of ids."""
    below: dict[str, frozenset[str]] = {}
    for node in sorted(nodes, key=lambda node: node.level):
        parts = [frozenset({texts[id]}) if node.level == 1 else below[id] for id in node.children]
        below[node.id] = frozenset().union(*parts)
    return {(node.level, below[node.id]) for node in nodes}


async def texts(world: Any, tenant: TenantId) -> dict[str, str]:
    versions = await world.catalogue.documents.visible_versions(tenant)
    ids = [id for held in (await world.catalogue.documents.visible_chunk_ids(tenant, sorted(versions))).values() for id in held]
    return {id: each.chunk.text for id, each in (await world.catalogue.documents.hydrate(tenant, ids)).items()}


async def test_a_build_holds_every_passage_and_says_what_passages_say(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    job = await world.build(service, tenant)
    nodes = await tree(world, tenant)
    views = (await service.list(tenant, limit=1000)).items

    assert (job.state, job.result["nodes"], job.result["passages"]) == (JobState.SUCCEEDED, len(nodes), 8 * len(THEMES))
    assert len(views) == len(nodes)
    assert list(job.result["stages_ms"]) == ["read", "cluster", "summarise", "embed", "publish"]
    assert max(node.level for node in nodes) > 1
    said = await texts(world, tenant)
    for view in views:
        assert view.summary
        assert view.findings
        assert not view.stale
        for finding in view.findings:
            assert all(finding.statement in said[source.chunk_id] for source in finding.sources)
    status = await service.read_status(tenant)
    assert (status["generation"], status["stale"], status["last_job"].id) == (1, False, job.id)
    assert (await service.get(tenant, views[0].id)) == views[0]
    assert {view.level for view in (await service.list(tenant, level=1)).items} == {1}


async def test_the_same_passages_make_the_same_tree_in_any_order(world: Any) -> None:
    service = world.service()
    first, second = await world.tenant("a"), await world.tenant("b")
    await world.fill(first)
    await world.fill(second, order=-1)
    shapes = []
    for tenant in (first, second):
        await world.build(service, tenant)
        shapes.append(shape(await tree(world, tenant), await texts(world, tenant)))

    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("mode", ["incremental", "full"])
async def test_an_unchanged_tree_costs_nothing(world: Any, mode: str) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant)
    before, calls, embedded = await tree(world, tenant), len(model.requests), world.embedder.embedded
    job = await world.build(service, tenant, mode=mode)

    assert await tree(world, tenant) == before
    assert (len(model.requests), world.embedder.embedded, job.result["summaries_written"]) == (calls, embedded, 0)


async def test_a_new_document_rewrites_the_path_to_the_root_and_nothing_else(world: Any) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant)
    before = {node.id: node for node in await tree(world, tenant)}
    calls, embedded = len(model.requests), world.embedder.embedded
    await world.add(tenant, "late", ["The harbour keeper of harbour hill counted harbour boats beside the harbour gate."])
    assert (await service.read_status(tenant))["stale"]
    own = world.embedder.embedded - embedded
    job = await world.build(service, tenant)
    after = {node.id: node for node in await tree(world, tenant)}

    changed = {id for id, node in after.items() if before.get(id) != node}
    (leaf,) = (
        node for node in after.values() if node.level == 1 and any(chunk not in _chunks(before) for chunk in node.children)
    )
    path, level = {leaf.id}, {leaf.id}
    while level:
        level = {id for id, node in after.items() if node.level > 1 and level & set(node.children)}
        path |= level
    height = max(node.level for node in after.values())
    assert job.result["mode"] == "incremental"
    assert changed == path
    assert height <= len(path) < len(after)
    assert len(model.requests) - calls == len(path)
    assert world.embedder.embedded - embedded - own == len(path)
    assert before.keys() == after.keys()
    assert not (await service.read_status(tenant))["stale"]


def _chunks(nodes: dict[str, TreeNode]) -> set[str]:
    return {chunk for node in nodes.values() if node.level == 1 for chunk in node.children}


async def test_a_cluster_that_grows_too_large_is_divided(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant, each=30)
    await world.build(service, tenant)
    before = {node.id: node for node in await tree(world, tenant)}
    more = [f"The harbour keeper of harbour hill counted harbour lanterns boats{number} by the harbour." for number in range(20)]
    await world.add(tenant, "late", more)
    job = await world.build(service, tenant)
    after = {node.id: node for node in await tree(world, tenant)}

    assert job.result["mode"] == "incremental"
    assert len(after) > len(before)
    assert all(len(node.children) <= 8 for node in after.values())
    kept = sum(before.get(id) == node for id, node in after.items())
    assert kept > len(before) / 2


async def test_what_changes_much_is_clustered_anew(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    await world.build(service, tenant)
    await world.add(tenant, "flood", story("lighthouse", 30))
    job = await world.build(service, tenant)

    assert (job.result["mode"], job.result["generation"]) == ("full", 2)
    await tree(world, tenant)
    assert await world.catalogue.trees.generations(tenant) == [2]


async def test_a_deleted_document_leaves_no_word_and_its_path_is_written_anew(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    odd = await world.add(tenant, "odd", ["The museum keeper of museum hill painted the Wilhelmine fresco of the museum gate."])
    await world.build(service, tenant)
    resting = await world.scrubber.resting_on(tenant, odd)
    assert len(resting) > 1
    await world.remove(tenant, odd)

    trees = world.catalogue.trees
    generation = (await trees.pointer(tenant)).generation
    nodes = await trees.nodes(tenant, generation)
    kept = await trees.summaries(tenant, [(node.fingerprint, node.prompt_version, node.model) for node in nodes])
    assert "Wilhelmine" not in str(list(kept.values()))
    assert "Wilhelmine" not in str(await service.list(tenant, limit=1000))
    assert (await service.read_status(tenant))["stale"]
    assert (await trees.pointer(tenant)).generation == generation
    await world.build(service, tenant)
    for view in (await service.list(tenant, limit=1000)).items:
        assert view.summary
        assert not view.stale
    await tree(world, tenant)


async def test_a_tree_outlives_all_its_documents(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    documents = await world.fill(tenant)
    await world.build(service, tenant)
    for document in documents.values():
        await world.remove(tenant, document)
    assert (await service.list(tenant)).items == ()
    await world.build(service, tenant)
    assert await tree(world, tenant) == []
    await world.fill(tenant)
    await world.build(service, tenant)
    assert await tree(world, tenant)


async def test_a_next_version_moves_only_what_it_changes(world: Any) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant)
    nodes, calls = await tree(world, tenant), len(model.requests)
    await world.add(tenant, "harbour", [*story("harbour", 7), "The harbour keeper of harbour hill left the harbour gate."])
    await world.build(service, tenant)

    assert await tree(world, tenant)
    assert 0 < len(model.requests) - calls < len(nodes) / 2


async def test_an_estimate_is_what_the_build_then_calls(world: Any) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    job = await world.build(service, tenant, dry_run=True)

    assert model.requests == []
    assert (await service.read_status(tenant))["generation"] == 0
    assert job.result["prompt_tokens"] > 0
    built = await world.build(service, tenant)
    assert len(model.requests) == job.result["model_calls"] == job.result["summaries_to_write"] == built.result["nodes"]
    assert built.result["levels"] == job.result["levels"]
    again = await world.build(service, tenant, dry_run=True, mode="full")
    assert (again.result["model_calls"], again.result["summaries_reused"]) == (0, built.result["nodes"])


async def test_a_failing_model_marks_its_node_which_the_next_build_writes(world: Any) -> None:
    model = ScriptedModel(failing=lambda call: call == 2)
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    job = await world.build(service, tenant)

    assert job.state is JobState.SUCCEEDED
    assert len(job.result["summaries_failed"]) == 1
    assert (await service.get(tenant, job.result["summaries_failed"][0])).written_by == "extractive"
    calls = len(model.requests)
    await world.build(service, tenant, mode="full")
    assert len(model.requests) == calls + 1
    assert (await service.get(tenant, job.result["summaries_failed"][0])).written_by == "scripted"


async def test_without_leave_no_model_is_called(world: Any) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant, summarize=False)

    assert model.requests == []
    assert {view.written_by for view in (await service.list(tenant, limit=1000)).items} == {"extractive"}


async def test_a_cancelled_build_leaves_the_tree_and_its_readers(world: Any) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant)
    before = await tree(world, tenant)
    await world.add(tenant, "flood", story("lighthouse", 30))
    model.started.clear()
    model.released.clear()
    job = await service.request_build(tenant)
    running = asyncio.create_task(service.build(tenant, job.id, job.attempt))
    await model.started.wait()
    assert (await service.request_build(tenant)).id == job.id
    shown = await service.list(tenant, limit=1000)
    await world.catalogue.jobs.request_cancel(tenant, job.id)
    await running

    assert (await world.catalogue.jobs.job(tenant, job.id)).state is JobState.CANCELLED
    assert {view.id for view in shown.items} == {node.id for node in before}
    assert await world.catalogue.trees.nodes(tenant, (await world.catalogue.trees.pointer(tenant)).generation) == before
    model.released.set()
    assert (await world.build(service, tenant)).state is JobState.SUCCEEDED
    await tree(world, tenant)


@pytest.mark.parametrize(("mode", "method"), [("full", "publish"), ("incremental", "change")])
async def test_a_build_that_fails_at_the_last_step_leaves_nothing(
    world: Any, monkeypatch: pytest.MonkeyPatch, mode: str, method: str
) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    await world.build(service, tenant)
    before = await world.catalogue.trees.nodes(tenant, 1)
    points = {point.id for point in await world.points(tenant)}
    await world.add(tenant, "late", story("harbour", 3)[1:])

    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the database is away")

    with monkeypatch.context() as patched:
        patched.setattr(world.catalogue.trees, method, away)
        job = await world.build(service, tenant, mode=mode)
    assert (job.state, job.error["code"]) == (JobState.FAILED, "store_unavailable")
    assert await world.catalogue.trees.nodes(tenant, 1) == before
    assert (await world.catalogue.trees.generations(tenant), {point.id for point in await world.points(tenant)}) == ([1], points)
    await world.build(service, tenant, mode=mode)
    await tree(world, tenant)


class Killed(BaseException):
    """An error that ends a process at once."""


@pytest.mark.parametrize("mode", ["full", "incremental"])
@pytest.mark.parametrize("at", ["save_summaries", "upsert", "flush", "publish or change", "drop_summaries"])
async def test_a_build_that_is_killed_goes_on_where_it_stopped(
    world: Any, monkeypatch: pytest.MonkeyPatch, mode: str, at: str
) -> None:
    model = ScriptedModel()
    tenant, service = await world.tenant("a"), world.service(model)
    await world.fill(tenant)
    await world.build(service, tenant)
    before = await tree(world, tenant)
    await world.add(tenant, "late", story("harbour", 10)[8:] if mode == "incremental" else story("lighthouse", 30))
    job = await service.request_build(tenant)

    async def killed(*_: Any, **__: Any) -> None:
        raise Killed

    async def nothing(*_: Any) -> None:
        """Clean up nothing, as after a kill."""

    with monkeypatch.context() as patched:
        method = {"publish or change": "publish" if mode == "full" else "change"}.get(at, at)
        patched.setattr(world.vectors if method in ("upsert", "flush") else world.catalogue.trees, method, killed)
        patched.setattr(TreePublisher, "_withdraw_generation", nothing)
        patched.setattr(TreePublisher, "_delete_points", nothing)
        with pytest.raises(Killed):
            await service.build(tenant, job.id, job.attempt)
    shown = {view.id for view in (await service.list(tenant, limit=1000)).items}
    assert shown == {node.id for node in before} or at == "drop_summaries"
    paid = len(model.requests)
    again = world.service(model)
    await again.build(tenant, job.id, job.attempt)

    ended = await world.catalogue.jobs.job(tenant, job.id)
    assert ended.state is JobState.SUCCEEDED
    # Saved summaries are reused. A batch in progress at the kill saved nothing.
    assert len(model.requests) == paid or at == "save_summaries"
    await world.build(again, tenant)
    await tree(world, tenant)
    assert len(await world.catalogue.trees.generations(tenant)) == 1


@pytest.mark.parametrize("count", [5, 40])
async def test_nodes_of_a_killed_build_take_no_place_among_the_candidates(world: Any, count: int) -> None:
    """The same clusters are compared with a passage, although vectors of nodes that never became current are nearer."""
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    await world.build(service, tenant)
    nodes = await tree(world, tenant)
    (row,) = await world.embedder.embed(["The harbour keeper of harbour hill counted harbour boats beside the harbour gate."])
    reader = PassageReader(world.catalogue.documents, world.vectors, world.embedder.dimensions)
    insertion = Insertion(
        tenant, reader, GrowingTree(tenant, nodes), map_vectors_to_nodes(tenant, nodes), TreeOptions(cluster_size=4)
    )
    alive = {node.id for node in nodes if node.level == 1}
    before = await insertion.select_candidates(row, alive)
    strays = [
        VectorPoint(id=str(uuid.UUID(int=number)), kind=NodeKind.RAPTOR, dense=row, text="harbour", metadata={LEVEL: 1})
        for number in range(1, count + 1)
    ]
    await world.vectors.upsert(tenant, Collection.NODES, strays)
    assert await insertion.select_candidates(row, alive) == before
    assert len(before) > 5


async def test_another_shape_is_a_tree_of_its_own(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant)
    await world.build(service, tenant)
    flat = await world.build(service, tenant, max_levels=1, cluster_size=8, method="kmeans")
    assert list(flat.result["levels"]) == ["1"]
    few = await world.build(service, tenant, max_clusters_per_level=3)
    assert max(few.result["levels"].values()) <= 3
    await tree(world, tenant)


async def test_trees_take_in_what_changed_only_where_that_is_wanted(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await world.fill(tenant, each=2)
    await world.build(service, tenant)
    await world.add(tenant, "late", story("harbour", 1))
    later = datetime.now(UTC) + timedelta(minutes=5)
    asked: list[TenantId] = []

    async def request(owner: TenantId) -> None:
        asked.append(owner)

    unwanted = TreeSchedule(world.catalogue, request, delay_s=60, max_wait_s=3600, enabled=lambda flags: False)
    assert (await unwanted.request_due(later), asked) == (0, [])
    wanted = TreeSchedule(world.catalogue, request, delay_s=60, max_wait_s=3600, enabled=lambda flags: True)
    assert await wanted.request_due(later + timedelta(hours=2)) == 1
    assert asked == [tenant]


def test_options_outside_their_limits_are_refused() -> None:
    asked: Any
    for asked in [
        {"mode": "partial"},
        {"method": "dbscan"},
        {"max_levels": 11},
        {"cluster_size": 1},
        {"max_clusters_per_level": 0},
    ]:
        with pytest.raises(InvalidRequest, match=next(iter(asked))):
            BuildOptions(**asked)


async def test_a_build_that_ends_while_words_are_taken_out_leaves_no_vector_of_the_old_tree(world: Any) -> None:
    """A deletion embeds the rest of a summary. Meanwhile a build publishes another tree and removes old points."""
    tenant, service = await world.tenant("a"), world.service()
    documents = await world.fill(tenant)
    await world.build(service, tenant)
    document, embed = documents[THEMES[0]], world.embedder.embed
    await world.catalogue.documents.tombstone(tenant, document, world.queue.enqueuer("delete_v1"))
    await world.vectors.delete_document(tenant, document, up_to_version=99)
    jobs = []

    async def embed_after_a_build(texts: Any) -> Any:
        world.embedder.embed = embed
        jobs.append(await world.build(service, tenant, mode="full", cluster_size=5))
        return await embed(texts)

    world.embedder.embed = embed_after_a_build
    assert await world.scrubber.scrub(tenant, document) > 0
    assert [job.state for job in jobs] == [JobState.SUCCEEDED]
    await tree(world, tenant)  # it has the vectors of the current tree only
