"""Methods of both clients, written once as coroutines.

A class of operations has a type parameter: the mode of its client. `documents.get` of a `Documents[Blocking]` returns a document,
that of a `Documents[Asynchronous]` a coroutine. Type checkers choose by the overloads below.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from agentic_rag_client.blocking import run_to_end
from agentic_rag_client.downloads import AsyncDownload, Download
from agentic_rag_client.event_streams import AsyncEventStream, EventStream
from agentic_rag_client.pages import AsyncPages, Pages

if TYPE_CHECKING:
    from agentic_rag_client.session import Session


class Blocking:
    """Mode of `Client`."""


class Asynchronous:
    """Mode of `AsyncClient`."""


Mode = TypeVar("Mode", Blocking, Asynchronous)
P = ParamSpec("P")
T = TypeVar("T")


class Resource(Generic[Mode]):
    """A group of operations."""

    def __init__(self, session: Session) -> None:
        self._session = session


class _Method(Generic[P, T]):
    """Descriptor of a method. ``_block`` converts its asynchronous result for a blocking client."""

    _block: Callable[[Any], Any]

    def __init__(self, function: Callable[Concatenate[Any, P], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def _bind(self, instance: Resource[Any] | None) -> Any:
        if instance is None:
            return self
        method = MethodType(self._function, instance)
        if not instance._session.is_blocking:
            return method
        block = type(self)._block

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            return block(method(*args, **kwargs))

        return call


class operation(_Method[P, Coroutine[Any, Any, T]], Generic[P, T]):  # noqa: N801 - a decorator
    """Method with one result."""

    _block = staticmethod(run_to_end)

    @overload
    def __get__(self, instance: Resource[Blocking], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Resource[Asynchronous], owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Resource[Any], owner: object = None) -> Any:
        return self._bind(instance)


class listing(_Method[P, AsyncPages[T]], Generic[P, T]):  # noqa: N801 - a decorator
    """Method that returns a list in pages."""

    _block = Pages

    @overload
    def __get__(self, instance: Resource[Blocking], owner: object = None) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, instance: Resource[Asynchronous], owner: object = None) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, instance: Resource[Any], owner: object = None) -> Any:
        return self._bind(instance)


class download(_Method[P, AsyncDownload]):  # noqa: N801 - a decorator
    """Method that returns a file."""

    _block = Download

    @overload
    def __get__(self, instance: Resource[Blocking], owner: object = None) -> Callable[P, Download]: ...
    @overload
    def __get__(self, instance: Resource[Asynchronous], owner: object = None) -> Callable[P, AsyncDownload]: ...
    def __get__(self, instance: Resource[Any], owner: object = None) -> Any:
        return self._bind(instance)


class event_stream(_Method[P, AsyncEventStream[T]], Generic[P, T]):  # noqa: N801 - a decorator
    """Method that returns events."""

    _block = EventStream

    @overload
    def __get__(self, instance: Resource[Blocking], owner: object = None) -> Callable[P, EventStream[T]]: ...
    @overload
    def __get__(self, instance: Resource[Asynchronous], owner: object = None) -> Callable[P, AsyncEventStream[T]]: ...
    def __get__(self, instance: Resource[Any], owner: object = None) -> Any:
        return self._bind(instance)
