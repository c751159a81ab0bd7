"""Base of the results."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, PrivateAttr


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """What a response has beside its data.

    Args:
        meta: fields of the envelope, such as ``warnings``.
        origin: address of the server.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    origin: str = ""

    @property
    def request_id(self) -> str | None:
        """Return the id of the request, for a report of a problem."""
        return self.meta.get("requestId") or self.headers.get("x-request-id")

    @property
    def etag(self) -> str | None:
        """Return the revision of a document, for ``if_match``."""
        return self.headers.get("etag")


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Any = _Absent.ABSENT
"""Default of fields that the server always sends. Such a field is left out if ``fields`` of a request omits it."""


class Model(BaseModel):
    """A result. Unknown fields of a newer server are kept. To read a field that a response lacks raises AttributeError."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, protected_namespaces=())
    _response: ResponseInfo | None = PrivateAttr(default=None)

    @property
    def response(self) -> ResponseInfo:
        """Return the response that this result is the data of.

        Raises:
            AttributeError: the result is a part of another one, or was not received.
        """
        if self._response is None:
            raise AttributeError(f"this {type(self).__name__} is not the whole data of a response")
        return self._response

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                reason = "`fields` of the request leaves it out, or the server is older than this client"
                raise AttributeError(f"the response has no {name!r} of a {type(self).__name__}: {reason}")
            return super().__getattr__(name)

    def model_post_init(self, context: Any) -> None:
        for name in [name for name, value in self.__dict__.items() if value is ABSENT]:
            del self.__dict__[name]
