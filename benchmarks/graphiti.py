"""Measures the low level on Neo4j: Graphiti's leg on our vector store, on Graphiti's own statements, and without the leg.

A seeded synthetic graph: 50 tenants of 400 entities and one of 20,000. Each entity has a fact, each two entities a passage, and
every passage, name and fact has a vector of 384 dimensions. Only Graphiti's own statements compare vectors of names and facts, so
these are written to Neo4j with its full-text indexes. Questions name both ends of a fact, and are near its passage.

Writes ``results/graphiti.json`` and ``.md``. Absolute times are reported. Asserted: on the large tenant, the leg takes no longer
than Graphiti's own statements; it sends at most four statements, as many on the large tenant as on the small ones; it finds as
many of the wanted facts, and changes no passage.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import insert
from sqlalchemy.engine import Connection

import report
from agentic_rag_backend.domain.document import content_hash
from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity, Mention, Relationship, RelationshipSupport, Support
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from agentic_rag_backend.knowledge.extraction.model.inquiries import DEFAULT_ONTOLOGY
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, PASSAGE_OF_FACT, Calibrator
from agentic_rag_backend.models.llm.base import ExtractiveModel
from agentic_rag_backend.plugins.graphiti.clients import GraphitiEmbedder, GraphitiLanguageModel, GraphitiReranker
from agentic_rag_backend.plugins.graphiti.filters import valid_at
from agentic_rag_backend.plugins.graphiti.search import GraphitiSearch, recipe
from agentic_rag_backend.retrieval.base import GraphLeg, QueryEncoder, Retriever, Stores
from agentic_rag_backend.retrieval.stages.pipeline import RankedRetriever
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.tables import chunk_texts, chunks, document_versions, documents
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.nodes import graph_uuid
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, ScoredId, VectorPoint
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))
from graphiti_core import Graphiti  # isort: skip
from graphiti_core.driver.neo4j_driver import Neo4jDriver  # isort: skip
from neo4j import AsyncManagedTransaction  # isort: skip
import services  # isort: skip

DIMENSIONS = 384
PASSAGES_PER_DOCUMENT = 50
FACTS_PER_PASSAGE = 2
NEAR = 0.5
"""Share of noise in the vectors of a passage's question, names and facts."""
MAX_STATEMENTS = 4
LIMIT = 10
_CONSONANTS, _VOWELS = "bcdfghjklmnprstvwz", "aeiou"
_VERBS = ("founded", "bought", "taught", "advised", "painted", "joined")
_EMBED = {
    "name": "UNWIND $rows AS row MATCH (n:Entity {uuid: row.uuid})"
    " CALL db.create.setNodeVectorProperty(n, 'name_embedding', row.vector)",
    "fact": "UNWIND $rows AS row MATCH ()-[r:RELATES_TO {uuid: row.uuid}]->()"
    " CALL db.create.setRelationshipVectorProperty(r, 'fact_embedding', row.vector)",
}


@dataclass(frozen=True)
class Asked:
    """A question with its vector and the fact that answers it."""

    text: str
    vector: NDArray[np.float32]
    fact_id: str


