"""Graph retrieval: hybrid search seeds a walk over the chunk–entity graph, then a second hop starts from its best passages.

Steps: embed once → dense and BM25 legs → link entities that the question names → personalised PageRank → product of walk and
hybrid score → second hop over shared entities → maximal marginal relevance → chunks, each with the path to it. No language model
is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import GraphStep, Hit, Query, Retrieval, Trace
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.tenant_graph.pagerank import DAMPING, personalised_pagerank
from agentic_rag_backend.knowledge.tenant_graph.rows import Keys
from agentic_rag_backend.models.embedding.calibration import CosineScale
from agentic_rag_backend.retrieval.base import LegAnswer, Stores
from agentic_rag_backend.retrieval.hops import (
    BEAM,
    Hop,
    HopLink,
    expand,
    prune,
    reached_by_hop,
    score_hops,
    share,
    subject_keys,
    to_other_subjects,
    with_hops,
)
from agentic_rag_backend.retrieval.legs import (
    NEAR,
    QUESTION,
    Candidates,
    Facts,
    QuestionLeg,
    chunk_candidates,
    methods_with_questions,
)
from agentic_rag_backend.retrieval.options.model import EntitiesOption, SyntheticQuestionsOption
from agentic_rag_backend.retrieval.passages.hydration import (
    entities_of,
    shown_graph,
    time_detail,
    visible_chunks,
    visible_in_order,
)
from agentic_rag_backend.retrieval.passages.passage_features import PassageFeatures, Terms, marginal_relevances, similarities
from agentic_rag_backend.retrieval.passages.passage_paths import PassagePaths, ResultChunks
from agentic_rag_backend.retrieval.scoring import cover, list_terms, rank_scores, relevance, weighted_min_max
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.stores.vector.base import ScoredId, Vector

NO_ENTITY = "the question names no entity of the graph; the search starts from passages alone"
SEED_CHUNKS = 50
SEED_CHUNK_SHARE = 0.35
"""Share of the walk's start mass on the best hybrid passages. The rest is on the entities that the question names."""
SCORE_BASE = 0.05
"""Added to the hybrid score before the product with the walk's score, so that the walk alone can find a passage."""
EXAMINED = 40
"""Direct passages whose texts are read, in addition to the beam and the hop's candidates (MuSiQue R@5: .743; .733 with 24)."""
DIVERSE = 30
"""Results in the order of maximal marginal relevance. A fixed number, so that a smaller limit returns the head of the list."""
RELEVANCE_SHARE = 0.8
"""Share of the relevance; the rest is the share of novelty. It matters for long documents, of which several chunks say the same
(docs/reference/benchmarks/retrieval.md)."""
WALKED = 300
"""Passages with the most walk mass that are scored, in addition to those of the hybrid legs."""


