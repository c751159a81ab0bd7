"""Relationships between the names of one sentence, with the words between them as the relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS, word_set
from agentic_rag_backend.knowledge.extraction.names.extension import is_adjectival
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens
from agentic_rag_backend.knowledge.extraction.types.entity_types import DATE, EVENT, ORGANISATION, PLACE, WORK
from agentic_rag_backend.knowledge.relation_types import NEGATION
from agentic_rag_backend.language.values import NUMBER_WORDS
from agentic_rag_backend.language.vocabulary.word_classes import AMBIGUOUS, FINITE, VERBS
from agentic_rag_backend.language.words import comparable

MAX_PER_SENTENCE = 8
MAX_FACT_CHARACTERS = 2000
RELATED = "related_to"
_MAX_WORDS = 5
_MAX_RELATION_WORDS = 3
_IN_A_LIST = 0.9

_PHRASES = """
founded_by: founded by, established by, co-founded by, started by
created_by: created by, invented by, developed by, built by, made by
written_by: written by, authored by, novel by, book by, play by, poem by
directed_by: directed by, film by
produced_by: produced by
composed_by: composed by
performed_by: performed by, recorded by, sung by, song by, album by, single by
published_by: published by
released_by: released by, distributed by
designed_by: designed by
owned_by: owned by, subsidiary of, division of
acquired_by: acquired by, bought by, purchased by
operated_by: operated by, run by, managed by
led_by: led by, headed by, chaired by
succeeded_by: succeeded by, replaced by, followed by
stars: starring, stars
born_in: born in, born at, native of
born_on: born, born on
died_in: died in, died at
died_on: died, died on
located_in: located in, situated in, lies in, located on, located at, city in, town in, village in, municipality in, district in
based_in: based in, headquartered in, headquarters in
capital_of: capital of
part_of: part of, belongs to
member_of: member of, members of, joined
child_of: son of, daughter of, child of
parent_of: father of, mother of
sibling_of: brother of, sister of
married_to: married, married to, wife of, husband of
educated_at: graduated from, studied at, educated at, attended, student at
works_at: works at, worked at, professor at, taught at, teaches at
works_for: works for, worked for, employed by
founded: founded, co-founded, established, founder of
wrote: wrote, author of, writer of
directed: directed, director of
produced: produced, producer of
composed: composed, composer of
published: published
developed: developed, created, built
designed: designed
invented: invented
discovered: discovered
acquired: acquired, bought, purchased
plays_for: played for, plays for
signed_with: signed with, signed to
released_on: released on
released_in: released in
named_after: named after, named for
borders: borders, bordered by
flows_into: flows into, empties into
tributary_of: tributary of
based_on: based on, adapted from
chief_executive_of: chief executive of, ceo of, chief executive officer of
president_of: president of
mayor_of: mayor of
governor_of: governor of
chairs: chairman of, chairwoman of, chair of, chairs
leads: head of, leader of, minister of, leads, led
won: won, winner of, awarded
known_as: known as, called
founded_in: founded in, established in
"""

_PATTERNS = {
    tuple(phrase.split()): line.split(":")[0]
    for line in _PHRASES.strip().splitlines()
    for phrase in line.split(":")[1].strip().split(", ")
}
_OFFICES = ("president of", "mayor of", "governor of", "chairman of", "chairwoman of", "chair of", "ceo of", "chief executive of")
_PATTERNS |= {
    (word, *office.split()): "leads"
    for word in ("vice", "deputy", "former", "acting", "assistant", "honorary", "interim", "past")
    for office in _OFFICES
}
"""A deputy or a former mayor is not the one mayor."""
_LONGEST_PATTERN = max(map(len, _PATTERNS))
_DROPPED = word_set(
    """
    the a an also then later first his her its their was is were are been has had have be being and both which that who
    """
)
_DENIALS = frozenset({"not", "never", "denied", "denies"})
_DENIAL_REACH = 3
_OFFICES_OF = frozenset(_PATTERNS[tuple(office.split())] for office in _OFFICES)
"""Relations that only the name directly after the phrase has: "the chair of the board, Ann, met Bob" says nothing of Bob."""
_OTHER_PHRASE = (FUNCTION_WORDS - _DROPPED - {"of"}) | {",", "(", ")", '"'}
"""Words between a phrase and a name that belong to something else: "stages built in three days by crews from Carrow"."""
_AUXILIARIES = frozenset(["was", "is", "were", "are", "has", "had"])
_PREPOSITIONS = frozenset(["on", "in", "of", "at", "for", "from", "with", "by", "near", "to"])
_STOPS = frozenset({".", ";", ":", "|", "="})
_CLAUSE_ENDS = frozenset({";", "|"})
"""Marks after which the words have another subject than the first name of the sentence."""
_SUBORDINATORS = word_set("that because when where while if whether although as whose")
_CONJUNCTIONS = frozenset(["and", "or", "but"])
_LIST_ENDS = frozenset([",", "and", "or", "&"])
_POSSESSIVES = frozenset(["'s", "’s", "'", "’"])
_OPENING_MARKS = frozenset(['"', "“", "(", "the"])
_ARTICLES = frozenset(["a", "an"])
_POSSESSIVE_PRONOUNS = frozenset(["his", "her", "its", "their"])
_TIME_PREPOSITIONS = _PREPOSITIONS | {"since", "until", "till", "after", "before", "during"}
_DEPARTMENTS = word_set(
    "art artistic creative finance financial human managing marketing medical music operations sales technical"
)
_NAMED = _DROPPED | {",", "(", "or", "but", "better", "once", "simply"}
_SAYING = frozenset(["said", "says", "say", "replied", "replies", "asked", "told", "added"])
_LIST_MARKS = word_set(", and or the & ; as well")


@dataclass(frozen=True, slots=True)
class Node:
    """A name as one end of a relationship: tokens ``first`` up to ``last``, or the words that stand for it."""

    first: int
    last: int
    name: str
    key: str
    type: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A relationship between two names; ``confidence`` is 1 for a known phrase, less for other words between them."""

    source: Node
    target: Node
    relation: str
    confidence: float


