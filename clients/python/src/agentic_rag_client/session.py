"""Requests, retries and responses of a client."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any, TypeVar

import httpx2
from pydantic import TypeAdapter, ValidationError

from agentic_rag_client.errors import AgenticRagError, ConnectionFailed, TimedOut, UnexpectedReply, read_problem
from agentic_rag_client.model import Model, ResponseInfo
from agentic_rag_client.requests import Call, choose_pause, encode_body, encode_form, encode_query, read_retry_after
from agentic_rag_client.transport import Transport
from agentic_rag_client.uploads import open_parts

T = TypeVar("T")
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a client.

    Args:
        origin: address of the server, without a path.
        key: of a tenant, or of the operator.
        tenant: name or id of the tenant that the operator acts for.
        timeout_s: seconds until the next part of a response must arrive.
        max_retries: number of repetitions of a request.
    """

    origin: str
    key: str | None = None
    tenant: str | None = None
    timeout_s: float = 90.0
    max_retries: int = 3


class Session:
    """Sends calls with the credentials of a client."""

    def __init__(self, transport: Transport, options: Options) -> None:
        self.transport = transport
        self.options = options

    @property
    def is_blocking(self) -> bool:
        """Return whether the transport blocks."""
        return self.transport.is_blocking

    async def send(self, call: Call) -> httpx2.Response:
        """Return a successful response with its body.

        Raises:
            AgenticRagError: there is no successful response.
        """
        response = await self.open(call)
        try:
            await self.transport.read(response)
        except httpx2.TransportError as error:
            raise self._describe_failure(error) from error
        finally:
            await self.transport.release(response)
        return response

    async def read(self, call: Call, model: type[M], *, enveloped: bool = True) -> M:
        """Return the data of a response."""
        response = await self.send(call)
        body = self._read_object(response, "data" if enveloped else None)
        result: M = self._parse(model, body["data"] if enveloped else body)
        result._response = self.describe(response, body.get("meta", {}) if enveloped else {})
        return result

    async def read_list(self, call: Call, model: type[T]) -> list[T]:
        """Return the items of a list that has one page."""
        body = self._read_object(await self.send(call), "data")
        items: list[T] = self._parse(list[model], body["data"])  # type: ignore[valid-type]
        return items

    async def read_page(self, call: Call, model: type[T]) -> tuple[list[T], str | None, ResponseInfo]:
        """Return the items of a page, the cursor of the next page, and the response."""
        response = await self.send(call)
        body = self._read_object(response, "data")
        meta = body.get("meta") or {}
        return self._parse(list[model], body["data"]), meta.get("nextCursor"), self.describe(response, meta)  # type: ignore[valid-type]

    async def open(self, call: Call) -> httpx2.Response:
        """Return a successful response whose body is not read. The caller releases it.

        Raises:
            ConnectionFailed: there is no response.
            ProblemError: the server refused the request.
        """
        key = call.idempotency_key or (str(uuid.uuid4()) if call.keyed else None)
        for attempt in count():
            outcome: httpx2.Response | httpx2.TransportError
            try:
                outcome = await self._send_once(call, key)
                if outcome.is_success or outcome.status_code == call.accepted:
                    return outcome
                await self.transport.read(outcome)
                await self.transport.release(outcome)
            except httpx2.TransportError as error:
                outcome = error
            spread = random.random()  # noqa: S311 - spreads the load, and hides nothing
            pause = choose_pause(call, attempt, outcome, spread) if attempt < self.options.max_retries else None
            if pause is None:
                if isinstance(outcome, httpx2.Response):
                    raise read_problem(outcome, retry_after_s=read_retry_after(outcome))
                raise self._describe_failure(outcome) from outcome
            await self.transport.sleep(pause)
        raise AssertionError

    async def blocks(self, call: Call) -> AsyncGenerator[bytes, None]:
        """Yield the body of a successful response in blocks."""
        response = await self.open(call)
        try:
            async for block in self.transport.blocks(response):
                yield block
        except httpx2.TransportError as error:
            raise self._describe_failure(error) from error
        finally:
            await self.transport.release(response)

    def describe(self, response: httpx2.Response, meta: Mapping[str, Any]) -> ResponseInfo:
        """Return what a response has beside its data."""
        return ResponseInfo(response.status_code, dict(response.headers), dict(meta), self.options.origin)

    async def _send_once(self, call: Call, key: str | None) -> httpx2.Response:
        headers: dict[str, str | bytes] = {"Accept": "application/json"}
        headers |= {name: value for name, value in call.headers.items() if value is not None}
        if self.options.key:
            headers["X-API-Key"] = self.options.key.encode()
        if self.options.tenant is not None:
            headers["X-Tenant-Id"] = self.options.tenant.encode()
        if key is not None:
            headers["Idempotency-Key"] = key
        arguments: dict[str, Any] = {"headers": headers, "params": encode_query(call.query)}
        read_s = None if call.unlimited else self.options.timeout_s
        arguments["timeout"] = httpx2.Timeout(read_s, connect=min(self.options.timeout_s, 10.0))
        with ExitStack() as stack:
            if call.body is not None:
                arguments["content"] = encode_body(call.body)
                headers["Content-Type"] = "application/json"
            elif call.files:
                arguments["files"] = open_parts(call.files, stack)
                arguments["data"] = encode_form(call.form)
            elif call.content is not None:
                arguments["content"] = call.content()
            request = self.transport.build(call.method, self.options.origin + call.path, **arguments)
            return await self.transport.send(request)

    def _describe_failure(self, error: httpx2.TransportError) -> AgenticRagError:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx2.TimeoutException):
            return TimedOut(f"{self.options.origin} did not respond within {self.options.timeout_s:g} s ({type(error).__name__})")
        return ConnectionFailed(f"{self.options.origin} does not respond: {reason[:200]}")

    def _read_object(self, response: httpx2.Response, member: str | None) -> dict[str, Any]:
        """Return the JSON object of a response. It must have the member."""
        try:
            value = json.loads(response.content)
        except ValueError:
            value = None
        if not isinstance(value, dict) or (member is not None and member not in value):
            mismatch = f"without {member!r}" if member is not None else "without a JSON object"
            raise UnexpectedReply(
                f"{response.url} returned {response.status_code} {mismatch}; is this the address of agentic-rag?"
            )
        return value

    def _parse(self, model: Any, value: Any) -> Any:
        try:
            return _adapter(model).validate_python(value)
        except ValidationError as error:
            raise UnexpectedReply(f"{self.options.origin} returned data that is no {model}: {error}") from error


@lru_cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)
