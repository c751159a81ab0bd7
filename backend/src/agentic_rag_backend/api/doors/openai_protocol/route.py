"""Errors in OpenAI's form."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse
from sse_starlette import EventSourceResponse, ServerSentEvent

from agentic_rag_backend.api.doors.protocol_route import ProtocolRoute
from agentic_rag_backend.api.responses.error_responses import problem_headers
from agentic_rag_backend.api.responses.streaming import HEARTBEAT_S, Events, check_admission
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound

OPENAI_PATH = "/openai/v1"
"""Address of the protocol, for its clients' `base_url`."""
_TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


class UnknownModel(NotFound):
    """No model has this name."""

    code = "model_not_found"


class OpenAIRoute(ProtocolRoute):
    """A route whose errors have OpenAI's form. Invalid requests have the status 400, as its clients expect."""

    @staticmethod
    def respond_with_error(error: AgenticRagError) -> JSONResponse:
        """Return a response with an error."""
        status = HTTPStatus.BAD_REQUEST if error.status == HTTPStatus.UNPROCESSABLE_ENTITY else error.status
        return JSONResponse(error_body(error), status_code=status, headers=problem_headers(error))


def stream_events(request: Request, events: Events, report: Callable[[AgenticRagError], ServerSentEvent]) -> EventSourceResponse:
    """Return a stream, which ends if the caller's key becomes invalid. ``report`` makes the last event of an error."""

    async def with_errors() -> Events:
        async with aclosing(check_admission(request, events, None)) as admitted:
            try:
                async for event in admitted:
                    yield event
            except AgenticRagError as error:
                yield report(error)

    return EventSourceResponse(with_errors(), ping=HEARTBEAT_S, ping_message_factory=lambda: ServerSentEvent(comment="heartbeat"))


def error_body(error: AgenticRagError) -> dict[str, Any]:
    """Return an error in OpenAI's form, for a response or an event."""
    kind = _TYPES.get(
        HTTPStatus(error.status),
        "server_error" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error",
    )
    field = error.field if isinstance(error, InvalidRequest) else None
    return {"error": {"message": error.message, "type": kind, "param": field, "code": error.code}}