def relate(tokens: Tokens, nodes: Sequence[Node]) -> list[Pair]:
    """Return at most `MAX_PER_SENTENCE` pairs: the first name with each other one, and neighbours that a preposition ties.

    Dates are targets only. The surest pairs are kept, in the sentence's order.
    """
    begin = next((position for position, node in enumerate(nodes) if node.type != DATE), len(nodes))
    pairs: dict[tuple[str, str], Pair] = {}
    previous: Pair | None = None
    for position in range(begin + 1, len(nodes)):
        source, neighbour, target = nodes[begin], nodes[position - 1], nodes[position]
        previous = _with_subject(tokens, source, neighbour, target, previous)
        candidates: list[Pair | None] = [previous]
        if neighbour is not source and neighbour.type != DATE:
            candidates.append(_relate_neighbours(tokens, neighbour, target, across_comma=False))
        for pair in candidates:
            if pair is not None and pair.source.key != pair.target.key:
                pairs.setdefault((pair.source.key, pair.target.key), pair)
    ranked = sorted(enumerate(pairs.values()), key=lambda item: (-item[1].confidence, item[0]))[:MAX_PER_SENTENCE]
    return [pair for _, pair in sorted(ranked, key=lambda item: item[0])]


def _with_subject(tokens: Tokens, source: Node, neighbour: Node, target: Node, previous: Pair | None) -> Pair:
    """Read the relationship of the sentence's first name to ``target`` from the words just before ``target``."""
    words = _inner_words(tokens, neighbour, target)
    if previous is not None and words and len(words) <= 3 and _LIST_MARKS.issuperset(words):
        # In "founded Acme, Borealis and Cobalt" every item hangs on the verb before the first.
        if (previous.target.type == DATE) != (target.type == DATE):
            return Pair(source, target, RELATED, 0.5)
        return Pair(source, target, previous.relation, min(previous.confidence, _IN_A_LIST))
    pattern = _find_phrase(words)
    if pattern is not None and _has_another_subject(tokens, source, neighbour, words, pattern[1]):
        return Pair(source, target, RELATED, 0.5)
    if pattern is not None:
        relation, at = pattern
        if target.type == ORGANISATION and relation == "directed":
            # A finance director works for the bank.
            relation = "works_for" if words[at:][:1] == ["director"] and at and words[at - 1] in _DEPARTMENTS else "leads"
        if target.type == DATE and not relation.endswith(("_on", "_in")):
            relation = RELATED
        return Pair(source, target, f"{NEGATION}{relation}" if _has_denial(words[:at]) else relation, 1.0)
    if previous is not None and previous.target is neighbour and is_adjectival(neighbour.name) and _is_noun_phrase(words):
        # "published by the American company Prometheus": the relationship of the adjective belongs to the noun.
        return Pair(source, target, previous.relation, min(previous.confidence, _IN_A_LIST))
    if neighbour is source:
        return _relate_neighbours(tokens, source, target) or Pair(source, target, RELATED, 0.5)
    return Pair(source, target, RELATED, 0.5)


