"""What the documents of a community contribute to its name and its prose: their titles and their opening sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from agentic_rag_backend.domain.graph import Label, Support
from agentic_rag_backend.knowledge.extraction.lexicon import (
    EVENT_HEADS,
    ORGANISATION_HEADS,
    PLACE_HEADS,
    PLACE_OPENERS,
    WORK_HEADS,
)
from agentic_rag_backend.language.independence import rate_independence, reads_as_prose
from agentic_rag_backend.language.questions.overviews import describes_itself
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.titles import is_excerpt, is_placeholder
from agentic_rag_backend.language.words import Word, content_forms, words
from agentic_rag_backend.themes.communities.summaries.community_evidence import Fact, ThemeDocument

_MAX_TITLE_WORDS = 9
_MAX_LABELS = 3
_MAX_TERM_WORDS = 3
_TERM_SHARE = 0.4
"""Share of the documents, by their mentions, whose titles contain a term that names the theme."""
_COMPARABLE_SHARE = 0.3
"""Share of the first title's weight that another title needs to join it in the name."""
_SEPARATOR = re.compile(r" [-–—|·] |: ")
_ENUMERATES = frozenset({"and", "or", "und", "oder", "et", "ou", "y"})
_LEAST_LETTERS = 3
"""Letters of a file's name that name a subject, unlike "p-12" and "n7"."""
_COMMON_NOUNS = ORGANISATION_HEADS | PLACE_HEADS | WORK_HEADS | EVENT_HEADS | PLACE_OPENERS
"""Words that are common to names of different things, such as "Journal"."""
_REPLY = re.compile(r"^(?:(?:re|aw|fwd?|wg|tr|\[[^\]]{1,40}\])[: ] *)+", re.IGNORECASE)
"""Marks before the subject of a message: "Re:", or the name of a mailing list in brackets."""
_QUALIFIER = re.compile(r" \([^()]{1,40}\)$")
_NUMBERING = re.compile(r"^(?:\d{1,3}\.){1,5}(?:\d{1,3})? +")
_OPENING_CHARACTERS = (40, 300)
_STANDS = 0.7
_OPENING_SENTENCES = 20


def shorten_title(title: str) -> str:
    """Return the part of a title that names its subject; empty if a program gave the title, or for the beginning of a text.

    The name of the site after a dash and the number of a section are left out. Of a file's name, the longest row of words stays.
    """
    if is_excerpt(title) or is_placeholder(title):
        return ""
    text = _NUMBERING.sub("", _REPLY.sub("", " ".join(title.split())))
    part, _, further = _SEPARATOR.split(text)[0].strip().partition(", ")
    if not _ENUMERATES.isdisjoint(further.split()):
        # "Culture, Society and Masculinities" is one subject, "Richmond Valley, Staten Island" is a place and where it is.
        part = f"{part}, {further}"
    # "Review: The Slack Water Year" is a review, but "AutoGen: Enabling …" is about AutoGen.
    text = part if " " in part or not part.istitle() or " - " in text else text
    if " " not in text and ("_" in text or "-" in text or any(map(str.isdigit, text))):
        rows = [
            "".join(row).replace("_", " ").replace("-", " ").split()
            for letters, row in groupby(text, _is_letter_or_space)
            if letters
        ]
        text = " ".join(max(rows, key=lambda row: len(" ".join(row)), default=[])) or text
        text = text if len(text) >= _LEAST_LETTERS else ""
    text = _QUALIFIER.sub("", text.title() if text.isupper() and " " in text else text)
    return "" if is_placeholder(text) or len(text.split()) > _MAX_TITLE_WORDS or not content_forms(text) else text


def _is_letter_or_space(character: str) -> bool:
    return character.isalpha() or character in "-_ "


