"""Datasets of questions with their expected results, runs of configurations over them, and the outcome of each question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from agentic_rag_backend.domain.asked_questions import RatingCounts
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.usage import Usage

MAX_DATASETS = 1000
"""Datasets of a tenant."""
MAX_CASES = 10_000
"""Cases of a dataset, those of earlier versions included."""
MAX_RUNS = 1000
"""Runs of a tenant."""
MAX_OUTCOMES = 20_000
"""Cases of a run, times its configurations."""


class CaseSource(StrEnum):
    """Origin of a case. Cases made from documents are deleted with them, because their texts are those of the documents."""

    UPLOAD = "upload"
    GRAPH = "graph"
    ANSWER = "answer"
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldItem:
    """One piece of evidence that a search should find: a quote, a chunk, or any chunk of a document.

    ``quote`` finds the evidence again after the document was chunked anew. Without a quote, ``chunk_id`` or ``document`` is the
    evidence. ``document`` is the id or the key of a document.
    """

    quote: str = ""
    chunk_id: str | None = None
    document: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationCase:
    """A question and its expected result.

    ``must_say`` are texts that a right answer contains. ``answerable`` False: the right answer is a refusal. ``filters`` are
    those of the search, in the grammar of requests.
    """

    question: str
    expected_answer: str | None = None
    must_say: tuple[str, ...] = ()
    answerable: bool = True
    kind: str = ""
    tags: tuple[str, ...] = ()
    gold: tuple[GoldItem, ...] = ()
    filters: Mapping[str, Any] | None = None
    source: CaseSource = CaseSource.UPLOAD
    documents: tuple[str, ...] = ()
    """Ids of the documents with whose purge the case, or its quotes, must go. Only written."""
    ratings: RatingCounts = field(default_factory=RatingCounts)
    """Ratings of the tenant's answers to this question. Only read."""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A named list of cases. Each change of the cases makes a new version; 0: no cases yet.

    ``kinds`` counts the cases of the version by kind.
    """

    id: str
    name: str
    version: int
    case_count: int
    kinds: Mapping[str, int]
    created_at: datetime
    updated_at: datetime
    job_id: str | None = None
    """The job that generates the cases, if any did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What a run asks: each case of a version of a dataset, in each configuration, with ``k`` results.

    ``configurations`` have distinct ``name``s, and fields of an answer request. ``answers``: answers are written and judged, not
    only results. ``max_tokens`` is the budget; None: no limit.
    """

    dataset_id: str
    dataset_version: int
    configurations: tuple[Mapping[str, Any], ...]
    k: int = 5
    answers: bool = True
    max_tokens: int | None = None
    judge_model: str | None = None
    """The model that compares the answers of the first configuration with those of the others. Empty: the deployment's. None: no
    model does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRun:
    """A run and the state of its job. ``result`` is its summary, None until the job has ended, and in lists."""

    id: str
    plan: RunPlan
    job_id: str
    state: JobState
    done: int
    total: int
    created_at: datetime
    finished_at: datetime | None = None
    error: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """The measures of one case in one configuration. It has no text of a document or an answer.

    ``measures`` are by name; a measure that does not apply to the case is absent. ``times_ms`` are milliseconds by stage.
    ``documents`` and ``chunks`` are the ids of the results, best first. ``gold_missing`` counts the items of evidence that no
    visible document has. ``cost`` is None if the price of a call is unknown, or if an earlier
    release measured it. ``error`` is the code of the error that the question ended with.
    """

    configuration: str
    case_id: str
    kind: str = ""
    tags: tuple[str, ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)
    times_ms: Mapping[str, float] = field(default_factory=dict)
    documents: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    confidence: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float | None = None
    gold_missing: int = 0
    error: str | None = None


class PairChoice(StrEnum):
    """The better of two answers."""

    BASELINE = "baseline"
    CONFIGURATION = "configuration"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """A judge's verdict on a configuration's answer to a case, compared with the baseline's.

    ``choices`` are those of the two orders of the answers; None: the reply could not be read, and ``error`` is its code. If the
    answers were equal, ``asked`` is false. The tokens include those of answers that had to be written again, because the process
    was killed before the verdict was recorded. ``cost`` is None if the price of a call is unknown.
    """

    configuration: str
    baseline: str
    case_id: str
    choices: tuple[PairChoice | None, PairChoice | None]
    asked: bool = True
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float | None = None
    error: str | None = None

    def with_usage(self, usage: Usage | CaseOutcome) -> PairVerdict:
        """Return the verdict with the usage of more calls."""
        if not usage.calls:
            return self
        known = self.cost is not None or not self.calls
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            calls=self.calls + usage.calls,
            cost=(self.cost or 0.0) + usage.cost if known and usage.cost is not None else None,
        )

    @property
    def preference(self) -> int:
        """1 if both orders prefer the configuration, -1 if both prefer the baseline, otherwise 0."""
        forward, backward = self.choices
        if forward is not backward or forward is None:
            return 0
        return {PairChoice.CONFIGURATION: 1, PairChoice.BASELINE: -1, PairChoice.EQUAL: 0}[forward]
