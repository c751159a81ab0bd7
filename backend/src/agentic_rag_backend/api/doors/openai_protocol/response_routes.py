"""Responses of OpenAI's protocol: answers with a search in files, whole or as a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from agentic_rag_backend.answering.base import AnswerEvent
from agentic_rag_backend.api.dependencies import Reader, Services
from agentic_rag_backend.api.doors.openai_protocol.conversations import PRESETS, ChatMessage, ContentPart, read_conversation
from agentic_rag_backend.api.doors.openai_protocol.file_search import FileSearchOptions
from agentic_rag_backend.api.doors.openai_protocol.interface_tasks import do_task, is_task
from agentic_rag_backend.api.doors.openai_protocol.reply_schemas import ERRORS, ResponseObject
from agentic_rag_backend.api.doors.openai_protocol.response_form import ResponseForm
from agentic_rag_backend.api.doors.openai_protocol.route import OPENAI_PATH, OpenAIRoute, UnknownModel, stream_events
from agentic_rag_backend.api.doors.openai_protocol.vector_store_objects import name_store
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, reads
from agentic_rag_backend.api.schemas.questions.questions import HISTORY_BYTES, QUESTION_BYTES
from agentic_rag_backend.application import Application
from agentic_rag_backend.application.questions import AnswerRequest, read_request
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import InvalidRequest, NotFound

router = APIRouter(prefix=OPENAI_PATH, tags=["openai"], route_class=OpenAIRoute, responses=ERRORS)
MAX_STORES = 10
_RESULTS = "file_search_call.results"
_SHOWN: Mapping[str, Any] = {
    "background": False,
    "error": None,
    "incomplete_details": None,
    "max_output_tokens": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_p": None,
    "truncation": "disabled",
}
"""Fields of every response."""
_UNSUPPORTED: Mapping[str, str] = {
    "previous_response_id": "responses are not stored: send the earlier messages in 'input'",
    "conversation": "conversations are not stored: send the earlier messages in 'input'",
    "background": "responses are not made in the background: leave 'background' out",
}


class InputItem(BaseModel):
    """An item of the input. Only messages are read."""

    model_config = ConfigDict(extra="ignore")

    role: str | None = None
    content: str | list[ContentPart] | None = None


class FileSearchTool(FileSearchOptions):
    """A search in vector stores."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_STORES)]


