"""Bodies of requests for datasets and evaluation runs, and their responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from agentic_rag_backend.api.schemas.base import Body, Switch, View, Whole
from agentic_rag_backend.domain.asked_questions import AskedQuestion, QuestionFilter, Rating
from agentic_rag_backend.domain.evaluation import (
    CaseOutcome,
    CaseSource,
    Dataset,
    EvaluationCase,
    EvaluationRun,
    GoldItem,
    RunPlan,
)
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.size_limits import MAX_NAME_CHARACTERS
from agentic_rag_backend.evaluation.case_files import MAX_GOLD, MAX_QUOTE_CHARACTERS, CaseRequest, Quote
from agentic_rag_backend.evaluation.case_measures import RETRIEVAL_MEASURES
from agentic_rag_backend.evaluation.dataset_service import MAX_GENERATED
from agentic_rag_backend.evaluation.evaluation_runs import RunEstimate
from agentic_rag_backend.evaluation.question_asking import ConfigurationRequest
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

MAX_CASES_OF_REQUEST = 1000
MAX_CONFIGURATIONS = 20
Kind = Literal["single", "two_hops", "comparison", "theme", "time", "unanswerable"]
Measure = Literal[
    "recall",
    "all_gold",
    "ndcg",
    "mrr",
    "correct",
    "contains",
    "token_f1",
    "must_say",
    "faithfulness",
    "answered_answerable",
    "refused_unanswerable",
    "contradictions",
]


class GenerateBody(Body):
    """Generation of cases from the tenant's documents, by rules."""

    count: Whole = Field(60, ge=1, le=MAX_GENERATED, description="number of questions")
    kinds: list[Kind] | None = Field(None, min_length=1, description="kinds of questions; default: all")
    seed: Whole = Field(0, ge=0, le=2**31 - 1, description="equal documents and seeds give equal questions")


class QuestionsBody(Body):
    """Questions that users of the tenant asked, if it allowed to keep them (`QUESTION_LOG_ENABLED`)."""

    count: Whole = Field(100, ge=1, le=MAX_GENERATED, description="maximum number of different questions, the newest ones")
    rating: Rating | None = Field(None, description="only questions whose answers users rated so")
    grounded: Switch | None = Field(None, description="only questions that were answered (true) or refused (false)")

    def to_filter(self) -> QuestionFilter:
        """Return the filter."""
        return QuestionFilter(rating=self.rating, grounded=self.grounded)


class DatasetBody(Body):
    """A dataset with its cases, or one whose cases are generated or questions of users."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "harbour",
                    "cases": [
                        {
                            "question": "Who leads the harbour project?",
                            "expected_answer": "Mara Venn",
                            "gold_quotes": ["Mara Venn leads the harbour project."],
                        }
                    ],
                }
            ]
        }
    )

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARACTERS)
    cases: list[CaseRequest] | None = Field(None, min_length=1, max_length=MAX_CASES_OF_REQUEST)
    generate: GenerateBody | None = None
    from_questions: QuestionsBody | None = Field(None, description="requires the scope `admin`")

    @model_validator(mode="after")
    def _has_one_origin(self) -> DatasetBody:
        if sum(origin is not None for origin in (self.cases, self.generate, self.from_questions)) != 1:
            raise ValueError("must have one of cases, generate and from_questions")
        return self


class CitedPassage(Body):
    """A citation of an answer: the chunk, and the quote from it."""

    chunk_id: str = Field(min_length=1, max_length=64)
    quote: str = Field("", max_length=MAX_QUOTE_CHARACTERS)


class SavedAnswer(Body):
    """An answer to keep as a case: the question, what a right answer says, and the citations that support it."""

    question: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    expected_answer: str | None = Field(None, max_length=MAX_QUOTE_CHARACTERS)
    must_say: list[Quote] = Field(default_factory=list, max_length=20)
    answerable: Switch = True
    kind: str = Field("", max_length=64)
    tags: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(default_factory=list, max_length=20)
    citations: list[CitedPassage] = Field(default_factory=list, max_length=MAX_GOLD)

    def to_case(self) -> EvaluationCase:
        """Return the case."""
        fields = self.model_dump(exclude={"citations"})
        gold = [{"chunk_id": citation.chunk_id, "quote": citation.quote} for citation in self.citations]
        return CaseRequest.model_validate({**fields, "gold": gold}).to_case()


class CasesBody(Body):
    """Cases to add, an answer to keep as a case, or questions that users asked."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"cases": [{"question": "Who leads the harbour project?"}]}]})

    cases: list[CaseRequest] | None = Field(None, min_length=1, max_length=MAX_CASES_OF_REQUEST)
    answer: SavedAnswer | None = None
    from_questions: QuestionsBody | None = Field(None, description="requires the scope `admin`")

    @model_validator(mode="after")
    def _has_one_origin(self) -> CasesBody:
        if sum(origin is not None for origin in (self.cases, self.answer, self.from_questions)) != 1:
            raise ValueError("must have one of cases, answer and from_questions")
        return self


