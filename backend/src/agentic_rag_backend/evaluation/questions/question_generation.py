"""Generation of datasets from a tenant's own graph and themes, by the rules of `question_rules`."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.graph import EntityRef, contains_name
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.evaluation.questions import question_rules as rules
from agentic_rag_backend.evaluation.questions.question_rules import EntityStatement
from agentic_rag_backend.jobs.runner import Run, Runner
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, shared_count
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.tenancy.service import TenantService
from agentic_rag_backend.themes.communities.service import CommunityService

WORKFLOW = "generate_v1"
MAX_CHUNKS = 5000
"""Chunks that are read: a sample of larger tenants."""
_CHUNKS_AT_ONCE = 200
_THEMES = 100
_QUOTES_PER_THEME = 3
_EXCLUDED_DOCUMENTS = 20
_PAIRS = 20_000
_OTHERS = 10
"""Entities that are tried in place of an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationParts:
    """What generation reads."""

    catalogue: Catalogue
    tenants: TenantService
    graphs: TenantGraphs
    communities: CommunityService


class QuestionGenerator:
    """Generates cases. `generate` is the workflow ``generate_v1``; equal documents, seeds and counts give equal cases."""

    def __init__(self, parts: GenerationParts, runner: Runner) -> None:
        self._parts = parts
        self._runner = runner

    async def generate(self, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Workflow: make the cases of a new dataset, record all of them at once, and finish. Idempotent."""
        await self._runner.run_job(tenant, job_id, attempt, self._run_job)

    async def _run_job(self, run: Run) -> None:
        arguments = run.job.arguments
        count, kinds, dataset_id = int(arguments["count"]), list(arguments["kinds"]), str(arguments["dataset_id"])
        tenant = await self._parts.tenants.get(run.tenant)
        await run.report_progress("read", 0, count, at_once=True)
        cases = await run.run_until_cancellation(self.make_cases(tenant, count, kinds, seed=int(arguments["seed"])))
        if cases:
            await self._parts.catalogue.datasets.add_cases(run.tenant, dataset_id, cases, generated=True)
        counts = {kind: sum(case.kind == kind for case in cases) for kind in kinds}
        result: dict[str, Any] = {"dataset_id": dataset_id, "cases": len(cases), "kinds": counts}
        if len(cases) < count:
            result["reasons"] = [f"the documents yield {len(cases)} of {count} questions of the kinds {', '.join(kinds)}"]
        await run.report_progress("write", len(cases), count, at_once=True)
        state = JobState.SUCCEEDED if len(cases) == count else JobState.PARTIAL
        await run.finish(state, result=result)

    async def make_cases(self, tenant: Tenant, count: int, kinds: Sequence[str], *, seed: int = 0) -> list[EvaluationCase]:
        """Return at most ``count`` cases, as many of each kind as possible in equal shares."""
        graph = await self._parts.graphs.graph(tenant)
        statements = await self._read_statements(tenant.id, graph, seed)
        themes = await self._make_themes(tenant.id) if rules.THEME in kinds else []
        return await asyncio.to_thread(_choose_cases, _Material(graph, statements, themes), count, kinds, seed)

    async def _read_statements(self, tenant: TenantId, graph: TenantGraph, seed: int) -> list[EntityStatement]:
        """Return the statements of a sample of the chunks that mention entities, in the order of their sentences."""
        documents = self._parts.catalogue.documents
        chunk_ids = [id for id in await documents.visible_chunks_in_order(tenant) if id in graph.chunk_index]
        if len(chunk_ids) > MAX_CHUNKS:
            chunk_ids = random.Random(seed).sample(chunk_ids, MAX_CHUNKS)  # noqa: S311 - a sample, no secret
        statements: list[EntityStatement] = []
        for start in range(0, len(chunk_ids), _CHUNKS_AT_ONCE):
            chunks = await documents.hydrate(tenant, chunk_ids[start : start + _CHUNKS_AT_ONCE])
            statements += await asyncio.to_thread(_read_chunks, graph, list(chunks.values()))
        return sorted(statements, key=lambda statement: (statement.sentence, statement.document_id, statement.subject.name))

    async def _make_themes(self, tenant: TenantId) -> list[EvaluationCase]:
        """Return a question about each of the largest communities whose findings are sentences of documents."""
        views = (await self._parts.communities.list(tenant, limit=_THEMES)).items
        chunk_ids = [source.chunk_id for view in views for finding in view.findings for source in finding.sources[:1]]
        chunks = await self._parts.catalogue.documents.hydrate(tenant, chunk_ids)
        cases = []
        for view in views:
            quotes = [
                (finding.statement, chunks[source.chunk_id].chunk.document_id)
                for finding in view.findings
                for source in finding.sources[:1]
                if source.chunk_id in chunks and finding.statement in " ".join(chunks[source.chunk_id].chunk.text.split())
            ]
            if quotes and not view.withheld:
                cases.append(rules.ask_theme(view.name, quotes[:_QUOTES_PER_THEME]))
        return cases


def _read_chunks(graph: TenantGraph, chunks: Sequence[VisibleChunk]) -> list[EntityStatement]:
    statements: list[EntityStatement] = []
    for chunk in chunks:
        number = graph.chunk_index.get(chunk.chunk.id)
        if number is None:
            continue
        # A single word that one document names is often no entity.
        numbers = [int(entity) for entity in graph.entities_of(number)]
        entities = [entity for entity in numbers if graph.document_frequency[entity] > 1 or " " in graph.entity(entity).name]
        statements += rules.read_statements(chunk, [graph.entity(entity) for entity in entities])
    return statements


@dataclass(frozen=True, slots=True)
class _Material:
    """What questions are made of."""

    graph: TenantGraph
    statements: Sequence[EntityStatement]
    themes: Sequence[EvaluationCase]

    def candidates(self, kind: str, randomness: random.Random) -> Iterator[EvaluationCase]:
        """Yield the possible questions of a kind in a random order."""
        shuffled = list(self.statements)
        randomness.shuffle(shuffled)
        match kind:
            case rules.SINGLE:
                yield from map(rules.ask_single, shuffled)
            case rules.TIME:
                yield from filter(None, map(rules.ask_time, shuffled))
            case rules.COMPARISON:
                dated = [statement for statement in shuffled if statement.time_question]
                pairs = list(islice(combinations(dated, 2), _PAIRS))
                randomness.shuffle(pairs)
                yield from filter(None, (rules.ask_comparison(statement, addition) for statement, addition in pairs))
            case rules.TWO_HOPS:
                yield from self._two_hops(shuffled)
            case rules.THEME:
                yield from self.themes
            case rules.UNANSWERABLE:
                yield from self._unanswerable(shuffled, randomness)

    def _two_hops(self, shuffled: Sequence[EntityStatement]) -> Iterator[EvaluationCase]:
        by_subject: dict[str, list[EntityStatement]] = defaultdict(list)
        for statement in shuffled:
            by_subject[statement.subject.id].append(statement)
        for statement in shuffled:
            for entity in statement.objects:
                cases = (rules.ask_two_hops(statement, addition) for addition in by_subject.get(entity.id, ()))
                yield from islice(filter(None, cases), 1)

    def _unanswerable(self, shuffled: Sequence[EntityStatement], randomness: random.Random) -> Iterator[EvaluationCase]:
        """Yield, in turn, questions about the wrong object, and questions without the documents that may answer."""
        by_type: dict[str, dict[str, EntityRef]] = defaultdict(dict)
        for statement in shuffled:
            for entity in statement.objects:
                by_type[entity.type][entity.id] = entity
        for statement in shuffled:
            for replaced in statement.objects[:1]:
                entities = list(by_type[replaced.type].values())
                sample = randomness.sample(entities, min(len(entities), _OTHERS))
                unrelated = next((entity for entity in sample if not self._is_related(statement, entity)), None)
                if unrelated is not None:
                    yield rules.ask_other_object(statement, replaced, unrelated)
            documents = self._documents_about(statement)
            if len(documents) <= _EXCLUDED_DOCUMENTS:
                yield rules.ask_without_documents(rules.ask_single(statement), documents)

    def _is_related(self, statement: EntityStatement, entity: EntityRef) -> bool:
        """Return whether a chunk mentions an entity with the subject, or another statement of the verb names it."""
        if self._share_chunk(statement.subject, entity):
            return True
        return any(
            candidate.verb == statement.verb and contains_name(candidate.sentence, entity.name) for candidate in self.statements
        )

    def _share_chunk(self, entity_a: EntityRef, entity_b: EntityRef) -> bool:
        numbers = [self.graph.find_mentioned_number(entity.id) for entity in (entity_a, entity_b)]
        return numbers[0] is not None and numbers[1] is not None and shared_count(self.graph, numbers[0], numbers[1]) > 0

    def _documents_about(self, statement: EntityStatement) -> list[str]:
        """Return the documents of all statements about the subject of a statement or with its objects, and its own."""
        entity_ids = {statement.subject.id, *(entity.id for entity in statement.objects)}
        return sorted(
            {
                candidate.document_id
                for candidate in self.statements
                if candidate.subject.id in entity_ids or any(entity.id in entity_ids for entity in candidate.objects)
            }
        )


def _choose_cases(material: _Material, count: int, kinds: Sequence[str], seed: int) -> list[EvaluationCase]:
    """Take one question of each kind in turn, until there are enough, or none is left."""
    randomness = random.Random(seed)  # noqa: S311 - a sample, no secret
    turns = {kind: material.candidates(kind, randomness) for kind in kinds}
    chosen: dict[str, EvaluationCase] = {}
    while turns and len(chosen) < count:
        for kind, candidates in list(turns.items()):
            case = next((case for case in candidates if _is_usable(case, chosen, material.statements)), None)
            if case is None:
                del turns[kind]
            elif len(chosen) < count:
                chosen[case.question] = case
    return list(chosen.values())


def _is_usable(case: EvaluationCase, chosen: Mapping[str, EvaluationCase], statements: Sequence[EntityStatement]) -> bool:
    """Return whether a question is new, does not contain its answer, and has one answer as far as the statements tell."""
    if case.question in chosen:
        return False
    answer = case.expected_answer
    if answer is not None and case.kind != rules.COMPARISON and contains_name(case.question, answer):
        return False
    if case.kind != rules.SINGLE:
        return True
    subjects = {statement.subject.id for statement in statements if f" {statement.predicate}?" in f" {case.question}"}
    return len(subjects) == 1
