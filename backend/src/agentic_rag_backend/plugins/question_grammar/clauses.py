"""Reads English sentences as clauses: subject, verb and rest. There is no tagger; a sentence in doubt is no clause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentic_rag_backend.knowledge.extraction.lexicon import (
    FUNCTION_WORDS,
    MONTHS,
    ORGANISATION_HEADS,
    PERSON_TITLES,
    PLACE_HEADS,
    ROLE_NOUNS,
    WEEKDAYS,
    word_set,
)
from agentic_rag_backend.language.sentences import Sentence, is_statement
from agentic_rag_backend.language.vocabulary.word_classes import LEADING_ADJECTIVES
from agentic_rag_backend.language.words import comparable
from agentic_rag_backend.plugins.question_grammar.verbs import BY_PARTICIPLE, BY_PAST, BY_PRESENT

MAX_SENTENCE_WORDS = 60
_MAX_SUBJECT_WORDS = 9
_MAX_NAME_WORDS = 4
COPULAS = frozenset({"is", "was", "are", "were"})
MODALS = frozenset({"will", "must", "shall", "should", "would"})
HAVING = frozenset({"has", "have", "had"})
_PRONOUNS = frozenset({"it", "he", "she", "they"})
_ARTICLES = frozenset({"the", "both", "all"})
_NO_SUBJECT = word_set(
    "a an this that these those such there here what which who how why when where if while although though because since until "
    "unless after before as in on at by for from with without of to under over during between among despite but and or so then "
    "also however his her its their every each some many most few several no not i we you my our your one another other others"
)
"""Words that begin no subject that is clear by itself."""
_INSIDE = word_set(
    "that which who whom whose when where what why how if while although because as but or said says say told "
    "asked i we you he she they it "
    "this these those"
)
"""Words that make a subject too complicated."""
_VAGUE = LEADING_ADJECTIVES | {"thing", "rest", "other", "one"}
"""Words that name nothing at the end of a subject: "the largest"."""
_OPENING = re.compile(r"(?:In|On|By|During|Since) [^,]{3,40}, (?=[A-Z])")
_ASIDE = re.compile(r" ?\([^()]{0,200}\)| ?\[\d{1,4}\]")
_MARKS = re.compile(r"\*{1,3}|`+|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)")


class Subject(NamedTuple):
    """``text`` as it stands within a sentence: "the tidal array". ``person`` and ``name`` are what it looks like."""

    text: str
    person: bool
    name: bool
    plural: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """ "Subject verb rest". ``opening`` is a phrase in front of it, such as "in 2014". ``number`` is that of its sentence."""

    subject: Subject
    verb: str
    rest: str
    opening: str
    number: int


def clauses(sentences: Sequence[Sentence], title: str) -> Iterator[Clause]:
    """Yield the clauses with a clear subject. "It", "He", "She" and "They" stand for the subject before, or for the title."""
    before: Subject | None = None
    for number, sentence in enumerate(sentences):
        text = _MARKS.sub("", _ASIDE.sub("", " ".join(sentence.text.split())))
        if "?" in text or "“" in text or '"' in text or not is_statement(text):
            before = None if not text.endswith((".", "!")) else before
            continue
        opening = _OPENING.match(text)
        main = text[opening.end() :] if opening else text
        words = main.rstrip(".!").split()
        if not 4 <= len(words) <= MAX_SENTENCE_WORDS:
            continue
        pronoun = words[0].casefold() if words[0].casefold() in _PRONOUNS else ""
        end = 1 if pronoun else _subject_end(words)
        if not end or not _is_verb(words[end].casefold()):
            before = None
            continue
        subject = _resolve_pronoun(pronoun, before, title) if pronoun else _subject(words[:end])
        if subject is None:
            continue
        before = subject
        yield Clause(
            subject, words[end], " ".join(words[end + 1 :]), _lower_initial(opening[0].rstrip(", ")) if opening else "", number
        )


def _subject_end(words: Sequence[str]) -> int:
    """Return the number of words of the subject, or 0 without a clear one. A name may have an aside between commas."""
    if words[0].casefold() in _NO_SUBJECT or not words[0][0].isupper():
        return 0
    aside = False
    for number, word in enumerate(words[: 3 * _MAX_SUBJECT_WORDS]):
        plain = word.casefold().rstrip(",")
        if aside:
            aside = not word.endswith(",")
            continue
        if number and plain in _INSIDE:
            return 0
        if number and _is_verb(plain) and not word.endswith(","):
            return number
        if word.endswith(","):
            if not all(word[0].isupper() for word in words[: number + 1]):
                return 0
            aside = True
    return 0


def _is_verb(word: str) -> bool:
    return word in COPULAS or word in MODALS or word in HAVING or word in BY_PAST or word in BY_PRESENT


def _subject(words: Sequence[str]) -> Subject | None:
    """Return the subject without an aside between commas. None if it is too long."""
    subject_words: list[str] = []
    for word in words:
        subject_words.append(word.rstrip(","))
        if word.endswith(","):
            break
    if not 1 <= len(subject_words) <= _MAX_SUBJECT_WORDS or not any(map(str.isalpha, "".join(subject_words))):
        return None
    if len(subject_words) == 1 and (
        subject_words[0].casefold() in FUNCTION_WORDS or subject_words[0].casefold() in MONTHS | WEEKDAYS
    ):
        return None
    if any(word.casefold() in BY_PARTICIPLE and word.islower() for word in subject_words[1:]):
        return None  # "The papers signed in March were …": the verb may be another one
    if subject_words[0].casefold() in FUNCTION_WORDS - {"the", "both", "all"} or comparable(subject_words[-1]) in _VAGUE:
        return None
    if any(word.endswith(".") and word.casefold().rstrip(".") not in PERSON_TITLES for word in subject_words):
        return None  # the subject has an end of a sentence, or an abbreviation
    first_word = subject_words[0]
    article = first_word.casefold() in _ARTICLES
    plain = " ".join([first_word.casefold() if article else first_word, *subject_words[1:]])
    name = not article and all(
        word[0].isupper() or word.casefold() in {"of", "and", "the", "de", "van"} for word in subject_words
    )
    plural = " and " in f" {plain} " or (
        not name and subject_words[-1].endswith("s") and not subject_words[-1].endswith(("ss", "us", "is"))
    )
    return Subject(plain, looks_like_person(subject_words), name, plural)


def looks_like_person(words: Sequence[str]) -> bool:
    """Return whether words look like the name of a person: a title, or two to four capitalised words of no other kind."""
    plain = [word.casefold().rstrip(".,") for word in words]
    if plain[0] in PERSON_TITLES and len(words) > 1 and words[1][0].isupper():
        return True
    if not 2 <= len(words) <= _MAX_NAME_WORDS or not all(word[0].isupper() and not word.isupper() for word in words):
        return False
    excluded_words = ORGANISATION_HEADS | PLACE_HEADS | MONTHS | WEEKDAYS | FUNCTION_WORDS
    return not any(word in excluded_words or not word.replace("-", "").replace("'", "").isalpha() for word in plain)


def _resolve_pronoun(pronoun: str, before: Subject | None, title: str) -> Subject | None:
    """Return what a pronoun at the beginning of a sentence stands for. None in doubt."""
    if before is None and 1 <= len(title.split()) <= _MAX_NAME_WORDS and "\n" not in title:
        words = title.split()
        if all(word[0].isupper() for word in words) and words[0].casefold() not in FUNCTION_WORDS:
            before = Subject(title.strip(), looks_like_person(words), name=True, plural=False)
    if before is None or (pronoun in {"he", "she"}) is not before.person or (pronoun == "they") is not before.plural:
        return None
    return before


def _lower_initial(text: str) -> str:
    return text[0].casefold() + text[1:]


def has_role(text: str) -> bool:
    """Return whether a description names a role of persons: "a mechanical engineer"."""
    return any(word.casefold().strip(",.") in ROLE_NOUNS for word in text.split())
