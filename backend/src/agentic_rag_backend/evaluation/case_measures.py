"""The measures of one question: its results against the evidence, its answer against the expected one."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.evaluation import EvaluationCase
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.evaluation.answer_metrics import contains_answer, share_of_texts, token_f1
from agentic_rag_backend.evaluation.gold import GoldEvidence, rank_evidence
from agentic_rag_backend.evaluation.ranking_metrics import all_at, ndcg_at, recall_at, reciprocal_rank

RETRIEVAL_MEASURES = ("recall", "all_gold", "ndcg", "mrr")
"""Measures of results. Their names end with ``@k``."""
ANSWER_MEASURES = (
    "correct",
    "contains",
    "token_f1",
    "must_say",
    "faithfulness",
    "answered_answerable",
    "refused_unanswerable",
    "contradictions",
)
"""Measures of answers."""
TOTAL = "total"
"""The stage whose time is that of the whole question."""


def measure_results(evidence: Sequence[GoldEvidence], hits: Sequence[Hit | Passage], k: int) -> dict[str, float]:
    """Return the measures of the first ``k`` results, or passages of an answer.

    None applies to a case without evidence, or whose evidence is not there.
    """
    items = [item for item in evidence if not item.missing]
    if not items:
        return {}
    ranked, relevant = rank_evidence(items, hits[:k]), [str(number) for number in range(len(items))]
    places = max(k, len(ranked))
    values = (
        recall_at(ranked, relevant, places),
        all_at(ranked, relevant, places),
        ndcg_at(ranked, relevant, places),
        reciprocal_rank(ranked, relevant),
    )
    return {f"{name}@{k}": value for name, value in zip(RETRIEVAL_MEASURES, values, strict=True)}


def measure_answer(case: EvaluationCase, answer: Answer) -> dict[str, float]:
    """Return the measures of an answer.

    ``correct``: the answer to an answerable question has the expected answer and all required texts; another question is refused.
    ``faithfulness``: the share of the answer's sentences that passages state.
    """
    measures: dict[str, float] = {"contradictions": float(len(answer.contradictions))}
    included = [claim for claim in answer.claims if claim.included]
    if answer.grounded and included:
        measures["faithfulness"] = sum(claim.supported for claim in included) / len(included)
    if not case.answerable:
        refused = float(not answer.grounded)
        return {**measures, "refused_unanswerable": refused, "correct": refused}
    measures["answered_answerable"] = float(answer.grounded)
    text = answer.text if answer.grounded else ""
    if case.expected_answer is not None:
        measures["contains"] = float(contains_answer(text, [case.expected_answer]))
        measures["token_f1"] = token_f1(text, case.expected_answer)
    if case.must_say:
        measures["must_say"] = share_of_texts(text, case.must_say)
    required = [measures[name] for name in ("contains", "must_say") if name in measures]
    if required:
        measures["correct"] = float(all(value == 1.0 for value in required))
    return measures
