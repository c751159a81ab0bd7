"""Bases of request and response bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Strict

Whole = Annotated[int, Strict()]
"""An integer. Booleans and text are refused."""
Number = Annotated[float, Strict()]
Switch = Annotated[bool, Strict()]


class Body(BaseModel):
    """A request body. Unknown fields and infinite numbers are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


class View(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)
