"""Words, names and numbers of a text, normalised for comparing claims, questions and passages."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agentic_rag_backend.language.sentences import split_sentences

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*(?!\w)|[^\W_](?:\.[^\W_])+\b|[^\W_]{1,3}(?:&[^\W_]{1,3})+\b|[^\W_]+(?:['’][^\W_]+)*")

_SHORT_STEM = re.compile(r"[^aeiou][aeiou][^aeiouwxy]")


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _split_words(
    "a an the and or but nor if then than so as at by for from in into of off on onto out over to up down with within without "
    "about above after again against all also am any are aren't be because been before being below between both can could did "
    "do does doing don during each few further had has have having he her here hers herself him himself his how i it its itself "
    "just me more most my myself no not now only other our ours own per same she should some such that their theirs them "
    "themselves there these they this those through too under until very was we were what when where which while who whom "
    "whose why will would you your yours is isn't may might must shall via whether many much did didn't doesn't wasn't yes "
    "one's let's it's that's what's who's there's he's she's"
)


MAX_NAME_WORDS = 10
"""Words of a name. A longer row of capitalised words is a heading or a list.

Names are compared at every word of a text, so long ones would take quadratic time."""


class Word(NamedTuple):
    """A token. ``form`` is its normalised form. ``name`` marks a number, or a capitalised word or acronym within a sentence."""

    start: int
    end: int
    form: str
    name: bool

    @property
    def content(self) -> bool:
        """Whether the word carries meaning by itself."""
        return self.form not in STOP_WORDS


def words(text: str) -> list[Word]:
    """Return the tokens of ``text`` in order, with offsets.

    ``form`` is case-folded, without possessive ending, thousands separators and regular English endings ("films" →
    "film"). A capitalised word at the beginning of a sentence counts as a name unless it is a stop word.
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        form = comparable(token)
        capital = token[0].isupper() and form not in STOP_WORDS
        tokens.append(Word(match.start(), match.end(), form, capital or token[0].isdigit()))
    return tokens


@lru_cache(maxsize=65536)
def comparable(token: str) -> str:
    """Return the normalised form of a single token."""
    form = token.casefold().replace("’", "'").removesuffix("'s").removesuffix("'")
    if form[:1].isdigit():
        return form.replace(",", "")
    form = form.replace(".", "").replace("&", "")
    if form in STOP_WORDS or len(form) < 4 or not form.isascii():
        return form
    return _without_ending(form)


def _without_ending(form: str) -> str:
    """Drop a regular plural, past or progressive ending. Deliberately crude: both sides of a comparison are treated alike."""
    if form.endswith("ies") and len(form) > 4:
        return form[:-2]
    if form.endswith(("sses", "xes", "ches", "shes")):
        return form[:-2]
    for ending, least in (("ing", 6), ("ed", 5)):
        if form.endswith(ending) and len(form) >= least:
            stem = form[: -len(ending)]
            doubled = len(stem) > 2 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            if doubled:
                return stem[:-1]
            # "moved" comes from "move", "asked" from "ask".
            return f"{stem}e" if _SHORT_STEM.fullmatch(stem) else stem.removesuffix("e")
    if form.endswith("s") and not form.endswith(("ss", "us", "is")):
        form = form[:-1]
    if form.endswith("y"):
        return form[:-1] + "i"
    return form.removesuffix("e") if len(form) > 4 else form


def all_forms(text: str) -> frozenset[str]:
    """Return the forms of all words."""
    return frozenset(comparable(match[0]) for match in _TOKEN.finditer(text))


def content_forms(text: str) -> frozenset[str]:
    """Return the forms of the words that carry meaning."""
    # Equal to the content forms of `words`, but faster, because it is called for thousands of sentences.
    return all_forms(text) - STOP_WORDS


def names_and_numbers(text: str, *, first_word: bool = False) -> frozenset[str]:
    """Return the forms of names and numbers in ``text``.

    Args:
        first_word: whether a capitalised word at the start of a sentence counts, although any word is capitalised there.
    """
    tokens = words(text)
    sentence_starts: set[int] = set()
    if not first_word:
        starts = [word.start for word in tokens]
        for sentence in split_sentences(text):
            at = bisect_left(starts, sentence.start)
            sentence_starts.update(start for start in starts[at : at + 1] if start < sentence.end)
    return frozenset(
        word.form
        for word in tokens
        if word.name and word.content and (word.start not in sentence_starts or word.form[0].isdigit())
    )


def inverse_frequency(texts: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return ln(1 + n / frequency) of every form. Each of the n ``texts`` is given by its forms."""
    count = 0
    frequency: dict[str, int] = {}
    for forms in texts:
        count += 1
        for form in set(forms):
            frequency[form] = frequency.get(form, 0) + 1
    return {form: math.log(1 + count / document_count) for form, document_count in frequency.items()}
