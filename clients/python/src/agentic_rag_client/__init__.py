"""Client of agentic-rag-backend.

from agentic_rag_client import Client

with Client("http://127.0.0.1:8000", KEY) as client:
    document = client.documents.wait(client.documents.upload("report.pdf"))
    answer = client.answers.create("Why was the tidal barrage delayed?")
    print(answer.answer, [citation.quote for citation in answer.citations])
"""

from agentic_rag_client.answer_events import (
    AnswerEvent,
    CitationEvent,
    DoneEvent,
    OtherEvent,
    RetrievalEvent,
    TokenEvent,
    UsageEvent,
)
from agentic_rag_client.client import AsyncClient, Client
from agentic_rag_client.errors import (
    AgenticRagError,
    AuthenticationFailed,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    JobFailed,
    JobUnfinished,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    ProblemError,
    ServerTimeout,
    TimedOut,
    TooLarge,
    TooManyRequests,
    Unavailable,
    UnexpectedReply,
)
from agentic_rag_client.job_events import JobEndEvent, JobEvent, ProgressEvent

__all__ = [
    "AgenticRagError",
    "AnswerEvent",
    "AsyncClient",
    "AuthenticationFailed",
    "CitationEvent",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "DoneEvent",
    "InvalidRequest",
    "JobEndEvent",
    "JobEvent",
    "JobFailed",
    "JobUnfinished",
    "NotFound",
    "OtherEvent",
    "PermissionDenied",
    "PreconditionFailed",
    "ProblemError",
    "ProgressEvent",
    "RetrievalEvent",
    "ServerTimeout",
    "TimedOut",
    "TokenEvent",
    "TooLarge",
    "TooManyRequests",
    "Unavailable",
    "UnexpectedReply",
    "UsageEvent",
]
