"""Closed word classes of English that the rules for follow-up questions read."""

from __future__ import annotations

import re

from agentic_rag_backend.knowledge.extraction.lexicon import word_set

_VERBS = """
add advise agree allow announce answer appear apply appoint arrange arrive ask attend become begin belong bid bring build
burn buy call carry catch cause chair change choose claim close collapse come complete connect continue control cost count
cover create cut damage decide deliver describe design develop die direct discover do donate draw drive earn elect employ
end enter establish estimate expect explain fail fall fear feel fight file fill find finish fix fund get give go grant grow
happen have hear help hire hold hope identify improve include increase introduce invent invest issue join keep know launch
lead learn leave lend let like live look lose make manage marry matter mean measure meet mention move name need offer open
oppose organise own paint pay plan play predict prefer prepare present press prevent produce promise propose prove provide publish
raise reach read receive recommend record reduce refuse regret remain remember remove repair replace reply report request
require resign resolve rest result retire return run sail save say see sell send serve show sign sink speak spend stand start
state stay stop study succeed suggest supervise supply support suppose take talk teach tell think train travel try turn use
visit vote wait walk want warn win withdraw work write
"""
_PAST = """
became began bought brought built came caught chose died drew drove fell felt fought found gave got grew had heard held kept
knew known laid led left lent lost made meant met paid ran read rose said sang sank sat saw sent sold spent spoke spoken
stood stole struck swam taught thought told took went won withdrew wore written wrote begun chosen done drawn fallen given
gone grown run seen shown stolen sung sunk taken thrown torn worn
"""
VERBS = word_set(_VERBS)
PAST_FORMS = word_set(_PAST)
AUXILIARIES = word_set(
    "is are was were am do does did has have had can could will would shall should may might must isn't aren't wasn't "
    "weren't don't doesn't didn't hasn't haven't hadn't can't couldn't won't wouldn't"
)
IMPERATIVES = word_set("tell describe explain list give show compare summarise summarize outline discuss name say")
QUESTION_WORDS = word_set("who whom whose what which when where why how")
PREPOSITIONS = word_set(
    "about after against around as at before behind below between by during for from in into near of off on onto over since than "
    "to through towards under until up with within without"
)
PRONOUNS = word_set("he she it they him her them his hers its their theirs")
WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|"
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
)
TIME = re.compile(
    rf"(?:the )?(?:(?:early|late|mid|year|season|summer|winter|spring|autumn) )?(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?)?"
    rf"(?:(?:{_MONTHS})(?: (?:of )?)?)?(?:(?:1\d{{3}}|20\d{{2}})s?)?(?: season| year)?|"
    r"(?:the )?(?:next|following|previous|last|first|second) (?:year|month|season|decade|week|day)|"
    r"(?:the )?(?:year|month|season|decade|week|day) (?:before|after)",
    re.IGNORECASE,
)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def is_verb(word: str) -> bool:
    """Return whether a lower-case word is an auxiliary, or one of the common verbs in its base or past form."""
    if word in AUXILIARIES or word in VERBS or word.removeprefix("re") in VERBS or word in PAST_FORMS:
        return True
    return len(word) > 4 and word.endswith("ed") and word not in {"indeed", "hundred", "speed", "seabed"}


def is_time(text: str) -> bool:
    """Return whether a text is a date, a year, a month, a season or "the next year"."""
    return bool(text.strip()) and TIME.fullmatch(text.strip()) is not None


def has_predicate(text: str) -> bool:
    """Return whether a text has a verb: an auxiliary, an imperative, or a common verb in its past form."""
    found = words_of(text)
    past = any(word in PAST_FORMS or (len(word) > 4 and word.endswith("ed") and is_verb(word)) for word in found)
    return past or any(word in AUXILIARIES for word in found) or bool(found and found[0] in IMPERATIVES)
