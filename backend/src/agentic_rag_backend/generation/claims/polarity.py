"""Denials and hedges of a sentence, and conflicts of a claim with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.claims.lexicon import is_irregular
from agentic_rag_backend.generation.claims.tokens import Token, content_of, forms_of

NEGATIONS = forms_of("not never nor neither cannot none nobody nothing without no")
DENYING_VERBS = forms_of("failed fails fail refused refuses declined unable lacks lacked lack denied denies")
"""Words that deny the words after them, as "not" does."""
HEDGES = forms_of(
    "may might could should perhaps maybe possibly probably likely allegedly reportedly supposedly apparently presumably "
    "purportedly potentially arguably unlikely rumored rumoured alleged"
)
"""Words that make a statement uncertain."""
HEDGES_BEFORE_TO = forms_of(
    "planned plan plans planning proposed proposes proposal intended intends intend attempted attempt attempts tried try "
    "tries hoped hopes hope wanted wants want expected expects believed thought said supposed scheduled sought seeks aims "
    "aimed aim threatened considered estimated assumed asked agreed promised offered claimed claims"
)
"""Words that make a statement uncertain if "to" follows: "planned to build"."""
HEDGES_BEFORE_THAT = forms_of(
    "believed believes believe thought argued argues suggested suggests claimed claims speculated hoped"
)
"""Words that make a statement uncertain if "that" follows."""
_ALMOST = forms_of("almost nearly")
"""Words that make the verb after them false: "nearly sank"."""
_UNTIL = frozenset({"until", "before"})
_ONLY = frozenset({"only", "just", "merely", "simply"})
_TURNS = frozenset({"but", "although", "though", "while", "whereas", "and"})
_REACH = 8
"""Words after a denial or hedge that are read for its scope."""
_SCOPE = 2


@dataclass(frozen=True, slots=True)
class Scope:
    """The first words that a denial or a hedge applies to."""

    at: int
    forms: tuple[str, ...]


def denials(tokens: Sequence[Token]) -> list[Scope]:
    """Return the scopes of denials. "Not only" and "not … until" deny nothing."""
    found = []
    for index, token in enumerate(tokens):
        after = tokens[index + 1 : index + 1 + _REACH]
        if not _denies(token) or any(each.form in _UNTIL for each in after[:4]) or any(each.form in _ONLY for each in after[:1]):
            continue
        # "Never Cry Wolf" is a name.
        if token.capital and after and after[0].capital:
            continue
        found.append(Scope(index, _scope(after)))
    return found


def hedges(tokens: Sequence[Token]) -> list[Scope]:
    """Return the scopes of hedges."""
    return [
        Scope(index, _scope(tokens[index + 1 : index + 1 + _REACH])) for index in range(len(tokens)) if _hedges(tokens, index)
    ]


def denies_otherwise(claim: Sequence[Token], quotes: Iterable[Sequence[Token]]) -> bool:
    """Return whether the claim denies a statement of the quotes, or affirms a statement that they deny."""
    quotes = list(quotes)
    claimed = denials(claim)
    denied = [(scope, quote) for quote in quotes for scope in denials(quote)]
    for scope in claimed:
        if not scope.forms and not denied:
            # A sentence that ends with "was not" has lost the denied words.
            return True
        if scope.forms and not any(set(scope.forms) & set(other.forms) for other, _ in denied):
            return True
    scoped = {form for scope in claimed for form in scope.forms}
    forms = content_of(claim) - scoped
    return any(scope.forms[:1] and scope.forms[0] not in scoped and _affirmed(scope, forms, quote) for scope, quote in denied)


def hides_hedge(claim: Sequence[Token], quotes: Iterable[Sequence[Token]]) -> bool:
    """Return whether the claim states as a fact a statement that the quotes make with a hedge."""
    hedged = {form for scope in hedges(claim) for form in scope.forms}
    forms = content_of(claim)
    for quote in quotes:
        for scope in hedges(quote):
            if not hedged & set(scope.forms) and _affirmed(scope, forms, quote):
                return True
    return False


def _affirmed(scope: Scope, forms: frozenset[str], quote: Sequence[Token]) -> bool:
    """Return whether ``forms`` state the words of the scope. If the quote repeats the first, both words must match."""
    if not scope.forms or scope.forms[0] not in forms:
        return False
    within = set(range(scope.at, scope.at + 1 + _REACH))
    repeated = any(token.form == scope.forms[0] for index, token in enumerate(quote) if index not in within)
    return not repeated or set(scope.forms) <= forms


def _scope(after: Sequence[Token]) -> tuple[str, ...]:
    found: list[str] = []
    for token in after:
        if any(mark in token.gap for mark in ";:.!?") or ("," in token.gap and (found or token.form in _TURNS)):
            break
        if token.content and token.form not in NEGATIONS:
            found.append(token.form)
        if len(found) == _SCOPE:
            break
    return tuple(found)


def _denies(token: Token) -> bool:
    form = token.form
    return form in NEGATIONS or form.endswith("n't") or form in DENYING_VERBS


def _hedges(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.form in HEDGES:
        return True
    if token.form in _ALMOST:
        return any(each.raw.endswith("ed") or is_irregular(each.raw) for each in tokens[index + 1 : index + 2])
    if token.form not in HEDGES_BEFORE_TO and token.form not in HEDGES_BEFORE_THAT:
        return False
    following = [each.form for each in tokens[index + 1 : index + 3]]
    to = token.form in HEDGES_BEFORE_TO and following[:1] == ["to"]
    return to or (token.form in HEDGES_BEFORE_THAT and following[:1] == ["that"])
