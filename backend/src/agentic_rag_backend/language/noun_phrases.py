"""Finds noun phrases by the words around them: "the tidal array" and "of fishing gear", but not "the chair recalled".

There is no tagger. A phrase follows a determiner, a preposition, a number or a possessive, and ends before the next function
word, verb or punctuation mark. The word lists are English. Texts of other languages give no phrases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentic_rag_backend.language.languages import ENGLISH, language_of
from agentic_rag_backend.language.vocabulary.word_classes import ADVERBS, GENERIC_NOUNS, LEADING_ADJECTIVES, OPENERS, VERBS
from agentic_rag_backend.language.words import Word, words

MAX_WORDS = 3
_SHORTEST = 3
_ADJECTIVE_ENDINGS = ("able", "ible", "ous", "ful", "less", "ish", "ly")
_AFTER_NOUNS = frozenset(["of", "in", "and", "or", "is", "was", "are", "were", "has", "had", "will"])
_PLAIN_GAP = re.compile(r"[ \t\n]{1,2}|-")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """One to three words: ``text[start:end]``. ``forms`` are their normalised forms; the last one is the head."""

    start: int
    end: int
    forms: tuple[str, ...]


def noun_phrases(text: str) -> list[NounPhrase]:
    """Return the noun phrases of ``text`` in order, without names and without words that distinguish no subject."""
    if language_of(text) not in (None, ENGLISH):
        return []
    tokens = words(text)
    phrases = []
    for start, end in _find_runs(text, tokens):
        run = _trim_run(text, tokens[start:end], tokens[end] if end < len(tokens) else None)
        if run and not run[-1].name and _says_a_subject(text, run):
            phrases.append(NounPhrase(run[0].start, run[-1].end, tuple(word.form for word in run)))
    return phrases


def _find_runs(text: str, tokens: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Yield the positions of content words that follow an opening word without punctuation between them."""
    position = 0
    while position < len(tokens):
        if not _may_open(text, tokens, position):
            position += 1
            continue
        end = position
        while (
            end < len(tokens)
            and _may_belong(tokens[end])
            and (end == position or _are_adjacent(text, tokens[end - 1], tokens[end]))
        ):
            end += 1
            if _is_possessive(text, tokens[end - 1]):
                break
        if end > position:
            yield position, end
        position = max(end, position + 1)


def _may_open(text: str, tokens: Sequence[Word], position: int) -> bool:
    """Return whether a phrase may begin at this word: an opening word, a number or a possessive is directly before it."""
    if position == 0 or not _may_belong(tokens[position]):
        return False
    before = tokens[position - 1]
    if not _are_adjacent(text, before, tokens[position]) or text[before.end] == "-":
        return False
    return before.form in OPENERS or before.form[0].isdigit() or _is_possessive(text, before)


def _may_belong(word: Word) -> bool:
    return word.content and word.form not in OPENERS and word.form not in ADVERBS and not word.form[0].isdigit()


def _are_adjacent(text: str, word: Word, next_word: Word) -> bool:
    return _PLAIN_GAP.fullmatch(text, word.end, next_word.start) is not None


def _is_possessive(text: str, word: Word) -> bool:
    return text[word.start : word.end].casefold().endswith(("'s", "’s")) or text[word.end : word.end + 1] in ("'", "’")


def _trim_run(text: str, run: Sequence[Word], following: Word | None) -> list[Word]:
    """Cut the run before its first verb, drop leading adjectives that say little, and keep the last three words."""
    phrase_words: list[Word] = []
    for number, word in enumerate(run):
        after = run[number + 1] if number + 1 < len(run) else following
        if number and _is_verb(text, word, after):
            if text[run[number - 1].end] == "-":
                # "peer-reviewed" is an adjective.
                phrase_words.pop()
            break
        phrase_words.append(word)
    while len(phrase_words) > 1 and (
        phrase_words[0].form in LEADING_ADJECTIVES or phrase_words[0].form in GENERIC_NOUNS or phrase_words[0].form in VERBS
    ):
        phrase_words = phrase_words[1:]
    return phrase_words[-MAX_WORDS:]


def _is_verb(text: str, word: Word, after: Word | None) -> bool:
    """Return whether a word after the first word of a phrase reads as a verb or an adverb."""
    if word.name:
        return False
    token = text[word.start : word.end].casefold()
    if token.endswith(("ed", "ly")) or word.form in VERBS:
        return True
    if not token.endswith("ing") or after is None or not _are_adjacent(text, word, after):
        return False
    # "the office wondering what" has a verb, "kelp farming in" and "shared purchasing desk" have a noun.
    return not _may_belong(after) and after.form not in _AFTER_NOUNS


def _says_a_subject(text: str, run: Sequence[Word]) -> bool:
    head = run[-1]
    token = text[head.start : head.end].casefold()
    if len(head.form) < _SHORTEST or head.form in GENERIC_NOUNS or head.form in LEADING_ADJECTIVES:
        return False
    if head.form in VERBS or _is_possessive(text, head) or token.endswith(("ed", *_ADJECTIVE_ENDINGS)):
        return False
    return not token.endswith("ing") or len(run) > 1