class Vectors:
    """A reproducible source of vectors, and the embedder of the questions made from it."""

    fingerprint = "synthetic"
    dimensions = DIMENSIONS

    def __init__(self, seed: int) -> None:
        self.draw = np.random.default_rng(seed)
        self.known: dict[str, NDArray[np.float32]] = {}

    def new(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` unit vectors with a common direction, like those of an encoder."""
        return _unit(self.draw.normal(size=(count, DIMENSIONS)) + 0.3)

    def near(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return a unit vector near another."""
        return _unit(vector + NEAR * self.new(1)[0])

    async def embed(self, texts: Sequence[str]) -> Any:
        """Return the vectors of known texts."""
        return np.stack([self.known[text] for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a known question."""
        return self.known[text]

    async def close(self) -> None:
        """Nothing to close."""


def _unit(values: Any) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float32)
    return found


def names(draw: np.random.Generator, count: int) -> list[str]:
    """Return that many distinct names of two words."""
    found: dict[str, None] = {}
    while len(found) < count:
        words = ["".join(_syllable(draw) for _ in range(3)).capitalize() for _ in range(2)]
        found[" ".join(words)] = None
    return list(found)


def _syllable(draw: np.random.Generator) -> str:
    return _CONSONANTS[draw.integers(len(_CONSONANTS))] + _VOWELS[draw.integers(len(_VOWELS))]


def _id(tenant: TenantId, *parts: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, (tenant, *parts)))))


class World:
    """The stores, filled tenant by tenant."""

    def __init__(self, catalogue: Catalogue, graph: Neo4jGraphStore, vectors: EdgeVectorStore, source: Vectors) -> None:
        self.catalogue, self.graph, self.vectors, self.source = catalogue, graph, vectors, source

    async def add(self, name: str, entities: int, questions: int) -> tuple[Tenant, list[Asked]]:
        """Write a tenant with this many entities. Return it with questions about it."""
        tenant = await self.catalogue.tenants.create(name)
        draw = self.source.draw
        called = names(draw, entities)
        asked: list[Asked] = []
        passages = entities // FACTS_PER_PASSAGE
        wanted = set(draw.choice(passages, min(questions, passages), replace=False).tolist())
        for first in range(0, passages, PASSAGES_PER_DOCUMENT):
            numbers = range(first, min(first + PASSAGES_PER_DOCUMENT, passages))
            dense = self.source.new(len(numbers))
            said = _said(tenant.id, called, numbers, draw)
            await self._write(tenant.id, said, dense)
            for place, number in enumerate(numbers):
                if number in wanted:
                    fact = said.relationships[place * FACTS_PER_PASSAGE]
                    words = fact.fact.split()
                    text = f"What was it that {' '.join(words[:2])} {words[2]} with {' '.join(words[3:5])}?"
                    asked.append(Asked(text, self.source.near(dense[place]), fact.id))
        self.source.known.update((each.text, each.vector) for each in asked)
        return await self.catalogue.tenants.tenant(tenant.id), asked

    async def _write(self, tenant: TenantId, said: DocumentKnowledge, dense: NDArray[np.float32]) -> None:
        texts = _texts(said)
        await self.catalogue._database.write(lambda connection: _record(connection, tenant, said, texts))
        await self.graph.write_document(tenant, said)
        facts = [VectorPoint(id=each.id, kind=NodeKind.FACT, text=each.fact) for each in said.relationships]
        points = [
            VectorPoint(id=id, kind=NodeKind.CHUNK, text=texts[id], dense=vector, document_id=said.document_id, version=1)
            for id, vector in zip(said.chunk_ids, dense, strict=True)
        ]
        await self.vectors.upsert(tenant, Collection.NODES, facts)
        await self.vectors.upsert(tenant, Collection.CHUNKS, points)
        # Graphiti's own statements compare these: names and facts near the passage that states them.
        where = {each.relationship_id: each.support.chunk_id for each in said.relationship_supports}
        vector_of = dict(zip(said.chunk_ids, dense, strict=True))
        rows = {
            "fact": {each.id: vector_of[where[each.id]] for each in said.relationships},
            "name": {each.entity_id: vector_of[each.support.chunk_id] for each in said.mentions},
        }
        for what, of in rows.items():
            values = [{"uuid": graph_uuid(tenant, id), "vector": self.source.near(vector).tolist()} for id, vector in of.items()]
            statement = _EMBED[what]
            await self.graph.connections.write(lambda transaction, v=values, s=statement: transaction.run(s, {"rows": v}))  # type: ignore[misc]


def _said(tenant: TenantId, called: Sequence[str], numbers: range, draw: np.random.Generator) -> DocumentKnowledge:
    """Return a document: each passage states two facts, between an entity of its own and one drawn with a skew."""
    document = _id(tenant, "document", numbers.start)
    entities: dict[str, Entity] = {}
    relationships, mentions, sentences, ids = [], [], [], []
    for number in numbers:
        chunk = _id(tenant, "chunk", number)
        ids.append(chunk)
        support = Support(document, 1, chunk)
        ends: dict[str, None] = {}
        for place in range(FACTS_PER_PASSAGE):
            own = number * FACTS_PER_PASSAGE + place
            # The inverse of the distribution function of rank^-0.7: hubs and a long tail.
            other = int(draw.random() ** (1 / 0.3) * len(called))
            other = other if other != own else (own + 1) % len(called)
            verb = str(draw.choice(_VERBS))
            source, target = (_id(tenant, "entity", each) for each in (own, other))
            for id, each in ((source, own), (target, other)):
                entities[id] = Entity(id=id, name=called[each], type="person")
                ends[id] = None
            fact = f"{called[own]} {verb} {called[other]} in {1800 + int(draw.integers(220))}."
            relationship = _id(tenant, "fact", own, verb, other)
            relationships.append(
                Relationship(id=relationship, source_id=source, target_id=target, relation=verb, fact=fact, supports=(support,))
            )
            sentences.append(
                RelationshipSupport(
                    relationship_id=relationship,
                    support=support,
                    fact=fact,
                    start_char=place * 200,
                    end_char=place * 200 + len(fact),
                )
            )
        mentions += [Mention(id, support) for id in ends]
    return DocumentKnowledge(
        document_id=document,
        version=1,
        title=f"Register {numbers.start}",
        chunk_ids=tuple(ids),
        entities=tuple(entities.values()),
        relationships=tuple(relationships),
        mentions=tuple(mentions),
        relationship_supports=tuple(sentences),
    )


def _texts(said: DocumentKnowledge) -> dict[str, str]:
    texts: dict[str, str] = {}
    for each in said.relationship_supports:
        texts[each.support.chunk_id] = f"{texts.get(each.support.chunk_id, '')} {each.fact}".strip()
    return texts


def _record(connection: Connection, tenant: TenantId, said: DocumentKnowledge, texts: Mapping[str, str]) -> None:
    """Write the catalogue's rows of a ready document directly: ingestion is not the subject."""
    now = datetime.now(UTC)
    whole = "\n".join(texts.values())
    key = {"tenant_id": tenant.value, "title": said.title, "content_hash": content_hash(whole), "media_type": "text/plain"}
    face = {**key, "size_bytes": len(whole), "metadata": {}, "failures": [], "created_at": now}
    connection.execute(
        insert(documents),
        [
            {
                **face,
                "id": said.document_id,
                "key": said.document_id,
                "state": "ready",
                "current_version": 1,
                "latest_version": 1,
                "chunk_count": len(texts),
                "updated_at": now,
            }
        ],
    )
    version = {
        "document_id": said.document_id,
        "version": 1,
        "state": "ready",
        "submitted_title": "",
        "blob_key": "",
        "text": whole,
    }
    connection.execute(insert(document_versions), [{**face, **version, "options": {}, "submitted_metadata": {}}])
    of = {"tenant_id": tenant.value, "document_id": said.document_id}
    connection.execute(
        insert(chunk_texts),
        [
            {**of, "chunk_id": id, "content_hash": content_hash(text), "size_tokens": 20, "text": text}
            for id, text in texts.items()
        ],
    )
    places, start = [], 0
    for ordinal, (id, text) in enumerate(texts.items()):
        span = {"start_char": start, "end_char": start + len(text), "start_line": ordinal + 1, "end_line": ordinal + 1}
        places.append({**of, "version": 1, "ordinal": ordinal, "chunk_id": id, "headings": [], **span})
        start += len(text) + 1
    connection.execute(insert(chunks), places)


class StockSearch:
    """Unmodified Graphiti with the same questions: its own driver, indexes and statements."""

    name = "stock"

    def __init__(self, address: Neo4jAddress, source: Vectors) -> None:
        self.driver = Neo4jDriver(address.uri, address.user, address.password, address.database)
        self._graphiti = Graphiti(
            graph_driver=self.driver,
            llm_client=GraphitiLanguageModel(ExtractiveModel()),
            embedder=GraphitiEmbedder(source),  # type: ignore[arg-type]
            cross_encoder=GraphitiReranker(source),  # type: ignore[arg-type]
        )

    async def find(self, tenant: TenantId, question: GraphQuestion) -> GraphFindings:
        """Return the results of ``search_`` without an interface."""
        found = await self._graphiti.search_(
            question.text,
            config=recipe(question.limit, PASSAGE_OF_FACT),
            group_ids=[tenant.value],
            search_filter=valid_at(datetime.now(UTC)),
            query_vector=question.vector.tolist(),
        )
        # Applying the tenant's mask to a uuid gives the id.
        return GraphFindings(
            tuple(
                ScoredId(graph_uuid(tenant, each.uuid), score)
                for each, score in zip(found.nodes, found.node_reranker_scores, strict=True)
            ),
            tuple(
                ScoredId(graph_uuid(tenant, each.uuid), score)
                for each, score in zip(found.edges, found.edge_reranker_scores, strict=True)
            ),
        )


@contextmanager
def counted() -> Iterator[list[str]]:
    """Yield the statements that are sent meanwhile."""
    sent: list[str] = []
    run = AsyncManagedTransaction.run

    async def counting(self: AsyncManagedTransaction, query: Any, *arguments: Any, **values: Any) -> Any:
        sent.append(str(query))
        return await run(self, query, *arguments, **values)

    AsyncManagedTransaction.run = counting  # type: ignore[method-assign, assignment]
    try:
        yield sent
    finally:
        AsyncManagedTransaction.run = run  # type: ignore[method-assign]


class Measurement:
    """Times and findings of one way to answer, on tenants of one size."""

    def __init__(self) -> None:
        self.leg_ms: list[float] = []
        self.whole_ms: list[float] = []
        self.statements: list[int] = []
        self.leg_statements: list[int] = []
        self.found: list[bool] = []
        self.passages: list[tuple[str, ...]] = []
        self.fallbacks = 0

    def row(self) -> dict[str, Any]:
        """Return the figures; times in ms."""
        return {
            "questions": len(self.whole_ms),
            "leg p50": round(find_percentile(self.leg_ms, 0.5), 1) if self.leg_ms else None,
            "leg p95": round(find_percentile(self.leg_ms, 0.95), 1) if self.leg_ms else None,
            "low level p50": round(find_percentile(self.whole_ms, 0.5), 1),
            "low level p95": round(find_percentile(self.whole_ms, 0.95), 1),
            "statements, leg": max(self.leg_statements) if self.leg_statements else 0,
            "statements, all": max(self.statements),
            "fact in first 10": round(sum(self.found) / len(self.found), 3),
            "fallbacks": self.fallbacks,
        }


async def ask(retriever: Retriever, engine: Any, tenant: Tenant, asked: Asked, into: Measurement) -> None:
    """Ask one question of the leg alone, if there is one, and of the low level."""
    if engine is not None:
        question = GraphQuestion(text=asked.text, vector=asked.vector, limit=20)
        with counted() as sent:
            started = time.perf_counter()
            await engine.find(tenant.id, question)
            into.leg_ms.append((time.perf_counter() - started) * 1000)
        into.leg_statements.append(len(sent))
    with counted() as sent:
        started = time.perf_counter()
        found: Retrieval = await retriever.retrieve(Query(tenant=tenant, text=asked.text, limit=LIMIT))
        into.whole_ms.append((time.perf_counter() - started) * 1000)
    into.statements.append(len(sent))
    into.found.append(asked.fact_id in {fact.id for fact in found.facts})
    into.passages.append(tuple(hit.id for hit in found.hits))
    into.fallbacks += bool(found.trace.failures)


async def measure(folder: Path, address: Neo4jAddress, sizes: argparse.Namespace) -> dict[str, Any]:
    """Fill the stores and ask every question in each of the three ways in turn, so that noise affects all alike."""
    source = Vectors(seed=11)
    catalogue = await Catalogue.open(f"sqlite:///{folder / 'catalogue.db'}")
    await catalogue.migrate()
    graph = await Neo4jGraphStore.open(address)
    vectors = await EdgeVectorStore.open(folder / "vectors", dimensions=DIMENSIONS, embedder_fingerprint=source.fingerprint)
    stock = StockSearch(address, source)
    world = World(catalogue, graph, vectors, source)
    calibrator = Calibrator(source, calibration=BUNDLED_CALIBRATION)  # type: ignore[arg-type]
    ours = GraphitiSearch.over(
        graph.connections,
        vectors,
        embedder=source,  # type: ignore[arg-type]
        model=ExtractiveModel(),
        calibrator=calibrator,
    )
    try:
        small = [await world.add(f"small {number}", sizes.entities, 1) for number in range(sizes.tenants)]
        large = await world.add("large", sizes.large, sizes.questions)
        await stock.driver.build_indices_and_constraints()
        await graph.connections.define("CALL db.awaitIndexes(600)")
        stores = Stores(
            documents=catalogue.documents,
            communities=catalogue.communities,
            trees=catalogue.trees,
            questions=catalogue.questions,
            vectors=vectors,
            graph=graph,
            embedder=source,  # type: ignore[arg-type]
            calibrator=calibrator,
            encoder=QueryEncoder(source),  # type: ignore[arg-type]
            facts=FactReader(graph, catalogue.documents, Ontologies(catalogue.tenants, DEFAULT_ONTOLOGY)),
        )
        graphs = TenantGraphs(graph, catalogue.documents, max_bytes=512 * 1024 * 1024)
        engines: dict[str, Any] = {"with the interface": ours, "without": stock, "direct": None}
        hybrid = Hybrid(stores, graphs)
        ways = {
            name: (RankedRetriever(GraphRetriever(replace(stores, leg=GraphLeg(engine, timeout_s=120)), graphs, hybrid)), engine)
            for name, engine in engines.items()
        }
        results: dict[str, Any] = {}
        for size, tenants in (("small", small), ("large", [large])):
            questions = [(tenant, each) for tenant, asked in tenants for each in asked]
            into = {name: Measurement() for name in ways}
            for tenant, each in questions[:3]:  # plans, caches and the tenant's graph
                for retriever, engine in ways.values():
                    await ask(retriever, engine, tenant, each, Measurement())
            for tenant, _ in tenants:
                await graphs.graph(tenant)
            for tenant, each in questions:
                for name, (retriever, engine) in ways.items():
                    await ask(retriever, engine, tenant, each, into[name])
            results[size] = {name: measured.row() for name, measured in into.items()}
            results[size]["same passages"] = len({tuple(measured.passages) for measured in into.values()}) == 1
            print(size, results[size], flush=True)
        return results
    finally:
        await stock.driver.close()
        await vectors.close()
        await graph.close()
        await catalogue.close()


def ratios(results: Mapping[str, Any]) -> dict[str, float]:
    """Return time with the interface ÷ time without, by size and quantity."""
    found = {}
    for size in ("small", "large"):
        ours, stock = results[size]["with the interface"], results[size]["without"]
        for name in ("leg p50", "leg p95", "low level p50", "low level p95"):
            found[f"{size}, {name}"] = round(ours[name] / stock[name], 3)
    return found


def missed(results: Mapping[str, Any]) -> list[str]:
    """Return the assertions that fail."""
    found = []
    ours, stock = results["large"]["with the interface"], results["large"]["without"]
    if ours["leg p50"] > stock["leg p50"]:
        found.append(f"the leg takes {ours['leg p50']} ms with the interface, {stock['leg p50']} without")
    for size in ("small", "large"):
        if results[size]["with the interface"]["statements, leg"] > MAX_STATEMENTS:
            found.append(f"{size}: more than {MAX_STATEMENTS} statements")
        if not results[size]["same passages"]:
            found.append(f"{size}: the leg changes passages")
        if results[size]["with the interface"]["fallbacks"]:
            found.append(f"{size}: fallbacks")
    if ours["statements, leg"] != results["small"]["with the interface"]["statements, leg"]:
        found.append("the statements depend on the tenant's size")
    if ours["fact in first 10"] < stock["fact in first 10"]:
        found.append(f"facts found: {ours['fact in first 10']} with the interface, {stock['fact in first 10']} without")
    return found


def table(results: Mapping[str, Any]) -> str:
    """Return the table."""
    columns = list(results["large"]["direct"])
    lines = ["| tenants | leg | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for size in ("small", "large"):
        for name, row in results[size].items():
            if isinstance(row, Mapping):
                cells = ["–" if row[column] is None else str(row[column]) for column in columns]
                lines.append(f"| {size} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark. Exit code 1 if an assertion fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=50)
    parser.add_argument("--entities", type=int, default=400, help="of each small tenant")
    parser.add_argument("--large", type=int, default=20_000, help="entities of the large tenant")
    parser.add_argument("--questions", type=int, default=60, help="to the large tenant")
    sizes = parser.parse_args()
    report.quiet()
    # Graphiti's own statements read properties that do not exist, and the server warns each time.
    logging.getLogger("neo4j").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name:
        try:
            with services.neo4j(Path(name)) as server:
                address = Neo4jAddress(uri=server.uri, user=server.user, password=server.password, timeout_s=120.0)
                results = asyncio.run(measure(Path(name), address, sizes))
        except services.Missing as error:
            print(f"{error}; nothing measured")
            return 0
    results["sizes"] = vars(sizes)
    results["with ÷ without"] = ratios(results)
    return report.finish("graphiti", results, table(results), missed(results))


if __name__ == "__main__":
    raise SystemExit(main())
