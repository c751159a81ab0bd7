"""Generators that check sentences while the model writes them: ``standard`` marks unsupported ones, ``attributed`` omits them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from agentic_rag_backend.answering.base import CitationPolicy, Refusal
from agentic_rag_backend.answering.draft import AnswerDraft, DraftEvent
from agentic_rag_backend.answering.generators.base import Assignment, Generated, Generator
from agentic_rag_backend.answering.writing import Writers, Writing


class SentenceGenerator:
    """Has the model write the answer, and checks each sentence.

    Args:
        policy: for requests that name none.
        part: whether it writes a part of an answer, which goes on without this part if the model is too slow.
    """

    def __init__(self, name: str, writers: Writers, policy: CitationPolicy, *, part: bool = False) -> None:
        self._name = name
        self._part = part
        self._writers = writers
        self._policy = policy

    @property
    def name(self) -> str:
        """The name in requests."""
        return self._name

    async def generate(self, assignment: Assignment) -> Generated:
        """Return the whole answer; see `Generator`."""
        return await collect_events(self, assignment)

    async def stream(self, assignment: Assignment) -> AsyncGenerator[DraftEvent | Generated, None]:
        """Yield each sentence when it is checked; see `Generator`."""
        draft = AnswerDraft(assignment.policy or self._policy, assignment.style)
        # Without quotations in reserve, the model has its own time, unless the assignment is a step of another answer.
        hurried = self._writers.quotes or self._part
        writers = replace(self._writers, patience_s=assignment.patience_s if hurried else None)
        writing = Writing(writers, assignment.brief, assignment.patience_s)
        async with aclosing(writing.sentences(draft)) as sentences:
            async for event in sentences:
                yield event
        yield finish_generation(self._name, draft, writing)


def finish_generation(name: str, draft: AnswerDraft, writing: Writing) -> Generated:
    """Return the answer of a draft that is complete."""
    refusal: Refusal | None = None if draft.begun else writing.refusal
    return Generated(
        text=draft.text,
        introduction=draft.introduction if draft.begun else "",
        citations=tuple(draft.citations),
        claims=tuple(draft.claims),
        retrieval=writing.retrieval,
        usage=writing.usage,
        generator=name,
        model=writing.model,
        refusal=refusal,
    )


async def collect_events(generator: Generator, assignment: Assignment) -> Generated:
    """Return the answer of a stream with its events."""
    events: list[DraftEvent] = []
    async with aclosing(generator.stream(assignment)) as stream:
        async for event in stream:
            if isinstance(event, Generated):
                return replace(event, events=tuple(events))
            events.append(event)
    raise AssertionError("a stream ends with the answer")


def attributed_generator(writers: Writers) -> SentenceGenerator:
    """Return the generator. Its default policy is ``checked``."""
    return SentenceGenerator("attributed", writers, "checked")


def standard_generator(writers: Writers) -> SentenceGenerator:
    """Return the generator. Its default policy is ``mark``."""
    return SentenceGenerator("standard", writers, "mark")
