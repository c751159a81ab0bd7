"""Takes the scores of callers, computes those that are missing, and reports their means."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import accumulate

from agentic_rag_backend.answering.claims.reading import Claim, read_claims
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.score_submission import (
    MAX_CONTEXT_CHARACTERS,
    RecordedScores,
    ScoreGroup,
    ScoreSubmission,
    SubmittedScore,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage_report import Period
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation.answer_metrics import contains_answer, token_f1
from agentic_rag_backend.evaluation.ranking_metrics import ndcg_at, recall_at
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, SubmittedScoreCatalogue
from agentic_rag_backend.stores.catalogue.submitted_scores import ScorePage

MAX_SENTENCES = 50
"""Sentences of an answer that are checked."""


def compute_scores(submission: ScoreSubmission, contexts: Sequence[str]) -> dict[str, float]:
    """Return the metrics that the submission allows to compute, each in [0, 1].

    - ``token_f1`` and ``contains`` compare the answer with the expected one.
    - ``context_contains`` is whether a context contains the expected answer.
    - ``faithfulness`` is the share of the answer's sentences that a context states, by the check of claims without a model.
    - ``recall`` and ``ndcg`` compare the retrieved chunks with ``gold_chunk_ids``.
    """
    scores: dict[str, float] = {}
    answer, expected_answer = submission.answer, submission.expected_answer
    if answer and expected_answer:
        scores["token_f1"] = token_f1(answer, expected_answer)
        scores["contains"] = float(contains_answer(answer, [expected_answer]))
    if expected_answer and contexts:
        scores["context_contains"] = float(any(contains_answer(context, [expected_answer]) for context in contexts))
    if answer and contexts:
        scores["faithfulness"] = _share_of_stated(submission.query, answer, contexts)
    retrieved_ids, gold_ids = submission.retrieved_chunk_ids, submission.gold_chunk_ids
    if retrieved_ids and gold_ids:
        scores["recall"] = recall_at(retrieved_ids, gold_ids, len(retrieved_ids))
        scores["ndcg"] = ndcg_at(retrieved_ids, gold_ids, len(retrieved_ids))
    return scores


def _share_of_stated(query: str, answer: str, contexts: Sequence[str]) -> float:
    passages = [
        Passage(marker=number, chunk_id="", document_id="", title="", text=context, start_char=0, score=1.0)
        for number, context in enumerate(contexts, start=1)
    ]
    verifier, markers = LexicalVerifier(passages, query), tuple(passage.marker for passage in passages)
    claims = read_claims(answer)[:MAX_SENTENCES]
    # Whatever the markers of the answer refer to, every context counts.
    stated = sum(verifier.check(Claim(claim.text, markers)).holds for claim in claims)
    return stated / len(claims) if claims else 0.0


def _within_limit(texts: Sequence[str]) -> Sequence[str]:
    """Return the first texts that have at most `MAX_CONTEXT_CHARACTERS` together."""
    sizes = accumulate(map(len, texts))
    return [text for text, size in zip(texts, sizes, strict=True) if size <= MAX_CONTEXT_CHARACTERS]


class ScoreReports:
    """Records submitted scores without their texts, and reports means by day, strategy and configuration."""

    def __init__(self, catalogue: SubmittedScoreCatalogue, documents: DocumentCatalogue) -> None:
        self._catalogue = catalogue
        self._documents = documents

    async def submit(self, tenant: TenantId, submission: ScoreSubmission) -> RecordedScores:
        """Record the caller's scores and the computed ones. The caller's have priority.

        Raises:
            InvalidRequest: there is no score, and none can be computed.
        """
        visible_chunks = await self._documents.hydrate(tenant, list(submission.retrieved_chunk_ids))
        contexts = submission.contexts or _within_limit([chunk.chunk.text for chunk in visible_chunks.values()])
        computed = await asyncio.to_thread(compute_scores, submission, contexts)
        scores = {name: SubmittedScore(value, computed=True) for name, value in computed.items()}
        scores |= {name: SubmittedScore(value, computed=False) for name, value in submission.scores.items()}
        if not scores:
            raise InvalidRequest(
                "there is no score to record: give scores, an answer with expected_answer, contexts or retrieved_chunk_ids, or "
                "retrieved_chunk_ids with gold_chunk_ids"
            )
        wrong = next((name for name, score in scores.items() if not math.isfinite(score.value)), None)
        if wrong is not None:
            raise InvalidRequest(f"score {wrong!r} must be a finite number", field=f"scores.{wrong}")
        group = ScoreGroup(datetime.now(UTC).date(), submission.strategy, submission.configuration)
        recorded = RecordedScores(
            id=str(uuid.uuid4()),
            scores=dict(sorted(scores.items())),
            unknown_chunks=len(set(submission.retrieved_chunk_ids)) - len(visible_chunks),
        )
        await self._catalogue.add(tenant, recorded.id, group, recorded.scores)
        return recorded

    async def list_means(
        self,
        tenant: TenantId,
        start: date | None,
        end: date | None,
        *,
        limit: int,
        cursor: str | None = None,
        filters: Mapping[str, str | None] | None = None,
    ) -> ScorePage:
        """Return the means of each day, strategy and configuration of a period, the newest day first.

        Args:
            filters: ``strategy`` and ``configuration``; None: any.

        Raises:
            InvalidRequest: the period is empty or too long.
        """
        period = Period.of_request(start, end, datetime.now(UTC).date())
        return await self._catalogue.page(tenant, period, limit=limit, cursor=cursor, **(filters or {}))
