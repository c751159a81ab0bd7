"""Bodies of requests that search and answer: the requests of the application, and the parts of the response."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from agentic_rag_backend.application.questions import MAX_TURNS, AnswerRequest, ExplainRequest
from agentic_rag_backend.retrieval.options.filters import Switch
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS, DualLevelRequest, SearchRequest

QUESTION_BYTES = MAX_QUERY_CHARACTERS * 12
HISTORY_BYTES = MAX_TURNS * MAX_QUERY_CHARACTERS * 12
"""Bytes of the longest question and history as JSON. A character beyond U+FFFF may be written as two escapes of six bytes."""

Fields = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(min_length=1, max_length=50)]


def _describe_fields(items: str, parts: str) -> str:
    """Return the description of ``fields``, with the list whose fields can be named, and examples of parts."""
    return (
        f"parts of `data` that the response has, such as {parts}, and fields of `{items}`, such as `content` or "
        f"`{items}.content`; named fields of a part leave out its other fields; default: everything"
    )


class SearchBody(SearchRequest):
    """A search, and the parts of its response."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who leads the harbour project?", "strategy": "graph", "filters": {"category": "minutes"}}]
        }
    )

    fields: Fields | None = Field(
        None, description=_describe_fields("results", "`results` and `trace`"), examples=[["title", "content", "score"]]
    )


class ExplainBody(ExplainRequest):
    """A search, and the document to explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who leads the harbour project?", "document_id": "5f0c7e1a-9b2d-5c3e-8f60-718293a4b5c6"}]
        }
    )


class AnswerBody(AnswerRequest):
    """A question, and options of its answer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Why was the tidal project delayed?", "strategy": "auto", "stream": False}]}
    )

    stream: Switch = Field(False, description="answer as server-sent events")
    resumable: Switch = Field(
        False, description="go on with a streamed answer although nobody follows it, for STREAM_RESUME_S (120 s)"
    )
    fields: Fields | None = Field(
        None, description=_describe_fields("sources", "`answer` and `citations`"), examples=[["answer", "citations"]]
    )


class DualLevelBody(DualLevelRequest):
    """A dual-level search. Default limits and weights are the deployment's settings."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "What ties fishing and energy together?", "preset": "conceptual"}]}
    )

    fields: Fields | None = Field(
        None,
        description=_describe_fields("low_level_results", "`synthesized_answer` and `citations`"),
        examples=[["synthesized_answer"]],
    )
