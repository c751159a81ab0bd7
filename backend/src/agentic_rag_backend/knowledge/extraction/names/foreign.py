"""Names in languages of the Latin script other than English.

The rules find names by their capitals. Their words for the beginnings of sentences are English, so other languages need their
own function words there. German also writes every noun with a capital: a single word is a name only as part of a longer name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agentic_rag_backend.knowledge.extraction.names.names import DocumentSpellings, Span
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens
from agentic_rag_backend.language.languages import ENGLISH, STOP_WORDS, language_of_words

READ_WORDS = 3_000
"""Words at the beginning of a text that decide on its language."""
_NOUNS_HAVE_CAPITALS = frozenset({"de"})
_INSIDE_NAMES = frozenset({"von", "zu", "vom", "zum", "zur", "am", "an"})
"""Function words within German names: "Otto von Bismarck", "Frankfurt am Main"."""
_WORDS = (Shape.LOWER, Shape.CAPITAL, Shape.UPPER)


def foreign_language(passages: Iterable[Tokens]) -> str | None:
    """Return the language of passages if it is known and not English."""
    language = language_of_words(_first_words(passages))
    return None if language == ENGLISH else language


def _first_words(passages: Iterable[Tokens]) -> Iterator[str]:
    count = 0
    for tokens in passages:
        for word, shape in zip(tokens.words, tokens.shapes, strict=True):
            if shape in _WORDS:
                yield word.lower()
                count += 1
                if count >= READ_WORDS:
                    return


class ForeignNames:
    """Corrects the names of a document in ``language``."""

    def __init__(self, language: str, vocabulary: DocumentSpellings) -> None:
        self._stop_words = STOP_WORDS[language]
        self._nouns = language in _NOUNS_HAVE_CAPITALS
        self._vocabulary = vocabulary
        self._parts: set[str] = set()

    def learn(self, tokens: Tokens, spans: Sequence[Span]) -> None:
        """Record the words of longer names, which are names alone, too."""
        for span in self._trim_spans(tokens, spans):
            if span.kind == "name" and span.last - span.first > 1:
                self._parts.update(tokens.words[span.first : span.last])

    def correct_spans(self, tokens: Tokens, spans: Sequence[Span]) -> list[Span]:
        """Return the names without function words, and without single words that only their place gives a capital."""
        opening = {begin for begin, _ in tokens.sentences}
        return [span for span in self._trim_spans(tokens, spans) if span.kind != "name" or self._is_name(tokens, span, opening)]

    def _trim_spans(self, tokens: Tokens, spans: Sequence[Span]) -> Iterator[Span]:
        """Yield the parts of names between the function words that do not belong to them."""
        opening = {begin for begin, _ in tokens.sentences}
        for span in spans:
            if span.kind != "name":
                yield span
                continue
            for start, stop in self._parts_of(tokens, span) if self._nouns else [(span.first, span.last)]:
                while start < stop and self._is_function_word(tokens, start, opening):
                    start += 1
                while start < stop and self._is_function_word(tokens, stop - 1, opening):
                    stop -= 1
                if start < stop:
                    yield Span(start, stop)

    def _parts_of(self, tokens: Tokens, span: Span) -> Iterator[tuple[int, int]]:
        """Yield the parts of a German name between articles: "Angaben der Deutschen Bahn" are two nouns' names."""
        start = span.first
        for index in range(span.first, span.last):
            word = tokens.words[index]
            if tokens.shapes[index] == Shape.LOWER and word in self._stop_words and word not in _INSIDE_NAMES:
                yield start, index
                start = index + 1
        yield start, span.last

    def _is_function_word(self, tokens: Tokens, index: int, opening: set[int]) -> bool:
        """Return whether a word is no part of a name. In a sentence, an article with a capital is: "le journal Le Monde"."""
        lower_case = tokens.shapes[index] == Shape.LOWER or (tokens.shapes[index] == Shape.CAPITAL and index in opening)
        return lower_case and tokens.words[index].lower() in self._stop_words

    def _is_name(self, tokens: Tokens, span: Span, opening: set[int]) -> bool:
        if span.last - span.first > 1 or tokens.shapes[span.first] != Shape.CAPITAL:
            return True
        word = tokens.words[span.first]
        if word.lower() in self._stop_words:
            return False
        if self._nouns:
            return word in self._parts
        return span.first not in opening or word in self._vocabulary.capitalised
