"""Correction of a search: its results are graded, and other wordings are searched if too few are relevant.

After Corrective RAG (Yan et al., 2024). If no attempt finds enough, the results are those of the best attempt, with
``sufficient`` false. A language model grades and rewrites; without one, the estimate of answerability grades, and other names of
the question's entities give the wordings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Correction, Query, Retrieval
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.grading import Graded, ModelGrader
from agentic_rag_backend.retrieval.passages.passage_features import measured_relevance
from agentic_rag_backend.retrieval.rewriting import QueryRewriter, Rewrites
from agentic_rag_backend.retrieval.structured_calls import Spending
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

GRADED = 10
"""Results that are graded. It does not depend on the request's limit, so that the chosen attempt does not either."""
Search = Callable[[Query], Awaitable[Retrieval]]
"""A search of a strategy."""


@dataclass(frozen=True, slots=True)
class SearchAttempt:
    """One search: the wording, its results, and their grades."""

    text: str
    found: Retrieval
    graded: Graded

    def count_relevant_results(self, threshold: float) -> int:
        """Return the number of graded results that are relevant."""
        return sum(grade >= threshold for grade in self.graded.grades)

    @property
    def best_grade(self) -> float:
        """The best grade; 0.0 without results."""
        return max(self.graded.grades, default=0.0)


def best_attempt(attempts: Sequence[SearchAttempt], threshold: float) -> SearchAttempt:
    """Return the attempt with the most relevant results, then the best grade. Of equal attempts, the first."""
    return max(attempts, key=lambda attempt: (attempt.count_relevant_results(threshold), attempt.best_grade))


class Corrector:
    """Corrects searches. A language model grades and rewrites if the deployment has one."""

    def __init__(self, stores: Stores, rewriter: QueryRewriter, grader: ModelGrader) -> None:
        self._stores = stores
        self._rewriter = rewriter
        self._grader = grader

    async def correct(self, query: Query, correction: Correction, search: Search) -> Retrieval:
        """Return the results of the best attempt, in the order and with the scores of ``search``.

        Raises:
            AgenticRagError: the search of the question itself failed.
        """
        spending = Spending(correction.max_calls)
        tried = [await self._make_attempt(query, query.text, search, spending)]
        rewrites, failures = Rewrites(), []
        if not _is_enough(tried[0], correction) and correction.attempts:
            rewrites = await self._rewriter.rewrite(query, correction.attempts, spending)
            for text in rewrites.texts:
                try:
                    tried.append(await self._make_attempt(query, text, search, spending))
                except AgenticRagError as error:
                    _log.warning("refinement_failed", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
                    failures.append(f"a search with another wording failed: {error.code}")
                    continue
                if _is_enough(tried[-1], correction):
                    break
        best = best_attempt(tried, correction.threshold)
        retrieval = best.found
        if best is not tried[0]:
            retrieval = replace(retrieval, relevance=await measured_relevance(self._stores, query, retrieval.hits))
        usage = spending.usage
        for attempt in tried:
            usage += attempt.found.usage
        return _add_trace(replace(retrieval, usage=usage), tried, best, correction, rewrites, failures)

    async def _make_attempt(self, query: Query, text: str, search: Search, spending: Spending) -> SearchAttempt:
        retrieval = await search(replace(query.with_candidates(GRADED), text=text))
        # Graded for the question, not for the wording: a wording that leaves the question must not count as an answer.
        graded = await self._grader.grade(query.text, retrieval.hits[:GRADED], spending)
        hits = tuple(
            replace(hit, scores={**hit.scores, "grade": grade})
            for hit, grade in zip(retrieval.hits[:GRADED], graded.grades, strict=True)
        )
        return SearchAttempt(text, replace(retrieval, hits=(*hits, *retrieval.hits[GRADED:])), graded)


class CorrectedRetriever:
    """Retriever that corrects the searches of another one, if the query asks for it."""

    def __init__(self, candidates: Retriever, corrector: Corrector) -> None:
        self._candidates = candidates
        self._corrector = corrector

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`."""
        if query.corrective is None:
            return await self._candidates.retrieve(query)
        return await self._corrector.correct(query, query.corrective, self._candidates.retrieve)


def _is_enough(attempt: SearchAttempt, correction: Correction) -> bool:
    return attempt.count_relevant_results(correction.threshold) >= correction.min_relevant


def _add_trace(
    retrieval: Retrieval,
    tried: Sequence[SearchAttempt],
    best: SearchAttempt,
    correction: Correction,
    rewrites: Rewrites,
    failures: Sequence[str],
) -> Retrieval:
    own_trace, sufficient = retrieval.trace, _is_enough(best, correction)
    attempts = [
        {
            "query": attempt.text,
            "relevant": attempt.count_relevant_results(correction.threshold),
            "best_grade": round(attempt.best_grade, 4),
            "graded_by": attempt.graded.by,
        }
        for attempt in tried
    ]
    about = {
        "sufficient": sufficient,
        "relevance_threshold": correction.threshold,
        "min_relevant": correction.min_relevant,
        "attempts": attempts,
        "chosen": [attempt is best for attempt in tried].index(True),
        "rewritten_by": rewrites.by if len(tried) > 1 else None,
    }
    relevant_count = best.count_relevant_results(correction.threshold)
    warning = f"insufficient: {relevant_count} results have a grade of at least {correction.threshold:g}"
    graded = (attempt.graded.failure for attempt in tried)
    trace = replace(
        own_trace,
        methods_used=tuple(dict.fromkeys(("corrective", *own_trace.methods_used))),
        fallbacks=tuple(dict.fromkeys((*own_trace.fallbacks, *([rewrites.missing] if rewrites.missing else [])))),
        failures=tuple(dict.fromkeys((*own_trace.failures, *rewrites.failures, *filter(None, graded), *failures))),
        warnings=(*own_trace.warnings, *([] if sufficient else [f"{warning}; {correction.min_relevant} are required"])),
        details={**own_trace.details, "corrective": about},
        sufficient=sufficient,
    )
    return replace(retrieval, trace=trace)
