"""Recognises replies in which a model says that the passages do not answer.

The prompts ask for one sentence, but models refuse in their own words, and in the language of the question. Such a reply is a
refusal only if no sentence of it is supported by a passage: "The report names no cause, because the inquiry goes on [1]" is an
answer. The words of the eight languages were chosen on 100 replies; `docs/reference/benchmarks/answers.md` has the figures on 100
others.
"""

from __future__ import annotations

import re

from agentic_rag_backend.language.languages import STOP_WORDS
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import NOT_ANSWERED

_SENTINEL = content_forms(NOT_ANSWERED)
_FURTHER = ("unknown", "unclear", "insufficient", "lacks", "n/a", "nichts", "leider", "fehlt", "desconozco", "brak", "onbekend")
_LANGUAGES = tuple(map(language_of_code, STOP_WORDS))
_WORD = re.compile(r"n/a|[^\W\d_]+(?:['’][^\W\d_]+)*", re.IGNORECASE)
_SOURCES = re.compile(
    r"\b(?:passages?|documents?|documentation|context|sources?|texts?|excerpts?|snippets?|fragments?|material|information|evidence|"
    r"provided|"
    r"(?:text)?passagen?|textstellen?|textausschnitt\w*|auszüg\w*|kontext\w*|dokument\w*|unterlagen|quellen|"
    r"extraits?|contexte|"
    r"pasajes?|fragmentos?|contexto|documentos?|textos?|fuentes|"
    r"passagg\w+|bran[io]|contesto|document[io]|test[io]|font[ei]|"
    r"trechos?|fontes|"
    r"documenten|teksten?|fragmenten|bronnen|"
    r"fragment\w*|kontekst\w*|tek[sś]\w*|źródł\w*)\b",
    re.IGNORECASE,
)


def is_sentinel(text: str) -> bool:
    """Return whether a sentence is the one that the prompts ask for."""
    return content_forms(text) == _SENTINEL


def refuses(reply: str, *, cites: bool) -> bool:
    """Return whether a reply, of which no passage states a sentence, says that the passages do not answer.

    Args:
        cites: whether it has a marker. Then it must also mention the passages: "Nobody knows who built it [1]" is an answer.
    """
    sentences = re.split(r"(?<=[.!?])\s+|\n+", reply)
    if any(map(is_sentinel, sentences)):
        return True
    # Half of a JSON object is no sentence.
    if reply.lstrip(" \n`json").startswith("{"):
        return False
    return any(map(_is_denial, _WORD.findall(reply.casefold()))) and (not cites or _SOURCES.search(reply) is not None)


def _is_denial(word: str) -> bool:
    if word in _FURTHER or word.endswith(("n't", "n’t")):
        return True
    return any(form in language.negations or form in language.denying_verbs for language, form in _forms_of(word))


def _forms_of(word: str) -> list[tuple[Language, str]]:
    return [(language, language.form_of(word)) for language in _LANGUAGES]