def _has_another_subject(tokens: Tokens, source: Node, neighbour: Node, words: Sequence[str], at: int) -> bool:
    """Return whether a phrase, the words from ``at`` between ``neighbour`` and a target, has another subject than ``source``.

    The subject of "Ann's wife died in 2009" is the wife, that of "Ann replied that the bank was founded in 1921" the bank, and
    that of "Ann saw the Narrows, the tightest part of the Sound" the Narrows.
    """
    if tokens.words[source.last] in _POSSESSIVES or tokens.words[source.first].lower() in _POSSESSIVE_PRONOUNS:
        return True
    if words[at:][:1] == ["called"] and not _NAMED.issuperset(words[:at]):
        # "leaves a manuscript called The Quiet Pots"
        return True
    if at and words[at - 1] not in _CLAUSE_ENDS and not _CLAUSE_ENDS.isdisjoint(words[:at]):
        return True
    if neighbour is source or neighbour.type == DATE:
        return False
    before = tokens.words[max(0, neighbour.first - 2) : neighbour.first]
    before = before[:1] if before[-1:] == ["the"] else before[-1:]
    if before and before[0].lower() in _SUBORDINATORS and words[0] in _AUXILIARIES:
        return True
    return _is_apposition(words)


def _is_apposition(words: Sequence[str]) -> bool:
    """Return whether the words after a name describe it: ", the tightest part of"."""
    return words[:1] == [","] and words[1:2] in (["the"], ["a"], ["an"]) and _AUXILIARIES.isdisjoint(words)


def _is_noun_phrase(words: list[str]) -> bool:
    return len(words) <= 3 and all(word.isalpha() and word not in FUNCTION_WORDS for word in words)