@dataclass(frozen=True, slots=True)
class GraphEvidence:
    """Input of the second stage: the question's vector and entities, and hybrid score and cosine of chunks by id.

    ``unknown`` holds entity names from the request that are not in the graph, ``visible`` the chunks that are already read.
    """

    question: Vector
    hybrid: Mapping[str, float]
    cosine: Mapping[str, float]
    linked: Mapping[int, float]
    unknown: tuple[str, ...] = ()
    visible: Mapping[str, VisibleChunk] = field(default_factory=dict)
    questions: QuestionLeg = field(default_factory=QuestionLeg)

    @property
    def floor(self) -> float:
        """The lowest cosine of the dense leg. Chunks that the leg did not return are not nearer."""
        return min(self.cosine.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class GraphRanking:
    """Output of the second stage: final scores, hops and visible chunks by chunk id.

    ``coverage`` is the best coverage of the question by one read passage. ``nearest`` is the best cosine of a visible passage.
    Neither depends on the request's limit.
    """

    scores: Mapping[str, float]
    hops: Mapping[str, Hop]
    visible: Mapping[str, VisibleChunk]
    coverage: float
    nearest: float


def direct_scores(graph: TenantGraph, evidence: GraphEvidence) -> dict[str, float]:
    """Return the product of hybrid and walk for every chunk that either found. The best is 1.0, or 0.0 if no chunk has mass.

    The factor of the walk is mostly that of the chunk's subject, so that hybrid scores order the chunks about one subject. If the
    question names no entity, a walk could only start from the hybrid results. It tells nothing new, so hybrid scores apply alone
    (R@5 of such questions of SQuAD 2.0: .968; .921 with the walk).
    """
    if not evidence.linked:
        best = max(evidence.hybrid.values(), default=0.0) or 1.0
        return {id: score / best for id, score in evidence.hybrid.items()}
    walked = walked_mass(graph, evidence)
    factors = share(walked.mass**0.5, subject_keys(graph, walked.numbers)).tolist()
    by_id = dict(zip([graph.chunk_ids[number] for number in walked.numbers.tolist()], factors, strict=True))
    by_id |= {id: mass**0.5 for id, mass in walked.outside.items()}
    scores = {id: (evidence.hybrid.get(id, 0.0) + SCORE_BASE) * factor for id, factor in by_id.items()}
    best = max(scores.values(), default=0.0) or 1.0
    return {id: score / best for id, score in scores.items()}


@dataclass(frozen=True, slots=True)
class Walked:
    """Mass of a walk: of chunks of the graph by number, shapes (n,), and of passages without entities by id."""

    numbers: NDArray[np.int64]
    mass: NDArray[np.float64]
    outside: Mapping[str, float]


def walked_mass(graph: TenantGraph, evidence: GraphEvidence) -> Walked:
    """Return the mass of the walk on the chunks of the hybrid legs and on the `WALKED` chunks with the most.

    Chunks of a leg that the walk does not reach have no mass.
    """
    numbers = graph.chunk_index.among(evidence.hybrid)
    squared = {item.id: item.score**2 for item in rank_scores(evidence.hybrid)[:SEED_CHUNKS]}
    linked_mass = sum(graph.idf[entity] * weight for entity, weight in evidence.linked.items())
    share = SEED_CHUNK_SHARE if linked_mass > 0 else 1.0
    total = sum(squared.values()) or 1.0
    chunk_seeds = np.zeros(graph.chunk_places)
    entity_seeds = np.zeros(graph.entity_places)
    for id, square in squared.items():
        if id in numbers:
            chunk_seeds[numbers[id]] = share * square / total
    for entity, weight in evidence.linked.items():
        entity_seeds[entity] = (1 - share) * graph.idf[entity] * weight / linked_mass
    mass = personalised_pagerank(graph, chunk_seeds, entity_seeds)
    # The start mass of a passage without entities stays on it.
    stays = (1 - DAMPING) * share / total
    outside = {id: stays * squared.get(id, 0.0) for id in evidence.hybrid if id not in numbers}
    reached = np.union1d(_largest(mass, graph.chunk_keys, WALKED), np.fromiter(numbers.values(), np.int64, len(numbers)))
    return Walked(reached, mass[reached], outside)


def _largest(mass: NDArray[np.float64], keys: Keys, count: int) -> NDArray[np.int64]:
    """Return the numbers of the ``count`` largest positive values. Equal values at the limit are ordered by key."""
    positive = np.flatnonzero(mass > 0)
    if len(positive) <= count:
        return positive
    return positive[np.lexsort((keys[positive], -mass[positive]))[:count]]


def number_chunks(graph: TenantGraph, scores: Mapping[str, float]) -> dict[int, float]:
    """Return the scores of the graph's chunks by number, in the same order."""
    return {number: scores[id] for id, number in graph.chunk_index.among(scores).items()}


def convert_cosines(cosines: Mapping[int, float], scale: CosineScale) -> dict[int, float]:
    """Return calibrated cosines."""
    values = scale.converted_all(np.fromiter(cosines.values(), np.float64, len(cosines)))
    return dict(zip(cosines, values.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class FirstStage:
    """What is computed before texts are read: the evidence, direct scores by id, and the links of the best passages.

    ``scale`` converts cosines of questions and passages.
    """

    evidence: GraphEvidence
    direct: Mapping[str, float]
    links: Sequence[HopLink]
    scale: CosineScale


def first_stage(graph: TenantGraph, query: Query, candidates: Candidates, scale: CosineScale) -> FirstStage:
    """Return the first stage of a search."""
    evidence = gather_evidence(graph, query, candidates)
    direct = direct_scores(graph, evidence)
    by_number = number_chunks(graph, {item.id: item.score for item in rank_scores(direct)})
    reached = to_other_subjects(graph, expand(graph, list(by_number)[:BEAM]))
    cosines = convert_cosines(number_chunks(graph, evidence.cosine), scale)
    return FirstStage(evidence, direct, prune(reached, by_number, cosines, scale.convert_cosine(evidence.floor)), scale)


class GraphRequestOptions(EntitiesOption, SyntheticQuestionsOption):
    pass


class GraphRetriever:
    """Runs graph retrieval (see the module). ``options.entities`` names additional entities to start from."""

    def __init__(self, stores: Stores, graphs: TenantGraphs, hybrid: Hybrid, passages: PassageFeatures | None = None) -> None:
        self._stores = stores
        self._passages = passages or PassageFeatures(stores.vectors)
        self._graphs = graphs
        self._facts = Facts(stores)
        self._paths = PassagePaths(stores)
        self._hybrid = hybrid

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks with their paths, and facts. Without a graph, the results are those of hybrid search."""
        query = query.with_candidates(NEAR)
        candidates, (graph, graph_failures), statements = await asyncio.gather(
            chunk_candidates(self._stores, query, weighted_min_max, self._hybrid.weights_of(query).weights.by_leg()),
            shown_graph(self._graphs, query),
            self._facts.candidates(query),
        )
        answer = statements.answer
        if graph is None:
            retrieval = await self._hybrid.without_graph(query, (*graph_failures, *([answer.failure] if answer.failure else [])))
            return replace(retrieval, trace=replace(retrieval.trace, strategy="graph"))
        # In threads: the costs of names, walks and hops depend on the tenant's graph, and the first walk loads SciPy.
        calibration = await self._stores.calibration()
        stage = await asyncio.to_thread(first_stage, graph, query, candidates, calibration.questions)
        evidence, direct = stage.evidence, stage.direct
        reading = await self._second_hop(query, graph, stage)
        order = [item for item in rank_scores(reading.scores) if item.id in reading.visible]
        near_ids = {item.id for item in order[:NEAR]}
        diverse, (facts, left_out) = await asyncio.gather(
            self._diverse(query, order), self._facts.choose(query, graph, near_ids, reading.visible, statements)
        )
        shown_items = diverse[: query.candidates]
        chunks = ResultChunks([item.id for item in shown_items], evidence.linked, reading.hops, reading.visible, facts)
        paths = await self._paths.of(query, graph, chunks)
        hits = tuple(
            _hit(graph, reading, evidence, found=item, direct=direct.get(item.id, 0.0), path=paths.steps.get(item.id, ()))
            for item in shown_items
        )
        return Retrieval(
            hits=hits,
            facts=facts,
            relevance=relevance(reading.nearest, reading.coverage, calibration) if hits else 0.0,
            trace=_trace(query, evidence, reading, answer, (left_out, paths.failure)),
        )

    async def _diverse(self, query: Query, order: Sequence[ScoredId]) -> list[ScoredId]:
        """Return the results with new scores: the best `DIVERSE` ones by maximal marginal relevance, then the others.

        A query that is not ``diverse`` keeps its results.
        """
        head, tail = order[:DIVERSE], order[DIVERSE:]
        if not head or not query.diverse:
            return list(order)
        ids = [item.id for item in head]
        vectors = await self._passages.vectors(query, ids)
        best = head[0].score or 1.0
        scale = (await self._stores.calibration()).passages
        similar = similarities([vectors.get(id) for id in ids], scale)
        scores = marginal_relevances(ids, [item.score / best for item in head], similar, RELEVANCE_SHARE)
        least = min(scores.values())
        return [*starmap(ScoredId, scores.items()), *(ScoredId(item.id, min(item.score, least)) for item in tail)]

    async def _second_hop(self, query: Query, graph: TenantGraph, stage: FirstStage) -> GraphRanking:
        evidence, direct, links, scale = stage.evidence, stage.direct, stage.links, stage.scale
        order = rank_scores(direct)
        by_number = number_chunks(graph, {item.id: item.score for item in order})
        beam = list(by_number)[:BEAM]
        cosine = convert_cosines(number_chunks(graph, evidence.cosine), scale)
        targets = list(dict.fromkeys(link.target for link in links))
        # A fixed number: these passages determine term weights and scores, which must not depend on the request's limit.
        examined = [item.id for item in (*order[:EXAMINED], *rank_scores(evidence.cosine)[:1])]
        ids = list(dict.fromkeys([*examined, *(graph.chunk_ids[n] for n in beam), *(graph.chunk_ids[n] for n in targets)]))
        visible_before = evidence.visible
        visible = {id: visible_before[id] for id in ids if id in visible_before}
        new_chunks, exact, terms = await asyncio.gather(
            visible_chunks(self._stores.documents, query, [id for id in ids if id not in visible_before]),
            self._exact_cosines(query, graph, evidence.question, [n for n in targets if n not in cosine]),
            self._terms_of(query, visible),  # last: it computes while the stores read for the others
        )
        visible |= new_chunks
        cosine |= convert_cosines(exact, scale)
        question = self._stores.vectors.terms(query.text)
        coverage = cover(question, list_terms(question, terms | self._passages.terms(query, new_chunks)))
        closest = max((score for id, score in evidence.cosine.items() if id in visible), default=0.0)
        visible = await visible_in_order(self._stores.documents, query, [item.id for item in order], visible, EXAMINED)
        found_hops = score_hops(links, by_number, cosine, coverage.number_passages(graph.chunk_index))
        hops = {graph.chunk_ids[target]: hop for target, hop in found_hops.items()}
        hop_scores = {id: hop.score for id, hop in hops.items()}
        scores = with_hops(direct, hop_scores)
        least = max((scores[id] for id in reached_by_hop(direct, hop_scores) if id in visible), default=0.0)
        scores |= {id: max(scores[id], least) for id in select_named_passages(graph, evidence, scores)}
        return GraphRanking(scores, hops, visible, max(map(coverage.of, coverage.held.values()), default=0.0), closest)

    async def _terms_of(self, query: Query, visible: Mapping[str, VisibleChunk]) -> dict[str, Terms]:
        return self._passages.terms(query, visible)

    async def _exact_cosines(
        self, query: Query, graph: TenantGraph, question: Vector, numbers: Sequence[int]
    ) -> dict[int, float]:
        """Return the cosines of chunks that the dense leg did not return, by number."""
        ids = {graph.chunk_ids[number]: number for number in numbers}
        vectors = await self._passages.vectors(query, list(ids)) if ids else {}
        return {ids[id]: float(vector @ question) for id, vector in vectors.items()}


def select_named_passages(graph: TenantGraph, evidence: GraphEvidence, scores: Mapping[str, float]) -> set[str]:
    """Return, for each entity that only one name of the question means, the best passage about it.

    A question names the beginning of a chain. Hops from another passage must not hide it (R@5 with this rule: MuSiQue +.003,
    HotpotQA +.010).
    """
    entities = [entity for entity, weight in evidence.linked.items() if weight == 1.0]
    position, chunks, weights = graph.links.gather(np.array(entities, dtype=np.int64))
    about = weights == ABOUT_WEIGHT
    best: dict[int, tuple[float, float, str]] = {}
    for entity, number in zip(position[about].tolist(), chunks[about].tolist(), strict=True):
        id = graph.chunk_ids[number]
        if id in scores:
            best[entity] = max(best.get(entity, (0.0, 0.0, "")), (evidence.hybrid.get(id, 0.0), scores[id], id))
    return {id for *_, id in best.values()}


def _trace(
    query: Query, evidence: GraphEvidence, reading: GraphRanking, answer: LegAnswer, failed: tuple[str | None, str | None]
) -> Trace:
    """Return the trace. ``failed`` has the reasons why facts and why paths are left out."""
    left_out, _ = failed
    failures = tuple(failure for failure in (answer.failure, *failed) if failure is not None)
    details = {"linked_entities": len(evidence.linked), "coverage": round(reading.coverage, 3), "graph_leg": answer.leg}
    return Trace(
        strategy="graph",
        methods_used=(*methods_with_questions(query, "dense", "sparse"), "graph"),
        fusion="min_max × pagerank + hop",
        fallbacks=() if evidence.linked else (NO_ENTITY,),
        failures=failures,
        hidden=(left_out,) if left_out is not None else (),
        warnings=tuple(f"options.entities: the graph knows no {name!r}" for name in evidence.unknown),
        details={**time_detail(query), **details},
    )


def gather_evidence(graph: TenantGraph, query: Query, candidates: Candidates) -> GraphEvidence:
    """Link the entities that the question names, and combine them with the results of both legs."""
    named_in = link_question(graph, query.text)
    linked = {number: weight for number, weight in named_in.items() if graph.entity_texts.ids[number] not in query.not_meant}
    unknown: list[str] = []
    for name in query.options.get("entities", ()):
        entity_number = graph.find_mentioned_number(str(name))
        named_entities = {entity_number: 1.0} if entity_number is not None else dict(link_question(graph, str(name)))
        linked.update((entity, max(weight, linked.get(entity, 0.0))) for entity, weight in named_entities.items())
        if not named_entities:
            unknown.append(str(name))
    cosine = {item.id: item.score for item in candidates.legs.dense}
    visible, questions = candidates.visible, candidates.questions
    return GraphEvidence(candidates.question, candidates.scores, cosine, linked, tuple(unknown), visible, questions)


def _hit(
    graph: TenantGraph,
    reading: GraphRanking,
    evidence: GraphEvidence,
    *,
    found: ScoredId,
    direct: float,
    path: tuple[GraphStep, ...],
) -> Hit:
    id, scores = found.id, {"graph": direct}
    if id in evidence.cosine:
        scores["dense"] = evidence.cosine[id]
    if id in evidence.hybrid:
        scores["combined"] = evidence.hybrid[id]
    if id in reading.hops:
        scores["hop"] = reading.hops[id].score
    question = next((item.score for item in evidence.questions.chunks if item.id == id), None)
    if question is not None:
        scores[QUESTION] = question
    return Hit(
        visible=reading.visible[id],
        score=max(0.0, min(1.0, found.score)),
        scores=scores,
        entities=entities_of(graph, id),
        graph_path=path,
        matched_question=evidence.questions.matched.get(id),
    )
