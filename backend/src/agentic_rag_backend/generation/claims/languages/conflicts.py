"""Contradictions between a claim and its quotes in any language: numbers, names, denials, hedges, and changed places of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from agentic_rag_backend.generation.claims.base import Reason
from agentic_rag_backend.generation.claims.languages.lexicon import PARTICLES, TRANSLITERATION, Lexicon
from agentic_rag_backend.generation.claims.languages.passages import Clause, Matcher, ReadPassage, ReadText, units_of
from agentic_rag_backend.generation.claims.languages.roles import Quoted, changes_frame, changes_place, has_name
from agentic_rag_backend.generation.claims.languages.terms import Term, is_character, plain_form
from agentic_rag_backend.generation.claims.languages.units import changes_unit
from agentic_rag_backend.generation.claims.languages.unspaced_names import changes_unspaced_name, exchanges_names

_QUOTED = re.compile('["“„«「『]([^"“”„«»「」『』]{3,600})(?:["”“»」』]|\\Z)')
_SPACE = re.compile(r"[\W_]+")
_NEGATED_WITH_NE = frozenset(("plus", "personne", "point"))
_NE = frozenset(("ne", "n"))
_LEAST_SHARED = 2
"""Words that a clause must share with another one to be compared with it."""
_DIRECTIONS = frozenset("东西南北東")
_FILLED = 8
"""Characters between two others that may be a name."""
_NAMED = 0.5
"""Share of characters that write foreign names, in a name."""


def conflict(claim: ReadText, quotes: Sequence[Quoted], matcher: Matcher) -> Reason | None:
    """Return the reason why a claim contradicts its quotes, which are in its language. None if it contradicts nothing."""
    if misquotes(claim.text, [quote.held for quote in quotes]):
        return "quote"
    if changes_number(claim.terms, quotes) or changes_unit(claim.text, _texts(quotes)):
        return "number"
    if _changes_name(claim, quotes) or _replaces_name(claim, quotes) or changes_unspaced_name(claim.text, _texts(quotes)):
        return "name"
    if _adds_noun(claim, quotes):
        return "unsupported"
    polarity = _changes_polarity(claim, quotes, matcher)
    if polarity is not None:
        return polarity
    changed = changes_frame(claim, quotes)
    if changed is not None:
        return changed
    return "roles" if changes_place(claim, quotes) or exchanges_names(claim.text, _texts(quotes)) else None


def _texts(quotes: Sequence[Quoted]) -> list[str]:
    return [quote.held.text[quote.terms[0].start : quote.terms[-1].end + 2] for quote in quotes if quote.terms]


def misquotes(text: str, held: Sequence[ReadPassage]) -> bool:
    """Return whether the claim has words in quotation marks that no passage contains."""
    wanted = [_SPACE.sub("", match[1].casefold()) for match in _QUOTED.finditer(text) if _several(match[1])]
    if not wanted:
        return False
    texts = [_SPACE.sub("", each.text.casefold()) for each in held]
    return any(not any(each in text for text in texts) for each in wanted)


def _several(quoted: str) -> bool:
    return len(quoted.split()) > 1 or (not quoted.isascii() and len(quoted) > 3)


def changes_number(claim: Sequence[Term], quotes: Iterable[Quoted]) -> bool:
    """Return whether a number or month of the claim is not in the quotes or titles."""
    known = {term.form for quote in quotes for term in (*quote.terms, *quote.held.title) if term.number}
    return any(term.number and term.form not in known for term in claim)


def _changes_name(claim: ReadText, quotes: Sequence[Quoted]) -> bool:
    """Return whether a name of the claim is neither in the quotes nor in the titles.

    A name before the quote counts if a pronoun of the quote may mean it.
    """
    endings = claim.lexicon.endings
    known = {term.form for quote in quotes for term in (*quote.terms, *quote.held.title)}
    for quote in quotes:
        if any(term.raw.lower() in quote.held.lexicon.pronouns for term in quote.terms):
            known |= {term.form for term in quote.before}
    return any(not has_name(term.form, known, endings) for term in names_in(claim.terms, claim.lexicon))


def names_in(terms: Sequence[Term], lexicon: Lexicon) -> Iterator[Term]:
    """Yield the capitalised words that are names.

    Where nouns have capitals, too, a name has no article, number or adjective before it.
    """
    for index, term in enumerate(terms):
        if not term.capital or term.number or not term.content:
            continue
        following = terms[index + 1] if index + 1 < len(terms) else None
        if term.first and not (following and following.capital and following.content and not following.breaks):
            continue
        before = terms[index - 1] if index and not term.first and not term.breaks else None
        if lexicon.nouns and before is not None and not (before.capital and before.content):
            lower = before.raw.lower()
            if before.number or before.content or lower in lexicon.articles or lower in lexicon.pronouns:
                continue
        if lexicon.nouns and before is None and not term.first:
            continue
        yield term


def _adds_noun(claim: ReadText, quotes: Sequence[Quoted]) -> bool:
    """Return whether the claim has a capitalised noun that its passages lack, other than the first noun of a sentence.

    The first noun is often another word for the subject: "Das Unternehmen".
    """
    if not claim.lexicon.nouns:
        return False
    known = [quote.held.forms for quote in quotes]
    began = True
    for term in claim.terms:
        began = began or term.first
        if not term.capital or not term.content or term.number:
            continue
        form, endings = term.form, claim.lexicon.endings
        if not began and not any(forms.names(form, endings) or forms.alike_to(form) for forms in known):
            return True
        began = False
    return False


def _replaces_name(claim: ReadText, quotes: Sequence[Quoted]) -> bool:
    """Return whether a claim in a script without capitals has another name between the same two characters as the quotes."""
    if not any(is_character(term) for term in claim.terms):
        return False
    held = frozenset().union(*(_pairs(quote.terms) for quote in quotes))
    texts = ["".join(term.form for term in quote.terms) for quote in quotes]
    terms = claim.terms
    index = 0
    while index < len(terms):
        if terms[index].form in _DIRECTIONS and not any(terms[index].form in text for text in texts):
            return True
        end = index
        while end < len(terms) and is_character(terms[end]) and not _known(terms, end, held):
            end += 1
        if end > index and end - index <= _FILLED and _is_name(terms, index, end):
            run = "".join(term.form for term in terms[index:end])
            left = terms[index - 1].form if index else ""
            right = terms[end].form if end < len(terms) else ""
            if any(_fills(text, left, right, run) for text in texts):
                return True
        index = max(end, index + 1)
    return False


def _pairs(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset(one.form + two.form for one, two in pairwise(terms))


def _known(terms: Sequence[Term], index: int, held: frozenset[str]) -> bool:
    """Return whether a character stands beside the same character in the quotes."""
    before = index > 0 and terms[index - 1].form + terms[index].form in held
    after = index + 1 < len(terms) and terms[index].form + terms[index + 1].form in held
    return before or after


def _is_name(terms: Sequence[Term], start: int, end: int) -> bool:
    """Return whether characters look like a name: they write a foreign one, or follow a particle."""
    share = sum(term.form in TRANSLITERATION for term in terms[start:end]) / (end - start)
    after_particle = start > 0 and terms[start - 1].form in PARTICLES["zh"]
    return end - start > 1 and (after_particle or (share >= _NAMED and end < len(terms)))


def _fills(text: str, left: str, right: str, run: str) -> bool:
    """Return whether ``text`` has something else between the same neighbours; the end of a text is no neighbour."""
    if not left and not right:
        return False
    if run in text:
        return False
    place = text.find(left)
    while place >= 0:
        begin = place + len(left)
        if not right:
            return begin < len(text)
        end = text.find(right, begin + 1, begin + _FILLED + len(right))
        if end >= 0:
            return True
        if not left:
            break
        place = text.find(left, place + 1)
    return False


def _changes_polarity(claim: ReadText, quotes: Sequence[Quoted], matcher: Matcher) -> Reason | None:
    """Return ``negated`` or ``modality`` if a clause of the claim differs from the nearest clauses of the quotes in that."""
    others = [
        (matcher.covered(units_of(clause.terms)), clause, quote.held.lexicon)
        for quote in quotes
        for clause in quote.held.clauses(quote.terms)
    ]
    for clause in claim.clauses():
        own_words = claim.content.intersection(range(clause.start, clause.end))
        shared = [(len(covered & own_words), other, lexicon) for covered, other, lexicon in others]
        most = max((count for count, *_ in shared), default=0)
        if not most or (most < _LEAST_SHARED and most < len(own_words)):
            continue
        nearest = [(other, lexicon) for count, other, lexicon in shared if count == most]
        own = denies(clause, claim.lexicon)
        if all(denies(other, lexicon) is not own for other, lexicon in nearest):
            return "negated"
        if not hedges(clause, claim.lexicon) and all(hedges(other, lexicon) for other, lexicon in nearest):
            return "modality"
    return None


def denies(clause: Clause, lexicon: Lexicon) -> bool:
    """Return whether a clause has a denial. "Not only" is none."""
    words = [term.raw.lower().replace("’", "'") for term in clause.terms]
    forms = set(words)
    if forms & _NE and forms & _NEGATED_WITH_NE:
        return True
    for index, word in enumerate(words):
        if word in lexicon.denials and not {*words[index + 1 : index + 2], *words[max(0, index - 1) : index]} & lexicon.only:
            return True
    return _contains(clause.text, lexicon.denials, lexicon.only)


def hedges(clause: Clause, lexicon: Lexicon) -> bool:
    """Return whether a clause has a word that makes it uncertain."""
    return any(term.raw.lower() in lexicon.hedges for term in clause.terms) or _contains(clause.text, lexicon.hedges, frozenset())


def _contains(text: str, wanted: frozenset[str], exempt: frozenset[str]) -> bool:
    """Return whether a text in a script without spaces contains one of ``wanted``, outside of ``exempt``."""
    if text.isascii():
        return False
    for each in sorted(exempt, key=len, reverse=True):
        if not each.isalpha() or each.isascii():
            continue
        text = text.replace(each, " ")
    return any(not plain_form(each).isascii() and _unspaced(each) and each in text for each in wanted)


def _unspaced(word: str) -> bool:
    return word >= "\u0e00"
