"""Denials and hedges of a sentence, and conflicts of a claim with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.answering.claims.tokens import Token, content_of
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language

_REACH = 8
"""Words after a denial or hedge that are read for its scope."""
_TAKEN_BACK = 4
"""Words after a denial in which a word takes it back."""
_SCOPE = 2
_STOPS = frozenset(";:.!?。；：！？，")


@dataclass(frozen=True, slots=True)
class PolarityScope:
    """The first words that a denial or a hedge applies to."""

    at: int
    forms: tuple[str, ...]


def find_denials(tokens: Sequence[Token], language: Language) -> list[PolarityScope]:
    """Return the scopes of denials. "Not only" and "not … until" deny nothing."""
    scopes = []
    for index, token in enumerate(tokens):
        after = tokens[index + 1 : index + 1 + _REACH]
        limited = any(word.form in language.limits for word in after[:1])
        if (
            not is_denial(token, language)
            or limited
            or any(word.form in language.takes_back for word in after[:_TAKEN_BACK])
            # "Never Cry Wolf" is a name.
            or (language.code == ENGLISH and token.capital and after and after[0].capital)
        ):
            continue
        scopes.append(PolarityScope(index, _scope_of(tokens, index, language)))
    return scopes


def find_hedges(tokens: Sequence[Token], language: Language) -> list[PolarityScope]:
    """Return the scopes of hedges."""
    return [
        PolarityScope(index, _scope_of(tokens, index, language))
        for index in range(len(tokens))
        if _is_hedge(tokens, index, language)
    ]


def denies_otherwise(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], language: Language) -> bool:
    """Return whether the claim denies a statement of the quotes, or affirms a statement that they deny."""
    claimed = find_denials(claim, language)
    denied = [(scope, quote) for quote in quotes for scope in find_denials(quote, language)]
    for scope in claimed:
        if not scope.forms and not denied:
            # A sentence that ends with "was not" has lost the denied words.
            return True
        if scope.forms and not any(set(scope.forms) & set(quoted.forms) for quoted, _ in denied):
            return True
    scoped = {form for scope in claimed for form in scope.forms}
    forms = content_of(claim) - scoped
    if language.unspaced:
        # A scope of characters has several words.
        denied = [(scope, quote) for scope, quote in denied if scoped.isdisjoint(scope.forms)]
    return any(scope.forms[:1] and scope.forms[0] not in scoped and _states_scope(scope, forms, quote) for scope, quote in denied)


def hides_hedge(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], language: Language) -> bool:
    """Return whether the claim states as a fact a statement that the quotes make with a hedge.

    In other languages than English it may have only the second word of the statement: "podría abrir en 2027", "abre en 2027".
    """
    words_read = 1 if language.code == ENGLISH or language.unspaced else _SCOPE
    hedged = {form for scope in find_hedges(claim, language) for form in scope.forms}
    forms = content_of(claim)
    return any(
        not hedged & set(scope.forms) and _states_scope(PolarityScope(scope.at, scope.forms[word:]), forms, quote)
        for quote in quotes
        for scope in find_hedges(quote, language)
        for word in range(words_read)
    )


def is_denial(token: Token, language: Language) -> bool:
    """Return whether a word denies the words after it."""
    return token.form in language.negations or token.form in language.denying_verbs or token.form.endswith("n't")


def _states_scope(scope: PolarityScope, forms: frozenset[str], quote: Sequence[Token]) -> bool:
    """Return whether ``forms`` state the words of the scope. If the quote repeats the first, both words must match."""
    if not scope.forms or scope.forms[0] not in forms:
        return False
    within = set(range(scope.at, scope.at + 1 + _REACH))
    repeated = any(token.form == scope.forms[0] for index, token in enumerate(quote) if index not in within)
    return not repeated or set(scope.forms) <= forms


def _scope_of(tokens: Sequence[Token], index: int, language: Language) -> tuple[str, ...]:
    """Return the first words after a denial or hedge in its clause; in German also those before one that ends the clause.

    Where verbs stand last, a denial follows what it denies.
    """
    forms: list[str] = []
    for token in tokens[index + 1 : index + 1 + _REACH]:
        comma = "," in token.gap or "，" in token.gap
        if not _STOPS.isdisjoint(token.gap) or (comma and (forms or token.form in language.conjunctions)):
            break
        if token.content and token.form not in language.negations:
            forms.append(token.form)
        if len(forms) == (_REACH if language.unspaced else _SCOPE):
            break
    if language.code == ENGLISH or (forms and not language.verbs_last):
        return tuple(forms)
    before = [token.form for token in tokens[max(0, index - _REACH) : index] if token.content]
    return tuple(reversed(before[-_SCOPE:]))


def _is_hedge(tokens: Sequence[Token], index: int, language: Language) -> bool:
    form = tokens[index].form
    following = [token.form for token in tokens[index + 1 : index + 2]]
    return (
        form in language.hedges
        or (form in language.hedges_before_to and following == ["to"])
        or (form in language.hedges_before_that and following == ["that"])
    )
