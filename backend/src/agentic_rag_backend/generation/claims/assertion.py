"""Parts of a sentence that it does not assert, and claims that assert them.

"The mayor did not say that the committee approved the plan" asserts nothing about the plan. A claim may quote such a part word
for word and still be false. Three kinds of parts are read: clauses under a denied statement ("no evidence that …"), clauses
under a doubt, a wish or a demand ("denied that …"), and conditions and questions ("if …", "whether …"). Factive words are in no
list:
"did not know that the plan was approved" asserts the approval (Karttunen 1971, "Implicative verbs").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from agentic_rag_backend.generation.claims.polarity import DENYING_VERBS, HEDGES, NEGATIONS
from agentic_rag_backend.generation.claims.tokens import Token, content_of, forms_of

_STATEMENTS = forms_of(
    "say state report announce confirm prove proof show demonstrate find agree decide conclude believe think claim suggest mean "
    "imply indicate indication evidence sign record argue admit assert maintain declare guarantee certain sure clear true case "
    "obvious persuade convince tell establish reason ground hint suspect assume accept"
)
"""Words whose clause is asserted, unless they are denied: "did not say that"."""
_DOUBTS = forms_of(
    "deny doubt dispute disprove refute reject contradict question pretend fear hope wish demand ask request propose recommend "
    "urge allege rumour rumor myth unlikely impossible untrue false unclear unknown uncertain possibility possible hypothesis "
    "speculation suspicion imagine dream worry afraid predict forecast conceivable proposal demand request allegation accusation"
)
"""Words whose clause is not asserted, unless they are denied: "no doubt that"."""
_BARE = forms_of("say think believe claim suggest")
"""Statements that need no "that": "never said the committee agreed"."""
_VAGUE = forms_of("some many people few critics opponents legend rumour rumor")
"""Subjects of statements that the text does not make its own: "some say that"."""
_UNTRUE = forms_of("untrue false wrong incorrect")
_DENIERS = (
    NEGATIONS
    | DENYING_VERBS
    | forms_of("hardly scarcely barely rarely seldom few falsely wrongly mistakenly incorrectly wrong false untrue")
)
_CONDITIONS = forms_of("if unless whether lest")
_ON_CONDITION = forms_of("if unless")
_NO_CONDITION = forms_of("even as ask wonder know see determine doubt decide find say tell matter")
"""Words before "if" after which no condition follows."""
_MOST_CONDITIONS = 10
"""Parts of one quote that are read as conditions, so that "if if if" makes no work."""
_EXCEPTIONS = forms_of("except excepting excluding barring")
_UNIVERSAL = forms_of("all every each any always entire whole no none never nobody everyone everybody everything")
_NOUN_PHRASE = forms_of("the a an this that these those his her its their he she it they we there")
_TURNS = frozenset({"but", "although", "though", "while", "whereas", "and", "so", "yet", "because"})
_STOPS = ";:.!?"
_REACH = 8
"""Words before a statement in which a denial applies to it."""
_APART = 4
"""Words after a statement or a doubt in which its "that" may come: "told the council that"."""
_CLAUSE_WORDS = 3
"""Shorter conditions, such as "if needed", may be left out."""
_LONGEST = 60
"""Words of a part that are read."""
_LEAST_WORDS = 2
"""Words of a part that a claim must repeat to assert it."""


@dataclass(frozen=True, slots=True)
class Unasserted:
    """The tokens ``start`` to ``end`` (exclusive) of a text, which it does not assert, and the kind of words before them."""

    kind: Literal["negated", "modality"]
    start: int
    end: int


def unasserted(tokens: Sequence[Token]) -> Iterator[Unasserted]:
    """Yield the parts that a text does not assert, in order."""
    for index, token in enumerate(tokens):
        if token.form in _CONDITIONS:
            # "If it rains, the gate closes": the comma separates the condition from the statement.
            yield Unasserted("modality", index + 1, _end(tokens, index + 1, comma=token.first))
        elif token.form in _BARE and index and tokens[index - 1].form in _VAGUE:
            # "Some say that Holt sold the mill"; "Holt sold the mill, some say".
            start = _clause(tokens, index, bare=True)
            yield Unasserted(
                "modality", *((start, _end(tokens, start)) if start is not None else (_begin(tokens, index), index - 1))
            )
        elif token.form == "which" and _says_untrue(tokens[index + 1 : index + 4]):
            yield Unasserted("negated", _begin(tokens, index), index)
        elif token.form in _STATEMENTS and _denied(tokens, index):
            start = _clause(tokens, index, bare=token.form in _BARE)
            if start is not None:
                yield Unasserted("negated", start, _end(tokens, start))
        elif token.form in _DOUBTS and not _denied(tokens, index):
            start = _clause(tokens, index, bare=False)
            if start is not None:
                yield Unasserted("modality", start, _end(tokens, start))


def asserts_more(claim: Sequence[Token], quotes: Iterable[Sequence[Token]]) -> Literal["negated", "modality"] | None:
    """Return how the quotes qualify a part that the claim asserts, or None if the claim asserts no such part.

    A claim asserts no part if it has a denial, a doubt, a hedge or a condition that is not in the part itself.
    """
    quotes = list(quotes)
    forms = content_of(claim)
    qualifiers = frozenset(token.form for token in claim if _qualifies(token))
    parts = [(part, quote[part.start : part.end]) for quote in quotes for part in unasserted(quote)]
    inside = {id(token) for _, tokens in parts for token in tokens}
    asserted = content_of(token for quote in quotes for token in quote if id(token) not in inside)
    for part, tokens in parts:
        if qualifiers - frozenset(token.form for token in tokens):
            continue
        used = forms & content_of(tokens)
        if len(used) >= _LEAST_WORDS and not used <= asserted:
            return part.kind
    dropped = any(_drops_exception(claim, quote) for quote in quotes)
    dropped = dropped or (not qualifiers and any(_drops_condition(forms, quote) for quote in quotes))
    return "modality" if dropped else None


def _denied(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a denial applies to the word: one before it in its clause."""
    for at in range(index - 1, max(-1, index - 1 - _REACH), -1):
        if tokens[at + 1].first or any(mark in tokens[at + 1].gap for mark in _STOPS):
            return False
        form = tokens[at].form
        if form == "that" and at + 1 < index:
            return False
        if form in _DENIERS or form.endswith("n't"):
            return True
    return False


