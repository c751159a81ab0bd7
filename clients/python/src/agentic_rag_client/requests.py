"""Requests as values, and the rule for their repetition."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import quote

import httpx2
from pydantic import ConfigDict, TypeAdapter

from agentic_rag_client.uploads import FilePart

HEADERS: Mapping[str, str] = {"if_match": "If-Match", "last_event_id": "Last-Event-ID"}
"""Parameters of methods that are headers of requests."""
NAMED = ("metadata", "labels")
"""Parameters of queries whose names the caller chooses, such as ``metadata.author``."""
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
_LONGEST_WAIT_S = 60.0
"""A longer Retry-After is an error, so that the caller decides."""
_REFUSED = frozenset({429, 503})
_VALUES = TypeAdapter[Any](Any, config=ConfigDict(ser_json_inf_nan="constants"))


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the server.

    Args:
        body: a JSON body.
        query: parameters of the address. None is left out; a list is sent once for each item; a mapping is sent as JSON.
        form: fields of a multipart body beside ``files``. None is left out; mappings are sent as JSON.
        content: opens a body that is sent in blocks.
        headers: None is left out.
        keyed: whether the route accepts an Idempotency-Key.
        repeatable: whether the request has the same effect if the server executes it twice.
        accepted: status of a failure whose body is a result.
    """

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Any] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[FilePart] = ()
    content: Callable[[], AsyncIterable[bytes] | Any] | None = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    idempotency_key: str | None = None
    keyed: bool = False
    repeatable: bool = False
    accepted: int | None = None
    unlimited: bool = False

    @classmethod
    def of(cls, route: str, arguments: Mapping[str, Any], **options: Any) -> Call:
        """Return the request of a method, whose parameters are those of its route. Arguments that are None are left out.

        Args:
            route: verb and path, such as ``GET /documents/{document_id}``.
            arguments: the local variables of the method: parameters of the path, of `HEADERS`, and of the body or, for GET and
                DELETE, of the query. Those of `NAMED` are sent as one parameter of the query for each name.
            options: further fields of the request.
        """
        method, _, template = route.partition(" ")
        values = {name.rstrip("_"): value for name, value in arguments.items() if name != "self" and value is not None}
        path = fill_path(template, *(values.pop(name, "") for name in re.findall(r"{(\w+)}", template)))
        options["headers"] = {header: str(values.pop(name)) for name, header in HEADERS.items() if name in values}
        options["idempotency_key"] = values.pop("idempotency_key", None)
        if method not in ("GET", "DELETE"):
            return cls(method, path, body=values, **options)
        selected = {f"{field}.{name}": value for field in NAMED for name, value in values.pop(field, {}).items()}
        return cls(method, path, query=values | selected, **options)

    @property
    def is_safe(self) -> bool:
        """Return whether the request may be sent again after it may have been executed."""
        return self.method in ("GET", "HEAD", "PUT", "DELETE") or self.keyed or self.repeatable


def fill_path(template: str, *values: str | int) -> str:
    """Return a path with its parameters, quoted.

    Raises:
        ValueError: a value is empty or ``.`` or ``..``, which would name another route.
    """
    for value in values:
        if str(value) in ("", ".", ".."):
            raise ValueError(f"an id must not be {str(value)!r}")
        prefix, _, remainder = template.partition("{")
        template = prefix + quote(str(value), safe="") + remainder.partition("}")[2]
    return template


def encode_query(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parameters of an address."""
    pairs = []
    for name, value in query.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [(name, _encode_text(item)) for item in values if item is not None]
    return pairs


def encode_form(form: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a multipart body."""
    return {name: _encode_text(value) for name, value in form.items() if value is not None}


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return a JSON body.

    Raises:
        ValueError: JSON cannot represent a value, such as NaN.
    """
    return json.dumps(_VALUES.dump_python(body, mode="json", by_alias=True), allow_nan=False, ensure_ascii=False).encode()


def choose_pause(call: Call, attempt: int, outcome: httpx2.TransportError | httpx2.Response, spread: float) -> float | None:
    """Return the seconds to wait before a request is sent again; None: it is not sent again.

    A request that the server refused before it began (429), or whose connection was never made, may be repeated. After
    another failure of the connection or 503, only a request that is safe is repeated. A timeout is not: the server may
    still work on it.

    Args:
        attempt: number of failures before this one, from 0.
        outcome: the failure.
        spread: in [0, 1], so that clients do not return at the same moment.
    """
    pause = _PAUSES_S[min(attempt, len(_PAUSES_S) - 1)] * (0.5 + spread / 2)
    if isinstance(outcome, httpx2.Response):
        is_running = outcome.status_code == 409 and b"idempotency_in_progress" in outcome.content and attempt > 0
        if not is_running and (outcome.status_code not in _REFUSED or not (call.is_safe or outcome.status_code == 429)):
            return None
        wait_s = read_retry_after(outcome)
        return None if wait_s is not None and wait_s > _LONGEST_WAIT_S else max(pause, wait_s or 0.0)
    if isinstance(outcome, httpx2.ConnectError):
        return pause
    is_timeout = isinstance(outcome, httpx2.TimeoutException)
    return pause if call.is_safe and not is_timeout else None


def read_retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds of the header Retry-After, or None without it."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None


def _encode_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return encode_body(value).decode()
    return str(value)
