"""Feature flags: their values for a tenant, and the source of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.errors import Conflict, InvalidRequest

DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"
COMMUNITY_AUTO_REBUILD = "COMMUNITY_AUTO_REBUILD"
AUTO_WEIGHTS = "DUAL_LEVEL_AUTO_WEIGHTS"
LOW_WEIGHT = "DUAL_LEVEL_LOW_WEIGHT"
QUESTION_LOG = "QUESTION_LOG_ENABLED"

FlagValue = bool | float
"""A boolean, or a share in [0, 1]."""
RAPTOR_AUTO_UPDATE = "RAPTOR_AUTO_UPDATE"


@dataclass(frozen=True, slots=True)
class FlagDefault:
    """A flag's value for tenants that set none; ``source`` is the environment or the code's default."""

    value: FlagValue
    source: Literal["default", "environment"]
    code_default: FlagValue
    description: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as ``GET /features`` shows it."""

    name: str
    value: FlagValue
    default: FlagValue
    source: Literal["default", "environment", "tenant", "tuning"]
    description: str


class Features:
    """Combines the deployment's defaults with a tenant's own flags. It stores no data of tenants."""

    def __init__(self, defaults: Mapping[str, FlagDefault]) -> None:
        self._defaults = dict(defaults)

    def list_effective(self, tenant_flags: Mapping[str, object], tuned: TunedValues = NOT_TUNED) -> list[Flag]:
        """Return every flag with its effective value. A value that tuning set replaces the tenant's."""
        flags = [
            Flag(name, _read_value(tenant_flags[name], default), default.code_default, "tenant", default.description)
            if name in tenant_flags
            else Flag(name, default.value, default.code_default, default.source, default.description)
            for name, default in self._defaults.items()
        ]
        if tuned.low_weight is None:
            return flags
        return [replace(flag, value=tuned.low_weight, source="tuning") if flag.name == LOW_WEIGHT else flag for flag in flags]

    def is_on(self, name: str, tenant_flags: Mapping[str, object]) -> bool:
        """Return whether a flag is on for a tenant."""
        return bool(tenant_flags.get(name, self._defaults[name].value))

    def read_share(self, name: str, tenant_flags: Mapping[str, object]) -> float:
        """Return the share that is set for a tenant."""
        default = self._defaults[name]
        return float(_read_value(tenant_flags.get(name, default.value), default))

    def check_changes(self, changes: Mapping[str, Any], tuned: TunedValues = NOT_TUNED) -> dict[str, FlagValue | None]:
        """Return ``changes`` if each is a known flag with a value of its kind, or null for the default.

        Raises:
            InvalidRequest: the message names the flag, the allowed values and the given value.
            Conflict: tuning has set the weights of the levels, so the change would have no effect.
        """
        if not changes:
            raise InvalidRequest(f"name at least one flag; known are {', '.join(self._defaults)}")
        for name, value in changes.items():
            if name not in self._defaults:
                raise InvalidRequest(f"unknown flag {name[:80]!r}; known are {', '.join(self._defaults)}")
            if value is not None and not _is_kind_of(value, self._defaults[name]):
                kind = "true, false" if isinstance(self._defaults[name].value, bool) else "a number from 0 to 1"
                raise InvalidRequest(f"{name} takes {kind} or null; got {str(value)[:80]!r}")
        without_effect = sorted({LOW_WEIGHT, AUTO_WEIGHTS} & changes.keys()) if tuned.low_weight is not None else []
        if without_effect:
            raise Conflict(
                f"tuning has set the weights of the levels, so {' and '.join(without_effect)} would have no effect; "
                f"roll back proposal {tuned.proposal_id!r} first"
            )
        return dict(changes)


def _read_value(value: object, default: FlagDefault) -> FlagValue:
    if isinstance(default.value, bool):
        return bool(value)
    return float(value) if isinstance(value, int | float) else default.value


def _is_kind_of(value: object, default: FlagDefault) -> bool:
    if isinstance(default.value, bool) or isinstance(value, bool):
        return isinstance(default.value, bool) and isinstance(value, bool)
    return isinstance(value, int | float) and 0 <= value <= 1
