"""The cases that tuning learns from: those of datasets, and feedback on answers."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from agentic_rag_backend.domain.evaluation import EvaluationCase, GoldItem
from agentic_rag_backend.domain.feedback import Feedback, Rating
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tuning import MAX_TUNING_CASES, TuningPlan
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, FeedbackCatalogue

_PAGE = 200


@dataclass(slots=True)
class TuningCases:
    """Cases by id. ``counts`` has the numbers by origin, also of what was left out."""

    cases: dict[str, EvaluationCase] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add_case(self, origin: str, case: EvaluationCase) -> None:
        """Add a case with evidence. The first case of a question stays, so that no question is in both halves."""
        case_id = identify_case(case)
        if not case.gold:
            self.count("without_evidence")
        elif case_id in self.cases:
            self.count("repeated")
        elif len(self.cases) >= MAX_TUNING_CASES:
            self.count("beyond_limit")
        else:
            self.cases[case_id] = replace(case, id=case_id)
            self.count(origin)

    def count(self, name: str) -> None:
        """Count one more."""
        self.counts[name] = self.counts.get(name, 0) + 1


def identify_case(case: EvaluationCase) -> str:
    """Return the id of a question with its filters. Letter case and white space do not count."""
    words = " ".join(case.question.casefold().split())
    filters = orjson.dumps(case.filters, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(words.encode("utf-8", "surrogatepass") + b"\0" + filters).hexdigest()[:32]


async def collect_cases(catalogue: Catalogue, tenant: TenantId, plan: TuningPlan) -> TuningCases:
    """Return the cases of a plan, those of datasets first.

    Raises:
        NotFound: a dataset was deleted.
    """
    collected = TuningCases()
    for dataset_id, version in plan.datasets:
        cursor: str | None = None
        while True:
            page = await catalogue.datasets.cases(tenant, dataset_id, limit=_PAGE, cursor=cursor, version=version)
            for case in page.items:
                collected.add_case("datasets", case)
            cursor = page.next_cursor
            if cursor is None:
                break
    if plan.feedback:
        async for case in _cases_of_feedback(catalogue.feedback, tenant, collected):
            collected.add_case("feedback", case)
    return collected


async def _cases_of_feedback(
    feedback: FeedbackCatalogue, tenant: TenantId, collected: TuningCases
) -> AsyncIterator[EvaluationCase]:
    """Yield one case for each question of feedback.

    Evidence are the chunks that a good answer cites, citations and results that are rated as good, and the texts of
    corrections. A chunk that is rated as bad is no evidence of its question.
    """
    questions: dict[str, _RatedQuestion] = {}
    async for item in read_feedback(feedback, tenant):
        if item.draft.question is None or not item.draft.question.strip():
            collected.count("feedback_without_question")
            continue
        words = " ".join(item.draft.question.casefold().split())
        rated = questions.setdefault(words, _RatedQuestion(item.draft.question))
        rated.add_feedback(item, await _cited_chunks(feedback, tenant, item))
    for rated in questions.values():
        yield rated.to_case()


async def read_feedback(feedback: FeedbackCatalogue, tenant: TenantId) -> AsyncIterator[Feedback]:
    """Yield the feedback of a tenant, the newest first."""
    cursor: str | None = None
    while True:
        page = await feedback.page(tenant, limit=_PAGE, cursor=cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return


async def _cited_chunks(feedback: FeedbackCatalogue, tenant: TenantId, item: Feedback) -> Mapping[int, str]:
    """Return the chunks that a good answer cites, if the feedback is about the whole answer, and the answer is still known."""
    if item.chunk_id is not None or item.draft.rating is not Rating.GOOD:
        return {}
    try:
        return (await feedback.answer(tenant, item.draft.answer_id)).citations
    except NotFound:
        return {}


@dataclass(slots=True)
class _RatedQuestion:
    """What feedback says about the results of one question."""

    question: str
    good_chunks: dict[str, None] = field(default_factory=dict)
    bad_chunks: set[str] = field(default_factory=set)
    corrections: dict[str, None] = field(default_factory=dict)

    def add_feedback(self, item: Feedback, cited: Mapping[int, str]) -> None:
        """Add one feedback. ``cited`` are the chunks that its answer cites, by marker."""
        if item.draft.correction is not None:
            self.corrections[item.draft.correction] = None
        if item.draft.rating is Rating.GOOD:
            self.good_chunks |= dict.fromkeys(cited.values() if item.chunk_id is None else [item.chunk_id])
        elif item.chunk_id is not None:
            self.bad_chunks.add(item.chunk_id)

    def to_case(self) -> EvaluationCase:
        """Return the case."""
        chunks = [GoldItem(chunk_id=chunk_id) for chunk_id in self.good_chunks if chunk_id not in self.bad_chunks]
        return EvaluationCase(question=self.question, gold=(*chunks, *(GoldItem(quote=text) for text in self.corrections)))


def describe_counts(collected: TuningCases, *, halves: Mapping[bool, int], unfound: int = 0) -> dict[str, Any]:
    """Return the numbers of cases for the evidence of a proposal.

    Args:
        halves: cases that are learned from (True), and others (False).
        unfound: cases whose evidence no visible document has.
    """
    names = ("datasets", "feedback", "without_evidence", "repeated", "beyond_limit", "feedback_without_question")
    counts = {name: collected.counts.get(name, 0) for name in names}
    return {"total": sum(halves.values()), "learn": halves[True], "check": halves[False], **counts, "evidence_not_found": unfound}
