"""Types of the fields of requests, which refuse values of another kind instead of converting them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict

from agentic_rag_backend.language.times import period_of

Whole = Annotated[int, Strict()]
"""An integer. Booleans and text are refused."""
Number = Annotated[float, Strict()]
Switch = Annotated[bool, Strict()]
AS_OF_DESCRIPTION = "only facts that were valid at this time; a year, month or day means its end; default zone: UTC"


def _parse_moment(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    period = period_of(value) if isinstance(value, str) else None
    if period is None:
        raise ValueError("must be a year, a month, a day or a time in ISO 8601, such as 2019-05 or 2019-05-01T12:00:00Z")
    begin, end = period
    return begin if begin == end else end - timedelta(microseconds=1)


AsOf = Annotated[datetime | None, BeforeValidator(_parse_moment)]
"""A time, or a period that stands for its end."""


class RequestModel(BaseModel):
    """A request. Unknown fields and infinite numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)
