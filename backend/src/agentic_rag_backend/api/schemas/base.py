"""Bases of request and response bodies."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from agentic_rag_backend.retrieval.options.filters import Number, Switch, Whole
from agentic_rag_backend.retrieval.options.filters import RequestModel as Body

__all__ = ["Body", "Number", "Switch", "View", "Whole"]


class View(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)
