"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from agentic_rag_client.blocking import iterate_to_end
from agentic_rag_client.model import ResponseInfo
from agentic_rag_client.requests import Call

if TYPE_CHECKING:
    from agentic_rag_client.session import Session

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. ``next_cursor`` is None on the last page."""

    items: list[T]
    next_cursor: str | None
    response: ResponseInfo


class AsyncPages(Generic[T]):
    """A list. ``async for`` yields every item and requests a page when it is needed. Nothing is requested before.

    Args:
        call: request for the first page.
    """

    def __init__(self, session: Session, call: Call, model: type[T]) -> None:
        self._session = session
        self._call = call
        self._model = model

    async def pages(self) -> AsyncGenerator[Page[T], None]:
        """Yield the pages, from ``cursor`` of the request on."""
        call = self._call
        while True:
            items, cursor, response = await self._session.read_page(call, self._model)
            yield Page(items, cursor, response)
            if cursor is None:
                return
            call = replace(call, query={**call.query, "cursor": cursor})

    async def items(self) -> AsyncGenerator[T, None]:
        """Yield the items of all pages."""
        async for page in self.pages():
            for item in page.items:
                yield item

    def __aiter__(self) -> AsyncIterator[T]:
        return self.items()


class Pages(Generic[T]):
    """A list. ``for`` yields every item and requests a page when it is needed. Nothing is requested before."""

    def __init__(self, pages: AsyncPages[T]) -> None:
        self._pages = pages

    def pages(self) -> Iterator[Page[T]]:
        """Yield the pages, from ``cursor`` of the request on."""
        return iterate_to_end(self._pages.pages())

    def __iter__(self) -> Iterator[T]:
        return iterate_to_end(self._pages.items())
