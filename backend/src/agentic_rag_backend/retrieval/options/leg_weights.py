"""Weights of the two levels and of the two legs of hybrid search: presets, defaults and precedence.

Precedence: explicit weights, then a preset, then values that tuning set, then the tenant's flag, then the deployment's settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from agentic_rag_backend.domain.query import BALANCED, LegWeights, LevelWeights
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.language.languages import STOP_WORDS, is_mostly_latin
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for, find_literals
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.tenancy.features import AUTO_WEIGHTS, LOW_WEIGHT, Features

_log = get_logger(__name__)

LEG_WEIGHTS = LegWeights(0.7, 0.3)
"""The best of .5 to .9, judged by the lower score of MuSiQue and HotpotQA."""
LEANING_DENSE = 0.3
"""Largest share of the dense leg for a query with an identifier, or in a script that the embedder does not read."""
QUOTED_DENSE = 0.5
"""Largest share of the dense leg for a query with a quoted phrase. With .4, HotpotQA's questions with quoted titles lose .04 of
R@5."""
PRESETS: Mapping[str, LevelWeights] = MappingProxyType(
    {
        "factoid": LevelWeights(0.8, 0.2),
        "conceptual": LevelWeights(0.3, 0.7),
        "balanced": BALANCED,
        "research": LevelWeights(0.5, 0.5),
    }
)
AUTO = "auto"
"""Pseudo-preset that selects a preset by the form of the question."""
LEVEL_FIELDS = ("low_weight", "high_weight")
"""Fields of a request that set the weights of the levels, unless it names others."""
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Shares:
    """Two shares that sum to 1. ``warning`` says how they were normalised, and is None if they were not."""

    first: float
    second: float
    warning: str | None = None


def shares(first_weight: float | None, second_weight: float | None, *, names: tuple[str, str]) -> Shares | None:
    """Return the shares that a caller gave, or None if it gave neither. If only one is given, the other is 1 minus it.

    Raises:
        InvalidRequest: a value is not a number in [0, 1], or both are 0.
    """
    for name, value in zip(names, (first_weight, second_weight), strict=True):
        if value is not None and not 0.0 <= value <= 1.0:  # also false for NaN
            raise InvalidRequest(f"{name} must be a number from 0 to 1; got {value}", field=name)
    if first_weight is None and second_weight is None:
        return None
    first_share = first_weight if first_weight is not None else 1.0 - (second_weight or 0.0)
    second_share = second_weight if second_weight is not None else 1.0 - first_share
    return normalise_weights(first_share, second_share, names=names)


def normalise_weights(first_weight: float, second_weight: float, *, names: tuple[str, str]) -> Shares:
    """Return two weights in [0, 1] divided by their sum.

    Raises:
        InvalidRequest: both are 0.
    """
    total = first_weight + second_weight
    if total <= 0:
        raise InvalidRequest(
            f"{names[0]} and {names[1]} must not both be 0; got {first_weight} and {second_weight}", field=names[0]
        )
    if abs(total - 1.0) <= _SUM_TOLERANCE:
        return Shares(first_weight, second_weight)
    warning = f"weights {first_weight} and {second_weight} sum to {total:g}, not 1: normalised"
    return Shares(first_weight / total, second_weight / total, warning)


def preset_for(question: str) -> str | None:
    """Return the preset that suits the question's form: an account, or one item such as a name or a date. None for others."""
    kind = asked_for(question)
    if kind is AnswerKind.THEME:
        return "conceptual"
    return "factoid" if kind.fact else None


def choose_weights(
    low: float | None,
    high: float | None,
    *,
    preset: str | None = None,
    default: LevelWeights = BALANCED,
    fields: tuple[str, str] = LEVEL_FIELDS,
) -> tuple[LevelWeights, tuple[str, ...]]:
    """Return weights that sum to 1, and warnings. Explicit weights win over a preset, a preset over the default.

    If only one weight is given, the other is 1 minus it. ``fields`` are the names of the weights in messages.

    Raises:
        InvalidRequest: a weight is not a number in [0, 1], both are 0, or the preset is unknown.
    """
    chosen = shares(low, high, names=fields)
    if preset is not None and preset not in PRESETS:
        raise InvalidRequest(f"preset must be one of {', '.join(PRESETS)}; got {preset!r}")
    if chosen is None:
        return (PRESETS[preset] if preset else default), ()
    if chosen.warning is None:
        return LevelWeights(chosen.first, chosen.second), ()
    _log.warning("dual_level_weights_normalised", low=low, high=high)
    return LevelWeights(chosen.first, chosen.second), (chosen.warning,)


