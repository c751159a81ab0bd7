"""Claims that put the opposite of a word in its place: "rejected the plan" against "accepted the plan"."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agentic_rag_backend.generation.claims.lexicon import common_form
from agentic_rag_backend.generation.claims.polarity import denials
from agentic_rag_backend.generation.claims.roles import roles_in
from agentic_rag_backend.generation.claims.tokens import Token, content_of, forms_of
from agentic_rag_backend.language.opposites import OPPOSITES

_CONVERSE = forms_of(
    "before after first last more less fewer larger smaller big small high low higher lower oldest youngest older younger "
    "win won lose lost buy bought sell sold import export mother father son daughter sons daughters brother sister king queen "
    "husband wife above below upper lower attack attacked defend defended victory defeat teach taught learn learned parent "
    "child employer employee lend lent borrow borrowed right left enter entered leave arrive arrived gain gained begin began "
    "end ended start started stop finished"
)
"""Words that a true rewording may exchange with their opposites: "A sold it to B" and "B bought it from A"."""


def _of_claims() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for form, others in OPPOSITES.items():
        found.setdefault(common_form(form), set()).update(common_form(other) for other in others)
    return {form: frozenset(others) for form, others in found.items()}


_OPPOSITES = _of_claims()


def states_opposite(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], names: Collection[str]) -> bool:
    """Return whether the claim has the opposite of a word of the quotes, in place of that word.

    Denials are left to `denies_otherwise`: "did not accept" may be "rejected". A word with a converse ("sold", "bought")
    counts only if one name is the agent of both.
    """
    quotes = list(quotes)
    if denials(claim) or any(denials(quote) for quote in quotes):
        return False
    claimed, quoted = content_of(claim), frozenset().union(*map(content_of, quotes))
    pairs = [(form, other) for form in claimed - quoted for other in _OPPOSITES.get(form, frozenset()) & (quoted - claimed)]
    return any(
        not {form, other} & _CONVERSE or _one_agent(claim, form, quotes, other, names)
        for form, other in pairs
        if form not in names
    )


def _one_agent(claim: Sequence[Token], form: str, quotes: Sequence[Sequence[Token]], other: str, names: Collection[str]) -> bool:
    agents = _agents(claim, form, names)
    return any(agents & _agents(quote, other, names) for quote in quotes)


def _agents(tokens: Sequence[Token], verb: str, names: Collection[str]) -> frozenset[str]:
    found = (mention.forms for mention, roles in roles_in(tokens, names) if ("agent", verb) in roles)
    return frozenset().union(*found)
