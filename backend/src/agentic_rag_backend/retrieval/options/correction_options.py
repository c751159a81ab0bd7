"""The correction of a request: ``true``, or an object with options. It applies to any strategy that returns chunks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field

from agentic_rag_backend.domain.query import Correction
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.model import MaxCallsOption, format_value


class CorrectionOptions(MaxCallsOption):
    """Options of a correction, in ``corrective`` and of the strategy `corrective`."""

    relevance_threshold: float = Field(0.7, ge=0, le=1, description="least grade of a relevant result")
    max_refinement_attempts: int = Field(2, ge=0, le=5, description="maximum number of searches with other wordings")
    min_relevant: int = Field(1, ge=1, le=10, description="relevant results that are sufficient")


_FIELDS = {
    "relevance_threshold": "threshold",
    "max_refinement_attempts": "attempts",
    "min_relevant": "min_relevant",
    "max_calls": "max_calls",
}
CorrectionValue = bool | Mapping[str, Any] | None


def correction_of(options: Mapping[str, Any]) -> Correction:
    """Return the correction that valid options describe."""
    return Correction(**{field: options[option] for option, field in _FIELDS.items() if option in options})


def resolve_correction(value: CorrectionValue, strategy: str, correctable: Collection[str]) -> Correction | None:
    """Return the correction of a request; None: none.

    Args:
        value: as the caller wrote it.
        strategy: canonical name.
        correctable: the strategies that can be corrected.

    Raises:
        InvalidRequest: the value is neither a boolean nor an object, an option is unknown or invalid, or the strategy cannot be
            corrected.
    """
    if value is None or value is False:
        return None
    options = {} if value is True else value
    if not isinstance(options, Mapping):
        raise InvalidRequest(f"corrective must be true, false or an object; got {format_value(value)}")
    if strategy not in correctable:
        raise InvalidRequest(f"corrective applies to {', '.join(sorted(correctable))}; got the strategy {strategy!r}")
    schemas = CorrectionOptions.schemas()
    for option, chosen in options.items():
        if option not in schemas:
            raise InvalidRequest(f"corrective has no option {option[:80]!r}; it has {', '.join(schemas)}", field=option)
        CorrectionOptions.check_option(option, chosen, of="corrective")
    return correction_of(options)