def name_documents(
    documents: Sequence[ThemeDocument], child_names: Collection[str] = ()
) -> tuple[tuple[Label, ...], Label | None]:
    """Return the labels of a theme, best first, and the title that they make together, if one term is common to most documents.

    The title differs from ``child_names``.

    A term of several titles names the theme: "Postfix: Basic Configuration, Bottleneck Analysis". Otherwise the titles do.
    """
    titled = [(shorten_title(document.title), document) for document in documents]
    titled = [(title, document) for title, document in titled if title]
    if not titled:
        return (), None
    term = _find_common_term(titled)
    if term is None:
        least = _COMPARABLE_SHARE * titled[0][1].share
        labels = {
            title.casefold(): Label(title, document.sources) for title, document in reversed(titled) if document.share >= least
        }
        ordered = [labels[title] for title in dict.fromkeys(title.casefold() for title, _ in titled) if title in labels]
        return tuple(ordered[:_MAX_LABELS]), None
    remaining = [(words, document.sources) for title, document in titled if (words := _without_term(title, term.text))]
    rests = [
        Label(words, sources)
        for words, sources in remaining
        if words.casefold() != term.text.casefold() and any(map(str.isalpha, words))
    ]
    texts = [label.text for label in rests]
    titles = ((count, f"{term.text}: {', '.join(texts[:count])}") for count in range(2, len(texts) + 1))
    count, title = next(((count, title) for count, title in titles if title not in child_names), (0, None))
    # All parts of the title are labels, so that it rests on the passages of each.
    return (term, *rests[: max(count, _MAX_LABELS - 1)]), None if title is None else Label(title)


def _find_common_term(titled: Sequence[tuple[str, ThemeDocument]]) -> Label | None:
    """Return the term, of one to three words, that most titles contain, by the weights of their documents; None without one."""
    weights: dict[tuple[str, ...], float] = {}
    spellings: dict[tuple[str, ...], str] = {}
    holders: dict[tuple[str, ...], set[str]] = {}
    for title, document in titled:
        for forms, text in dict(_list_terms(title)).items():
            weights[forms] = weights.get(forms, 0.0) + document.share
            spellings.setdefault(forms, text)
            holders.setdefault(forms, set()).add(title.casefold())
    least = _TERM_SHARE * sum(document.share for _, document in titled)
    common = [forms for forms, weight in weights.items() if len(holders[forms]) > 1 and weight >= least]
    if not common:
        return None
    best = max(common, key=lambda forms: (weights[forms], len(forms)))
    sources = [source for title, document in titled if best in dict(_list_terms(title)) for source in document.sources[:1]]
    return Label(spellings[best], tuple(dict.fromkeys(sources)))


def _list_terms(title: str) -> Iterator[tuple[tuple[str, ...], str]]:
    tokens = words(title)
    for start in range(len(tokens)):
        for end in range(start + 1, min(start + _MAX_TERM_WORDS, len(tokens)) + 1):
            row = tokens[start:end]
            text = title[row[0].start : row[-1].end]
            common = len(row) == 1 and text.casefold() in _COMMON_NOUNS
            if _names(row[0]) and _names(row[-1]) and not common and not is_placeholder(text):
                yield tuple(word.form for word in row), text


def _names(word: Word) -> bool:
    return word.content and word.form.isalpha() and len(word.form) > 1


def _without_term(title: str, term: str) -> str:
    """Return the longer part of a title before or after the term, without function words at its ends."""
    start = title.casefold().find(term.casefold())
    parts = [title] if start < 0 else [title[:start], title[start + len(term) :]]
    longest = max(parts, key=len)
    tokens = words(longest)
    content = [number for number, word in enumerate(tokens) if word.content]
    return longest[tokens[content[0]].start : tokens[content[-1]].end] if content else ""


def list_openings(documents: Sequence[ThemeDocument]) -> list[Fact]:
    """Return the openings of the documents that have much of a theme, best first: of those that may name it."""
    return [
        document.opening
        for document in documents
        if document.opening is not None and document.share >= _COMPARABLE_SHARE * documents[0].share
    ]


def select_opening(title: str, passages: Sequence[tuple[Support, str]]) -> Fact | None:
    """Return the sentence among the first ones that says what a document is about; None if no sentence stands by itself.

    It repeats words of the title, or has the document as its subject: "This page explains …".
    """
    subject = content_forms(title)
    best, best_value = None, 0.0
    count = 0
    for support, text in passages:
        for sentence in split_sentences(text):
            statement = text[sentence.start : sentence.end]
            introduces = describes_itself(statement)
            standing = 1.0 if introduces else rate_independence(statement)
            low, high = _OPENING_CHARACTERS
            if (
                standing < _STANDS
                or not reads_as_prose(statement)
                or not low <= len(statement) <= high
                or count >= _OPENING_SENTENCES
            ):
                continue
            shared = len(subject & content_forms(statement)) / max(1, len(subject))
            value = standing * (1 + shared + introduces) * (1 - count / (2 * _OPENING_SENTENCES))
            count += 1
            if value > best_value:
                best, best_value = Fact(statement, (support,), frozenset()), value
    return best
