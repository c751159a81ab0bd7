"""The form of a response: its items, its annotations, and the events of a stream in their order."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from sse_starlette import ServerSentEvent

from agentic_rag_backend.answering.base import AnswerEvent, DoneEvent, ErrorEvent, RetrievalEvent, TokenEvent
from agentic_rag_backend.api.doors.openai_protocol.conversations import count_tokens, list_annotations
from agentic_rag_backend.api.doors.openai_protocol.file_objects import attributes_of, file_id_of, file_name_of
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.api.responses.streaming import Events, event
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.errors import AgenticRagError


def make_annotations(answer: Answer, links: Permalinks) -> list[dict[str, Any]]:
    """Return two annotations for each citation: the file, and the address of the passage.

    ``index`` is the end of the first sentence that the citation supports, in characters.
    """
    keys = {hit.visible.chunk.document_id: hit.visible.document_key for hit in answer.retrieval.hits}
    annotations: list[dict[str, Any]] = []
    for citation, item in zip(answer.citations, list_annotations(answer, links), strict=True):
        place = item["url_citation"]
        file = {
            "file_id": file_id_of(citation.document_id),
            "filename": file_name_of(keys.get(citation.document_id), citation.title),
        }
        annotations.append({"type": "file_citation", "index": place["end_index"], **file})
        annotations.append({"type": "url_citation", **place})
    return annotations


def list_results(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return the results of a file search."""
    return [
        {
            "file_id": file_id_of(hit.visible.chunk.document_id),
            "filename": file_name_of(hit.visible.document_key, hit.visible.document_title),
            "score": hit.score,
            "attributes": attributes_of(hit.visible.metadata),
            "text": hit.visible.chunk.text,
        }
        for hit in hits
    ]


@dataclass(slots=True)
class ResponseForm:
    """One response.

    Args:
        shared: fields of the response that the request decides.
        question: the query of the file search. None: the request declares no file search.
        includes_results: whether the file search shows its results.
    """

    links: Permalinks
    shared: Mapping[str, Any]
    question: str | None = None
    includes_results: bool = False
    _id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    _search_id: str = field(default_factory=lambda: f"fs_{uuid.uuid4().hex}")
    _message_id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    _created_at: int = field(default_factory=lambda: int(time.time()))
    _sent: int = 0

    def make_response(self, answer: Answer) -> dict[str, Any]:
        """Return a whole answer."""
        output = [*self._search_items(answer.retrieval.hits), self._message(answer.text, make_annotations(answer, self.links))]
        tokens = count_tokens(answer)
        return self._response(
            "completed", output, _usage(tokens["prompt_tokens"], tokens["completion_tokens"]), answer.id, answer.grounded
        )

    def make_text_response(self, text: str) -> dict[str, Any]:
        """Return a response without an answer."""
        return self._response("completed", [self._message(text, [])], _usage(0, 0))

    async def make_events(self, events: AsyncGenerator[AnswerEvent, None]) -> Events:
        """Yield the events of an answer: the search, the sentences, the annotations, the whole response."""
        for beginning in self._begin():
            yield beginning
        place = {"item_id": self._message_id, "output_index": int(self.question is not None), "content_index": 0}
        async with aclosing(events):
            async for answer_event in events:
                match answer_event:
                    case RetrievalEvent(retrieval):
                        for search_event in (*self._search_events(retrieval.hits), *self._open_message(place)):
                            yield search_event
                    case TokenEvent(text):
                        yield self._event("response.output_text.delta", **place, delta=text, logprobs=[])
                    case ErrorEvent(error):
                        raise error
                    case DoneEvent(answer):
                        for closing in self._close_message(place, answer.text, make_annotations(answer, self.links)):
                            yield closing
                        yield self._event("response.completed", response=self.make_response(answer))

    async def make_text_events(self, text: str) -> Events:
        """Yield the events of a response without an answer."""
        place = {"item_id": self._message_id, "output_index": 0, "content_index": 0}
        delta = {"delta": text, "logprobs": []}
        for item in (*self._begin(), *self._open_message(place)):
            yield item
        yield self._event("response.output_text.delta", **place, **delta)
        for item in self._close_message(place, text, []):
            yield item
        yield self._event("response.completed", response=self.make_text_response(text))

    def report_error(self, error: AgenticRagError) -> ServerSentEvent:
        """Return the last event of a stream that failed."""
        failed = self._response("failed", [], None)
        return self._event("response.failed", response={**failed, "error": {"code": "server_error", "message": error.message}})

    def _begin(self) -> Iterator[ServerSentEvent]:
        for name in ("response.created", "response.in_progress"):
            yield self._event(name, response=self._response("in_progress", [], None))

    def _search_events(self, hits: Sequence[Hit]) -> Iterator[ServerSentEvent]:
        for item in self._search_items(hits):
            place = {"output_index": 0, "item_id": self._search_id}
            added = {**item, "status": "in_progress", "results": None}
            yield self._event("response.output_item.added", output_index=0, item=added)
            for stage in ("in_progress", "searching", "completed"):
                yield self._event(f"response.file_search_call.{stage}", **place)
            yield self._event("response.output_item.done", output_index=0, item=item)

    def _open_message(self, place: Mapping[str, Any]) -> Iterator[ServerSentEvent]:
        added = {**self._message("", []), "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=place["output_index"], item=added)
        yield self._event("response.content_part.added", **place, part=_text_part("", []))

    def _close_message(
        self, place: Mapping[str, Any], text: str, annotations: Sequence[Mapping[str, Any]]
    ) -> Iterator[ServerSentEvent]:
        for number, annotation in enumerate(annotations):
            yield self._event("response.output_text.annotation.added", **place, annotation_index=number, annotation=annotation)
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=_text_part(text, annotations))
        item = self._message(text, annotations)
        yield self._event("response.output_item.done", output_index=place["output_index"], item=item)

    def _event(self, name: str, **values: Any) -> ServerSentEvent:
        number, self._sent = self._sent, self._sent + 1
        return event(name, {"type": name, "sequence_number": number, **values})

    def _search_items(self, hits: Sequence[Hit]) -> list[dict[str, Any]]:
        if self.question is None:
            return []
        results = list_results(hits) if self.includes_results else None
        kind = {"id": self._search_id, "type": "file_search_call", "status": "completed"}
        return [{**kind, "queries": [self.question], "results": results}]

    def _message(self, text: str, annotations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        kind = {"id": self._message_id, "type": "message", "role": "assistant", "status": "completed"}
        return {**kind, "content": [_text_part(text, annotations)]}

    def _response(
        self,
        status: str,
        output: Sequence[Mapping[str, Any]],
        usage: Mapping[str, Any] | None,
        answer_id: str | None = None,
        grounded: bool | None = None,
    ) -> dict[str, Any]:
        made = {"id": self._id, "object": "response", "created_at": self._created_at, "status": status}
        return {**made, **self.shared, "output": list(output), "usage": usage, "answer_id": answer_id, "grounded": grounded}


def _text_part(text: str, annotations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def _usage(input_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }
