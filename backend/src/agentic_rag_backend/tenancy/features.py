"""Feature flags: what is on for a tenant, and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentic_rag_backend.errors import InvalidRequest

DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"
COMMUNITY_AUTO_REBUILD = "COMMUNITY_AUTO_REBUILD"
RAPTOR_AUTO_UPDATE = "RAPTOR_AUTO_UPDATE"


@dataclass(frozen=True, slots=True)
class FlagDefault:
    """A flag's value for tenants that set none; ``source`` says whether the environment or the code decided it."""

    value: bool
    source: Literal["default", "environment"]
    code_default: bool
    description: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as ``GET /features`` shows it."""

    name: str
    value: bool
    default: bool
    source: Literal["default", "environment", "tenant"]
    description: str


class Features:
    """Combines the deployment's defaults with what a tenant has set; holds nothing of any tenant."""

    def __init__(self, defaults: Mapping[str, FlagDefault]) -> None:
        self._defaults = dict(defaults)

    def effective(self, tenant_flags: Mapping[str, object]) -> list[Flag]:
        """Return every flag with its effective value."""
        return [
            Flag(name, bool(tenant_flags[name]), held.code_default, "tenant", held.description)
            if name in tenant_flags
            else Flag(name, held.value, held.code_default, held.source, held.description)
            for name, held in self._defaults.items()
        ]

    def enabled(self, name: str, tenant_flags: Mapping[str, object]) -> bool:
        """Tell whether a flag is on for a tenant."""
        return bool(tenant_flags.get(name, self._defaults[name].value))

    def check(self, changes: Mapping[str, Any]) -> dict[str, bool | None]:
        """Return ``changes`` if each is a known flag with true, false or null (null: back to the default).

        Raises:
            InvalidRequest: naming the flag, what is known and the value.
        """
        if not changes:
            raise InvalidRequest(f"name at least one flag; known are {', '.join(self._defaults)}")
        for name, value in changes.items():
            if name not in self._defaults:
                raise InvalidRequest(f"unknown flag {name[:80]!r}; known are {', '.join(self._defaults)}")
            if value is not None and not isinstance(value, bool):
                raise InvalidRequest(f"{name} takes true, false or null; got {str(value)[:80]!r}")
        return dict(changes)