class ResponseBody(BaseModel):
    """A request for a response. Parameters that are not listed are accepted, and have no effect."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "model": "auto",
                    "input": "Why was the tidal barrage delayed?",
                    "tools": [{"type": "file_search", "vector_store_ids": ["vs_all"]}],
                }
            ]
        },
    )

    model: Annotated[str, Field(max_length=200)] = "auto"
    input: str | Annotated[list[InputItem], Field(min_length=1, max_length=1000)]
    instructions: str | list[dict[str, Any]] | None = Field(None, description="accepted, without effect")
    stream: bool | None = False
    tools: Annotated[list[dict[str, Any]], Field(max_length=128)] | None = Field(
        None, description="one `file_search`; other tools are never called"
    )
    include: list[str] | None = Field(None, description=f"`{_RESULTS}` shows the passages of the search")
    metadata: dict[str, Any] | None = None
    previous_response_id: str | None = Field(None, description="refused: responses are not stored")
    conversation: str | dict[str, Any] | None = Field(None, description="refused: conversations are not stored")
    background: bool | None = None

    def list_messages(self) -> list[ChatMessage]:
        """Return the messages of the input."""
        if isinstance(self.input, str):
            return [ChatMessage(role="user", content=self.input)]
        return [ChatMessage(role=item.role, content=item.content) for item in self.input if item.role is not None]

    def read_tool(self) -> FileSearchTool | None:
        """Return the file search that the request declares, or None."""
        declared = [tool for tool in self.tools or () if tool.get("type") == "file_search"]
        if len(declared) > 1:
            raise InvalidRequest(f"tools may have one tool 'file_search'; got {len(declared)}", field="tools")
        return read_request(FileSearchTool, declared[0]) if declared else None

    def refuse_unsupported(self) -> None:
        """Refuse parameters without which the response would be another one than the caller expects."""
        for name, reason in _UNSUPPORTED.items():
            if getattr(self, name):
                raise InvalidRequest(f"{name} is not supported: {reason}", field=name)


_CONTENT = {
    "text/event-stream": {
        "example": 'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "Delayed. [1]"}\n\n'
    }
}


@router.post(
    "/responses",
    summary="Answer the last message of the input, with citations of files",
    responses={200: {"model": ResponseObject, "content": _CONTENT}},
)
@reads(lambda _: QUERY_BYTES + QUESTION_BYTES + HISTORY_BYTES)
async def create_response(request: Request, services: Services, caller: Reader, body: ResponseBody) -> Any:
    """Answer in OpenAI's form: the text of `POST /answers`, with the annotations `file_citation` and `url_citation`.

    The tool `file_search` limits the answer to vector stores. Without it, the answer is from all documents.
    """
    if body.model not in PRESETS:
        raise UnknownModel(f"no model is named {body.model[:80]!r}; the models are {', '.join(PRESETS)}")
    body.refuse_unsupported()
    question, history = read_conversation(body.list_messages(), field="input")
    tool = body.read_tool()
    form = _make_form(request, body, question if tool is not None else None)
    if is_task(question):
        form.question, text = None, do_task(question)
        return (
            stream_events(request, form.make_text_events(text), form.report_error)
            if body.stream
            else form.make_text_response(text)
        )
    options = tool.to_values() if tool is not None else {}
    answer_request = read_request(AnswerRequest, {**PRESETS[body.model], "query": question, "history": history, **options})
    within = await _select_stores(services, caller, tool)
    if not body.stream:
        return form.make_response(await services.answers.write_answer(caller, answer_request, within=within))
    events = services.answers.stream_answer(caller, answer_request, within=within)
    first_event = await anext(events)  # an error before the first event is still a response

    async def all_events() -> AsyncGenerator[AnswerEvent, None]:
        async with aclosing(events):
            yield first_event
            async for answer_event in events:
                yield answer_event

    return stream_events(request, form.make_events(all_events()), form.report_error)


def _make_form(request: Request, body: ResponseBody, question: str | None) -> ResponseForm:
    shared = {
        **_SHOWN,
        "model": body.model,
        "instructions": body.instructions,
        "tools": body.tools or [],
        "metadata": body.metadata or {},
    }
    return ResponseForm(Permalinks.of(request), shared, question, _RESULTS in (body.include or ()))


@router.get("/responses/{response_id}", response_model=ResponseObject, summary="404: responses are not stored")
async def get_response(caller: Reader, response_id: str) -> Any:
    """Explain that responses are not stored. An answer leaves only ids behind, whatever `store` says."""
    raise _not_stored(response_id)


@router.delete("/responses/{response_id}", response_model=ResponseObject, summary="404: responses are not stored")
async def delete_response(caller: Reader, response_id: str) -> Any:
    """Explain that there is nothing to delete: responses are not stored."""
    raise _not_stored(response_id)


def _not_stored(response_id: str) -> NotFound:
    return NotFound(f"response {response_id[:80]!r} is not stored: responses are sent once, and 'store' is always false")


async def _select_stores(services: Application, caller: Principal, tool: FileSearchTool | None) -> Filter | None:
    """Return the filter of the documents of a tool's stores. An unknown store is reported by its id."""
    set_ids = []
    for store_id in tool.vector_store_ids if tool is not None else ():
        with name_store(store_id) as set_id:
            await services.document_sets.get_set(caller, set_id)
            set_ids.append(set_id)
    return await services.document_sets.select_documents(caller, set_ids)
