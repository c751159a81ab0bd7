"""Client of the HTTP API for commands: of a server, or of the application in this process."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from agentic_rag_backend.cli.command import EVERYTHING
from agentic_rag_backend.errors import (
    AgenticRagError,
    IdempotencyInProgress,
    InvalidRequest,
    NotFound,
    RequestTimeout,
    StoreUnavailable,
    error_class,
)

BASE_PATH = "/api/v1"
PAGE = 100
"""Items per page; the maximum of the API."""
_MAX_SHOWN = 200
_UNHURRIED = httpx2.Timeout(None, connect=5.0)
_SENT_AGAIN = frozenset({"GET", "POST"})
_UPLOAD = ("POST", "/documents")
_SENT_AGAIN_AFTER_S = (0.2, 1.0)
"""Pauses before retries of a request whose connection broke, or that timed out in the server."""
_BACK_AFTER_S = (2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)
"""Further pauses for a server that has responded before: it, or its catalogue, is restarting."""
_RESUMED_AFTER_S = (0.2, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses before attempts to resume an event stream. The server keeps its events for two minutes."""
_IN_PROGRESS_RETRIES = 120
"""Maximum retries, one per second, while the first attempt of a request is still running. After a kill, the server counts it as
running until REQUEST_TIMEOUT_S and half a minute are over."""


class ServerUnreachable(StoreUnavailable):
    """No server responds at the address, or not in time."""

    code = "server_unreachable"
    title = "Server unreachable"


class UnexpectedReply(AgenticRagError):
    """The server at the address does not implement this API."""

    code = "unexpected_reply"
    status = 502
    title = "Unexpected reply"


