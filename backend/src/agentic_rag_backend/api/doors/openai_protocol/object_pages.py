"""Lists of OpenAI's protocol: pages after an object, newest first by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, Self, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel

from agentic_rag_backend.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class PagePosition:
    """The position of a page in a list. ``after`` is the id of the object before it."""

    limit: int
    oldest_first: bool
    after: str | None


async def _read_position(
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    order: Annotated[Literal["asc", "desc"], Query(description="by the time of creation")] = "desc",
    after: Annotated[str | None, Query(max_length=100, description="id of the object before the page")] = None,
    before: Annotated[str | None, Query(max_length=100, description="refused: use `after`")] = None,
) -> PagePosition:
    if before is not None:
        raise InvalidRequest("pages before an object are not supported; use 'after' and 'order'", field="before")
    return PagePosition(limit, order == "asc", after)


Position = Annotated[PagePosition, Depends(_read_position)]


class ProtocolObject(BaseModel):
    """An object with an id."""

    id: str


Item = TypeVar("Item", bound=ProtocolObject)


class ObjectPage(BaseModel, Generic[Item]):
    """A page of a list. The next page is `after` the last id."""

    object: Literal["list"] = "list"
    data: list[Item]
    first_id: str | None = None
    last_id: str | None = None
    has_more: bool

    @classmethod
    def of(cls, items: Sequence[Item], *, has_more: bool) -> Self:
        """Return the page of some objects."""
        first_id, last_id = (items[0].id, items[-1].id) if items else (None, None)
        return cls(data=list(items), first_id=first_id, last_id=last_id, has_more=has_more)
