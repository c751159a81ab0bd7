"""Cached results equal those of a new search, after and during any change of a tenant."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import pytest_asyncio
from document_sequences import ALL_TOGETHER, EACH_ALONE, SENTENCES, TITLES, Operation, TenantModel
from sequence_player import Gates, Player

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.ingestion.commit.commitment import Commitment, WrittenVersion
from agentic_rag_backend.ingestion.deletion import Deletion
from agentic_rag_backend.jobs.runner import Run
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.documents import versions
from agentic_rag_backend.stores.catalogue.jobs import outbox
from agentic_rag_backend.tenancy.features import DUAL_LEVEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEARCHES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("hybrid", {}),
    ("hybrid", {"filters": parse_filter({"shelf": 1})}),
    ("graph", {}),
    ("dual_level", {}),
)
KINDS = ("upload", "upload", "patch", "patch", "rechunk", "delete", "rebuild", "flag", "ontology", "merge")


@dataclass
class Comparison(Player):
    """Plays operations, and compares cached results with new ones."""

    hits: int = 0

    async def flag(self, operation: Operation) -> None:
        await self.container.catalogue.tenants.set_flags(self.tenant, {DUAL_LEVEL: bool(operation.shelf)})

    async def ontology(self, operation: Operation) -> None:
        await self.container.catalogue.tenants.set_ontology(self.tenant, None)

    async def merge(self, operation: Operation) -> None:
        tenant = await self.container.catalogue.tenants.tenant(self.tenant)
        found = (await self.container.entities.page(tenant, limit=2)).items
        if len(found) == 2:
            await self.container.graph_editor.merge(tenant, found[0].entity.id, [found[1].entity.id])

    async def searched(self, **fields: Any) -> list[Retrieval]:
        return [await self.search(strategy, **more, **fields) for strategy, more in SEARCHES]

    async def settled(self) -> None:
        """Wait until all jobs have ended and the other stores have every change."""
        await self.settle(Operation("settle"))
        assert (await self.container.relay.deliver(self.tenant, within_s=60)).done

    async def compare(self) -> None:
        for (strategy, _), cached, new in zip(SEARCHES, await self.searched(), await self.searched(cache=False), strict=True):
            assert bare(cached) == bare(new), strategy
        again = await self.searched()
        self.hits += sum(each.trace.cache == "hit" for each in again)


def bare(found: Retrieval) -> Retrieval:
    return replace(found, trace=replace(found.trace, cache=None, processing_time_ms={}))


def drawn(seed: int, length: int) -> list[Operation]:
    chance = random.Random(seed)
    return [
        Operation(
            kind=chance.choice(KINDS),
            key=chance.randrange(2),
            lines=tuple(chance.sample(range(SENTENCES), chance.randint(1, 3))),
            title=chance.randrange(len(TITLES)),
            shelf=chance.randrange(2),
            size=chance.choice((EACH_ALONE, ALL_TOGETHER)),
        )
        for _ in range(length)
    ]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def container(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Container]:
    chosen: Mapping[str, Any] = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02, "reconcile_interval_s": 0}
    folder = tmp_path_factory.mktemp("caches") / "data"
    async with open_container(Settings(data_dir=folder, _env_file=None, **chosen)) as opened:
        yield opened


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Gates:
    """Return gates that commits pass before they make a version visible, and deletions before they begin."""
    gates, publish, run = Gates(), Commitment.publish, Deletion.run

    async def published(self: Commitment, written: WrittenVersion, *settle: Any) -> None:
        await gates.passed(written.run.tenant)
        await publish(self, written, *settle)

    async def removed(self: Deletion, work: Run) -> None:
        await gates.passed(work.tenant)
        await run(self, work)

    monkeypatch.setattr(Commitment, "publish", published)
    monkeypatch.setattr(Deletion, "run", removed)
    return gates


async def player(container: Container, gates: Gates, name: str) -> Comparison:
    tenant = await container.catalogue.tenants.create(name)
    return Comparison(container, gates, tenant.id, TenantModel(0))


async def played(container: Container, gates: Gates, seed: int, length: int = 12) -> Comparison:
    """Search before each change takes effect, while it does, and afterwards."""
    one = await player(container, gates, f"seed-{seed}-{random.random()}")
    for number, operation in enumerate([Operation("upload", lines=(0, 1, 2), shelf=1), *drawn(seed, length)]):
        await one.hold(operation)
        await asyncio.gather(one.play(operation), one.searched())
        await one.searched()
        gates.open(one.tenant)
        await one.searched()
        await one.settled()
        try:
            await one.compare()
        except AssertionError as error:
            error.add_note(f"after operation {number}, {operation}")
            raise
    return one


async def test_cached_results_equal_new_ones_after_any_change(container: Container, gates: Gates) -> None:
    one = await played(container, gates, seed=3)
    assert one.hits == 13 * len(SEARCHES), "the cache was used after each operation"


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
async def test_cached_results_equal_new_ones_after_many_changes(container: Container, gates: Gates, seed: int) -> None:
    await played(container, gates, seed=100 + seed, length=30)


async def test_an_uncounted_change_is_noticed(container: Container, gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the count, the comparison fails: a cached result lacks the new document."""
    one = await player(container, gates, "uncounted")
    await one.upload(Operation("upload", lines=(0, 1, 2)))
    await one.settled()
    await one.compare()
    monkeypatch.setattr(versions, "raise_state_version", lambda *_, **__: None)
    monkeypatch.setattr(versions, "record_change", lambda *_: None)
    await one.upload(Operation("upload", key=1, lines=(3,)))
    await one.settled()
    with pytest.raises(AssertionError, match="hybrid"):
        await one.compare()


