"""Status, features, strategies, health probes and comparisons of the stores."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.api.schemas.jobs import JobView
from agentic_rag_backend.retrieval.options.filters import Switch
from agentic_rag_backend.tenancy.features import Flag


class Live(View):
    """The process responds."""

    status: Literal["ok"]


class Ready(View):
    """Whether requests can be served, with the state of each store and model."""

    status: Literal["ok", "degraded", "unavailable"] = Field(description="`degraded`: the language model is unavailable")
    stores: dict[str, str] = Field(description="state of each store and of the job queue: `ok` or the problem")
    models: dict[str, str] = Field(description="state of the embedder and of the language model: `ok` or the problem")
    workers: int | None = Field(description="live processes that run jobs; null if unknown")
    reindex_required: bool = Field(False, description="another embedder made the vectors; run `agentic-rag reindex`")


class ReconcileBody(Body):
    """Options of a comparison of the stores."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"repair": True}]})

    repair: Switch = Field(False, description="false: report differences, change nothing")
    confirm: Switch = Field(
        False,
        description="with `repair`: remove data of no known document, even if it is much (`withheld` counts it)",
    )


class ReconcileStatus(View):
    """Interval of the comparisons, and the last comparison. The job's `result` has the counts by kind."""

    interval_s: float = Field(description="seconds between two scheduled comparisons with repair; 0: no scheduled comparisons")
    last_job: JobView | None


class LastReconciliation(View):
    """Figures of the last finished comparison."""

    finished_at: datetime
    repair: bool
    found: int
    mended: int
    skipped: int
    unmendable: int
    withheld: int


class FlagView(View):
    name: str
    value: bool | float
    default: bool | float
    source: Literal["default", "environment", "tenant", "tuning"]
    description: str

    @classmethod
    def of(cls, flag: Flag) -> FlagView:
        """Return the view of a flag."""
        return cls(name=flag.name, value=flag.value, default=flag.default, source=flag.source, description=flag.description)


class StrategyView(View):
    name: str
    description: str
    aliases: list[str]
    options: dict[str, Any]
    languages: list[str] | None = Field(
        description="languages that its embedder was trained for; texts in others are found by their words. Null: no such limit"
    )
    available: bool
    why_not: str | None


class RerankerView(View):
    """A reranker. ``options`` is the JSON Schema of its options; ``max_candidates`` the most that it scores for a request."""

    name: str
    description: str
    options: dict[str, Any]
    max_candidates: int
    available: bool
    why_not: str | None


class DualLevelStatus(View):
    enabled: bool
    low_weight: float
    high_weight: float
    auto_weights: bool
    low_limit: int
    high_limit: int
    synthesis_model: str
    synthesis_temperature: float


class TuningStatus(View):
    """Values that accepted proposals of tuning set, by parameter. ``proposal_id``: the proposal that was accepted last."""

    proposal_id: str | None
    values: dict[str, Any]


class CalibrationView(View):
    """The scale of the embedder's cosines. ``reason`` says why the default is used."""

    encoder: str
    source: Literal["fitted", "measured", "default"] = Field(
        description="`fitted` to evaluation data, `measured` on a bundled sample, or the `default`: values of the bundled encoder"
    )
    reason: str | None


class CommunitiesStatus(View):
    generation: int
    stale: bool
    built_at: datetime | None


class VectorIndexRun(View):
    """One build of an index. ``gap_s`` is the longest time during which it blocked requests."""

    finished_at: datetime
    seconds: float
    gap_s: float
    reason: str
    failure: str | None


class VectorIndexStatus(View):
    """A collection of all tenants. ``indexed_share`` is the share of its points that the index contains."""

    collection: str
    points: int
    indexed_share: float
    state: Literal["idle", "copying", "optimising", "swapping", "failed"]
    last: VectorIndexRun | None


class WorkersStatus(View):
    """``alive``: workers with a recent heartbeat; ``here``: whether this process runs jobs."""

    alive: int
    here: bool


class OcrView(View):
    """Recognition of text in pictures by this process. ``reason``: why there is none, and how to change it."""

    available: bool
    engine: str | None
    languages: list[str]
    installed_languages: list[str]
    reason: str | None


class ExtractionMethodView(View):
    """A method of extraction that a document may ask for. ``why_not``: the reason if it cannot be used."""

    name: str
    available: bool
    why_not: str | None


class ModelLimitsView(View):
    """What the server of a language model refuses, and the limits that it stated. This process learned them from errors.

    ``refused``: features with the seconds until they are tried again.
    """

    model: str
    refused: dict[str, int]
    window_tokens: int | None
    reply_tokens: int | None
    reasoning_tokens: int


class StatusView(View):
    """Status of the server and of a tenant."""

    version: str
    profile: Literal["embedded", "server", "mixed"]
    stores: dict[str, str]
    models: dict[str, str]
    model_states: dict[str, str]
    model_settings: dict[str, float | str | None] = Field(
        description="time limits, budgets and concurrency of the language model as they are used, after LLM_PROFILE and "
        "LLM_TIMEOUT_S"
    )
    model_limits: list[ModelLimitsView]
    calibration: CalibrationView
    ocr: OcrView
    extraction_methods: list[ExtractionMethodView]
    strategies: list[str]
    features: dict[str, bool | float]
    dual_level: DualLevelStatus
    tuning: TuningStatus
    counts: dict[str, int]
    state_version: int
    search: Literal["current", "pending"] = Field(
        description="`pending`: filters do not see every change of titles and metadata yet"
    )
    communities: CommunitiesStatus
    raptor: CommunitiesStatus
    vector_indexes: list[VectorIndexStatus] | None
    reconciliation: LastReconciliation | None
    workers: WorkersStatus
    queue: dict[str, int] | None
    warnings: list[str]
