"""Messages of a chat as a question with earlier turns, and an answer as a message with its sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.application.questions import MAX_TURNS
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

SOURCES_HEADING = "\n\n**Sources**\n"
NEAREST_HEADING = "\n\n**Nearest passages**\n"
_MAX_MESSAGES = 1000
_QUOTE_CHARACTERS = 300
_TEXT_PARTS = ("text", "input_text", "output_text")
_MARKDOWN = re.compile(r"[\\`*\[\]<>&]")
"""Characters that begin code, emphasis, links, pictures or HTML. Titles and quotes come from documents."""


class ContentPart(BaseModel):
    """A part of a message. Only texts are read, those of the model's earlier responses too."""

    model_config = ConfigDict(extra="ignore")

    type: str = "text"
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of a chat."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The text of all parts."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type in _TEXT_PARTS and part.text)
        return self.content or ""


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class ChatBody(BaseModel):
    """A request for a chat completion. Parameters that are not listed are accepted, and have no effect."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [{"model": "auto", "messages": [{"role": "user", "content": "Why was the tidal barrage delayed?"}]}]
        },
    )

    model: Annotated[str, Field(max_length=200)] = "auto"
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MAX_MESSAGES)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None


def read_conversation(messages: Sequence[ChatMessage], *, field: str = "messages") -> tuple[str, list[dict[str, str]]]:
    """Return the question, which is the last message of the user, and the turns before it, at most `MAX_TURNS`.

    Messages of other roles than user and assistant are left out, and so are the sources below earlier answers.

    Raises:
        InvalidRequest: there is no message of the user, or it is blank or too long.
    """
    position = next((number for number in reversed(range(len(messages))) if messages[number].role == "user"), None)
    question = "" if position is None else messages[position].text.strip()
    if position is None or not question:
        raise InvalidRequest(f"{field} must contain a message of the role 'user' with a text", field=field)
    if len(question) > MAX_QUERY_CHARACTERS:
        raise InvalidRequest(
            f"the last message of the user may have at most {MAX_QUERY_CHARACTERS} characters; got {len(question)}",
            field=field,
        )
    turns = []
    for message in messages[:position]:
        text = message.text.partition(SOURCES_HEADING)[0].partition(NEAREST_HEADING)[0].strip()[:MAX_QUERY_CHARACTERS]
        if message.role in ("user", "assistant") and text:
            turns.append({"role": message.role, "content": text})
    return question, turns[-MAX_TURNS:]


def write_sources(answer: Answer, links: Permalinks) -> str:
    """Return what stands below an answer: its sources, or the passages nearest to a question that is refused.

    It is Markdown in which titles and quotes are no markup. Empty: there are neither.
    """
    heading = SOURCES_HEADING if answer.citations else NEAREST_HEADING
    lines = []
    for citation in answer.citations or answer.nearest:
        quote = " ".join(citation.quote.split())
        excerpt = quote if len(quote) <= _QUOTE_CHARACTERS else f"{quote[:_QUOTE_CHARACTERS]}…"
        link = f"[{_as_text(citation.title)}]({links.passage(citation.document_id, citation.chunk_id)})"
        lines.append(f"\n[{citation.marker}] {link}: “{_as_text(excerpt)}”\n")
    return heading + "".join(lines).rstrip("\n") if lines else ""


def _as_text(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def list_annotations(answer: Answer, links: Permalinks) -> list[dict[str, Any]]:
    """Return the citations of an answer as annotations, each at the first sentence that it supports."""
    annotations = []
    for citation in answer.citations:
        claim = next((item for item in answer.claims if item.included and citation.marker in item.markers), None)
        start, end = (claim.start_char or 0, claim.end_char or 0) if claim is not None else (0, len(answer.text))
        annotations.append(
            {
                "type": "url_citation",
                "url_citation": {
                    "url": links.passage(citation.document_id, citation.chunk_id),
                    "title": citation.title,
                    "start_index": start,
                    "end_index": end,
                },
            }
        )
    return annotations


def count_tokens(answer: Answer) -> dict[str, int]:
    """Return the tokens of an answer in OpenAI's form. They are 0 if no model wrote it."""
    usage = answer.usage
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "auto": {"strategy": "auto"},
    "dual": {"strategy": "dual_level"},
    "local": {"strategy": "graph"},
    "themes": {"strategy": "global"},
    "agentic": {"strategy": "agentic"},
}
"""Options of an answer by the name of a model."""
