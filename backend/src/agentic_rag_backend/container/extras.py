"""The error for a package of an extra that is not installed."""

from __future__ import annotations

from agentic_rag_backend.errors import ConfigurationError


def missing_extra(feature: str, extra: str, reason: object) -> ConfigurationError:
    """Return the error of a feature that needs an extra. The package is on no index yet, so the command names the checkout."""
    return ConfigurationError(
        f"{feature} requires the extra {extra!r}: {reason}. To install it, run in the checkout: pip install './backend[{extra}]'"
    )
