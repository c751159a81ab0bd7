"""Roles of names in a sentence, and claims that give a role to another name: "A sold B to C" against "C sold B to A".

Without a parser: the role of a name is the nearest verb or noun with the side on which the name is, or the preposition
between them. Passive sentences are turned into active ones. Only roles with the same word are compared, so that another
wording is no conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agentic_rag_backend.generation.claims.tokens import Mention, Token, forms_of, lists_of, mentions_in, outside_parentheses

Role = tuple[str, str]
"""A role and the word that gives it: ``("agent", "found")``, ``("to", "sell")``, ``("of", "brother")``."""
_PREPOSITIONS = forms_of(
    "of in on at to from for into onto over under against by through during after before between among since until as near "
    "behind across towards toward upon within outside inside beyond along around"
)
_BE = forms_of("is are was were be been being")
_AUXILIARIES = _BE | forms_of(
    "has have had having do does did will would can could may might must shall should also then later not never first "
    "who which that still now once soon again both all"
)
_DETERMINERS = forms_of("the a an his her its their this that these those our my your")
_PARTICIPLES = forms_of(
    "written built born held made known won led sold bought taken given seen sent found lost beaten shown drawn driven chosen "
    "brought taught caught fought sung begun shot struck paid put set kept left meant read run spent thrown worn torn"
)
_SYMMETRIC = forms_of("met meet married marry border borders bordered resemble collaborated equal equals")
_OPPOSITE = {"agent": "patient", "patient": "agent"}
_REACH = 7
_APPOSITION = 9


def swaps_roles(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], names: Collection[str]) -> bool:
    """Return whether a name of the claim has a role that only other names have in the quotes, or the opposite of its own."""
    fillers: dict[Role, list[Mention]] = {}
    for quote in quotes:
        for mention, roles in roles_in(quote, names):
            for role in roles:
                fillers.setdefault(role, []).append(mention)
    for mention, roles in roles_in(claim, names):
        for role in roles:
            others = [other for other in fillers.get(role, ()) if other.number == mention.number]
            if others and not any(other.forms & mention.forms for other in others):
                return True
            opposite = fillers.get((_OPPOSITE.get(role[0], ""), role[1]), ())
            if not others and any(other.forms & mention.forms for other in opposite):
                return True
    return False


def roles_in(tokens: Sequence[Token], names: Collection[str]) -> list[tuple[Mention, frozenset[Role]]]:
    """Return the names and numbers of a sentence with their roles. "A" and "B" in "A and B" share their roles."""
    tokens = outside_parentheses(tokens)
    mentions = mentions_in(tokens, names)
    reader = _Reader(tokens, mentions)
    own = [reader.roles(mention) for mention in mentions]
    found: list[tuple[Mention, frozenset[Role]]] = []
    for group in lists_of(tokens, mentions):
        # The verb after a list has all members as its subject.
        last = frozenset(role for role in own[group[-1]] if role[0] == "agent")
        found += [(mentions[index], own[group[0]] | last) for index in group]
    return found


class _Reader:
    """Reads the roles of the mentions of one sentence."""

    def __init__(self, tokens: Sequence[Token], mentions: Sequence[Mention]) -> None:
        self._tokens = tokens
        self._at = {index: mention for mention in mentions for index in range(mention.first, mention.last + 1)}

    def roles(self, mention: Mention) -> frozenset[Role]:
        preposition = self._preposition(mention)
        if preposition is not None:
            head = self._head_before(preposition)
            if head is None:
                return frozenset()
            name = self._tokens[preposition].form
            return frozenset({("agent" if name == "by" else name, self._tokens[head].form)})
        if mention.number:
            return frozenset()
        if self._tokens[mention.last].raw.endswith(("'s", "’s", "s'", "s’")):
            owned = self._common(mention.last + 1)
            return frozenset({("of", self._tokens[owned].form)}) if owned is not None else frozenset()
        subject = self._subject(mention)
        if subject is not None:
            return frozenset({subject})
        verb = self._verb_before(mention)
        return frozenset({("patient", self._tokens[verb].form)}) if verb is not None else frozenset()

    def _preposition(self, mention: Mention) -> int | None:
        """Return the preposition before a mention: at most a determiner and one common word are between them."""
        common = 0
        for index in range(mention.first - 1, max(-1, mention.first - 5), -1):
            if self._tokens[index + 1].breaks or index in self._at:
                return None
            token = self._tokens[index]
            if token.form in _PREPOSITIONS:
                return index
            if token.form in _DETERMINERS:
                continue
            common += 1
            if not token.content or common > 1:
                return None
        return None

    def _head_before(self, preposition: int) -> int | None:
        """Return the common word that a preposition belongs to."""
        for index in range(preposition - 1, max(-1, preposition - 1 - _REACH), -1):
            if any(mark in self._tokens[index + 1].gap for mark in ";()"):
                return None
            if self._tokens[index].content and index not in self._at and not self._tokens[index].capital:
                return index
        return None

    def _subject(self, mention: Mention) -> Role | None:
        """Return the role of a mention before its verb; None if no verb follows."""
        start = self._after_list(mention.last + 1)
        tokens = self._tokens
        if start < len(tokens) and "," in tokens[start].gap and tokens[start].form not in ("who", "which"):
            start = self._after_apposition(start)
        passive = False
        for index in range(start, min(len(tokens), start + _REACH)):
            token = tokens[index]
            if (index > start and token.breaks) or index in self._at:
                return None
            if token.form in _AUXILIARIES or (token.raw.endswith("ly") and token.content):
                passive = passive or token.form in _BE
                continue
            if not token.content:
                return None if not (passive and token.form in _DETERMINERS) else self._complement(index)
            if token.form in _SYMMETRIC:
                return None
            return ("patient" if passive and _participle(token) else "agent", token.form)
        return None

    def _complement(self, determiner: int) -> Role | None:
        """Return the role of the subject of "is the capital"."""
        index = self._common(determiner + 1)
        return ("is", self._tokens[index].form) if index is not None else None

    def _verb_before(self, mention: Mention) -> int | None:
        for index in range(mention.first - 1, max(-1, mention.first - 4), -1):
            if self._tokens[index + 1].breaks or index in self._at:
                return None
            token = self._tokens[index]
            if token.form in _DETERMINERS:
                continue
            # "He was made knight": the name after a passive verb has no role of its own.
            passive = index > 0 and self._tokens[index - 1].form in _BE
            return index if token.content and not passive and token.form not in _SYMMETRIC else None
        return None

    def _common(self, start: int) -> int | None:
        """Return the next word that carries meaning and is no name, in the same clause."""
        for index in range(start, min(len(self._tokens), start + 4)):
            if index in self._at or (index > start and self._tokens[index].breaks):
                return None
            if self._tokens[index].content:
                return index
        return None

    def _after_list(self, start: int) -> int:
        """Return the place after the other names of a list: "A, B and C founded"."""
        index = start
        while index < len(self._tokens):
            step = index + 1 if self._tokens[index].form in ("and", "or") else index
            joined = step > index or "," in self._tokens[index].gap
            if not joined or step not in self._at:
                return index
            index = self._at[step].last + 1
        return index

    def _after_apposition(self, start: int) -> int:
        """Return the place after a clause between commas; ``start`` if it does not end soon."""
        for index in range(start + 1, min(len(self._tokens), start + _APPOSITION)):
            if "," in self._tokens[index].gap:
                return index
        return start


def _participle(token: Token) -> bool:
    return token.raw.endswith("ed") or token.form in _PARTICIPLES
