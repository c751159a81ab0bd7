"""Errors of the client.

AgenticRagError
├── ConnectionFailed            no response: the server is away, or the connection broke
│   └── TimedOut                no response in time
├── UnexpectedReply             a response that is not of this API
├── JobFailed                   a job that failed or was cancelled; `job` has its error
├── JobUnfinished               a job that had not ended in time; `job` has its stage
└── ProblemError                a problem response, with `code`, `status`, `detail` and `errors`
    ├── AuthenticationFailed    401
    ├── PermissionDenied        403
    ├── NotFound                404, also for ids of another tenant
    ├── Conflict                409
    ├── PreconditionFailed      412
    ├── TooLarge                413
    ├── InvalidRequest          400, 422
    ├── TooManyRequests         429, with `retry_after_s`
    ├── Unavailable             503, with `retry_after_s`
    └── ServerTimeout           504
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2

if TYPE_CHECKING:
    from agentic_rag_client.models import Job


class AgenticRagError(Exception):
    """Base of all errors of this client."""


class ConnectionFailed(AgenticRagError):
    """No server responds at the address, or the connection broke. The reason is in ``__cause__``."""


class TimedOut(ConnectionFailed):
    """No response arrived in time. The server may still have executed the request."""


class UnexpectedReply(AgenticRagError):
    """The server at the address does not implement this API."""


class JobFailed(AgenticRagError):
    """A job failed or was cancelled."""

    def __init__(self, job: Job) -> None:
        error = job.error or {}
        super().__init__(f"the {job.kind} job {job.id} is {job.state}: {error.get('message') or 'no reason was recorded'}")
        self.job = job
        self.code = str(error.get("code") or job.state)


class JobUnfinished(AgenticRagError):
    """A job had not ended within the time that the caller would wait. It continues."""

    def __init__(self, job: Job, timeout_s: float) -> None:
        super().__init__(f"the {job.kind} job {job.id} is {job.state} after {timeout_s:g} s (stage {job.stage!r}); it continues")
        self.job = job


@dataclass(frozen=True, slots=True)
class FieldError:
    """A value of the request that the server refused. ``field`` is its path, such as ``filters.year``."""

    field: str
    message: str
    code: str
    value: str | None = None


class ProblemError(AgenticRagError):
    """The server refused or could not execute a request.

    ``code`` is stable, and listed in the reference of errors. ``detail`` names the limit and the value.
    """

    def __init__(self, status: int, problem: Mapping[str, Any], *, retry_after_s: float | None = None) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code = str(problem.get("code") or status)
        self.title = str(problem.get("title") or "")
        self.detail = str(problem.get("detail") or self.title or f"status {status}")
        self.request_id = problem.get("requestId")
        self.errors = [_read_field(item) for item in problem.get("errors") or () if isinstance(item, Mapping)]
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.detail} ({self.code}, {status})")


class AuthenticationFailed(ProblemError):
    """The key is missing, wrong or revoked."""


class PermissionDenied(ProblemError):
    """The key lacks the scope, or the tenant is suspended."""


class NotFound(ProblemError):
    """The address or the id does not exist, or belongs to another tenant."""


class Conflict(ProblemError):
    """The state of the resource does not allow the request."""


class PreconditionFailed(ProblemError):
    """The document has changed since the ``etag`` of ``if_match``."""


class TooLarge(ProblemError):
    """The request or the file is larger than its limit."""


class InvalidRequest(ProblemError):
    """A value is outside its limits. ``errors`` names each one."""


class TooManyRequests(ProblemError):
    """A limit of requests or a quota is reached."""


class Unavailable(ProblemError):
    """A store or a model does not respond, or the server is full."""


class ServerTimeout(ProblemError):
    """The request did not end within the server's time limit."""


_CLASSES: Mapping[int, type[ProblemError]] = {
    400: InvalidRequest,
    401: AuthenticationFailed,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    422: InvalidRequest,
    429: TooManyRequests,
    503: Unavailable,
    504: ServerTimeout,
}


_MEMBERS = frozenset({"code", "title", "detail"})
"""Members of a problem (RFC 9457). A proxy's problem has no code."""
_SENT_BY_PROXIES = frozenset({429, 503, 504})
"""Statuses that proxies send with bodies of their own. Their meaning needs no body."""


def create_problem(problem: Mapping[str, Any], status: int | None = None, *, retry_after_s: float | None = None) -> ProblemError:
    """Return the error of a problem, by its status."""
    number = status or int(problem.get("status") or 500)
    return _CLASSES.get(number, ProblemError)(number, problem, retry_after_s=retry_after_s)


def read_problem(response: httpx2.Response, *, retry_after_s: float | None) -> AgenticRagError:
    """Return the error of a response that is no success. Its body must have been read."""
    try:
        body = json.loads(response.content)
    except ValueError:
        body = None
    if isinstance(body, Mapping) and _MEMBERS & body.keys():
        return create_problem(body, response.status_code, retry_after_s=retry_after_s)
    message = f"{response.url} returned {response.status_code} with a body that is not of this API: {response.text[:200]!r}"
    if response.status_code in _SENT_BY_PROXIES:
        return create_problem({"detail": message}, response.status_code, retry_after_s=retry_after_s)
    return UnexpectedReply(message)


def _read_field(item: Mapping[str, Any]) -> FieldError:
    value = item.get("value")
    field, message, code = (str(item.get(name, "")) for name in ("field", "message", "code"))
    return FieldError(field, message, code, None if value is None else str(value))
