"""Replace one part of a question: its question word, its time, its subject, a phrase with a preposition."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentic_rag_backend.generation.conversation.grammar import (
    AUXILIARIES,
    IMPERATIVES,
    PREPOSITIONS,
    QUESTION_WORDS,
    WORD,
    YEAR,
    is_verb,
    words_of,
)
from agentic_rag_backend.generation.conversation.mentions import Mention
from agentic_rag_backend.knowledge.extraction.lexicon import word_set

_TIME_PHRASE = re.compile(
    r"\b(?:in|on|during|since|before|after|by|until|from)\s+(?:the\s+)?(?:\w+\s+){0,2}?((?:1\d{3}|20\d{2}))(?:\s+season)?\b",
    re.IGNORECASE,
)
_SEASON = re.compile(r"\bthe\s+((?:1\d{3}|20\d{2}))\s+[a-z]", re.IGNORECASE)
_COPULAS = frozenset({"is", "was", "are", "were"})
_GENERIC = word_set("long often old far date year day month time place town village city way name title kind")
_SOMEBODY = "somebody"


def with_question_word(question: str, asking: str, answer: Sequence[str]) -> str | None:
    """Return the clause of ``question`` with its question word replaced: "Who founded STEC?" and "when" → "When was it …".

    Args:
        asking: the new question word or phrase, such as "by whom" or "in which year".
        answer: names of the answer, which take the place of the old question word.
    """
    clause = question.strip().rstrip("?!. ")
    found = list(WORD.finditer(clause))
    if not found:
        return None
    first = found[0][0].lower()
    new = asking.strip().rstrip("?!. ")
    new = new[:1].upper() + new[1:]
    if first in AUXILIARIES:
        return f"{new} {first}{clause[found[0].end() :]}?"
    asks = next((index for index, word in enumerate(found[:3]) if word[0].lower() in QUESTION_WORDS), None)
    if asks is None or first in IMPERATIVES:
        return None
    name = next(iter(answer), "")
    auxiliary = next((index for index in range(asks + 1, len(found)) if found[index][0].lower() in AUXILIARIES), None)
    if auxiliary is not None:
        rest = clause[found[auxiliary].end() :].strip()
        old = re.sub(r"\A(?:many|much)\s+", "", clause[found[asks].end() : found[auxiliary].start()].strip())
        copula = found[auxiliary][0].lower() in _COPULAS and found[asks][0].lower() in {"who", "what", "which"}
        if copula and name and name not in rest:
            rest = f"{name} {rest}"
        kept = f" ({old})" if old and not set(words_of(old)) & _GENERIC and not copula else ""
        return f"{new} {found[auxiliary][0].lower()} {rest}{kept}?"
    verb = (
        asks + 1
        if first in {"who", "what"}
        else next((i for i in range(asks + 2, len(found)) if is_verb(found[i][0].lower())), None)
    )
    if verb is None or verb >= len(found):
        return None
    old = clause[found[asks].end() : found[verb].start()].strip()
    return f"{new} was it that {name or (f'the {old}' if old else _SOMEBODY)} {clause[found[verb].start() :]}?"


def with_time(question: str, time: str) -> str:
    """Return ``question`` with its year replaced by that of ``time``, or with ``time`` added."""
    clause = question.strip().rstrip("?!. ")
    bare = re.sub(r"\A(?:and|in|on|during|the)\s+", "", time.strip(), flags=re.IGNORECASE)
    year = YEAR.fullmatch(bare.strip())
    old = _TIME_PHRASE.search(clause) or _SEASON.search(clause)
    if old is not None and year is not None:
        return f"{clause[: old.start(1)]}{bare}{clause[old.end(1) :]}?"
    if old is not None and _TIME_PHRASE.match(clause, old.start()):
        clause = f"{clause[: old.start()].rstrip()}{clause[old.end() :]}"
    opening = words_of(time)[:1]
    led = opening and (opening[0] in PREPOSITIONS or opening[0] in {"the", "next", "last"})
    return f"{clause} {time.strip() if led else f'in {time.strip()}'}?"


def with_phrase(question: str, phrase: str, phrases: Sequence[Mention]) -> str:
    """Return ``question`` with the phrase of the same preposition replaced by ``phrase`` ("at Lowmere"), or with it added."""
    clause = question.strip().rstrip("?!. ")
    preposition = phrase.split()[0].lower()
    for old in phrases:
        before = clause[: old.start].rstrip()
        if before.lower().endswith(f" {preposition}"):
            return f"{before[: -len(preposition)]}{phrase}{clause[old.end :]}?"
    return f"{clause} {phrase}?"


def with_subject(question: str, old: Mention, new: str) -> str:
    """Return ``question`` with the noun phrase ``old`` replaced by ``new``."""
    clause = question.strip().rstrip("?!. ")
    return f"{clause[: old.start]}{new}{clause[old.end :]}?"
