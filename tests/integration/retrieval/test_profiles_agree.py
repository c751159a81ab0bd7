"""The questions of ``examples/`` get the same passages from all stores, with Graphiti's leg or without."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from qdrant_clients import WITHOUT_INDEXES, local_client
from sampling import DEEP, budget
from services import ROOT

from agentic_rag_backend.container import Container, models, open_container
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.knowledge.paths.base import Connection, PathOptions
from agentic_rag_backend.knowledge.paths.neighbourhood import NeighbourhoodOptions
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.retrieval.base import GraphLeg, Retriever
from agentic_rag_backend.retrieval.stages.pipeline import RankedRetriever
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.themes.community import CommunityRetriever
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.vector.qdrant import server as qdrant_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings(WITHOUT_INDEXES),
    pytest.mark.asyncio(loop_scope="module"),
]

TENANT = TenantId("t_" + "e" * 32)
LIMIT = 5
NEAR = 2e-4
EXAMPLES = ROOT / "examples"
QUESTIONS = [json.loads(line)["question"] for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
ASKED = QUESTIONS if DEEP in os.environ else QUESTIONS[::4]
"""The gate asks every fourth question, `make test-deep` all of them."""
DOCUMENTS = sorted((EXAMPLES / "corpus").iterdir())[:: budget(gate=2, deep=1)]
"""The gate ingests every second document, `make test-deep` all of them."""


class RememberingEmbedder:
    """The bundled embedder, called once per text: the profiles differ in their stores only."""

    def __init__(self, embedder: BundledEmbedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self.fingerprint, self.dimensions = embedder.fingerprint, embedder.dimensions
        self.stats, self.languages = embedder.stats, embedder.languages

    async def embed(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, await self._embedder.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    async def embed_query(self, text: str) -> Any:
        if (None, text) not in self._known:
            self._known[None, text] = await self._embedder.embed_query(text)  # type: ignore[index]
        return self._known[None, text]  # type: ignore[index]

    async def close(self) -> None:
        """Stay open for the next profile."""


async def ingest(container: Container) -> None:
    """Ingest all documents at once: the graph does not depend on the order in which they are committed."""
    await container.catalogue.tenants.create("examples", tenant_id=TENANT)
    async with asyncio.timeout(900):
        for path in DOCUMENTS:
            upload = Upload(content=path.read_bytes(), file_name=path.name, key=path.stem)
            await container.ingestion.submit(TENANT, upload)
        while (counts := await container.catalogue.documents.counts(TENANT))["documents_ready"] < len(DOCUMENTS):
            assert counts["documents_failed"] == 0
            await asyncio.sleep(0.02)
        while not (await container.ingestion.relay.deliver(TENANT, within_s=60)).done:
            await asyncio.sleep(0.02)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def profiles(neo4j_address: Neo4jAddress, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Container]]:
    """Return the examples in every profile, by name."""
    folder = tmp_path_factory.mktemp("profiles")
    graph = {
        "deployment": "profiles",  # the database may have belonged to another test
        "graph_store": "neo4j",
        "neo4j_uri": neo4j_address.uri,
        "neo4j_user": neo4j_address.user,
        "neo4j_password": neo4j_address.password,
        "neo4j_timeout_s": 60.0,
        "graphiti_search_timeout_s": 60.0,
    }
    chosen: dict[str, dict[str, Any]] = {
        "sqlite": {},
        "neo4j": graph,
        "qdrant": {"vector_store": "qdrant", "qdrant_url": "http://127.0.0.1:1"},
    }
    bundled = BundledEmbedder(model_path=None, threads=0)
    embedder = RememberingEmbedder(bundled)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(models, "open_encoder", lambda *_: embedder)
        patched.setattr(qdrant_server, "connect", lambda *args, **named: local_client(folder / "qdrant"))
        async with AsyncExitStack() as stack:
            opened = {}
            for name, settings in chosen.items():
                usual: dict[str, Any] = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02}
                each = Settings(data_dir=folder / name, _env_file=None, **usual, **settings)
                async with open_container(each) as container:
                    await ingest(container)
                # Only one queue per process: searches need none.
                opened[name] = await stack.enter_async_context(open_container(each, work=False))
            yield opened
            await opened["neo4j"].graph.delete_tenant(TENANT)
    await bundled.close()


async def ask(container: Container, question: str, strategy: str, *, leg: GraphLeg | None = None) -> Retrieval:
    """Search as a request does, optionally with another graph leg than the container's."""
    tenant = await container.catalogue.tenants.tenant(TENANT)
    query = Query(tenant=tenant, text=question, limit=LIMIT, dual_level=False)
    ranked: Retriever = container.retrievers.get(strategy)
    if leg is not None:
        graph: Any = container.retrievers.strategy(strategy)
        ranked = RankedRetriever(GraphRetriever(replace(graph._stores, leg=leg), graph._graphs, graph._hybrid))
    return await ranked.retrieve(query)


def passages(found: Retrieval) -> list[tuple[str, int]]:
    """Return the passages found. The documents' ids differ in every profile."""
    return [(str(hit.visible.document_key), hit.visible.chunk.location.start_char) for hit in found.hits]


