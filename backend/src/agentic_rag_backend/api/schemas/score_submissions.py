"""Submitted scores and their means."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated

from pydantic import ConfigDict, Field, field_validator

from agentic_rag_backend.api.schemas.base import Body, Number, View
from agentic_rag_backend.domain.score_submission import (
    MAX_CONTEXT_CHARACTERS,
    MAX_CONTEXTS,
    MAX_SCORES,
    MAX_TEXT_CHARACTERS,
    MetricMean,
    RecordedScores,
    ScoreGroup,
    ScoreSubmission,
)
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

SCORE_BYTES = 1024 * 1024
MAX_CHUNK_IDS = 100
MAX_LABEL_CHARACTERS = 128
_Label = Annotated[str, Field(max_length=MAX_LABEL_CHARACTERS)]
_ChunkIds = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MAX_CHUNK_IDS)]
_Text = Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]
_Metric = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_@.-]{0,63}$")]
_Value = Annotated[Number, Field(ge=-1_000_000, le=1_000_000)]


class ScoreBody(Body):
    """An answer, what is known about it, and scores that the caller measured."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "Who leads the Harbour Authority?",
                    "answer": "Mara Venn leads the Harbour Authority.",
                    "expected_answer": "Mara Venn",
                    "contexts": ["Mara Venn leads the Harbour Authority."],
                    "scores": {"answer_relevancy": 0.9},
                    "strategy": "hybrid",
                    "configuration": "rerank=none",
                }
            ]
        }
    )

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    answer: _Text | None = None
    expected_answer: _Text | None = None
    retrieved_chunk_ids: _ChunkIds = Field(default_factory=list, description="best first")
    gold_chunk_ids: _ChunkIds = Field(default_factory=list, description="chunks that contain the answer")
    contexts: list[str] = Field(
        default_factory=list,
        max_length=MAX_CONTEXTS,
        description=f"texts, at most {MAX_CONTEXT_CHARACTERS} characters together; default: of `retrieved_chunk_ids`",
    )
    scores: dict[_Metric, _Value] = Field(default_factory=dict, max_length=MAX_SCORES, description="by metric")
    strategy: _Label = Field("", description="strategy of the answer")
    configuration: _Label = Field("", description="a name of the caller for everything else that may differ")

    @field_validator("contexts")
    @classmethod
    def _limit_size(cls, contexts: list[str]) -> list[str]:
        size = sum(map(len, contexts))
        if size > MAX_CONTEXT_CHARACTERS:
            raise ValueError(f"must have at most {MAX_CONTEXT_CHARACTERS} characters together; got {size}")
        return contexts

    def submission(self) -> ScoreSubmission:
        """Return the submission as a value."""
        return ScoreSubmission(**{name: getattr(self, name) for name in type(self).model_fields})


class ScoreView(View):
    value: float
    computed: bool = Field(description="by this server, because the caller did not give it")


class RecordedScoresView(View):
    """The recorded scores. No text of the request is kept."""

    id: str
    scores: dict[str, ScoreView]
    unknown_chunks: int = Field(description="chunks of the request that are not visible")

    @classmethod
    def of(cls, recorded: RecordedScores) -> RecordedScoresView:
        """Return the view of recorded scores."""
        return cls.model_validate(recorded)


class MetricMeanView(View):
    """Scores of one metric."""

    count: int
    computed: int = Field(description="scores among them that this server computed")
    mean: float
    minimum: float
    maximum: float


class ScoreGroupView(View):
    """Means of one day, strategy and configuration."""

    day: datetime.date
    strategy: str
    configuration: str
    metrics: dict[str, MetricMeanView]

    @classmethod
    def of(cls, group: ScoreGroup, means: Mapping[str, MetricMean]) -> ScoreGroupView:
        """Return the view of a group."""
        metrics = {name: MetricMeanView.model_validate(mean) for name, mean in means.items()}
        return cls(day=group.day, strategy=group.strategy, configuration=group.configuration, metrics=metrics)
