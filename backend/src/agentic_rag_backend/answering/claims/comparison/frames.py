"""Words around names and numbers, and claims that put another name or number between the same words.

"On 18 February 1848" against "on 18 February 1889": both have a number after the same two words. If the quotes have only
other names there, the claim changed it. A claim in other words has other frames, and none is compared.

Names of Chinese and Japanese sentences, which have no capitals, and changes of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from agentic_rag_backend.answering.claims.tokens import Token, TokenMention, mentions_in, outside_parentheses
from agentic_rag_backend.language.languages import ENGLISH
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code, plain_form

_LONGEST = 8
"""Characters between two others that may be a name."""
_FOREIGN_SHARE = 0.5
"""Least share of characters that write foreign names, in a name without a particle before it."""
_DIRECTIONS = frozenset("东西南北東")


def replaces_name(claim: Sequence[Token], quotes: Sequence[Sequence[Token]], language: Language) -> bool:
    """Return whether a claim has another name, or another direction, between the same two characters as the quotes."""
    pairs = frozenset(first.form + second.form for quote in quotes for first, second in pairwise(quote))
    texts = ["".join(token.form for token in quote) for quote in quotes]
    index = 0
    while index < len(claim):
        if claim[index].form in _DIRECTIONS and not any(claim[index].form in text for text in texts):
            return True
        end = index
        while end < len(claim) and claim[end].character and not _stands_beside(claim, end, pairs):
            end += 1
        if 1 < end - index <= _LONGEST and _may_be_name(claim, index, end, language):
            name = "".join(token.form for token in claim[index:end])
            previous = claim[index - 1].form if index else ""
            right = claim[end].form if end < len(claim) else ""
            if any(_fills_gap(text, previous, right, name) for text in texts):
                return True
        index = max(end, index + 1)
    return False


def _stands_beside(claim: Sequence[Token], index: int, pairs: frozenset[str]) -> bool:
    """Return whether a character stands beside the same character in the quotes."""
    before = index > 0 and claim[index - 1].form + claim[index].form in pairs
    return before or (index + 1 < len(claim) and claim[index].form + claim[index + 1].form in pairs)


def _may_be_name(claim: Sequence[Token], start: int, end: int, language: Language) -> bool:
    """Return whether characters look like a name: they write a foreign one, or follow a particle."""
    share = sum(token.form in language.transliteration for token in claim[start:end]) / (end - start)
    return (start > 0 and claim[start - 1].form in language.particles) or (share >= _FOREIGN_SHARE and end < len(claim))


def _fills_gap(text: str, previous: str, right: str, name: str) -> bool:
    """Return whether ``text`` has something else between the same neighbours; the end of a text is no neighbour."""
    if name in text or not (previous or right):
        return False
    at = text.find(previous)
    while at >= 0:
        begin = at + len(previous)
        if not right:
            return begin < len(text)
        if text.find(right, begin + 1, begin + _LONGEST + len(right)) >= 0:
            return True
        at = text.find(previous, at + 1) if previous else -1
    return False


def exchanges_sides(claim: Sequence[Token], quotes: Sequence[Sequence[Token]], language: Language) -> bool:
    """Return whether a claim has other characters on one side of a particle than the quotes."""
    fillers: dict[tuple[str, str, str], set[str]] = {}
    for quote in quotes:
        for frame, filler in _list_sides(quote, language):
            fillers.setdefault(frame, set()).add(filler)
    return any(filler not in fillers[frame] for frame, filler in _list_sides(claim, language) if frame in fillers)


def _list_sides(tokens: Sequence[Token], language: Language) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield the particles with the characters on one side, and the two characters on the other side.

    A Japanese particle belongs to the characters before it. Those after it change with the order of the sentence.
    """
    for index, token in enumerate(tokens):
        if token.form in language.particles:
            before, after = _read_pair(tokens, index - 1, -1), _read_pair(tokens, index + 1, 1)
            if before and after:
                if not language.verbs_last:
                    yield ("after", before, token.form), after
                yield ("before", after, token.form), before


def _read_pair(tokens: Sequence[Token], start: int, step: int) -> str:
    """Return the two nearest characters that carry meaning, in the same clause; empty if there are fewer."""
    characters: list[str] = []
    at = start
    while 0 <= at < len(tokens) and len(characters) < 2:
        later = tokens[at + 1] if step < 0 else tokens[at]
        if later.breaks or later.first or tokens[at].number:
            break
        if tokens[at].character:
            characters.append(tokens[at].form)
        at += step
    return "".join(characters if step > 0 else reversed(characters)) if len(characters) > 1 else ""


