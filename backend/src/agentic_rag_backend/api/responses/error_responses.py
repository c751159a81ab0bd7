"""Errors as RFC 9457 problems, without data of other tenants, and the methods of an address: ``Allow``, ``OPTIONS``, ``HEAD``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentic_rag_backend.domain.quota import WINDOW_S, QuotaName, RateState, name_policy
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound, TokenExpired, TokenInvalid
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.wording import describe_value, message_of, shorten_line

_METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def allowed_methods(app: FastAPI, path: str) -> Sequence[str]:
    """Return the sorted methods of all routes that match ``path``; empty if no route matches."""
    methods = {method for method in _METHODS if _matches(app, method, path)}
    if not methods:
        return []
    return sorted(methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set()))


def build_routes(app: FastAPI) -> None:
    """Build all routes. FastAPI builds them for the first request, which takes 0.1 s of CPU."""
    _matches(app, "GET", "")  # compares every route with an address that no route has


def _matches(app: FastAPI, method: str, path: str) -> bool:
    scope: Scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)


class Methods:
    """Pure ASGI middleware that answers ``OPTIONS``, and ``HEAD`` like ``GET`` without its body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        method = scope.get("method")
        if method == "HEAD":
            scope["method"] = "GET"
            send = _without_body(send)
        elif method == "OPTIONS" and (allowed := allowed_methods(scope["app"], scope["path"])):
            headers = [(b"allow", ", ".join(allowed).encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        await self._app(scope, receive, send)


def _without_body(send: Send) -> Send:
    """Return ``send`` that ends the response after its head and drops the body."""
    ended = False

    async def head_only(message: Message) -> None:
        nonlocal ended
        if message["type"] == "http.response.start":
            await send(message)
        elif not ended:
            ended = True
            await send({"type": "http.response.body", "body": b""})

    return head_only


_log = get_logger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S: Mapping[int, int] = {HTTPStatus.TOO_MANY_REQUESTS: 1, HTTPStatus.SERVICE_UNAVAILABLE: 5}
"""Default of ``Retry-After`` in seconds, by status."""
_TOKEN_ERRORS = (TokenInvalid, TokenExpired)
_MAX_SHOWN = 200
_MAX_FIELD = 200
_MAX_ERRORS, _MAX_SUMMED = 20, 3
"""Maximum fields named in `errors`, and in `detail`."""
_MAX_DETAIL = 1000
"""Maximum characters of a message of the framework. Longer messages repeat the caller's input."""


def problem(error: AgenticRagError, *, request_id: str, errors: Sequence[dict[str, Any]] = ()) -> JSONResponse:
    """Return ``error`` as a problem response."""
    if not errors and isinstance(error, InvalidRequest) and error.field is not None:
        errors = [{"field": shorten_line(error.field, _MAX_FIELD), "message": error.message, "code": error.code}]
    body = problem_body(error, request_id) | ({"errors": list(errors)} if errors else {})
    return JSONResponse(body, status_code=error.status, headers=problem_headers(error), media_type=MEDIA_TYPE)


def crash(error: Exception, *, request_id: str) -> JSONResponse:
    """Log an unexpected error, and return a problem without its details."""
    return problem(log_error(error, request_id=request_id), request_id=request_id)


def log_error(error: Exception, *, request_id: str) -> AgenticRagError:
    """Log an unexpected error. Return the error that the caller sees, without details."""
    _log.error("request_crashed", error=type(error).__name__, request_id=request_id, exc_info=error)
    return AgenticRagError("an unexpected error; search the server's log for this requestId")


def problem_headers(error: AgenticRagError) -> dict[str, str]:
    """Return the headers of a response with ``error``. 429 and 503 always have ``Retry-After``."""
    headers = {}
    retry_after_s = error.retry_after_s if error.retry_after_s is not None else RETRY_AFTER_S.get(error.status)
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    if error.status == HTTPStatus.UNAUTHORIZED:
        refused = f' error="invalid_token", error_description="{error.title}"' if isinstance(error, _TOKEN_ERRORS) else ""
        headers["WWW-Authenticate"] = f"Bearer{refused}"
    if error.status == HTTPStatus.REQUEST_TIMEOUT:
        headers["Connection"] = "close"  # the rest of the request must not be read as another request
    return headers


def problem_body(error: AgenticRagError, request_id: str) -> dict[str, Any]:
    """Return the members of ``error``'s problem, for events and other places inside a response."""
    return {**_body(error.status, error.code, error.title, error.message, request_id), **error.members}


def rate_headers(states: Sequence[RateState]) -> dict[str, str]:
    """Return the headers of the draft on RateLimit fields for the windows in which a request counts."""
    if not states:
        return {}
    named_states = [(name_policy(state.scope, QuotaName.REQUESTS_PER_MINUTE), state) for state in states]
    return {
        "RateLimit-Policy": ", ".join(f'"{name}";q={state.limit};w={WINDOW_S}' for name, state in named_states),
        "RateLimit": ", ".join(f'"{name}";r={state.remaining};t={math.ceil(state.left_s)}' for name, state in named_states),
    }


def _body(status: int, code: str, title: str, detail: str, request_id: str) -> dict[str, Any]:
    return {
        "type": f"urn:agentic-rag:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail if len(detail) <= _MAX_DETAIL else f"{detail[:_MAX_DETAIL]}…",
        "code": code,
        "requestId": request_id,
    }


def _response(
    status: int,
    code: str,
    title: str,
    detail: str,
    request_id: str,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = _body(status, code, title, detail, request_id)
    return JSONResponse(body, status_code=status, headers=headers, media_type=MEDIA_TYPE)


def request_id_of(request: Request) -> str:
    """Return the request id, which the middleware set."""
    return str(getattr(request.state, "request_id", "req_unknown"))


def install_error_handlers(app: FastAPI) -> None:
    """Answer every error of ``app`` with a problem."""

    @app.exception_handler(AgenticRagError)
    async def _ours(request: Request, error: AgenticRagError) -> JSONResponse:
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # While a store is unavailable, every request fails here. Log one line, without a traceback.
            ours = error.status == HTTPStatus.INTERNAL_SERVER_ERROR
            cause = type(error.__cause__).__name__ if error.__cause__ is not None else None
            _log.error("request_failed", code=error.code, detail=error.message, cause=cause, exc_info=error if ours else None)
        return problem(error, request_id=request_id_of(request))

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        problems = error.errors()
        errors = [_field_error(item) for item in problems[:_MAX_ERRORS]]
        remainder = f"; and {len(problems) - _MAX_SUMMED} more" if len(problems) > _MAX_SUMMED else ""
        summary = "; ".join(f"{item['field']}: {item['message']}" for item in errors[:_MAX_SUMMED]) + remainder
        return problem(InvalidRequest(summary), request_id=request_id_of(request), errors=errors)

    @app.exception_handler(HTTPException)
    async def _framework(request: Request, error: HTTPException) -> JSONResponse:
        request_id = request_id_of(request)
        if error.status_code == HTTPStatus.NOT_FOUND:
            return problem(NotFound("there is no resource at this address"), request_id=request_id)
        phrase, headers = HTTPStatus(error.status_code).phrase, _framework_headers(request, error)
        detail = str(error.detail)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED and "Allow" in headers:
            detail = f"this address does not support {request.method[:20]}; it supports {headers['Allow']}"
        return _response(error.status_code, phrase.lower().replace(" ", "_"), phrase, detail, request_id, headers=headers)

    @app.exception_handler(Exception)
    async def _unexpected(request: Request, error: Exception) -> JSONResponse:
        return crash(error, request_id=request_id_of(request))


def _framework_headers(request: Request, error: HTTPException) -> dict[str, str]:
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names the methods of one route; other routes may have the same address.
        allowed = allowed_methods(request.app, request.scope["path"])
        headers |= {"Allow": ", ".join(allowed)} if allowed else {}
    return headers


def _field_error(item: Any) -> dict[str, Any]:
    """Return the field, the message with the limit, and the shortened value of one error."""
    location = ".".join(str(part) for part in item["loc"] if part != "body")
    details: dict[str, Any] = {
        "field": shorten_line(location, _MAX_FIELD) or "body",
        "message": message_of(item),
        "code": item["type"],
    }
    if item["type"] in ("missing", "extra_forbidden"):
        return details  # the value is the object around the field, or adds nothing
    value = item.get("input")
    if isinstance(value, (str, int, float, bool)):
        details["value"] = shorten_line(value, _MAX_SHOWN) if isinstance(value, str) else describe_value(value)
    details["message"] += f"; got {describe_value(value)}"
    return details
