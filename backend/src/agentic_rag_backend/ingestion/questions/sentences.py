"""Questions about English sentences with "is" or "was": "The mill was opened in 2014." → "When was the mill opened?".

There is no tagger. A sentence in doubt has no question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS, ORGANISATION_HEADS, PERSON_TITLES, ROLE_NOUNS
from agentic_rag_backend.language.sentences import Sentence
from agentic_rag_backend.language.statements import is_statement
from agentic_rag_backend.language.values import placed_moments
from agentic_rag_backend.language.word_classes import LEADING_ADJECTIVES
from agentic_rag_backend.language.words import comparable

_COPULAS = frozenset({"is", "was", "are", "were"})
_SENTENCE_WORDS = range(4, 61)
_MAX_SUBJECT_WORDS = 9
_MAX_DESCRIPTION_WORDS = 9
_IN_NAMES = frozenset({"of", "and", "the", "de", "van"})
_PASTS = {
    **{word: word for word in ("bought", "built", "held", "led", "made", "met", "paid", "sold", "sent", "set", "taught", "won")},
    "broken": "broke",
    "chosen": "chose",
    "drawn": "drew",
    "given": "gave",
    "run": "ran",
    "written": "wrote",
    "born": "",
    "known": "",
}
"""Past tenses of irregular participles. Empty: nobody does it."""
_PRONOUNS = (["It"], ["He"], ["She"])
_ASIDE = re.compile(r" ?\([^()]{0,200}\)| ?\[\d{1,4}\]|[*`]{1,3}")
_REST_END = re.compile(r"[,;:]| [–—-] | (?:which|that|who|whose|where|when|while|because|although|but|so|as|if|and|or)\b")
_NOT_WHEN = re.compile(r"\b(?:since|until|by|before|after|from|between|to|till)(?: the)? ?$")
_BY_NAME = re.compile(r"^(?:[\w-]+ ){0,4}?by (?:the )?[^\W\d_a-z]")
_AT_NAME = re.compile(r"^(?:in|at|near|on) (?:the )?[^\W\d_a-z]")


class Draft(NamedTuple):
    """A question and its rank. Higher ranks ask for more specific facts. ``number`` is that of the sentence or row."""

    text: str
    rank: float
    number: int


def ask_about(sentences: Sequence[Sentence], title: str) -> Iterator[Draft]:
    """Yield the questions that sentences answer. "It", "He" and "She" at the beginning stand for a ``title`` that is a name."""
    for number, sentence in enumerate(sentences):
        text = _ASIDE.sub("", " ".join(sentence.text.split()))
        words = text.rstrip(".!").split()
        if len(words) not in _SENTENCE_WORDS or any(mark in text for mark in '?"“') or not is_statement(text):
            continue
        verb = next((position for position, word in enumerate(words[: _MAX_SUBJECT_WORDS + 1]) if word in _COPULAS), 0)
        subject = _read_subject(title.split() if words[:verb] in _PRONOUNS else words[:verb])
        if subject and words[verb + 1 :]:
            for question, rank in _ask_about_clause(subject, words[verb], words[verb + 1 :]):
                yield Draft(f"{question}?", rank, number)


def _read_subject(words: Sequence[str]) -> str:
    """Return a subject that is clear by itself, as it stands within a sentence. Empty if it is not."""
    is_name = all(word[0].isupper() or word in _IN_NAMES for word in words)
    if not words or not words[0][0].isupper() or any(word[-1] in ",.;:" for word in words):
        return ""
    if words[0] == "The" and len(words) > 1 and comparable(words[-1]) not in LEADING_ADJECTIVES | FUNCTION_WORDS:
        return " ".join(["the", *words[1:]])
    return " ".join(words) if is_name and words[0].lower() not in FUNCTION_WORDS and words[-1] not in _IN_NAMES else ""


def _ask_about_clause(subject: str, verb: str, words: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield questions with their ranks. ``words`` follow the verb."""
    participle, remainder = words[0], " ".join(words[1:])
    if participle in _PASTS or (len(participle) > 4 and participle.endswith("ed") and participle.islower()):
        end = _REST_END.search(f" {remainder}")
        remainder = remainder[: max(end.start() - 1, 0)] if end else remainder
        if verb in {"was", "were"} and _PASTS.get(participle, participle) and _BY_NAME.match(remainder):
            yield f"Who {_PASTS.get(participle, participle)} {subject}", 1.0
        dates = [span for _, span in placed_moments(remainder)]
        if dates and not _NOT_WHEN.search(remainder[: dates[0][0]]):
            yield f"When {verb} {subject} {participle}", 0.95
        if _AT_NAME.match(remainder) and not any(start < len("during ") for start, _ in dates):
            yield f"Where {verb} {subject} {participle}", 0.9
    elif participle in {"a", "an", "the"}:
        who = not subject.startswith("the ") and _is_of_person(words)
        yield f"{'Who' if who else 'What'} {verb} {subject}", 0.85


def _is_of_person(words: Sequence[str]) -> bool:
    """Return whether a description begins with the role of a person: "an Indian singer and composer"."""
    roles = ROLE_NOUNS | PERSON_TITLES
    described = [word.lower().strip(",.") for word in words[:_MAX_DESCRIPTION_WORDS]]
    return next((word in roles for word in described if word in roles | ORGANISATION_HEADS), False)
