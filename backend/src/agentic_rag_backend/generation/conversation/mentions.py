"""Names, dates and noun phrases in the turns of a conversation, with their types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.generation.conversation.grammar import is_verb
from agentic_rag_backend.knowledge.extraction.entity_types import DATE, OTHER, PERSON, PLACE, decide, type_from_context
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS, ORGANISATION_HEADS, PLACE_HEADS, ROLE_NOUNS, word_set
from agentic_rag_backend.knowledge.extraction.names import DocumentSpellings, find_spans
from agentic_rag_backend.knowledge.extraction.tokens import Tokens, tokenise

_DETERMINERS = word_set("the a an its their his her this that these those")
PHRASE = "phrase"
"""Type of a noun phrase without a name."""
_DETERMINER = re.compile(r"\b(?:the|a|an|its|their|his|her|this|that|these|those)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:[-'’.][^\W_]+)*")
_MAX_PHRASE_WORDS = 6
_COUNTED = re.compile(r"\b(?:how many|which|what)\s+(?=[a-z]+s\b)", re.IGNORECASE)
_LINK = re.compile(r" (?:of|at|for|on) (?:(?:the|a|an) )?")
_YEAR = re.compile(r"(?:1\d{3}|20\d{2})\Z")
_MARKER = re.compile(r"\[\d{1,4}\]")


@dataclass(frozen=True, slots=True)
class Mention:
    """A name, date or noun phrase at ``[start, end)`` of a text. ``type`` is an entity type or `PHRASE`."""

    start: int
    end: int
    text: str
    type: str

    @property
    def head(self) -> str:
        """The noun that the phrase is about, in lower case: "quay" of "the new quay at Port Ellery"."""
        found = _WORD.findall(re.split(r" (?:of|at|for|on) ", self.text, maxsplit=1)[0])
        return found[-1].lower() if found else ""


def without_markers(text: str) -> str:
    """Return the text of an answer without its citation markers."""
    return _MARKER.sub("", text)


def names_of(texts: Sequence[str]) -> list[list[Mention]]:
    """Return the names and dates of each text. All texts together decide the type of a name."""
    vocabulary = DocumentSpellings()
    tokenised = [tokenise(text) for text in texts]
    for tokens in tokenised:
        vocabulary.add(tokens)
    votes: dict[str, dict[str, float]] = {}
    words: dict[str, list[str]] = {}
    found: list[list[Mention]] = []
    for text, tokens in zip(texts, tokenised, strict=True):
        mentions = []
        for span in find_spans(tokens, vocabulary):
            start, end = tokens.starts[span.first], tokens.ends[span.last - 1]
            spelled = tokens.words[span.first : span.last]
            if span.kind == "name" and (_opens_with_verb(spelled) or all(word.lower() in FUNCTION_WORDS for word in spelled)):
                continue
            written = text[start:end]
            mentions.append(Mention(start, end, written, DATE if span.kind == DATE else OTHER))
            if span.kind != DATE:
                words.setdefault(written, spelled)
                ballot = votes.setdefault(written, {})
                for kind, weight in type_from_context(tokens, span, _sentence_of(tokens, span.first)):
                    ballot[kind] = ballot.get(kind, 0.0) + weight
        found.append(mentions)
    types = {written: decide(spelled, votes[written]) for written, spelled in words.items()}
    return [[replace(one, type=types.get(one.text, one.type)) for one in mentions] for mentions in found]


def phrases_of(text: str, names: Sequence[Mention]) -> list[Mention]:
    """Return the noun phrases of a text in order: names with the words that belong to them, and "the …" without a name."""
    found: list[Mention] = []
    for opening in _DETERMINER.finditer(text):
        if found and opening.start() < found[-1].end:
            continue
        end = _phrase_end(text, opening.end(), names)
        if end > opening.end():
            found.append(_typed(text, opening.start(), end, names))
    for name in names:
        if name.type == DATE or any(one.start <= name.start < one.end for one in found):
            continue
        if name.type == PERSON:
            found.append(name)
        else:
            end = _with_complement(text, _phrase_end(text, name.start, names), names)
            found.append(_typed(text, name.start, max(end, name.end), names))
    found += [counted for counted in _counted(text, names) if not any(one.start < counted.end <= one.end for one in found)]
    return sorted(found, key=lambda one: one.start)


def _counted(text: str, names: Sequence[Mention]) -> list[Mention]:
    """Return the plural nouns after "how many", "which" and "what"."""
    ends = [(match.end(), _phrase_end(text, match.end(), names)) for match in _COUNTED.finditer(text)]
    return [Mention(start, end, text[start:end], PHRASE) for start, end in ends if end > start]


def is_counted(mention: Mention) -> bool:
    """Return whether a mention is a plural noun without a determiner, such as "elvers" of "how many elvers"."""
    return mention.type == PHRASE and mention.text[:1].islower() and mention.text.split()[0] not in _DETERMINERS


def is_personal(mention: Mention) -> bool:
    """Return whether a mention names or describes a person."""
    return mention.type == PERSON or (mention.type == PHRASE and _describes_person(mention.head))


def is_group(mention: Mention) -> bool:
    """Return whether a mention is an organisation, or a noun phrase in the plural."""
    head = mention.head
    return (
        head in ORGANISATION_HEADS
        or head in {"company", "cooperative", "crew", "staff", "people", "committee"}
        or (head.endswith("s") and not head.endswith("ss"))
    )


def is_place(mention: Mention) -> bool:
    """Return whether a mention is a place, judged by its type or its head noun."""
    return mention.type == PLACE or mention.head in PLACE_HEADS


def _describes_person(head: str) -> bool:
    return head in ROLE_NOUNS or head in {"master", "pilot", "skipper", "woman", "man", "person", "executive", "warden", "leader"}


def _opens_with_verb(words: list[str]) -> bool:
    return len(words) == 1 and is_verb(words[0].lower())


def _sentence_of(tokens: Tokens, index: int) -> tuple[int, int]:
    return next(((begin, end) for begin, end in tokens.sentences if begin <= index < end), (0, len(tokens.words)))


def _phrase_end(text: str, start: int, names: Sequence[Mention]) -> int:
    """Return the end of the noun phrase whose words begin at ``start``; ``start`` itself if there is none."""
    end = at = start
    for _ in range(_MAX_PHRASE_WORDS):
        name = next((one for one in names if one.start <= at < one.end), None)
        if name is not None:
            end = name.end
        else:
            word = _WORD.match(text, at)
            if word is None or not _continues(word[0], first=at == start):
                break
            end = word.end()
        gap = re.compile(r"\s+").match(text, end)
        if gap is None:
            break
        at = gap.end()
    return _with_complement(text, end, names) if end > start else start


def _continues(word: str, *, first: bool) -> bool:
    lower = word.lower()
    if lower in FUNCTION_WORDS and lower not in {"first", "second", "third", "last", "next", "former", "own", "one"}:
        return False
    return first or not is_verb(lower)


def _with_complement(text: str, end: int, names: Sequence[Mention]) -> int:
    """Extend a phrase by "of …", "at …" and the like, if a name, a year or a determiner follows."""
    link = _LINK.match(text, end)
    if link is None:
        return end
    name = next((one for one in names if one.start == link.end()), None)
    if name is not None:
        return name.end if name.type != DATE or _YEAR.match(name.text) else end
    if not link[0].rstrip().endswith((" the", " a", " an")):
        return end
    found = _phrase_end(text, link.end(), names)
    return found if found > link.end() else end


def _typed(text: str, start: int, end: int, names: Sequence[Mention]) -> Mention:
    """Return the phrase with the type of the name that heads it; `PHRASE` if a common noun heads it."""
    written = text[start:end]
    if not text[:start].strip() or text[:start].rstrip().endswith((".", "?", "!")):
        # At the beginning of a sentence, "The" is a determiner and not part of a name.
        written = _DETERMINER.sub(lambda match: match[0].lower(), written, count=1) if _DETERMINER.match(written) else written
    inside = [one for one in names if start <= one.start < end and one.type != DATE]
    if len(inside) == 1 and inside[0].end == end and not _LINK.search(text[start : inside[0].start]):
        return Mention(start, end, written, inside[0].type)
    return Mention(start, end, written, PHRASE)