def _relate_neighbours(tokens: Tokens, source: Node, target: Node, *, across_comma: bool = True) -> Pair | None:
    """Return the relationship of two neighbouring names that the few words between them express, if they do.

    Past a comma a verb mostly belongs to the sentence's subject: ``across_comma`` allows it.
    """
    words = _inner_words(tokens, source, target)
    if source.type == target.type == PLACE and words in ([","], ["in"], ["of"], ["in", "the"]):
        return Pair(source, target, "located_in", 0.8)
    content = [word for word in words if word not in _DROPPED and word[0].isalnum()]
    if not content or len(content) > _MAX_WORDS or not _STOPS.isdisjoint(words):
        return None
    if not across_comma and _is_apposition(words) and (pattern := _find_phrase(words)) is not None:
        return Pair(source, target, pattern[0], 0.8)
    possessive = not _POSSESSIVE_PRONOUNS.isdisjoint(words[:2])
    if not across_comma and ("," in words or (words[0] in _CONJUNCTIONS and not possessive)):
        return None
    if any(tokens.shapes[index] not in (Shape.LOWER, Shape.PUNCTUATION) for index in range(source.last, target.first)):
        return None
    if content[0] in ("not", "never") and len(content) > 1:
        content = content[1:]
        return Pair(source, target, f"{NEGATION}{'_'.join(map(_to_slug, content))}", 0.8)
    relation = "_".join(map(_to_slug, content)) if len(content) <= _MAX_RELATION_WORDS else RELATED
    begin = source.first - 1 - (source.first > 1 and tokens.words[source.first - 1].lower() == "the")
    if begin > 0 and words[0] in _AUXILIARIES and tokens.words[begin].lower() in _PREPOSITIONS:
        # "The house on Fish Street was sold in 2011" says nothing of the street.
        relation = RELATED
    possessive = possessive or words[0] in _POSSESSIVES or tokens.words[source.first].lower() in _POSSESSIVE_PRONOUNS
    dated = target.type == DATE and (possessive or not (source.type in (WORK, EVENT) or any(map(_is_verb, content))))
    if dated or not _is_about_both(words, possessive=possessive):
        # In "She came to the hospital in 2007" and "His book came out in 2007", the verb has the date.
        relation = RELATED
    return Pair(source, target, relation, 0.8)


def _is_about_both(words: Sequence[str], *, possessive: bool) -> bool:
    """Return whether the words between two names relate them: not "Wren (here), Teller", "bridge, Carrow", "four on", "said".

    Commas enclose what describes the first name, and one after "a band" or "Ann's wife" opens the name of the band or the wife.
    """
    if not NUMBER_WORDS.keys().isdisjoint(words) or (not _SAYING.isdisjoint(words) and "by" not in words):
        return False
    if possessive or words[0] == "," or words[0] in _SUBORDINATORS:
        return True
    last = next((word for word in reversed(words) if word not in _OPENING_MARKS), "")
    closed = words[0] in _CONJUNCTIONS or last == "that" or (last in _LIST_ENDS and _ARTICLES.isdisjoint(words))
    return not (closed or "," in words[1:-1] or _begins_with_noun(words))


def _begins_with_noun(words: Sequence[str]) -> bool:
    """Return whether the word after a name is a noun that the name describes: "Scarrow notebooks in", unlike "Wren walked to"."""
    first = words[0]
    return len(words) > 1 and first.isalpha() and first not in _DROPPED | _TIME_PREPOSITIONS and not _is_verb(first)


def _is_verb(word: str) -> bool:
    if word in _TIME_PREPOSITIONS:
        return False
    return word.endswith(("ed", "ing")) or comparable(word) in VERBS | FINITE | AMBIGUOUS


def _inner_words(tokens: Tokens, node: Node, right: Node) -> list[str]:
    """Return the words between two names in lower case, without adverbs ("published monthly by") and marks of emphasis."""
    words = (tokens.words[index].lower() for index in range(node.last, right.first))
    return [word for word in words if (len(word) < 5 or not word.endswith("ly")) and word != "*"]


def _find_phrase(words: list[str]) -> tuple[str, int] | None:
    """Return the relation of the last known phrase among ``words``, the longer of two that end at one word, and its place."""
    for end in range(len(words), 0, -1):
        for length in range(min(_LONGEST_PATTERN, end), 0, -1):
            relation = _PATTERNS.get(tuple(words[end - length : end]))
            after = words[end:]
            if relation is not None and (
                _DROPPED.issuperset(after) if relation in _OFFICES_OF else _OTHER_PHRASE.isdisjoint(after)
            ):
                return relation, end - length
    return None


def _has_denial(words: list[str]) -> bool:
    """Return whether one of the last words before a phrase denies it: "was not founded by", "denied having founded"."""
    last_words = words[-_DENIAL_REACH:]
    if any(word == "not" and following in ("only", "just", "merely") for word, following in pairwise(last_words)):
        return False
    return any(word in _DENIALS or word.endswith(("n't", "n’t")) for word in last_words)


def _to_slug(word: str) -> str:
    return "".join(character if character.isalnum() else "_" for character in word)[:40]
