"""Envelope of every successful response: ``data`` and ``meta``, with pages of lists and the parts that ``fields`` selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar, get_args

from fastapi import Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from agentic_rag_backend.api.responses.error_responses import request_id_of
from agentic_rag_backend.api.schemas.questions.search import round_times
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.errors import InvalidRequest

T = TypeVar("T")


class Meta(BaseModel):
    """Information about the response. Some routes add fields."""

    model_config = ConfigDict(extra="allow")

    requestId: str = Field(description="include it in a report of a problem")  # noqa: N815 - the contract's spelling
    timestamp: datetime


class ListMeta(Meta):
    """Information about a list."""

    nextCursor: str | None = Field(None, description="pass as `cursor` for the next page; null on the last")  # noqa: N815


class Envelope(BaseModel, Generic[T]):
    """A successful response."""

    data: T
    meta: Meta


class ListEnvelope(BaseModel, Generic[T]):
    """A page of a list."""

    data: list[T]
    meta: ListMeta


def meta_of(request: Request, **extra: Any) -> dict[str, Any]:
    """Return the ``meta`` of a response."""
    return {"requestId": request_id_of(request), "timestamp": datetime.now(UTC), **extra}


def wrap_data(request: Request, data: Any, **extra: Any) -> dict[str, Any]:
    """Return ``data`` in its envelope."""
    return {"data": data, "meta": meta_of(request, **extra)}


Limit = Annotated[int, Query(ge=1, le=100, description="items per page, 1 to 100")]
Cursor = Annotated[str | None, Query(max_length=512, description="`meta.nextCursor` of the previous page")]


def wrap_page(request: Request, items: Sequence[Any], next_cursor: str | None) -> dict[str, Any]:
    """Return a page in its envelope."""
    return wrap_data(request, list(items), nextCursor=next_cursor)


Parts = Mapping[str, frozenset[str]]
"""The chosen parts, with the chosen fields of each. No fields: the whole part."""


@dataclass(frozen=True, slots=True)
class Selectable:
    """A kind of response whose parts can be chosen.

    Args:
        view: model of ``data``.
        items: the part whose fields can be named without it: ``content`` means ``results.content``.
    """

    view: type[BaseModel]
    items: str

    def select(self, names: Sequence[str] | None) -> Parts | None:
        """Return the parts that ``names`` choose; None: all of them. Named fields of a part leave out its other fields.

        Raises:
            InvalidRequest: a name is unknown. The message lists the names.
        """
        if names is None:
            return None
        chosen: dict[str, set[str]] = {}
        for number, name in enumerate(names):
            part, _, field = name.partition(".")
            if not field and part not in self.view.model_fields:
                part, field = self.items, part
            fields = self._fields(part)
            if part not in self.view.model_fields or (field and field not in fields) or name.endswith("."):
                unknown = f"fields has the unknown name {name[:80]!r}; known are {self._list_known_fields()}"
                raise InvalidRequest(unknown, field=f"fields.{number}")
            chosen.setdefault(part, set()).update([field] if field else ())
        return {part: frozenset(fields) for part, fields in chosen.items()}

    def _fields(self, part: str) -> frozenset[str]:
        """Return the fields of a part, or of the items of a part that is a list."""
        described = self.view.model_fields.get(part)
        return frozenset() if described is None else frozenset(_model_fields(described.annotation))

    def _list_known_fields(self) -> str:
        parts, items = ", ".join(self.view.model_fields), ", ".join(_model_fields(self.view.model_fields[self.items].annotation))
        return f"{parts}; of {self.items}: {items}; and PART.FIELD for a field of another part"


def _model_fields(annotation: Any) -> tuple[str, ...]:
    """Return the fields of the model in ``Model``, ``list[Model]`` or ``Model | None``."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return tuple(candidate.model_fields)
    return ()


def dump_parts(view: BaseModel, parts: Parts | None) -> dict[str, Any]:
    """Return the chosen parts of a response as JSON values; None: all of it."""
    if parts is None:
        return view.model_dump(mode="json")
    include: dict[str, Any] = {}
    for name, fields in parts.items():
        in_list = isinstance(getattr(view, name), list)
        include[name] = True if not fields else {"__all__": set(fields)} if in_list else set(fields)
    return view.model_dump(mode="json", include=include)


def enveloped_parts(request: Request, view: BaseModel, parts: Parts | None, **extra: Any) -> Any:
    """Return the chosen parts of a response in its envelope. ``meta`` is always complete."""
    envelope = wrap_data(request, view, **extra)
    if parts is None:
        return envelope
    return JSONResponse({"data": dump_parts(view, parts), "meta": Meta.model_validate(envelope["meta"]).model_dump(mode="json")})


def trace_meta(retrieval: Retrieval) -> dict[str, Any]:
    """Return the summary of a retrieval in ``meta``. All else about it is in ``data.trace`` only."""
    trace = retrieval.trace
    return {
        "strategy": trace.strategy,
        "methods_used": list(trace.methods_used),
        "fusion": trace.fusion,
        "fallback_used": trace.fallback_used,
        "fallback_reason": trace.fallback_reason,
        "processing_time_ms": round_times(trace.processing_time_ms),
        "warnings": list(trace.warnings),
    }
