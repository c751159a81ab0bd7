"""Forms questions from clauses: "The array was opened by the mayor in 2014." → "When was the array opened?"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from agentic_rag_backend.knowledge.extraction.lexicon import word_set
from agentic_rag_backend.plugins.question_grammar.clauses import COPULAS, HAVING, MODALS, Clause, has_role
from agentic_rag_backend.plugins.question_grammar.verbs import BY_PARTICIPLE, BY_PAST, BY_PRESENT

_MAX_REST_WORDS = 9
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WEEKDAY = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_YEAR = r"(?:1\d|20)\d\d"
_DATE = re.compile(
    rf" ?\b(?:(?:in|on|of|at|during) )?(?:{_WEEKDAY},? )?(?:(?:the )?(?:early|late|spring|summer|autumn|winter) (?:of )?)?"
    rf"(?:(?:\d{{1,2}} )?{_MONTH}(?: \d{{1,2}})?,? {_YEAR}|\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}}|(?:in|during) {_YEAR})\b"
    r"(?![-–%\w])"
)
_NOT_WHEN = re.compile(r"\b(?:since|until|by|before|after|from|between|to|till) ?$")
_SCALE = r"(?: (?:million|billion|thousand))?"
_MONEY = rf"(?:(?:US)?[$£€] ?\d[\d,.]*{_SCALE}|\d[\d,.]*{_SCALE} (?:crowns?|dollars?|pounds?|euros?))"
_FOR_MONEY = re.compile(rf"^(?:[\w-]+ ){{0,3}}?for (?:about |nearly |over |some )?{_MONEY}")
_COSTS = re.compile(rf"^(?:about |nearly |over |some |around )?{_MONEY}")
_COUNTED = re.compile(
    r"^(?:about |nearly |over |some |around |only |at least |more than )?"
    r"(?:\d[\d,]*(?: (?:million|thousand))?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty) "
    r"((?:[a-z][a-z-]* ){0,2}?[a-z][a-z-]*s)\b(?! (?:ago|later|of age|earlier))"
)
_TIMES = word_set(
    "years months weeks days hours minutes seconds times percent metres meters kilometres miles crowns dollars pounds"
)
_SIZE = re.compile(r"^(?:about |nearly |some )?\d[\d,.]* \w+ (wide|long|high|tall|deep|thick|old)\b")
_NUMBER = re.compile(rf"^(?:about |nearly |some |around )?(?:{_MONEY}|\d)")
_BY = re.compile(r"^(?:[\w-]+ ){0,4}?by ((?:the )?[A-Z][^,;]*)")
_AGENT = re.compile(r"(?:^| )by [^\W\d][^,;]*$")
_WHERE = re.compile(r"^(?:in|at|near|on) (?:the )?[A-Z][\w'’-]+")
_PLACED = word_set("born located situated held based buried built filmed produced founded established")
_SOMEWHERE = word_set("die graduate land live meet open perform premiere sail settle stand study teach work")
_STOPS = re.compile(
    r"[,;:]| [–—-] | (?:which|that|who|whose|where|when|while|because|although|but|so|as|if|after|before|until|since|to|and|or)\b"
)
_PRONOUN = re.compile(
    r"\b(?:it|its|he|his|him|she|her|they|their|them|we|us|our|i|me|my|you|your|this|these|those)\b", re.IGNORECASE
)
"""Words that a question by itself leaves unclear."""
_PREPOSITION = re.compile(r" (?:in|on|at|by|for|from|with|of|under|over|into|through|between|during|against|about)\b")
_PARTICLES = word_set("not also first then now still since only later never already always often usually formally officially")
_DANGLING = word_set(
    "in on at by for from with of under over into through between during against about the a an beginning starting"
)
"""Words that end no question."""


class Draft(NamedTuple):
    """A question and its rank. Higher ranks ask for more specific facts."""

    text: str
    rank: float
    number: int


def questions_of(clause: Clause) -> Iterator[Draft]:
    """Yield the questions that a clause answers."""
    verb = clause.verb.casefold()
    if verb in COPULAS:
        questions = _of_copula(clause)
    elif verb in MODALS:
        questions = _of_modal(clause)
    elif verb in HAVING:
        questions = _of_having(clause)
    else:
        questions = _of_verb(clause)
    for text, rank in questions:
        if _PRONOUN.search(text) is None:
            yield Draft(f"{text[0].upper()}{text[1:]}?", rank, clause.number)


def _of_copula(clause: Clause) -> Iterator[tuple[str, float]]:
    words = clause.rest.split()
    while words and words[0].casefold() in _PARTICLES - {"not", "never"}:
        words = words[1:]
    if not words or words[0] in {"not", "never"}:
        return
    remainder, aux = " ".join(words), clause.verb
    if past := _past_of(words[0]):
        yield from _of_passive(clause, past, words[0], " ".join(words[1:]))
    elif words[0] in {"a", "an", "one"} or (words[0] == "the" and len(words) > 2):
        yield from _of_description(clause, remainder)
    elif size := _SIZE.match(remainder):
        yield f"how {size[1]} {aux} {clause.subject.text}", 0.9
    elif _NUMBER.match(remainder) and not clause.subject.name and not clause.subject.person:
        yield f"what {aux} {clause.subject.text}", 0.9


def _past_of(participle: str) -> str:
    """Return the past tense for a participle; empty for other words."""
    if verb := BY_PARTICIPLE.get(participle):
        return verb.past
    return participle if len(participle) > 4 and participle.endswith("ed") and participle.islower() else ""


def _of_passive(clause: Clause, past: str, participle: str, remainder: str) -> Iterator[tuple[str, float]]:
    subject, aux = clause.subject.text, clause.verb
    agent = _BY.match(remainder)
    if agent and aux in {"was", "were"} and not _DATE.match(f" in {agent[1]}"):
        yield f"who {past} {subject}", 1.0
    if (dated := _without_date(remainder, clause.opening)) is not None:
        yield f"when {aux} {subject} {_join_words(participle, _trim_clause(_AGENT.sub('', dated)))}", 0.95
    if _FOR_MONEY.match(remainder):
        yield f"how much {aux} {subject} {participle} for", 0.95
    if participle in _PLACED and _WHERE.match(remainder) and not _DATE.match(f" {remainder}"):
        yield f"where {aux} {subject} {participle}", 0.9


def _of_description(clause: Clause, remainder: str) -> Iterator[tuple[str, float]]:
    aux, subject, described = clause.verb, clause.subject, _trim_clause(remainder, keep_prepositions=True)
    role = has_role(described) and not subject.plural
    if remainder.startswith("the ") and subject.name and len(described.split()) > 3:
        yield f"{'who' if role else 'what'} {aux} {described}", 0.92
    elif subject.name or subject.text.startswith("the "):
        yield f"{'who' if role and subject.name else 'what'} {aux} {subject.text}", 0.85


def _of_modal(clause: Clause) -> Iterator[tuple[str, float]]:
    if clause.rest.split()[:1] in (["not"], ["also"]):
        return
    if (dated := _without_date(clause.rest, clause.opening)) is not None and clause.verb.casefold() != "would":
        yield f"when {clause.verb.casefold()} {_join_words(clause.subject.text, _trim_clause(dated))}", 0.9


def _of_having(clause: Clause) -> Iterator[tuple[str, float]]:
    helping = {"has": "does", "have": "do", "had": "did"}[clause.verb.casefold()]
    field_condition = _COUNTED.match(clause.rest)
    if field_condition and field_condition[1].split()[-1] not in _TIMES:
        yield f"how many {field_condition[1]} {helping} {clause.subject.text} have", 0.95


def _of_verb(clause: Clause) -> Iterator[tuple[str, float]]:
    word, subject = clause.verb.casefold(), clause.subject
    past = BY_PAST.get(word)
    verb = past or BY_PRESENT[word]
    helping = "did" if past else ("do" if subject.plural else "does")
    trimmed_text = _trim_clause(clause.rest)
    if past and (dated := _without_date(clause.rest, clause.opening)) is not None:
        yield f"when did {_join_words(subject.text, verb.base, _trim_clause(dated))}", 0.95
    if _COSTS.match(clause.rest):
        yield f"how much {helping} {subject.text} {verb.base}", 0.95
        return
    field_condition = _COUNTED.match(clause.rest)
    if field_condition and field_condition[1].split()[-1] not in _TIMES:
        yield f"how many {field_condition[1]} {helping} {subject.text} {verb.base}", 0.93
    location = _WHERE.match(clause.rest)
    if location and past and verb.base in _SOMEWHERE and not _DATE.match(f" {clause.rest}"):
        yield f"where did {subject.text} {verb.base}", 0.8
    if _is_object(trimmed_text):
        if subject.person:
            yield f"who {word} {trimmed_text}", 0.88
        if subject.name:
            yield f"what {helping} {subject.text} {verb.base}", 0.5


def _is_object(text: str) -> bool:
    """Return whether a rest begins with an object: "the project", "Pellow Marine Works"."""
    words = text.split()
    return len(words) > 1 and (words[0] in {"the", "a", "an"} or words[0][0].isupper())


def _without_date(text: str, opening: str) -> str | None:
    """Return the rest without its date. None if neither it nor the opening has one."""
    if opening and _DATE.fullmatch(f" {opening}"):
        return text
    match = _DATE.search(text)
    if match is None or _NOT_WHEN.search(text[: match.start()]):
        return None
    clause_end = _STOPS.search(text)
    if clause_end is not None and clause_end.start() < match.start():
        return None  # the date belongs to another clause
    return f"{text[: match.start()]}{text[match.end() :]}".strip()


def _trim_clause(remainder: str, *, keep_prepositions: bool = False) -> str:
    """Return the beginning of a rest: up to the end of the clause, and of at most nine words."""
    end = _STOPS.search(f" {remainder}")
    text = remainder[: max(0, end.start() - 1)] if end else remainder
    words = text.split()
    if len(words) > _MAX_REST_WORDS:
        cut = _PREPOSITION.search(text, len(" ".join(words[:3])))
        text = text[: cut.start()] if cut and not keep_prepositions else " ".join(words[:_MAX_REST_WORDS])
    words = text.split()
    while words and words[-1].casefold() in _DANGLING:
        words.pop()
    return " ".join(words)


def _join_words(*parts: str) -> str:
    return " ".join(filter(None, parts))
