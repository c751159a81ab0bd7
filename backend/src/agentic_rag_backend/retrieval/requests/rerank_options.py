"""The reranking of a request: ``false``, ``true``, a name, or an object with a name and options."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.query import Rerank
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable, in_field
from agentic_rag_backend.retrieval.options.model import RequestOptions, format_value, optional_field
from agentic_rag_backend.retrieval.rerank.registry import (
    MAX_CANDIDATES,
    NONE,
    RERANKERS,
    RerankerRegistry,
    check_reranker_options,
)

OVER_RETRIEVAL = 3
"""Candidates for each result."""


class SharedRerankOptions(RequestOptions):
    """Options of every reranker."""

    top_n: int = optional_field(ge=1, le=100)
    candidates: int = optional_field(ge=1, le=MAX_CANDIDATES)
    min_score: float = optional_field(ge=0, le=1)
    timeout_ms: int = optional_field(ge=1, le=600_000)


RerankValue = bool | str | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankDefaults:
    """Deployment defaults.

    Attributes:
        reranker: the one of ``rerank: true``. `graph` is the best one without a further model (docs/reference/rerankers.md).
        hybrid: reranker of `hybrid` for requests without ``rerank``. None: such requests are not reranked.
        timeout_s: time limit of reranking in seconds.
    """

    reranker: str = "graph"
    hybrid: str | None = None
    timeout_s: float = 10.0


def _names_one(value: RerankValue) -> bool:
    return isinstance(value, str) or (isinstance(value, Mapping) and "name" in value)


class RerankRequests:
    """Completes and validates the reranking of requests."""

    def __init__(self, rerankers: RerankerRegistry, defaults: RerankDefaults) -> None:
        self._rerankers = rerankers
        self._defaults = defaults

    def resolve(self, value: RerankValue, *, strategy: str, limit: int) -> Rerank | None:
        """Return the reranking of a request; None: none.

        Args:
            value: as the caller wrote it. None: the request does not name it.
            strategy: canonical name.
            limit: maximum number of results.

        Raises:
            InvalidRequest: an unknown reranker or option, or a value outside its limits.
            RerankerUnavailable: this deployment lacks something that the reranker requires.
            ModelUnavailable: the model of the reranker that the request names is known to be unavailable. With a reranker by
                default, results keep the strategy's order in this case.
        """
        options = self._to_options(value, strategy)
        name = str(options.pop("name"))
        if name == NONE and set(options) <= {"candidates", "timeout_ms"}:
            return None
        with in_field("name") if isinstance(value, Mapping) and "name" in value else nullcontext():
            reranker = self._rerankers.get(name)
            try:
                reranker.check()
            except ModelUnavailable:
                if _names_one(value):
                    raise
        shared = {option: options.pop(option) for option in SharedRerankOptions.schemas() if option in options}
        for option, number in shared.items():
            SharedRerankOptions.check_option(option, number, of="rerank")
        check_reranker_options(name, options)
        entry = RERANKERS[name]
        candidates = shared.get("candidates", max(entry.least, OVER_RETRIEVAL * limit))
        timeout_ms = shared.get("timeout_ms")
        return Rerank(
            name=name,
            candidates=min(candidates, entry.most),
            top_n=shared.get("top_n"),
            min_score=float(shared.get("min_score", 0.0)),
            timeout_s=self._defaults.timeout_s if timeout_ms is None else timeout_ms / 1000,
            own_timeout=timeout_ms is not None,
            options=options,
        )

    def _to_options(self, value: RerankValue, strategy: str) -> dict[str, Any]:
        """Return the object form of a value."""
        if value is None:
            return {"name": (self._defaults.hybrid if strategy == "hybrid" else None) or NONE}
        if isinstance(value, bool):
            return {"name": self._defaults.reranker if value else NONE}
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping):
            raise InvalidRequest(f"rerank must be true, false, a name or an object; got {format_value(value)}")
        name = value.get("name", self._defaults.reranker)
        if not isinstance(name, str):
            raise InvalidRequest(f"rerank.name must be a text; got {format_value(name)}", field="name")
        return {**value, "name": name}
