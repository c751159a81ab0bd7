"""Errors of a client over HTTP."""

from __future__ import annotations

from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable


class ServerUnreachable(StoreUnavailable):
    """No server responds at the address, or not in time."""

    code = "server_unreachable"
    title = "Server unreachable"


class UnexpectedReply(AgenticRagError):
    """The server at the address does not implement this API."""

    code = "unexpected_reply"
    status = 502
    title = "Unexpected reply"