Frame = tuple[str, ...]
"""The side (before, after or around), and two or three words, of which one carries meaning."""
_NAME = "<name>"
_MOST_LATER = 3
_REACH = 12
"""Most names and words that are read after a verb."""
_LATER = "later"
"""The side of a name that is in the clause of a verb and not its subject."""
_STOPS = ";:.!?()–—"
_BE = frozenset({"is", "are", "was", "were", "be", "been", "being"})
_CONVERSES: Mapping[str, str] = {
    form: language_of_code(ENGLISH).form_of(verb)
    for verb, words in (("sell", "buy buys bought purchased"), ("lend", "borrow borrowed"))
    for form in language_of_code(ENGLISH).forms_of(words)
}
"""Verbs whose subject is the recipient of another verb: who sold did not buy."""


def changes_frame(
    claim: Sequence[Token],
    quotes: Iterable[Sequence[Token]],
    names: Collection[str],
    exempt: frozenset[str],
    language: Language,
) -> Literal["roles", "number"] | None:
    """Return whether the claim has another name (``roles``), or another number, between words of the quotes. None if neither.

    Args:
        exempt: words of names that replace a pronoun of the quotes.
    """
    fillers: dict[tuple[bool, Frame], set[str]] = {}
    for quote in quotes:
        for text in (quote, outside_parentheses(quote)):
            for mention, frames in list_frames(text, names, language):
                for frame in frames:
                    fillers.setdefault((mention.number, frame), set()).update(mention.forms)
    for text in (claim, outside_parentheses(claim)):
        for mention, frames in list_frames(text, names, language):
            quoted = [fillers[key] for frame in frames if (key := (mention.number, frame)) in fillers]
            if quoted and (mention.number or not mention.forms <= exempt) and not all(forms & mention.forms for forms in quoted):
                return "number" if mention.number else "roles"
    return None


def swaps_sides(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], names: Collection[str], language: Language) -> bool:
    """Return whether a name stands before a word of the claim, and only after it in the quotes, or the reverse.

    "The barrage began the Harbour Authority" has a single name, so that no other one shows the exchange.
    "Adler was defeated by Kern" reads as "Kern defeated Adler", and one who sold does not buy.
    """
    quoted = [
        neighbour
        for quote in quotes
        for neighbour in (*_list_neighbours(quote, names, language), *_list_later_names(quote, names, language))
    ]
    for forms, side, word in _list_neighbours(claim, names, language):
        sides = {quoted_side for quoted_forms, quoted_side, quoted_word in quoted if quoted_word == word and quoted_forms & forms}
        if side not in sides and sides - {_LATER if side != "subject" else ""}:
            return True
    return False


def _list_later_names(
    tokens: Sequence[Token], names: Collection[str], language: Language
) -> Iterator[tuple[frozenset[str], str, str]]:
    """Yield the names after a verb and its subject, in its clause: who bought does not sell."""
    mentions = [mention for mention in mentions_in(tokens, names) if not mention.number]
    for index, subject in enumerate(mentions):
        for later in mentions[index + 1 : index + 1 + _MOST_LATER]:
            words = tokens[subject.last + 1 : later.first]
            if not words or not words[0].content or words[0].capital or words[0].form in language.symmetric:
                break
            if len(words) > _REACH or any(token.breaks or token.first for token in words):
                break
            if words[-1].form not in language.conjunctions:
                yield later.forms, _LATER, words[0].form


def _list_neighbours(
    tokens: Sequence[Token], names: Collection[str], language: Language
) -> Iterator[tuple[frozenset[str], str, str]]:
    """Yield the forms of each name with a word directly after or before it, and the side of the name."""
    for mention in mentions_in(tokens, names):
        article = mention.first > 0 and tokens[mention.first - 1].form in language.articles
        for side, at in (("subject", mention.last + 1), ("object", mention.first - 1 - article)):
            if mention.number or not 0 <= at < len(tokens):
                continue
            if _is_passive(tokens, at + 1 if side == "subject" else at - 1):
                at, side = (at + 1, "object") if side == "subject" else (at - 1, "subject")
            breaks = any(token.breaks or token.first for token in tokens[min(at, mention.last) + 1 : max(at, mention.first) + 1])
            if tokens[at].content and not tokens[at].capital and not breaks and tokens[at].form not in language.symmetric:
                verb = tokens[at].form
                yield mention.forms, "recipient" if side == "subject" and verb in _CONVERSES else side, _CONVERSES.get(verb, verb)


