"""Make a follow-up question self-contained by rules. No model is called.

The earlier questions are made self-contained first, oldest first, so that a chain of follow-up questions keeps its subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.text.questions import AnswerKind, asked_for
from agentic_rag_backend.generation.conversation.clauses import with_phrase, with_question_word, with_subject, with_time
from agentic_rag_backend.generation.conversation.focus import ATTRIBUTES, MAX_EARLIER, Focus
from agentic_rag_backend.generation.conversation.grammar import AUXILIARIES, PREPOSITIONS, words_of
from agentic_rag_backend.generation.conversation.leaning import MAX_CHARACTERS, Lean, lean_of, reference_in
from agentic_rag_backend.generation.conversation.mentions import PHRASE, without_markers
from agentic_rag_backend.knowledge.extraction.entity_types import DATE
from agentic_rag_backend.knowledge.extraction.lexicon import ORGANISATION_HEADS
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Message

MAX_TURNS = 8
"""Newest turns that the rules read."""
MAX_READ = 2000
"""Characters that the rules read of an answer. Its first sentences have its names."""
_LED = [[word] for word in sorted(PREPOSITIONS)]
_BEFORE_THEN = frozenset({"since", "by", "until", "before", "from"})
MAX_REFERENCES = 3
"""References that are replaced in one question."""


def focus_of(history: Sequence[Message]) -> Focus:
    """Return the focus of a conversation. System turns are ignored."""
    focus = Focus()
    for turn in [turn for turn in history if turn.role != "system"][-MAX_TURNS:]:
        if turn.role == "user":
            asked = " ".join(turn.content[:MAX_CHARACTERS].split())
            earlier = tuple(text for text in (*focus.earlier, focus.question, focus.answer) if text)
            resolved = rewrite(asked, focus) or asked
            focus = Focus(resolved, "", earlier[-2 * MAX_EARLIER :])
        else:
            text = without_markers(turn.content[:MAX_READ]).replace(NOT_ANSWERED, "")
            focus = replace(focus, answer=" ".join(text.split()))
    return focus


def leans(question: str, focus: Focus) -> Lean | None:
    """Return how the question leans on the conversation; None if it is self-contained or the conversation is empty."""
    return lean_of(question, focus.all_phrases) if focus.question or focus.answer else None


def rewrite(question: str, focus: Focus) -> str | None:
    """Return the question in self-contained form; None if it leans on nothing or the conversation completes nothing."""
    text = question
    for _ in range(MAX_REFERENCES):
        lean = leans(text, focus)
        if lean is None:
            break
        if lean.kind != "reference":
            text = _completed(text, lean, focus) or text
            break
        replaced = _replaced(text, lean, focus)
        if replaced is None:
            text = _with_names(text, focus) or text
            break
        text = replaced
    return text if text != question else None


def _replaced(question: str, lean: Lean, focus: Focus) -> str | None:
    """Return the question with one reference replaced by the name that it means."""
    meant = focus.referent(lean)
    if meant is None:
        return None
    if lean.referent == "time" and lean.noun in {"year", "month", "season", "date", "day"}:
        meant = meant if words_of(question[: lean.start])[-1:][:1] in _LED else f"{'on' if ' ' in meant else 'in'} {meant}"
    elif lean.noun in {"then", "there"}:
        meant = _with_preposition(meant, lean, words_of(question[: lean.start])[-1:])
    if lean.possessive:
        meant += "'" if meant.endswith("s") else "'s"
    if not lean.start and question[:1].isupper():
        meant = meant[:1].upper() + meant[1:]
    return f"{question[: lean.start]}{meant}{question[lean.end :]}"


def _completed(question: str, lean: Lean, focus: Focus) -> str | None:
    """Return the last question with the part replaced that the fragment names."""
    last = focus.question
    if lean.kind == "focus" or not last:
        return _with_names(question, focus)
    if lean.kind == "question_word":
        completed = with_question_word(last, lean.text, _answer_names(focus))
        return completed or _with_names(question, focus)
    if lean.kind == "time":
        return with_time(last, lean.text)
    if lean.kind == "place":
        return with_phrase(last, _resolved(lean.text, focus), focus.asked)
    return _with_other_subject(question, lean.text, focus)


def _with_other_subject(question: str, fragment: str, focus: Focus) -> str | None:
    new = _resolved(fragment, focus)
    if new != fragment and fragment.lower().startswith(("its ", "their ", "his ", "her ")):
        return f"What is {new}?"
    old = focus.subject(focus.kind_of(new))
    if new.split()[0].islower() and words_of(new)[0] not in {"the", "a", "an"}:
        old = focus.counted() or old
    if old is None:
        return _with_names(question, focus)
    spelled = new.lower().split()
    if spelled[0] == "the" and len(spelled) == 2 and spelled[1] in ATTRIBUTES:
        # "And the cost?" after a question about the array.
        return f"What is {new} of {old.text}?"
    return with_subject(focus.question, old, new)


def _with_preposition(meant: str, lean: Lean, previous: list[str]) -> str:
    """Return "in 2016" for "then" and "on Hollin Island" for "there"."""
    if lean.noun == "then":
        return meant if previous and previous[0] in _BEFORE_THEN else f"{'on' if ' ' in meant else 'in'} {meant}"
    if previous and previous[0] in {"from", "near"}:
        return meant
    if previous and previous[0] in {"get", "go", "come", "went", "came", "move", "moved", "travel", "sail", "row"}:
        return f"to {meant}"
    head = meant.split()[-1].lower()
    if head in {"island", "isle", "coast", "quay", "pier"}:
        return f"on {meant}"
    return f"{'at' if head in ORGANISATION_HEADS or meant.startswith('the ') or meant.isupper() else 'in'} {meant}"


def _resolved(fragment: str, focus: Focus) -> str:
    """Return a fragment with its own references replaced: "its cost" → "the array's cost"."""
    lean = reference_in(fragment, focus.all_phrases)
    if lean is None or lean.kind != "reference":
        return fragment
    replaced = _replaced(fragment, lean, focus)
    return replaced or fragment


def _answer_names(focus: Focus) -> list[str]:
    """Return the names that the last answer gave, of the kind that its question asked for."""
    if asked_for(focus.question) in (AnswerKind.TIME, AnswerKind.NUMBER, AnswerKind.THEME):
        return []
    return [one.text for one in focus.answered if one.type not in (DATE, PHRASE)]


def _with_names(question: str, focus: Focus) -> str | None:
    """Return the question with the names of the last exchange in brackets."""
    known = set(words_of(question)) - AUXILIARIES
    names = [name for name in focus.names() if not set(words_of(name)) <= known]
    if not names:
        return None
    body = question.strip().rstrip("?!. ")
    return f"{body} ({', '.join(names)})?"
