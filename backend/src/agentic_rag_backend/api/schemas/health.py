"""Responses to health probes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View


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