def choose_leg_weights(dense: float | None, sparse: float | None) -> tuple[LegWeights | None, tuple[str, ...]]:
    """Return leg weights that sum to 1, or None for the deployment's weights, and warnings.

    Raises:
        InvalidRequest: a weight is not a number in [0, 1], or both are 0.
    """
    chosen = shares(dense, sparse, names=("weights.dense", "weights.sparse"))
    if chosen is None:
        return None, ()
    if chosen.warning is None:
        return LegWeights(chosen.first, chosen.second), ()
    _log.warning("hybrid_weights_normalised", dense=dense, sparse=sparse)
    return LegWeights(chosen.first, chosen.second), (chosen.warning,)


@dataclass(frozen=True, slots=True)
class ChosenLegWeights:
    """Leg weights of one query, and what decided on them.

    ``by`` is ``request``, ``query_form``, ``query_script``, ``tuning`` or ``settings``.
    """

    weights: LegWeights
    by: str

    @property
    def details(self) -> dict[str, Any]:
        """The details for the trace."""
        return {"weights": self.weights.by_leg(), "weights_by": self.by}


def leg_weights_of(
    leg_weights: LegWeights | None,
    text: str,
    default: LegWeights,
    *,
    default_by: str = "settings",
    languages: Collection[str] | None = None,
) -> ChosenLegWeights:
    """Return the leg weights of a query: those of its request (``leg_weights``), if it has any, otherwise the default.

    A query leans to BM25 if it has a literal part, or if the embedder does not read its script. It does not if the deployment has
    switched BM25 off.

    Args:
        default_by: what decided on ``default``: ``tuning`` or ``settings``.
        languages: the languages of the embedder; None: any.
    """
    if leg_weights is not None:
        return ChosenLegWeights(leg_weights, "request")
    leaning = _find_leaning(text, languages) if default.sparse > 0 else None
    if leaning is None or default.dense <= leaning[0]:
        return ChosenLegWeights(default, default_by)
    dense, by = leaning
    return ChosenLegWeights(LegWeights(dense, 1 - dense), by)


def _find_leaning(text: str, languages: Collection[str] | None) -> tuple[float, str] | None:
    """Return the share of the dense leg for the form of a query, and the name of the form. None: it has no such form."""
    parts = find_literals(text)
    if parts.identifiers:
        return LEANING_DENSE, "query_form"
    if languages is not None and set(languages) <= STOP_WORDS.keys() and not is_mostly_latin(text):
        return LEANING_DENSE, "query_script"
    return (QUOTED_DENSE, "query_form") if parts.quoted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOverrides:
    """Limits and weights of a request. None means that the request does not set the value.

    ``limit`` applies to results and themes, ``low_limit`` to results only, ``high_limit`` to themes only.
    ``level_fields`` are the names of ``low`` and ``high`` in the request, for messages.
    """

    limit: int | None = None
    low_limit: int | None = None
    high_limit: int | None = None
    low: float | None = None
    high: float | None = None
    preset: str | None = None
    dense: float | None = None
    sparse: float | None = None
    level_fields: tuple[str, str] = LEVEL_FIELDS


class LevelPolicy:
    """Level weights by request, tenant and deployment.

    Args:
        features: the feature flags.
        deployment: weights of tenants that set none.
    """

    def __init__(self, features: Features, deployment: LevelWeights) -> None:
        self._features = features
        self._deployment = deployment

    def of_tenant(self, flags: Mapping[str, object], tuned: TunedValues = NOT_TUNED) -> LevelWeights:
        """Return the tenant's default weights, used if the request gives none and the question's form selects no preset."""
        if tuned.low_weight is not None:
            return choose_weights(tuned.low_weight, None)[0]
        if LOW_WEIGHT not in flags:
            return self._deployment
        return choose_weights(self._features.read_share(LOW_WEIGHT, flags), None)[0]

    def choose(
        self, overrides: RequestOverrides, *, question: str, flags: Mapping[str, object], tuned: TunedValues
    ) -> tuple[LevelWeights, tuple[str, ...]]:
        """Return the weights of a request, and warnings about adjusted values.

        Raises:
            InvalidRequest: a weight is not a number in [0, 1], both are 0, or the preset is unknown.
        """
        preset = overrides.preset
        by_form = tuned.low_weight is None and self._features.is_on(AUTO_WEIGHTS, flags)
        if preset == AUTO or (preset is None and by_form):
            preset = preset_for(question)
        default, fields = self.of_tenant(flags, tuned), overrides.level_fields
        return choose_weights(overrides.low, overrides.high, preset=preset, default=default, fields=fields)
