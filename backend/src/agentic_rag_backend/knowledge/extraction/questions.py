"""The names in a question: every span that may be one, since a wrong seed costs less than a missing one."""

from __future__ import annotations

from itertools import pairwise

from agentic_rag_backend.domain.graph import EntityMention, normalise_name
from agentic_rag_backend.knowledge.extraction.entity_types import CONCEPT, DATE, OTHER, decide, type_from_context
from agentic_rag_backend.knowledge.extraction.extension import NAME_SHAPES
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS
from agentic_rag_backend.knowledge.extraction.names import Span, Vocabulary, find_spans
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens, tokenise

MAX_NAMES = 64
MAX_PHRASES = 200
_LONGEST_PHRASE = 5
_WIDEST_JOINT = 3
_MOST_TITLES = 3
_MARKS = frozenset({",", "'s", "’s", "'", "’", ":", "-", "–", "&", "!"})


def query_names(text: str) -> tuple[EntityMention, ...]:
    """Return the names of a question, at most `MAX_NAMES`, in order of place.

    Besides each name there are wider readings, of type "concept", for an exact look-up only: with the title before it
    ("Admiral Twin"), and neighbours joined over the small words between them ("Halden, West Virginia").
    """
    tokens = tokenise(text)
    spans = find_spans(tokens, Vocabulary(), generous=True)
    found: dict[tuple[int, int], EntityMention] = {}
    for span in spans:
        _add(found, tokens, span, DATE if span.kind == DATE else _type(tokens, span))
    for span in [*_with_titles(tokens, spans), *_wholes(tokens, spans)]:
        _add(found, tokens, span, CONCEPT)
    return tuple(found[offsets] for offsets in sorted(found))


def _add(found: dict[tuple[int, int], EntityMention], tokens: Tokens, span: Span, type_: str) -> None:
    start, end = tokens.starts[span.first], tokens.ends[span.last - 1]
    name = tokens.text[start:end]
    if len(found) < MAX_NAMES and (start, end) not in found and normalise_name(name):
        found[start, end] = EntityMention(name=name, type=type_, start_char=start, end_char=end)


def query_phrases(text: str) -> tuple[str, ...]:
    """Return the normalised runs of up to five words that may be a name written in lower case, for an exact look-up.

    No phrase begins or ends with a function word; at most `MAX_PHRASES`, the longer first.
    """
    tokens = tokenise(text)
    phrases: dict[str, None] = {}
    words = tokens.words[: MAX_PHRASES * 2]
    for length in range(_LONGEST_PHRASE, 0, -1):
        for first in range(len(words) - length + 1):
            if words[first].lower() in FUNCTION_WORDS or words[first + length - 1].lower() in FUNCTION_WORDS:
                continue
            if any(
                tokens.shapes[index] == Shape.PUNCTUATION and words[index] not in "-–'" for index in range(first, first + length)
            ):
                continue
            phrase = normalise_name(tokens.span(first, first + length))
            if len(phrase) > 2:
                phrases[phrase] = None
            if len(phrases) >= MAX_PHRASES:
                return tuple(phrases)
    return tuple(phrases)


def _type(tokens: Tokens, span: Span) -> str:
    sentence = next((one for one in tokens.sentences if one[0] <= span.first < one[1]), (span.first, span.last))
    votes: dict[str, float] = {}
    for type_, weight in type_from_context(tokens, span, sentence):
        votes[type_] = votes.get(type_, 0.0) + weight
    return decide(tokens.words[span.first : span.last], votes) if span.kind == "name" else OTHER


def _with_titles(tokens: Tokens, spans: list[Span]) -> list[Span]:
    """Return the names that a capitalised word stands before, with it."""
    wider: list[Span] = []
    for span in spans:
        first = span.first
        while first > 0 and span.first - first < _MOST_TITLES and _may_belong(tokens, first - 1):
            first -= 1
        if first < span.first:
            wider.append(Span(first, span.last))
    return wider


def _may_belong(tokens: Tokens, index: int) -> bool:
    return tokens.shapes[index] in NAME_SHAPES and tokens.words[index].lower() not in FUNCTION_WORDS


def _wholes(tokens: Tokens, spans: list[Span]) -> list[Span]:
    """Return neighbouring names joined over at most three small words or marks: pairs and whole runs."""
    joined: list[Span] = []
    run = spans[0].first if spans else 0
    for left, right in pairwise(spans):
        between = [tokens.words[index].lower() for index in range(left.last, right.first)]
        if len(between) > _WIDEST_JOINT or any(word not in FUNCTION_WORDS and word not in _MARKS for word in between):
            run = right.first
            continue
        joined.append(Span(left.first, right.last))
        if run < left.first:
            joined.append(Span(run, right.last))
    return joined