def _is_passive(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the word at ``at`` is between "was" and "by": a verb whose object stands before it."""
    return 0 < at < len(tokens) - 1 and tokens[at - 1].raw.lower() in _BE and tokens[at + 1].raw.lower() == "by"


def list_frames(
    tokens: Sequence[Token], names: Collection[str], language: Language
) -> list[tuple[TokenMention, frozenset[Frame]]]:
    """Return the names and numbers with the words around them.

    In further frames all names are alike: "besiegte <name>" stands before "Anna Petersen", and "<name> besiegte" if the two
    names change places.
    """
    if language.capital_nouns:
        tokens = list(_mark_nouns(tokens, language))
    mentions = mentions_in(tokens, names, linked=False)
    frames = [(mention, _frames_of(tokens, mention, language)) for mention in mentions]
    collapsed, places = _collapse_names(tokens, mentions, language)
    for mention, position in places:
        alike = _frames_of(collapsed, position, language, named=True)
        frames.append(
            (mention, frozenset((_NAME, *frame) for frame in alike if _NAME in frame and language.symmetric.isdisjoint(frame)))
        )
    return frames


def _mark_nouns(tokens: Sequence[Token], language: Language) -> Iterator[Token]:
    """Yield the tokens of a language whose nouns have capitals: each noun without an article may be a name here."""
    for index, token in enumerate(tokens):
        before = tokens[index - 1].form if index and not token.first and not token.breaks else ""
        capital = token.raw[0].isupper() and before not in language.articles | language.pronouns
        yield token if capital is token.capital else replace(token, capital=capital)


def _collapse_names(
    tokens: Sequence[Token], mentions: Sequence[TokenMention], language: Language
) -> tuple[list[Token], list[tuple[TokenMention, TokenMention]]]:
    """Return the words with one word for each name, and each name with its place in them."""
    collapsed: list[Token] = []
    places: list[tuple[TokenMention, TokenMention]] = []
    end = 0
    for mention in mentions:
        if not mention.number:
            # "Leads the Harbour Authority" and "leads Mara Venn" have one frame.
            article = mention.first > end and tokens[mention.first - 1].form in language.articles
            collapsed += tokens[end : mention.first - article]
            places.append((mention, replace(mention, first=len(collapsed), last=len(collapsed))))
            collapsed.append(replace(tokens[mention.first], form=_NAME, content=False))
            end = mention.last + 1
    return [*collapsed, *tokens[end:]], places


def _frames_of(tokens: Sequence[Token], mention: TokenMention, language: Language, *, named: bool = False) -> frozenset[Frame]:
    before = _select_words(tokens, mention, -1, language)
    after = _select_words(tokens, mention, 1, language)
    sides = [("before", _take_enough(before))]
    # Where nouns have capitals, the words after a name change with the order of the sentence, except after its subject.
    begins = any(token.first for token in tokens[max(0, mention.first - 1) : mention.first + 1])
    if mention.number or not language.capital_nouns or (named and begins):
        sides.append(("after", _take_enough(after)))
    if before and after and (mention.number or not language.capital_nouns):
        sides.append(("around", [before[0], *_take_enough(after, least=0 if before[0].content else 1)]))
        sides.append(("around", [before[0], after[0]]))
    return frozenset(
        (side, *(word.form for word in words)) for side, words in sides if len(words) > 1 and any(word.content for word in words)
    )


def _take_enough(words: Sequence[Token], *, least: int = 2) -> Sequence[Token]:
    """Return the first words of a side: at least two, and a third if the two carry no meaning; none if there are too few."""
    two = words[:2]
    if len(two) < least or any(word.content for word in two):
        return two if len(two) >= least else ()
    return words[:3]


def _select_words(tokens: Sequence[Token], mention: TokenMention, step: int, language: Language) -> list[Token]:
    """Return up to three words before or after a mention, nearest first, up to the next punctuation."""
    words: list[Token] = []
    at = mention.first - 1 if step < 0 else mention.last + 1
    while 0 <= at < len(tokens) and len(words) < 3:
        later = tokens[at + 1] if step < 0 else tokens[at]
        # "25, 2017" is one date.
        date = mention.number and not words and (tokens[at].number or plain_form(tokens[at].raw) in language.marks)
        if later.first or any(mark in later.gap for mark in (_STOPS if date else _STOPS + ",")):
            break
        words.append(tokens[at])
        at += step
    return words