class JudgeBody(Body):
    """A model that compares the answers of the first configuration with those of the others, in both orders."""

    model: str | None = Field(None, min_length=1, max_length=128, description="name of the model; default: LLM_MODEL")


class RunBody(Body):
    """A run: every case of a dataset in every configuration. Differences are those from the first configuration."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "dataset": "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9",
                    "configurations": [{"name": "dense", "strategy": "dense"}, {"name": "graph", "strategy": "graph"}],
                    "k": 5,
                }
            ]
        }
    )

    dataset: str = Field(min_length=1, max_length=64, description="id of the dataset")
    version: Whole | None = Field(None, ge=1, le=2**31 - 1, description="version of the dataset; default: the current one")
    configurations: list[ConfigurationRequest] = Field(min_length=1, max_length=MAX_CONFIGURATIONS)
    k: Whole = Field(5, ge=1, le=100, description="results of each question")
    metrics: list[Measure] | None = Field(
        None,
        min_length=1,
        description="metrics that must be measured; without one of an answer, no answers are written; default: all",
    )
    max_tokens: Whole | None = Field(
        None, ge=1, le=2**53, description="budget: no question is asked after this many tokens; the run is then `partial`"
    )
    judge: JudgeBody | None = Field(
        None, description="compare answers by a model, which costs two calls for each pair; default: no"
    )
    dry_run: Switch = Field(False, description="return the expected work, and start nothing")

    def to_plan(self) -> RunPlan:
        """Return the plan. Version 0 stands for the current one."""
        return RunPlan(
            dataset_id=self.dataset,
            dataset_version=self.version or 0,
            configurations=tuple(configuration.to_values() for configuration in self.configurations),
            k=self.k,
            answers=self.metrics is None or not set(self.metrics) <= set(RETRIEVAL_MEASURES),
            max_tokens=self.max_tokens,
            judge_model=(self.judge.model or "") if self.judge is not None else None,
        )


class DatasetView(View):
    id: str
    name: str
    version: int
    case_count: int
    kinds: dict[str, int] = Field(description="number of cases by kind")
    job_id: str | None = Field(description="the job that generates the cases")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetView:
        """Return the view of a dataset."""
        return cls.model_validate(dataset)


class GoldView(View):
    quote: str
    chunk_id: str | None
    document: str | None

    @classmethod
    def of(cls, item: GoldItem) -> GoldView:
        """Return the view of an item of evidence."""
        return cls.model_validate(item)


class AskedQuestionView(View):
    """A question that was kept, and how it was answered."""

    id: str = Field(description="id of the answer")
    question: str
    strategy: str
    grounded: bool
    confidence: float
    asked_at: datetime

    @classmethod
    def of(cls, question: AskedQuestion) -> AskedQuestionView:
        """Return the view of a question."""
        return cls.model_validate(question)


class QuestionsForgotten(View):
    questions: int = Field(description="number of questions that were deleted")


class RatingsView(View):
    good: int
    bad: int


class CaseView(View):
    id: str
    question: str
    expected_answer: str | None
    must_say: list[str]
    answerable: bool
    kind: str
    tags: list[str]
    gold: list[GoldView]
    filters: dict[str, Any] | None
    source: CaseSource
    feedback: RatingsView = Field(description="ratings of the tenant's answers to this question")

    @classmethod
    def of(cls, case: EvaluationCase) -> CaseView:
        """Return the view of a case."""
        fields = {name: getattr(case, name) for name in cls.model_fields if name not in ("gold", "feedback")}
        ratings = RatingsView.model_validate(case.ratings)
        return cls(**fields, gold=[GoldView.of(item) for item in case.gold], feedback=ratings)


class EstimateView(View):
    cases: int
    configurations: int
    questions: int = Field(description="cases times configurations")
    comparisons: int = Field(description="pairs of answers that a judge compares")
    prompt_tokens: int
    completion_tokens: int
    cost: float | None = Field(description="by MODEL_PRICES; null if the price of a model is unknown")
    basis: str = Field(description="origin of the numbers of tokens: `earlier runs`, `limits`, both, or `no model is called`")

    @classmethod
    def of(cls, estimate: RunEstimate) -> EstimateView:
        """Return the view of an estimate."""
        return cls.model_validate(estimate)


class RunAccepted(View):
    """A queued run and its job, or the expected work of a dry run."""

    run_id: str | None
    job_id: str | None
    state: JobState | None
    dry_run: bool
    estimate: EstimateView | None

    @classmethod
    def of(cls, run: EvaluationRun) -> RunAccepted:
        """Return the view of a queued run."""
        return cls(run_id=run.id, job_id=run.job_id, state=run.state, dry_run=False, estimate=None)


class RunView(View):
    """A run. ``result`` is null until its job has ended; `GET /jobs/{job_id}` shows the progress."""

    id: str
    dataset: str
    dataset_version: int
    configurations: list[dict[str, Any]]
    k: int
    max_tokens: int | None
    judge_model: str | None = Field(description="the model that compares answers; null: none")
    job_id: str
    state: JobState
    done: int
    total: int
    error: dict[str, Any] | None
    created_at: datetime
    finished_at: datetime | None
    result: dict[str, Any] | None = Field(
        description="`configurations` with `metrics` (`value`, `interval`, `count`), `latency_ms`, `calibration`, `diversity`, "
        "`usage` with `cost` (null: a price is unknown), `errors` and `slices` by kind and tag; `differences` from the baseline "
        "with `interval` and `p`; `judge`: `comparisons` with the first configuration, and `usage`; `feedback`: ratings of "
        "answers to these questions"
    )

    @classmethod
    def of(cls, run: EvaluationRun, *, with_result: bool = True) -> RunView:
        """Return the view of a run; without its result unless ``with_result``."""
        plan = run.plan
        return cls(
            id=run.id,
            dataset=plan.dataset_id,
            dataset_version=plan.dataset_version,
            configurations=[dict(configuration) for configuration in plan.configurations],
            k=plan.k,
            max_tokens=plan.max_tokens,
            judge_model=plan.judge_model,
            job_id=run.job_id,
            state=run.state,
            done=run.done,
            total=run.total,
            error=dict(run.error) if run.error is not None else None,
            created_at=run.created_at,
            finished_at=run.finished_at,
            result=dict(run.result) if with_result and run.result is not None else None,
        )


class OutcomeView(View):
    """The measures of one case in one configuration."""

    configuration: str
    case_id: str
    kind: str
    tags: list[str]
    measures: dict[str, float]
    times_ms: dict[str, float]
    documents: list[str]
    chunks: list[str]
    confidence: float | None
    prompt_tokens: int
    completion_tokens: int
    calls: int
    cost: float | None
    gold_missing: int = Field(description="items of evidence that no visible document has")
    error: str | None

    @classmethod
    def of(cls, outcome: CaseOutcome) -> OutcomeView:
        """Return the view of an outcome."""
        fields = {name: getattr(outcome, name) for name in cls.model_fields}
        return cls(**{**fields, **{name: list(fields[name]) for name in ("tags", "documents", "chunks")}})
