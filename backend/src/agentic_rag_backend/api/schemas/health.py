"""What probes read."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View


class Live(View):
    """The process answers."""

    status: Literal["ok"]


class Ready(View):
    """Whether requests can be served, and by what not."""

    status: Literal["ok", "degraded", "unavailable"] = Field(description="degraded: the language model is down")
    stores: dict[str, str] = Field(description="`ok`, or what is wrong, of each store and the job queue")
    models: dict[str, str] = Field(description="`ok`, or what is wrong, of the embedder and the language model")
    workers: int | None = Field(description="processes that run jobs; null where that cannot be found out")
    reindex_required: bool = Field(False, description="the vectors are of another embedder; run `agentic-rag reindex`")
