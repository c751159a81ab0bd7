"""What a request leaves open: limits and weights, resolved once for every route, the library and the command line.

A request wins over a preset, a preset over the tenant's flags, and those over the settings of the deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.query import LegWeights, LevelWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.queries.weights import LevelPolicy, choose_leg_weights
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features

DEFAULT_LIMIT = 5
MOST_THEMES = 100
"""Themes that strategy `global` reads at most."""
_LEVELS = ("low", "high", "preset")
_LEGS = ("dense", "sparse")
_WEIGHTS_OF: Mapping[str, tuple[str, ...]] = {"auto": _LEVELS, "dual_level": _LEVELS, "hybrid": _LEGS}
_OFF = "weights have no effect: dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a request says of limits and weights; None where it says nothing.

    ``limit`` bounds results and themes alike, ``low_limit`` and ``high_limit`` one of them each.
    """

    limit: int | None = None
    low_limit: int | None = None
    high_limit: int | None = None
    low: float | None = None
    high: float | None = None
    preset: str | None = None
    dense: float | None = None
    sparse: float | None = None

    def weights_given(self) -> tuple[str, ...]:
        """Return the names of the weights that the request gives."""
        return tuple(name for name in (*_LEVELS, *_LEGS) if getattr(self, name) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a query is made with, and warnings about what was adjusted. ``leg_weights`` None: the deployment's."""

    limit: int
    high_limit: int
    weights: LevelWeights
    leg_weights: LegWeights | None = None
    warnings: tuple[str, ...] = ()


class RequestDefaults:
    """Completes requests from the settings of a deployment and the flags of a tenant.

    Args:
        features: the flags.
        low_limit: chunks of the low level where both levels answer.
        high_limit: themes of a strategy that returns chunks as well, and of `community`.
        weights: of the two levels, for tenants that set none.
    """

    def __init__(self, features: Features, *, low_limit: int, high_limit: int, weights: LevelWeights) -> None:
        self._features = features
        self.low_limit = low_limit
        self.high_limit = high_limit
        self.weights = LevelPolicy(features, weights)

    def resolve(self, wanted: Wanted, *, strategy: str, question: str, flags: Mapping[str, object]) -> Resolved:
        """Return limits and weights for a request.

        Args:
            strategy: canonical name.
            flags: what the tenant has set.

        Raises:
            InvalidRequest: a weight is outside its limits, or is none that the strategy takes.
        """
        given = wanted.weights_given()
        _check_taken(strategy, given)
        both_levels = strategy == "dual_level" or (strategy == "auto" and self._features.enabled(DUAL_LEVEL, flags))
        weights, warnings = self.weights.choose(wanted.low, wanted.high, wanted.preset, question=question, flags=flags)
        if given and strategy == "auto" and not both_levels:
            warnings = (_OFF,)
        leg_weights, about_legs = choose_leg_weights(wanted.dense, wanted.sparse)
        low_limit, high_limit = self._limits(wanted, strategy, both_levels)
        return Resolved(
            limit=low_limit,
            high_limit=high_limit,
            weights=weights,
            leg_weights=leg_weights,
            warnings=about_legs or warnings,
        )

    def _limits(self, wanted: Wanted, strategy: str, both_levels: bool) -> tuple[int, int]:
        low = wanted.low_limit or wanted.limit or (self.low_limit if both_levels else DEFAULT_LIMIT)
        if strategy == "global":
            # The answer is made from as many themes as the budget of tokens holds, unless the request says less.
            return low, wanted.limit or MOST_THEMES
        if strategy == "community":
            return low, wanted.limit or self.high_limit
        return low, wanted.high_limit or min(wanted.limit or self.high_limit, self.high_limit)


def _check_taken(strategy: str, given: tuple[str, ...]) -> None:
    taken = _WEIGHTS_OF.get(strategy, ())
    wrong = [name for name in given if name not in taken]
    if wrong:
        takes = f"takes the weights {', '.join(taken)}" if taken else "takes no weights"
        raise InvalidRequest(f"strategy {strategy!r} {takes}; got weights.{', weights.'.join(wrong)}")
