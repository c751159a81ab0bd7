"""Resolves the limits and weights of a request, for the HTTP API, the library and the command line.

Precedence: the request, then a preset, then the tenant's flags, then the deployment's settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.query import LegWeights, LevelWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.leg_weights import LevelPolicy, RequestOverrides, choose_leg_weights
from agentic_rag_backend.retrieval.themes.global_search import MAX_THEMES
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features

DEFAULT_LIMIT = 5
_LEVELS = ("low", "high", "preset")
_LEGS = ("dense", "sparse")
_WEIGHTS_OF: Mapping[str, tuple[str, ...]] = {"auto": _LEVELS, "dual_level": _LEVELS, "hybrid": _LEGS}
_OFF = "weights have no effect: dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Resolved values of a query, and warnings about adjusted values. If ``leg_weights`` is None, the deployment's apply."""

    limit: int
    high_limit: int
    weights: LevelWeights
    leg_weights: LegWeights | None = None
    warnings: tuple[str, ...] = ()


class RequestDefaults:
    """Completes requests from the deployment's settings and the tenant's flags.

    Args:
        features: the feature flags.
        low_limit: default number of chunks if both levels answer.
        high_limit: default number of themes for `community` and for strategies that also return chunks.
        weights: level weights of tenants that set none.
    """

    def __init__(self, features: Features, *, low_limit: int, high_limit: int, weights: LevelWeights) -> None:
        self._features = features
        self.low_limit = low_limit
        self.high_limit = high_limit
        self.weights = LevelPolicy(features, weights)

    def resolve(self, overrides: RequestOverrides, *, strategy: str, question: str, flags: Mapping[str, object]) -> Resolved:
        """Return limits and weights for a request.

        Args:
            strategy: canonical name.
            flags: the tenant's flags.

        Raises:
            InvalidRequest: a weight is outside its limits, or the strategy does not accept it.
        """
        weight_names = tuple(name for name in (*_LEVELS, *_LEGS) if getattr(overrides, name) is not None)
        _check_weights(strategy, weight_names)
        both_levels = strategy == "dual_level" or (strategy == "auto" and self._features.is_on(DUAL_LEVEL, flags))
        weights, warnings = self.weights.choose(overrides, question=question, flags=flags)
        if weight_names and strategy == "auto" and not both_levels:
            warnings = (_OFF,)
        leg_weights, about_legs = choose_leg_weights(overrides.dense, overrides.sparse)
        low_limit, high_limit = self._choose_limits(overrides, strategy, both_levels)
        return Resolved(
            limit=low_limit,
            high_limit=high_limit,
            weights=weights,
            leg_weights=leg_weights,
            warnings=about_legs or warnings,
        )

    def _choose_limits(self, overrides: RequestOverrides, strategy: str, both_levels: bool) -> tuple[int, int]:
        low = overrides.low_limit or overrides.limit or (self.low_limit if both_levels else DEFAULT_LIMIT)
        if strategy == "global":
            # Unless the request sets a lower limit, the answer uses as many themes as the token budget holds.
            return low, overrides.limit or MAX_THEMES
        if strategy == "community":
            return low, overrides.limit or self.high_limit
        return low, overrides.high_limit or min(overrides.limit or self.high_limit, self.high_limit)


def _check_weights(strategy: str, weight_names: tuple[str, ...]) -> None:
    accepted = _WEIGHTS_OF.get(strategy, ())
    wrong = [name for name in weight_names if name not in accepted]
    if wrong:
        takes = f"takes the weights {', '.join(accepted)}" if accepted else "takes no weights"
        got = [f"weights.{name}" for name in wrong]
        raise InvalidRequest(f"strategy {strategy!r} {takes}; got {', '.join(got)}", field=got[0])
