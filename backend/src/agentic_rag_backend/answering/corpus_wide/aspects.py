"""The aspect that a question asks for, such as concerns, and the words by which a sentence expresses it.

"What are the staff's main concerns?" is near to every sentence about staff. Only a sentence that expresses a concern answers it.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.language.questions.kinds import is_related_form
from agentic_rag_backend.language.words import comparable, content_forms


def _forms_of(text: str) -> frozenset[str]:
    return frozenset(comparable(word) for word in text.split())


@dataclass(frozen=True, slots=True)
class Aspect:
    """``asked`` are the words of a question that ask for it, ``cues`` the words of sentences that express it."""

    name: str
    asked: frozenset[str]
    cues: frozenset[str]


ASPECTS = (
    Aspect(
        "concerns",
        _forms_of(
            """
            concern concerns worry worries fear fears problem problems challenge challenges complaint complaints
            difficulty difficulties risk risks criticism objection objections obstacle obstacles grievance grievances
            threat threats
            """
        ),
        _forms_of(
            """
            concern worry worries fear afraid anxious problem trouble challenge complain complaint difficult difficulty
            hard risk danger dangerous unsafe threat threaten lose lost loss lack shortage short fail failed failure
            object objection oppose against refuse refused reject cannot unable delay delayed late overdue expensive
            dearer cost costly debt broke broken break damage damaged hurt injured injury decline fewer shrink shrinking
            close closed withdraw withdrawn doubt unfair quarrel dispute argue blame mistake error wrong tired overwork
            overworked alone nobody unpaid underpaid leave leaving vacant vacancy inequality bias harm crisis disaster
            pressure stress burnout struggle suffer scared wary regret warn
            """
        ),
    ),
    Aspect(
        "benefits",
        _forms_of(
            """
            benefit benefits advantage advantages achievement achievements success successes strength strengths
            """
        ),
        _forms_of(
            """
            benefit advantage achieve achievement success successful help helped improve improved better gain gained save
            saved saving win won award first record grow grew growth increase rise rose cheaper faster safer thank
            grateful praise proud possible enable allow opportunity profit useful
            """
        ),
    ),
    Aspect(
        "plans",
        _forms_of(
            """
            plan plans intention intentions proposal proposals ambition ambitions goal goals
            """
        ),
        _forms_of(
            """
            plan propose proposal intend intention will would shall hope aim goal next future expect apply application
            prepare design decide resolve resolved agree agreed ask vote ambition
            """
        ),
    ),
)


def aspect_of(question: str) -> Aspect | None:
    """Return the aspect that the question names; None if it names none."""
    forms = content_forms(question)
    return next((aspect for aspect in ASPECTS if not aspect.asked.isdisjoint(forms)), None)


def expresses(text: str, aspect: Aspect) -> bool:
    """Return whether a sentence expresses the aspect by one of its cues or by a word that the question could use."""
    forms = content_forms(text)
    return any(is_related_form(form, forms) for form in aspect.asked) or not aspect.cues.isdisjoint(forms)
