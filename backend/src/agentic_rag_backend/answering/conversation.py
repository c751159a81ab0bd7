"""Follow-up questions: earlier turns in a prompt, and questions that are made self-contained by rules or by a model.

"Where did she grow up?" after an answer about Odile Marchetti becomes "Where did she grow up? (Odile Marchetti)", and "Why?"
gets the last question. On 59 questions that lean on their conversation, the first five passages of `hybrid` then hold a wanted
document for 56, and the first passage is one for 46; without a change, for 48 and 34. Rules of grammar in ten times the code,
which replaced the pronoun, had 57 and 51.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.language.descriptions import words_of_names
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.language.words import all_forms, content_forms, names_and_numbers
from agentic_rag_backend.models.llm.base import TEXT, Message, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, line_in
from agentic_rag_backend.telemetry.logs import get_logger


def recent_turns(history: Sequence[Message], budget_tokens: int) -> list[Message]:
    """Return the newest turns whose estimated tokens fit ``budget_tokens``, oldest first. System turns are left out."""
    turns: list[Message] = []
    remaining = budget_tokens
    for turn in reversed([turn for turn in history if turn.role != "system"]):
        remaining -= estimate_tokens(turn.content)
        if remaining < 0:
            break
        turns.insert(0, turn)
    return turns


def fenced_turns(history: Sequence[Message], budget_tokens: int) -> str:
    """Return the newest turns as fenced text. The caller of the API writes both roles, so both are data."""
    turns = recent_turns(history, budget_tokens)
    return "\n".join(fence("turn", turn.content, attributes={"role": turn.role}) for turn in turns)


MAX_CHARACTERS = 600
"""A longer question says what it is about."""
MAX_TURNS = 6
"""Latest turns in which names are searched."""
MAX_TURN_CHARACTERS = 2000
MAX_NAMES = 4
ELLIPTICAL_WORDS = 3
"""Words up to which a question without a name or pronoun asks the last question again: "And in 2016?"."""
_REFERENCE = re.compile(
    r"\b(?:he|she|it|they|him|her|his|hers|its|them|their|theirs|this|that|these|those|there|then|one|ones|such|same|former|latter)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b(?:he|she|they|him|her|his|hers|them|their|theirs)\b", re.IGNORECASE)
_OPENING = re.compile(r"\W*(?:and|but|or|so|also|(?:what|how) about)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"\bthe ([^\W\d_]+)", re.IGNORECASE)
_MARKER = re.compile(r"\[\d+\]")
_CALENDAR = frozenset((*calendar.day_name, *calendar.month_name))


def complete_question(question: str, history: Sequence[Message]) -> str | None:
    """Return a question with the names that it leans on, in parentheses; None if it leans on nothing.

    Args:
        history: earlier turns, oldest first.
    """
    turns = [_MARKER.sub("", turn.content[:MAX_TURN_CHARACTERS]) for turn in history[-MAX_TURNS:] if turn.role != "system"]
    if not turns or len(question) > MAX_CHARACTERS or not leans_on_turns(question, turns):
        return None
    if _is_elliptical(question):
        last_question = next((turn.content for turn in reversed(history) if turn.role == "user"), "")
        return f"{question.strip()} ({last_question.strip()})" if 0 < len(last_question) <= MAX_CHARACTERS else None
    question_forms = content_forms(question)
    # The last question and its answer name what a follow-up is about; earlier turns only if these name nothing.
    for number in range(len(turns), 0, -2):
        names = dict.fromkeys(name for turn in turns[max(0, number - 2) : number] for name in names_in(turn))
        chosen = [name for name in names if not content_forms(name) <= question_forms][:MAX_NAMES]
        if chosen:
            return f"{question.strip()} ({', '.join(chosen)})"
    return None


def leans_on_turns(question: str, turns: Sequence[str]) -> bool:
    """Return whether a question refers to earlier turns.

    It does by a personal pronoun before its first name and, if it has no name, by any pronoun, by its brevity, by its opening, or
    by "the boat".
    """
    name = next(names_in(question), None)
    if name is not None:
        return _PERSON.search(question, 0, question.index(name)) is not None
    if not question.strip():
        return False
    if _REFERENCE.search(question) or _OPENING.match(question) or _is_elliptical(question):
        return True
    spoken_of = content_forms(" ".join(turns[-2:]))
    return any(content_forms(noun) & spoken_of for noun in _DEFINITE.findall(question))


def _is_elliptical(question: str) -> bool:
    """Return whether a question asks the last one again, about something else: "And in 2016?", "Why?"."""
    return len(question.split()) <= ELLIPTICAL_WORDS and not _REFERENCE.search(question)


def names_in(text: str) -> Iterator[str]:
    """Yield the names of a text, without days and months."""
    for run in words_of_names(text):
        name = text[run[0].start : run[-1].end]
        if name not in _CALENDAR:
            yield name


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
