"""Errors that only a caller over HTTP can meet."""

from __future__ import annotations

from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable


class ServerUnreachable(StoreUnavailable):
    """Nothing answers at the address, or not in time."""

    code = "server_unreachable"
    title = "Server unreachable"


class UnexpectedReply(AgenticRagError):
    """What answers at the address does not speak this contract."""

    code = "unexpected_reply"
    status = 502
    title = "Unexpected reply"
