"""Answers to the questions of a caller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.application.requests import AnswerRequest
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.generation.base import AnswerEvent, DoneEvent, ErrorEvent, RetrievalEvent
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.retrieval.requests.builder import BuiltQuery


@dataclass(frozen=True, slots=True)
class AnswerWriting:
    """Answers questions with checked citations, at once or as events."""

    container: Container

    @requires(Scope.READ)
    async def write_answer(self, caller: Principal, request: AnswerRequest) -> Answer:
        """Return the answer, or a refusal (``grounded`` False) if the documents do not contain it.

        Raises:
            InvalidRequest: a value is outside its limits.
            ModelUnavailable: the language model failed, and there is no fallback.
        """
        built = await self.container.queries.build(caller, request)
        return _with_warnings(await self.container.answers.answer(built.query, **_options_of(built, request)), built)

    @requires(Scope.READ)
    async def stream_answer(self, caller: Principal, request: AnswerRequest) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the results, the checked sentences and the whole answer. A later failure is an `ErrorEvent`.

        Raises:
            AgenticRagError: the request was refused, or the search failed. Nothing was yielded yet.
        """
        built = await self.container.queries.build(caller, request)
        started = False
        # Closing the events stops the model as soon as the caller leaves.
        async with aclosing(self.container.answers.stream(built.query, **_options_of(built, request))) as events:
            async for event in events:
                match event:
                    case ErrorEvent(error) if not started:
                        raise error
                    case RetrievalEvent(retrieval):
                        yield RetrievalEvent(retrieval.with_warnings(built.warnings))
                    case DoneEvent(answer):
                        yield DoneEvent(_with_warnings(answer, built))
                    case _:
                        yield event
                started = True

    @requires(Scope.READ)
    async def check_quoted_chunks(self, caller: Principal, chunk_ids: Collection[str]) -> None:
        """Return if every chunk that an answer may quote is visible.

        Raises:
            NotFound: a document was deleted or changed.
        """
        if len(await self.container.catalogue.documents.hydrate(caller.tenant.id, list(chunk_ids))) < len(chunk_ids):
            raise NotFound("a document of this answer was deleted or changed meanwhile; ask again")


def _options_of(built: BuiltQuery, request: AnswerRequest) -> dict[str, Any]:
    return {
        "strategy": built.strategy,
        "generator": request.generator,
        "history": [Message(turn.role, turn.content) for turn in request.history],
        "citation_style": request.citation_style,
        "citation_policy": request.citation_policy,
    }


def _with_warnings(answer: Answer, built: BuiltQuery) -> Answer:
    return replace(answer, retrieval=answer.retrieval.with_warnings(built.warnings))