class Client:
    """Sends requests and returns their ``data``. Problems are raised as the errors that caused them.

    Args:
        http: client of the base path, with the credentials.
        where: name of the server, for messages.
        in_process: whether jobs run in this process, and so end with it.
    """

    def __init__(self, http: httpx2.AsyncClient, *, where: str, in_process: bool) -> None:
        self._http = http
        self._answered = self._patient = False
        self.where = where
        self.in_process = in_process

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the ``data`` of a GET. Parameters that are None are left out."""
        return (await self.request("GET", path, params=_drop_nulls(parameters)))["data"]

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the ``data`` of a POST. Members of the body that are None are left out."""
        return (await self.request("POST", path, json=_require_finite(_drop_nulls(body or {}))))["data"]

    async def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the ``data`` of a PATCH."""
        return (await self.request("PATCH", path, json=_require_finite(dict(body))))["data"]

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the ``data`` of a PUT."""
        return (await self.request("PUT", path, json=_require_finite(dict(body))))["data"]

    async def delete(self, path: str, **parameters: Any) -> Any:
        """Return the ``data`` of a DELETE, or None. Parameters that are None are left out."""
        return (await self.request("DELETE", path, params=_drop_nulls(parameters)))["data"]

    async def every(self, path: str, *, limit: int, **parameters: Any) -> list[dict[str, Any]]:
        """Return up to ``limit`` items of a list, from as many pages as necessary.

        Raises:
            InvalidRequest: ``limit`` is below 1.
        """
        if limit < 1:
            raise InvalidRequest(f"limit must be at least 1; got {limit}")
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(items) < limit:
            query = _drop_nulls({**parameters, "limit": min(PAGE, limit - len(items)), "cursor": cursor})
            page = await self.request("GET", path, params=query)
            items += page["data"]
            cursor = page["meta"].get("nextCursor")
            if cursor is None:
                break
        return items

    async def request(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """Return the envelope of a successful response.

        If the connection of a GET or POST breaks, the request is sent again. A POST has an Idempotency-Key, so the server
        executes it once. A GET and an upload are also repeated after a timeout of a busy server. A question is not,
        because it may have cost money.

        Raises:
            AgenticRagError: the class that the problem's code names.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else None
        with self._report_silence():
            response = await self._send_persistently(method, path, headers=headers, **arguments)
        if response.status_code == httpx2.codes.NO_CONTENT:
            return {"data": None, "meta": {}}
        return self._read_envelope(response)

    async def _send_persistently(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        broken = 0
        for _ in range(_IN_PROGRESS_RETRIES):
            pauses = _SENT_AGAIN_AFTER_S + (_BACK_AFTER_S if self._patient and self._answered else ())
            try:
                response = await self._http.request(method, BASE_PATH + path, **arguments)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                if method not in _SENT_AGAIN or broken >= len(pauses):
                    raise
                await asyncio.sleep(pauses[broken])
                broken += 1
                continue
            self._answered = True
            if method == "GET" or (method, path) == _UPLOAD:
                retries = {RequestTimeout.status: len(_SENT_AGAIN_AFTER_S), StoreUnavailable.status: len(pauses)}
                if broken < retries.get(response.status_code, 0):
                    await asyncio.sleep(pauses[broken])
                    broken += 1
                    continue
            if not broken or response.status_code != httpx2.codes.CONFLICT:
                return response
            # The request that was sent before the connection broke may still be running.
            if self._read_problem(response).code != IdempotencyInProgress.code:
                return response
            retry_after = response.headers.get("retry-after") or ""
            await asyncio.sleep(float(retry_after) if retry_after.isdigit() else 1.0)
        return response

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield name and data of each server-sent event of a POST. An ``error`` event is raised as an error.

        If the connection breaks after the first event, the rest is read from the stream's own address, without repetition.
        If the reader stops early, the server is asked to stop, too.
        """
        request = self._http.build_request("POST", BASE_PATH + path, json=_require_finite(_drop_nulls(body)))
        position, is_complete = _StreamPosition(), False
        try:
            with self._report_silence():
                async with aclosing(self._resume_events(request, position)) as events:
                    async for name, data in events:
                        is_complete = is_complete or name in {"done", "error"}
                        if name == "error":
                            raise create_error(data)
                        yield name, data
        finally:
            if not is_complete and position.address and not self.in_process:
                with suppress(httpx2.HTTPError):
                    await self._http.delete(position.address)

    async def _resume_events(
        self, request: httpx2.Request, position: _StreamPosition
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield the events of a response, and of the responses that continue it after a broken connection."""
        broken = 0
        while True:
            try:
                async with aclosing(self._stream_events(request, position)) as events:
                    async for event in events:
                        broken = 0
                        yield event
                return
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                if not position.address or broken >= len(_RESUMED_AFTER_S):
                    raise
                await asyncio.sleep(_RESUMED_AFTER_S[broken])
                broken += 1
                headers = {"Last-Event-ID": position.last_id} if position.last_id else None
                request = self._http.build_request("GET", position.address, headers=headers)

    async def _stream_events(
        self, request: httpx2.Request, position: _StreamPosition
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        response = await self._http.send(request, stream=True)
        try:
            await self._require_success(response)
            position.address = response.headers.get("content-location") or position.address
            async for number, name, data in _parse_events(response):
                position.last_id = number or position.last_id
                yield name, data
        finally:
            await response.aclose()

    async def download(self, path: str, *, method: str = "POST", **parameters: Any) -> AsyncIterator[bytes]:
        """Yield the body of a response that is a file, in blocks. The response may begin late."""
        arguments: dict[str, Any] = {"params": _drop_nulls(parameters), "timeout": _UNHURRIED}
        with self._report_silence():
            async with self._http.stream(method, BASE_PATH + path, **arguments) as response:
                await self._require_success(response)
                async for block in response.aiter_raw():
                    yield block

    async def upload(self, path: str, content: AsyncIterator[bytes], media_type: str, **parameters: Any) -> Any:
        """Return the ``data`` of a POST whose body is sent in blocks, without a time limit."""
        arguments: dict[str, Any] = {
            "headers": {"Content-Type": media_type},
            "params": _drop_nulls(parameters),
            "timeout": _UNHURRIED,
        }
        with self._report_silence():
            response = await self._http.post(BASE_PATH + path, content=content, **arguments)
        return self._read_envelope(response)["data"]

    def wait_for_restarts(self) -> None:
        """From now on, wait two minutes for a restart of the server or its catalogue. Use it for long commands."""
        self._patient = True

    def act_for(self, tenant_id: str) -> None:
        """Act for another tenant from now on. It requires the operator's credentials."""
        self._http.headers["X-Tenant-Id"] = tenant_id

    async def health(self) -> dict[str, Any]:
        """Return the response of ``/health/ready``, ready or not."""
        with self._report_silence():
            response = await self._http.get("/health/ready")
        states = self._read_object(response, "stores")
        if not isinstance(states["stores"], dict):
            raise self._miss_member(response, "stores")
        return states

    async def find_tenant_id(self, name_or_id: str) -> str:
        """Return the id of the tenant with that name or id. It requires the operator's credentials.

        Raises:
            NotFound: the tenant does not exist.
        """
        for tenant in await self.every("/tenants", limit=EVERYTHING):
            if name_or_id in (tenant["id"], tenant["name"]):
                return str(tenant["id"])
        raise NotFound(f"tenant {name_or_id[:128]!r} does not exist; 'agentic-rag tenants list' lists the tenants")

    @contextmanager
    def _report_silence(self) -> Iterator[None]:
        """Raise `ServerUnreachable` for an error of the connection."""
        try:
            yield
        except httpx2.HTTPError as error:
            reason = str(error)[:_MAX_SHOWN] or type(error).__name__
            raise ServerUnreachable(f"{self.where} does not respond: {reason}") from error

    async def _require_success(self, response: httpx2.Response) -> None:
        if not response.is_success:
            await response.aread()
            raise self._read_problem(response)

    def _read_problem(self, response: httpx2.Response) -> AgenticRagError:
        problem = _parse_object(response.content)
        if problem is None or "code" not in problem:
            return UnexpectedReply(f"{self.where} returned {response.status_code} with a body that is not a problem of this API")
        return create_error(problem)

    def _read_envelope(self, response: httpx2.Response) -> dict[str, Any]:
        if not response.is_success:
            raise self._read_problem(response)
        return self._read_object(response, "data")

    def _read_object(self, response: httpx2.Response, member: str) -> dict[str, Any]:
        """Return the JSON object of a response. It must have the member."""
        value = _parse_object(response.content)
        if value is None or member not in value:
            raise self._miss_member(response, member)
        return value

    def _miss_member(self, response: httpx2.Response, member: str) -> UnexpectedReply:
        reply = f"{self.where} returned {response.status_code} without {member!r}"
        return UnexpectedReply(f"{reply}; is this the address of agentic-rag?")


def create_error(problem: Mapping[str, Any]) -> AgenticRagError:
    """Return the error of a problem's members. Its class belongs to the problem's code."""
    message = str(problem.get("detail") or problem.get("title") or "the request failed")
    error_type = error_class(str(problem.get("code")))
    return error_type(message) if error_type is not None else UnexpectedReply(message)


@dataclass(slots=True)
class _StreamPosition:
    """The address of an event stream, and the number of the last event received."""

    address: str = ""
    last_id: str = ""


async def _parse_events(response: httpx2.Response) -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
    number, name, data = "", "", ""
    async for line in response.aiter_lines():
        if not line:
            if data:
                yield number, name, json.loads(data)
            name, data = "", ""
        elif line.startswith("id:"):
            number = line.removeprefix("id:").strip()
        elif line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data += line.removeprefix("data:").strip()


def _parse_object(content: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _require_finite(body: dict[str, Any]) -> dict[str, Any]:
    """Return ``body`` if JSON can represent it. JSON has no NaN and no infinity."""
    try:
        json.dumps(body, allow_nan=False)
    except ValueError:
        raise InvalidRequest(f"numbers must be finite; got {json.dumps(body)[:_MAX_SHOWN]}") from None
    return body


def _drop_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
