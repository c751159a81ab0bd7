"""Grounding: finds names in a passage. A name that a language model invented, or copied from its prompt, is not there."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph import name_words, normalise_name
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS
from agentic_rag_backend.knowledge.extraction.relations.relations import MAX_FACT_CHARACTERS
from agentic_rag_backend.language.sentences import Sentence, split_sentences
from agentic_rag_backend.language.words import content_forms

MAX_NAME_CHARACTERS = 160
_MAX_SENTENCES = 3
"""Sentences of a fact whose ends are in different sentences."""
_TOKEN = re.compile(r"[^\W_][\w.’'+#]*")
_ACRONYM = re.compile(r"[A-Z]{2,6}")
_MARKS = ".'’"
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

Place = tuple[int, int]
"""Offsets of the first character and of the end."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The text that states a relationship. ``sureness`` in (0, 1]: 1 if one sentence contains both ends."""

    start: int
    end: int
    sureness: float


class GroundedText:
    """A passage in which names are found word for word, in the form of `normalise_name`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words: list[str] = []
        self._places: list[Place] = []
        self._at: defaultdict[str, list[int]] = defaultdict(list)
        for match in _TOKEN.finditer(text):
            token = match[0]
            end = match.start() + len(token.rstrip(_MARKS).removesuffix("'s").removesuffix("’s"))
            for word in name_words(token):
                self._at[word].append(len(self._words))
                self._words.append(word)
                self._places.append((match.start(), end))
        self._sentences: list[Sentence] | None = None

    def places(self, name: str) -> list[Place]:
        """Return the places of a name, in order. Scripts without spaces between words are compared letter by letter.

        The case of an acronym that is also a common word counts: "IT" is not found in "it".
        """
        name_forms = normalise_name(name).split()
        if not name_forms or len(name) > MAX_NAME_CHARACTERS:
            return []
        places = [
            (self._places[position][0], self._places[position + len(name_forms) - 1][1])
            for position in self._at.get(name_forms[0], ())
            if self._words[position : position + len(name_forms)] == name_forms
        ]
        if _only_function_words(name_forms):
            places = [(start, end) for start, end in places if self.text[start:end] == name]
        return places or (_find_letters(self.text, name) if _WITHOUT_SPACES.search(name) else [])

    def statement(self, sources: Sequence[Place], targets: Sequence[Place], relation: str) -> Statement | None:
        """Return the text that states a relation between two names, given their places. None if it would be too long.

        Of several sentences with both, the one with most words of ``relation``, then the first one. If no sentence contains
        both: the shortest run of sentences that does. A name without places is the subject of the whole passage.
        """
        sentences = self._read_sentences()
        source, target = _sentences_with(sentences, sources), _sentences_with(sentences, targets)
        if not source and not target:
            return None
        common = sorted(source & target) if source and target else sorted(source or target)
        if common:
            words = content_forms(relation.replace("_", " "))
            best = min(common, key=lambda number: (-len(words & content_forms(sentences[number].text)), number))
            return _join_sentences(sentences, best, best, 1.0 if source and target else 0.8)
        begin, final = min(
            (
                (min(source_number, target_number), max(source_number, target_number))
                for source_number in source
                for target_number in target
            ),
            key=lambda run: (run[1] - run[0], run),
        )
        return _join_sentences(sentences, begin, final, 0.7) if final - begin < _MAX_SENTENCES else None

    def _read_sentences(self) -> list[Sentence]:
        if self._sentences is None:
            self._sentences = split_sentences(self.text)
        return self._sentences


def is_name(text: str) -> bool:
    """Return whether a text may name something. Function words name nothing unless they are in capitals: "it", but "IT"."""
    words = name_words(text)
    return (
        0 < len(text) <= MAX_NAME_CHARACTERS
        and bool(words)
        and (not _only_function_words(words) or _ACRONYM.fullmatch(text) is not None)
    )


def outermost(places: Mapping[str, Iterable[Place]]) -> dict[str, list[Place]]:
    """Return the places of each name that are not inside a longer name: "Copenhagen" in "University of Copenhagen".

    A name that occurs only inside of others keeps its first place.
    """
    spans = sorted({span for name_places in places.values() for span in name_places}, key=lambda span: (span[0], -span[1]))
    inner: set[Place] = set()
    reached = -1
    for start, end in spans:
        if end <= reached:
            inner.add((start, end))
        reached = max(reached, end)
    outer = {}
    for name, name_places in places.items():
        name_spans = list(name_places)
        outer[name] = [span for span in name_spans if span not in inner] or name_spans[:1]
    return outer


def _only_function_words(words: Iterable[str]) -> bool:
    return all(word in FUNCTION_WORDS for word in words)


def _find_letters(text: str, name: str) -> list[Place]:
    pattern = unicodedata.normalize("NFC", name).strip()
    return [match.span() for match in re.finditer(re.escape(pattern), text)] if pattern else []


def _sentences_with(sentences: Sequence[Sentence], places: Sequence[Place]) -> set[int]:
    return {
        number
        for number, sentence in enumerate(sentences)
        if any(sentence.start <= start and end <= sentence.end for start, end in places)
    }


def _join_sentences(sentences: Sequence[Sentence], begin: int, final: int, sureness: float) -> Statement | None:
    start, end = sentences[begin].start, sentences[final].end
    return Statement(start, end, sureness) if end - start <= MAX_FACT_CHARACTERS else None
