"""Decide by rules whether a question leans on the conversation, and on which part of it.

The rules are for English. A question in another language leans on nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.generation.conversation.grammar import (
    AUXILIARIES,
    PREPOSITIONS,
    PRONOUNS,
    QUESTION_WORDS,
    VERBS,
    has_predicate,
    is_time,
    is_verb,
    words_of,
)
from agentic_rag_backend.generation.conversation.mentions import Mention, is_counted, is_personal, is_place, names_of, phrases_of
from agentic_rag_backend.knowledge.extraction.lexicon import word_set

MAX_CHARACTERS = 600
"""A longer question is self-contained: it has room for its names."""
MAX_FRAGMENT_WORDS = 8
Kind = Literal["time", "question_word", "subject", "place", "reference", "focus"]
Referent = Literal["person", "thing", "group", "place", "time"]

_CONNECTIVE = re.compile(r"\s*(?:(?:and|but|so|or|then|also|ok|okay|well|yes|no|thanks)\b[\s,.!]*)+", re.IGNORECASE)
_ABOUT = re.compile(r"(?:what|how) about\s+|(?:what|how) of\s+", re.IGNORECASE)
_BARE_WORD = re.compile(
    r"(?:[a-z]+ )?(?:who|whom|whose|what|where|when|why|how|which)(?: (?:exactly|else|not|then|so|come|ones?|often|long|much|"
    r"many|far|old|big|late|early))?",
    re.IGNORECASE,
)
_QUESTION_PHRASE = re.compile(
    r"(?:[a-z]+ )?(?:what|which|whose|how (?:many|much|long|old|big|far))(?: [^\W\d_]+){1,3}", re.IGNORECASE
)
_PRONOUN = re.compile(r"\b(he|she|it|they|him|her|them|his|hers|its|their|theirs|there|then)\b", re.IGNORECASE)
_DEMONSTRATIVE = re.compile(
    r"\b(?=(?:this|these|those|the same)\b|that (?:year|day|month|season|summer|winter|decade|moment)\b)"
    r"(?P<all>(?P<word>this|that|these|those|the same)(?:\s+(?P<noun>[a-z][a-z-]+))?)",
    re.IGNORECASE,
)
_THAT = re.compile(
    r"(?:\A|\b(?:in|on|at|of|for|from|to|by|with|about|after|before|during|since|until|into|behind|under|over|and|did|does|do|was|"
    r"is|were|are|has|had|have|than|like|near|why|how|which|who|built|owns?|led|use[sd]?)\s)"
    r"(?P<all>(?P<word>that)(?:\s+(?P<noun>[a-z][a-z-]+))?)",
    re.IGNORECASE,
)
_FOCUS = re.compile(
    r"\b(?:else|the latter|the former|the others?|which one|the (?:first|second|third|last|other) one|"
    r"you (?:said|mentioned|named|described)|your (?:last |previous )?answer|any others|anyone else|more details?)\b",
    re.IGNORECASE,
)
_IMPERSONAL = re.compile(
    r"it (?:(?:takes?|took) .{0,40}\bto\b|rains?|rained|snows?|true|possible|likely|necessary|important|safe|worth|that|to be)\b|"
    r"it (?:is|was) (?:true|possible|likely|necessary|important|safe|worth)\b|it .{0,40}\b(?:that|who)\b",
    re.IGNORECASE,
)
_TIME_BEFORE_IT = re.compile(r"\bwhat time (?:is|was) \Z", re.IGNORECASE)
_EXISTS_BEFORE = re.compile(r"\b(?:is|are|was|were|be|been|has|have|had|will|would|can|could|did|does) \Z", re.IGNORECASE)
_EXISTS_AFTER = re.compile(r" (?:is|are|was|were|has|have|had|will|would|be|been|exists?)\b", re.IGNORECASE)
_BOUNDARY = re.compile(
    r"[,;:]|\b(?:and|but|when|while|after|before|because|if|that|which|who|whose|where|until|since|although|so)\b", re.IGNORECASE
)
_ANAPHORS = PRONOUNS | {"there", "then", "here", "ago", "this", "that", "these", "those", "the", "a", "an"}
_DEICTIC = word_set("year week month morning afternoon evening day time way")
_COMPANIES = frozenset({"company", "firm", "organisation", "organization"})
_OBJECTS = frozenset({"him", "them", "hers", "theirs"})
_POSSESSIVES = frozenset({"his", "its", "their"})


@dataclass(frozen=True, slots=True)
class Lean:
    """The way in which a question leans on the conversation.

    ``start`` and ``end`` delimit the words to replace, ``text`` is the fragment or those words. ``referent`` is the kind of
    thing that a reference means, ``noun`` the noun of "that boat" or "the boat".
    """

    kind: Kind
    text: str
    start: int = 0
    end: int = 0
    referent: Referent = "thing"
    noun: str = ""
    possessive: bool = False


def lean_of(question: str, earlier: Sequence[Mention] = ()) -> Lean | None:
    """Return how ``question`` leans on the conversation; None if it is self-contained.

    Args:
        earlier: noun phrases of the conversation; "the boat" refers to one that ends with "boat" and says more.
    """
    if len(question) > MAX_CHARACTERS or not question.strip():
        return None
    connective = _CONNECTIVE.match(question)
    body = question[connective.end() :] if connective else question
    core = body.strip().rstrip("?!. ")
    fragment = _fragment(core, asked=question.rstrip().endswith("?"), connected=connective is not None)
    return fragment or reference_in(question, earlier)


def _fragment(core: str, *, asked: bool, connected: bool) -> Lean | None:
    """Return the lean of a question without a verb."""
    about = _ABOUT.match(core)
    if about is not None:
        rest = core[about.end() :]
        return _of_fragment(rest) if rest and not has_predicate(rest) else None
    found = words_of(core)
    if not found or len(found) > MAX_FRAGMENT_WORDS or has_predicate(core):
        return None
    if _BARE_WORD.fullmatch(core) and (len(found) < 3 or found[0] in PREPOSITIONS):
        return Lean("question_word", core)
    if _QUESTION_PHRASE.fullmatch(core) and not _has_clause(found):
        return Lean("question_word", core)
    if any(word in QUESTION_WORDS for word in found):
        return None
    if found[0] in PREPOSITIONS and (asked or connected):
        return _of_fragment(core)
    determined = found[0] in {"the", "a", "an", "its", "their", "his", "her"}
    return _of_fragment(core) if connected or (asked and determined) else None


def _has_clause(found: Sequence[str]) -> bool:
    """Return whether a verb, a pronoun or a determiner follows the question word: "What happens this year"."""
    asks = next((index for index, word in enumerate(found) if word in QUESTION_WORDS), 0)
    rest = found[asks + 1 :]
    third_person = len(rest) > 1 and rest[0].removesuffix("s") in VERBS and rest[0] not in VERBS
    return third_person or any(is_verb(word) or word in _ANAPHORS for word in rest[1:])


def _of_fragment(text: str) -> Lean:
    first = text.split()[0].lower() if text.split() else ""
    bare = text[len(first) :].strip() if first in PREPOSITIONS else text
    if is_time(bare):
        return Lean("time", text)
    return Lean("place" if first in PREPOSITIONS else "subject", text)


def reference_in(question: str, earlier: Sequence[Mention] = ()) -> Lean | None:
    """Return the first pronoun or description of a whole question that refers to the conversation."""
    names = names_of([question])[0]
    phrases = phrases_of(question, names)
    found = [_pronoun(question, match, phrases) for match in _PRONOUN.finditer(question)]
    found += [_demonstrative(question, match) for form in (_DEMONSTRATIVE, _THAT) for match in form.finditer(question)]
    found += [_description(phrase, earlier) for phrase in phrases]
    leans = sorted((lean for lean in found if lean is not None), key=lambda lean: lean.start)
    if leans:
        return leans[0]
    focus = _FOCUS.search(question)
    if focus is None or (names and focus[0].lower() not in {"you mentioned", "you said", "you named", "you described"}):
        return None
    return Lean("focus", focus[0], focus.start(), focus.end())


def _pronoun(question: str, match: re.Match[str], phrases: Sequence[Mention]) -> Lean | None:
    word = match[1].lower()
    before, after = question[: match.start()], question[match.end() :]
    follows = words_of(after)[:1]
    noun_follows = (
        bool(follows) and after.startswith(" ") and follows[0] not in PREPOSITIONS | AUXILIARIES | QUESTION_WORDS | {"and"}
    )
    possessive = word in _POSSESSIVES or (word == "her" and noun_follows and not is_verb(follows[0]))
    if word == "there":
        return _there(question, match, phrases)
    if word == "then":
        return _then(question, match)
    if word == "it" and (_IMPERSONAL.match(question, match.start()) or _TIME_BEFORE_IT.search(before)):
        return None
    personal = word in {"he", "she", "him", "her", "his", "hers"}
    antecedents = [
        one for one in phrases if one.end <= match.start() and (is_personal(one) if personal else not _is_no_antecedent(one))
    ]
    objective = word in _OBJECTS or (word == "her" and not possessive) or (word == "it" and not _is_subject(before, follows))
    if objective:
        # In one clause, an object does not refer to the subject.
        antecedents = [one for one in antecedents if _BOUNDARY.search(question[one.end : match.start()])]
    inner = possessive or _BOUNDARY.search(before, before.find(" "))
    if antecedents or (inner and not personal and _asks_which(before)):
        return None
    referent: Referent = "person" if personal else "thing" if word in {"it", "its"} else "group"
    return Lean("reference", match[0], match.start(), match.end(), referent, word, possessive)


def _is_no_antecedent(phrase: Mention) -> bool:
    return (
        is_counted(phrase)
        or phrase.text.split()[0].lower() in {"its", "their", "his", "her", "this", "that", "these", "those"}
        or phrase.type == "date"
    )


def _is_subject(before: str, follows: Sequence[str]) -> bool:
    """Return whether "it" is the subject of its clause."""
    previous = words_of(before)[-1:]
    return not previous or previous[0] in AUXILIARIES or bool(follows and (follows[0] in AUXILIARIES or is_verb(follows[0])))


def _asks_which(before: str) -> bool:
    found = words_of(before)
    return bool(found) and found[0] in {"which", "what"} and len(found) > 2 and not any(word in AUXILIARIES for word in found)


def _there(question: str, match: re.Match[str], phrases: Sequence[Mention]) -> Lean | None:
    before, after = question[: match.start()], question[match.end() :]
    if _EXISTS_BEFORE.search(before) or _EXISTS_AFTER.match(after):
        return None
    if any(is_place(one) for one in phrases if one.end <= match.start()):
        return None
    return Lean("reference", match[0], match.start(), match.end(), "place", "there")


def _then(question: str, match: re.Match[str]) -> Lean | None:
    previous = words_of(question[: match.start()])[-1:]
    last = not question[match.end() :].strip("?!. ")
    if previous and (previous[0] in {"since", "by", "until", "before", "from", "back"} or (last and len(previous[0]) > 1)):
        return Lean("reference", match[0], match.start(), match.end(), "time", "then")
    return None


def _demonstrative(question: str, match: re.Match[str]) -> Lean | None:
    word, noun = match["word"].lower(), (match["noun"] or "").lower()
    start, end = match.start("all"), match.end("all")
    bare = not noun or noun in PREPOSITIONS or noun in AUXILIARIES or noun in VERBS or is_verb(noun)
    if bare:
        if word == "the same" or (word == "that" and noun in {"is", "are", "was", "were", "has", "had"}):
            return None
        end = start + len(match["word"])
        return Lean("reference", question[start:end], start, end, "thing", word)
    if noun in {"who", "which", "the", "a", "an", "it", "he", "she", "they", "we", "you", "there", "all", "of"} | QUESTION_WORDS:
        return None
    if word == "this" and noun in _DEICTIC:
        return None
    if noun in {"year", "time", "day", "month", "season", "date", "summer", "winter", "moment", "decade"}:
        return Lean("reference", question[start:end], start, end, "time", noun)
    person = is_personal(Mention(0, 0, noun, "phrase"))
    place = is_place(Mention(0, 0, noun, "phrase")) or noun == "place"
    referent: Referent = "person" if person else "place" if place else "thing"
    return Lean("reference", question[start:end], start, end, referent, noun)


def _description(phrase: Mention, earlier: Sequence[Mention]) -> Lean | None:
    """Return the lean of "the boat" if an earlier noun phrase is a longer name of a boat."""
    spelled = phrase.text.split()
    if len(spelled) != 2 or spelled[0] != "the" or not spelled[1].islower():
        return None
    if not any(refers_to(spelled[1], other) for other in earlier):
        return None
    return Lean("reference", phrase.text, phrase.start, phrase.end, "thing", f"the {spelled[1]}")


def refers_to(noun: str, other: Mention) -> bool:
    """Return whether "the NOUN" may mean ``other``: a longer phrase with the same head, and with a name or a number."""
    spelled = other.text.split()
    if is_kind_of(noun, other):
        return True
    heads = [word.lower() for word in spelled]
    if noun not in heads or len([word for word in spelled if word.lower() not in {"the", "a", "an"}]) < 2:
        return False
    at = heads.index(noun)
    last = at + 1 == len(heads) or heads[at + 1] in PREPOSITIONS
    return last and any(word[0].isupper() or word[0].isdigit() for word in spelled)


def is_kind_of(noun: str, other: Mention) -> bool:
    """Return whether "the NOUN" may mean a name because of its type, or because the name ends with it ("NIGHTBOAT")."""
    if noun in _COMPANIES:
        return other.type == "organisation" or (other.text.isupper() and other.text.isalpha())
    return " " not in other.text and other.text[:1].isupper() and other.text.lower().endswith(noun) and other.text.lower() != noun