@pytest.mark.parametrize("counted", [True, False])
async def test_a_result_from_before_the_delivery_of_a_change_is_not_returned_after_it(
    container: Container, gates: Gates, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    """The catalogue has the new metadata, and the vectors, which the filter reads, still have the old."""
    one = await player(container, gates, f"labels-{counted}")
    await one.upload(Operation("upload", lines=(0, 1), shelf=0))
    await one.settled()
    if not counted:
        monkeypatch.setattr(outbox, "SEARCHED", frozenset())
    begun, release = asyncio.Event(), asyncio.Event()
    update = container.vectors.update_metadata

    async def held(*args: Any, **fields: Any) -> Any:
        begun.set()
        await release.wait()
        return await update(*args, **fields)

    monkeypatch.setattr(container.vectors, "update_metadata", held)
    change = asyncio.create_task(one.patch(Operation("patch", shelf=1)))
    await begun.wait()
    (_, early, *_) = await one.searched()
    assert early.hits == ()
    release.set()
    await change
    await one.settled()
    (_, late, *_) = await one.searched()
    assert (late.hits != ()) == counted


async def test_no_tenant_gets_results_of_another(container: Container, gates: Gates) -> None:
    one, other = await player(container, gates, "one"), await player(container, gates, "other")
    await one.upload(Operation("upload", lines=(0, 1)))
    await one.settled()
    assert (await one.search("hybrid")).hits
    assert (await one.search("hybrid")).trace.cache == "hit"
    found = await other.search("hybrid")
    assert (found.hits, found.trace.cache) == ((), None)


async def test_a_deleted_tenant_leaves_nothing_in_a_cache(container: Container, gates: Gates) -> None:
    one = await player(container, gates, "gone")
    await one.upload(Operation("upload", lines=(0, 1)))
    await one.settled()
    await container.catalogue.tenants.set_flags(one.tenant, {DUAL_LEVEL: True})
    await one.rebuild(Operation("rebuild"))
    await one.settled()
    await one.searched()
    caches = container._caches
    kept = (caches.results.entries, caches.passages, caches.themes, container._readable.encoder.entries)
    assert all(cache.size_of(one.tenant) for cache in kept)
    await container.tenants.delete(one.tenant)
    assert not any(cache.size_of(one.tenant) for cache in kept)