def _clause(tokens: Sequence[Token], index: int, *, bare: bool) -> int | None:
    """Return where the clause of a statement or a doubt begins: after "that", or after the word itself if ``bare``."""
    for at in range(index + 1, min(len(tokens), index + 1 + _APART)):
        if tokens[at].first or tokens[at].breaks:
            return None
        if tokens[at].form == "that":
            return at + 1
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    begins = following is not None and (following.form in _NOUN_PHRASE or following.capital)
    return index + 1 if bare and begins else None


def _begin(tokens: Sequence[Token], index: int) -> int:
    """Return where the sentence of a word begins."""
    return max((at for at in range(max(0, index - _LONGEST), index + 1) if tokens[at].first), default=max(0, index - _LONGEST))


def _says_untrue(after: Sequence[Token]) -> bool:
    """Return whether the words after "which" say that the statement before them is not true."""
    forms = [token.form for token in after]
    return bool(_UNTRUE.intersection(forms)) or (
        "true" in forms and any(form in NEGATIONS or form.endswith("n't") for form in forms)
    )


def _end(tokens: Sequence[Token], start: int, *, comma: bool = False) -> int:
    """Return the end of a clause: the next stop, a comma before a conjunction, or any comma if ``comma``."""
    last = min(len(tokens), start + _LONGEST)
    for at in range(start, last):
        gap = tokens[at].gap
        if tokens[at].first or any(mark in gap for mark in _STOPS):
            return at
        if at > start and "," in gap and (comma or tokens[at].form in _TURNS):
            return at
    return last


def _qualifies(token: Token) -> bool:
    form = token.form
    return form in _DENIERS or form in _DOUBTS or form in HEDGES or form in _CONDITIONS or form == "would" or form.endswith("n't")


def _drops_exception(claim: Sequence[Token], quote: Sequence[Token]) -> bool:
    """Return whether the claim says "all" and leaves out the exception that the quote has."""
    forms = frozenset(token.form for token in claim)
    excepted = [index for index, token in enumerate(quote) if token.form in _EXCEPTIONS]
    if not excepted or forms & _EXCEPTIONS or not forms & _UNIVERSAL & frozenset(token.form for token in quote):
        return False
    return any(not forms & content_of(quote[index + 1 : _end(quote, index + 1, comma=True)]) for index in excepted)


def _drops_condition(forms: frozenset[str], quote: Sequence[Token]) -> bool:
    """Return whether ``forms`` state the rest of a sentence, and nothing of the condition under which the quote states it."""
    for part in islice(unasserted(quote), _MOST_CONDITIONS):
        condition = content_of(quote[part.start : part.end])
        opener, before = quote[part.start - 1].form, quote[part.start - 2].form if part.start > 1 else ""
        phrase = part.end - part.start < _CLAUSE_WORDS
        if opener not in _ON_CONDITION or before in _NO_CONDITION or phrase or not condition or forms & condition:
            continue
        start = max(index for index in range(part.start) if quote[index].first or not index)
        end = next((index for index in range(part.end, len(quote)) if quote[index].first), len(quote))
        rest = content_of((*quote[start : part.start], *quote[part.end : end]))
        if len((forms & rest) - content_of((*quote[:start], *quote[end:]))) >= _LEAST_WORDS:
            return True
    return False
