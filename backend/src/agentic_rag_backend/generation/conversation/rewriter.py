"""Make follow-up questions self-contained: by rules or, if the rules find that a question leans on its history, by a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.conversation.follow_ups import MAX_CHARACTERS, complete_question
from agentic_rag_backend.generation.conversation.turns import fenced_turns
from agentic_rag_backend.language.words import all_forms, content_forms, names_and_numbers
from agentic_rag_backend.models.llm.base import TEXT, Message, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, line_in
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

MAX_TURN_TOKENS = 1500
"""Estimated tokens of the turns in the prompt; the newest that fit."""
REPLY_TOKENS = 200
_OPENINGS = all_forms(
    "describe explain compare list name summarise summarize outline tell give show find say in on at by for from to with of "
    "about is are was were do does did has have had can could will would should must may might"
)
"""Words that begin a question with a capital and are no name."""
_SCHEMA = object_of({"question": TEXT})


@dataclass(frozen=True, slots=True)
class SelfContained:
    """A question in self-contained form.

    ``by`` names the writer; None if the question leaned on nothing. ``failure`` is the
    reason if the model was called and the rules answered.
    """

    question: str
    by: Literal["rules", "model"] | None = None
    usage: Usage = field(default_factory=Usage)
    failure: str | None = None


class Rewriter:
    """Rewrites questions that lean on their conversation.

    Args:
        calls: calls of the cheap model. None, or a model that does not write: the rules rewrite.
    """

    def __init__(self, calls: StructuredCalls | None = None) -> None:
        self._calls = calls

    async def rewrite(self, question: str, history: Sequence[Message]) -> SelfContained:
        """Return the question in self-contained form. At most one model call; none if the question leans on nothing."""
        if not history:
            return SelfContained(question)
        completed = complete_question(question, history)
        if completed is None:
            return SelfContained(question)
        by_rules = SelfContained(completed, "rules")
        if self._calls is None or not self._calls.possible:
            return by_rules
        values = {"turns": fenced_turns(history, MAX_TURN_TOKENS), "question": fence("question", question)}
        reply = await self._calls.ask(built_in("follow_up"), values, _SCHEMA, max_tokens=REPLY_TOKENS)
        rewriting = line_in(reply.parsed or {}, "question", limit=MAX_CHARACTERS)
        failure = reply.failure or _find_fault(rewriting, question, history)
        if failure is None:
            return SelfContained(rewriting, "model", reply.usage)
        _log.info("follow_up_by_rules", reason=failure)
        reason = f"the model did not make the question self-contained: {failure}"
        return SelfContained(by_rules.question, by_rules.by, reply.usage, reason)


def _find_fault(rewriting: str, question: str, history: Sequence[Message]) -> str | None:
    """Return what is wrong with a model's question: it is empty, repeats the prompt, or has names that the conversation lacks."""
    if not rewriting:
        return "empty_reply"
    if "<turn" in rewriting or "<question" in rewriting:
        return "not_a_question"
    context_forms = content_forms(question).union(*(content_forms(turn.content) for turn in history))
    return "unknown_names" if names_and_numbers(rewriting, first_word=True) - context_forms - _OPENINGS else None