@pytest.mark.sampled
@pytest.mark.parametrize("strategy", ["graph", "hybrid", "dense", "sparse", "paths", "temporal"])
async def test_the_examples_questions_get_the_same_passages(profiles: dict[str, Container], strategy: str) -> None:
    """In the same order, except that passages with scores within the engines' rounding errors may change places."""
    differing = []
    for question in ASKED:
        embedded, *others = [await ask(container, question, strategy) for container in profiles.values()]
        for name, other in zip([*profiles][1:], others, strict=True):
            near = NEAR if name == "qdrant" else 0.0
            pairs = zip(embedded.hits, other.hits, strict=True)
            same = passages(embedded) == passages(other)
            if strategy == "paths":
                # Ids order equal paths. Those of people who share a name derive from documents' ids, which differ.
                same = sorted(passages(embedded)[:3]) == sorted(passages(other)[:3])
            if not same and (near == 0 or any(abs(one.score - two.score) > near for one, two in pairs)):
                differing.append((name, question, passages(embedded), passages(other)))

    assert not differing, "\n".join(map(str, differing))
    assert len(QUESTIONS) == 40


@pytest.mark.sampled
async def test_graphitis_leg_changes_the_facts_and_no_passage(profiles: dict[str, Container]) -> None:
    facts_differ = 0
    for question in ASKED:
        embedded = await ask(profiles["sqlite"], question, "graph")
        direct = await ask(profiles["neo4j"], question, "graph", leg=GraphLeg())
        found = await ask(profiles["neo4j"], question, "graph")
        assert [each.trace.details["graph_leg"] for each in (embedded, direct, found)] == ["direct", "direct", "graphiti"]
        assert passages(embedded) == passages(found)
        # With a leg of its own, the strategy does not tell apart the bearers of a shared name.
        if "same_name" not in found.trace.details:
            assert passages(direct) == passages(found)
            assert [hit.score for hit in direct.hits] == [hit.score for hit in found.hits]
        assert not found.trace.failures
        facts_differ += {fact.id for fact in direct.facts} != {fact.id for fact in found.facts}

    assert facts_differ


class Broken:
    """An engine whose server refuses, or never answers."""

    name = "graphiti"

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs

    async def find(self, tenant: TenantId, question: GraphQuestion) -> GraphFindings:
        if self._hangs:
            await asyncio.Event().wait()
        raise StoreUnavailable("Neo4j does not answer")


@pytest.mark.parametrize(("hangs", "reason"), [(False, "store_unavailable"), (True, "no answer within 0.05 s")])
async def test_without_graphiti_the_direct_path_answers_and_says_so(
    profiles: dict[str, Container], hangs: bool, reason: str
) -> None:
    broken = GraphLeg(Broken(hangs=hangs), timeout_s=0.05)
    direct = await ask(profiles["neo4j"], QUESTIONS[0], "graph", leg=GraphLeg())

    found = await ask(profiles["neo4j"], QUESTIONS[0], "graph", leg=broken)

    assert found.trace.fallback_used
    assert found.trace.fallback_reason == f"the graph leg 'graphiti' failed: {reason}"
    assert found.trace.details["graph_leg"] == "direct"
    assert (found.hits, found.facts) == (direct.hits, direct.facts)
    assert not direct.trace.fallback_used


async def test_the_dual_level_hands_on_that_the_leg_failed(profiles: dict[str, Container]) -> None:
    low: Any = profiles["neo4j"].retrievers.strategy("graph")
    both = DualLevel(
        GraphRetriever(replace(low._stores, leg=GraphLeg(Broken(hangs=False))), low._graphs, low._hybrid),
        CommunityRetriever(ThemeFinder(low._stores)),
        DualLevelOptions(),
    )
    tenant = await profiles["neo4j"].catalogue.tenants.tenant(TENANT)

    found = await both.retrieve(Query(tenant=tenant, text=QUESTIONS[0], limit=LIMIT, dual_level=True))

    assert "the graph leg 'graphiti' failed: store_unavailable" in (found.trace.fallback_reason or "")


def step(connection: Connection) -> tuple[Any, ...]:
    """Return a connection without ids, which differ in every profile, and by which one of equal sentences is chosen."""
    ends = sorted((connection.source.name, connection.target.name))
    return (*ends, connection.weight, "" if connection.fact is None else connection.fact.relation)


@pytest.mark.sampled
async def test_both_graph_stores_give_the_same_entities_and_paths(profiles: dict[str, Container]) -> None:
    async def read(container: Container) -> dict[str, Any]:
        tenant = (await container.authenticator.local_principal(TENANT)).tenant
        listed = (await container.entities.page(tenant, limit=1_000)).items
        found: dict[str, Any] = {"": sorted((each.mention_count, each.entity.name, each.entity.type) for each in listed)}
        best = sorted(listed, key=lambda each: (-each.mention_count, each.entity.name, each.entity.type))[:8]
        for each in best:
            entity = await container.entities.entity(tenant, each.entity.id, limit=100)
            around = await container.neighbourhoods.around(tenant, each.entity.id, NeighbourhoodOptions(limit=200))
            found[each.entity.name] = (entity.names, len(entity.relationships), sorted(map(step, around.edges)))
        for one, other in pairwise(best):
            among = await container.paths.between(tenant, [one.entity.id], [other.entity.id], PathOptions(max_hops=3, limit=50))
            found[f"{one.entity.name} {other.entity.name}"] = [round(path.score, 9) for path in among.paths]
        return found

    expected = await read(profiles["sqlite"])
    assert sum(len(found) for found in list(expected.values())[-7:]) > 50
    assert await read(profiles["neo4j"]) == expected
