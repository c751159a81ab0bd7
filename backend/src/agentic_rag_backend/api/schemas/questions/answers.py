"""Responses with answers."""

from __future__ import annotations

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.knowledge.entities import ContradictionView
from agentic_rag_backend.api.schemas.questions.search import CitationView, ClaimView, ResultView, ThemeView, TraceView
from agentic_rag_backend.domain.answer import Answer, Verification


class CheckedQuestionView(View):
    question: str
    answer: str
    grounded: bool
    citations: list[CitationView]


class VerificationView(View):
    initial_answer: str
    verification_qa: list[CheckedQuestionView]

    @classmethod
    def of(cls, verification: Verification) -> VerificationView:
        """Return the view of a verification."""
        return cls(
            initial_answer=verification.initial_answer,
            verification_qa=[
                CheckedQuestionView(
                    question=question.question,
                    answer=question.answer,
                    grounded=question.grounded,
                    citations=[CitationView.of(citation) for citation in question.citations],
                )
                for question in verification.questions
            ],
        )


class UsageView(View):
    prompt_tokens: int
    completion_tokens: int
    calls: int = Field(description="requests to the language model, including retries")
    failed_calls: int = Field(description="failed requests among them")


class AnswerUsageView(UsageView):
    cost: float | None = Field(
        description="by the prices of MODEL_PRICES; 0 if no model was called; null if the price of a call is unknown"
    )


class AnswerView(View):
    id: str = Field(description="names the answer in `POST /feedback`")
    answer: str = Field(description="the text; `POST /search/dual-level` calls it `synthesized_answer`")
    introduction: str = Field(
        description="sentences without citation at the beginning of `answer`, which state what the quoted sentences are; or empty"
    )
    citations: list[CitationView]
    nearest: list[CitationView] = Field(
        description="quotations nearest to a question that is refused, which do not answer it; empty for an answer"
    )
    confidence: float
    grounded: bool
    claims: list[ClaimView]
    verification: VerificationView | None
    contradictions: list[ContradictionView] = Field(description="with a cited sentence as one side, the likeliest first")
    themes: list[ThemeView]
    sources: list[ResultView]
    usage: AnswerUsageView
    generator: str
    model: str
    trace: TraceView

    @classmethod
    def of(cls, answer: Answer) -> AnswerView:
        """Return the view of an answer."""
        retrieval = answer.retrieval
        return cls(
            id=answer.id,
            answer=answer.text,
            introduction=answer.introduction,
            citations=[CitationView.of(citation) for citation in answer.citations],
            nearest=[CitationView.of(citation) for citation in answer.nearest],
            confidence=answer.confidence,
            grounded=answer.grounded,
            claims=[ClaimView.of(claim) for claim in answer.claims],
            verification=VerificationView.of(answer.verification) if answer.verification is not None else None,
            contradictions=[ContradictionView.of(contradiction) for contradiction in answer.contradictions],
            themes=[ThemeView.of(theme, retrieval.weights.high if retrieval.weights else None) for theme in retrieval.themes],
            sources=[ResultView.of(hit) for hit in retrieval.hits],
            usage=AnswerUsageView.model_validate(answer.usage),
            generator=answer.generator,
            model=answer.model,
            trace=TraceView.of(retrieval.trace),
        )
