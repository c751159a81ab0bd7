"""Choose the evidence of a summary: the central entities of a community and its most informative sentences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.graph import CommunitySummary, Support
from agentic_rag_backend.language.independence import rate_independence, reads_as_prose
from agentic_rag_backend.language.noun_phrases import noun_phrases
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.themes.communities.detection.hierarchy import EntityName

_COMFORTABLE_CHARACTERS = (40, 260)
_FRAGMENT = 0.02
_FRESH_DOCUMENT = 1.5
"""Factor on the value of a sentence of a document that no chosen sentence comes from."""
_FORMULA = 3
"""Documents with the same sentence, from which on it is a formula, such as the greeting of a series."""
_SAME_SHARE = 0.6
"""Share of words in common above which two sentences count as repetitions."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, verbatim, with the passages that hold it and the members it names."""

    statement: str
    sources: tuple[Support, ...]
    entity_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class PassagePhrases:
    """The spellings of the noun phrases of a passage, by their forms."""

    source: Support
    spellings: Mapping[tuple[str, ...], str]

    @classmethod
    def from_text(cls, source: Support, text: str) -> PassagePhrases:
        """Read the phrases of ``text``; a phrase that occurs twice has its first spelling."""
        spellings: dict[tuple[str, ...], str] = {}
        for phrase in noun_phrases(text):
            spellings.setdefault(phrase.forms, " ".join(text[phrase.start : phrase.end].split()))
        return cls(source, spellings)


@dataclass(frozen=True, slots=True)
class CentralEntity:
    """A member and its share in [0, 1] of the weight of all relationships inside the community; without any, of all mentions.

    With prominence, the share is the geometric mean of that share and of the member's prominence relative to the highest one.

    The first of ``passages`` contains its name, and the community's fingerprint covers that passage; the others mention it.
    """

    id: str
    name: str
    type: str
    share: float
    passages: tuple[Support, ...] = ()


@dataclass(frozen=True, slots=True)
class ThemeDocument:
    """A document that a community is about, with its share of the community's mentions; not ``whole``: about a part of it.

    ``sources`` are its first passages, and ``opening`` the sentence of them that says best what the document is about, if any.
    """

    title: str
    share: float
    sources: tuple[Support, ...]
    opening: Fact | None = None
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryEvidence:
    """The input of a summary.

    ``entities`` are the most central members with names that occur in a passage, ``facts`` the sentences, both best first;
    ``further`` are other sentences of the community and ``texts`` the phrases of passages that state facts; only keywords and the
    introduction read them. ``documents`` are those that the community is about, the largest share first.
    ``children`` are the summaries of the next finer level; ``passages`` is the number of passages behind the relationships
    inside.
    """

    fingerprint: str
    entity_count: int
    entities: tuple[CentralEntity, ...]
    facts: tuple[Fact, ...]
    passages: int
    further: tuple[Fact, ...] = ()
    texts: tuple[PassagePhrases, ...] = ()
    documents: tuple[ThemeDocument, ...] = ()
    children: tuple[CommunitySummary, ...] = ()

    @property
    def about_documents(self) -> tuple[ThemeDocument, ...]:
        """The documents that the community is about as a whole."""
        return tuple(document for document in self.documents if document.whole)


def central_entities(
    members: Sequence[str],
    names: Mapping[str, EntityName],
    weights: Iterable[tuple[str, str, float]],
    *,
    limit: int,
    prominence: Mapping[str, float] | None = None,
) -> tuple[CentralEntity, ...]:
    """Return the members by falling weighted degree inside the community (PageRank of an undirected graph).

    Args:
        prominence: how much the documents say of each member; the order is that of the geometric mean of both.
    """
    parts: dict[str, list[float]] = defaultdict(list)
    for source, target, weight in weights:
        parts[source].append(weight)
        parts[target].append(weight)
    # Exact sums do not depend on the order of ids, which are random.
    degree = {member: math.fsum(weights) for member, weights in parts.items()}
    total = math.fsum(degree.values()) or 1.0
    share = {member: degree.get(member, 0.0) / total for member in members}
    if prominence is not None:
        highest = max(prominence.values(), default=1.0) or 1.0
        share = {member: math.sqrt(value * prominence[member] / highest) for member, value in share.items()}
    ranked = sorted(members, key=lambda member: (-share[member], names[member].name, member))[:limit]
    return tuple(CentralEntity(member, names[member].name, names[member].type, share[member]) for member in ranked)


def merge_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Merge facts of one wording: a sentence that states several relationships, or occurs in several passages."""
    by_statement: dict[str, list[Fact]] = {}
    for fact in facts:
        by_statement.setdefault(" ".join(fact.statement.split()), []).append(fact)
    return [
        replace(
            first_fact,
            sources=tuple(dict.fromkeys(source for fact in (first_fact, *duplicates) for source in fact.sources)),
            entity_ids=first_fact.entity_ids.union(*(fact.entity_ids for fact in duplicates)),
        )
        if duplicates
        else first_fact
        for first_fact, *duplicates in by_statement.values()
    ]


def _statement_forms(fact: Fact) -> frozenset[str]:
    return content_forms(fact.statement)


def telling_facts(
    facts: Iterable[Fact],
    entities: Sequence[CentralEntity],
    *,
    limit: int,
    forms_of: Callable[[Fact], frozenset[str]] = _statement_forms,
) -> tuple[Fact, ...]:
    """Return up to ``limit`` facts, best first: each names central entities that the earlier facts omit.

    Greedy maximum coverage: an entity that is covered already counts a quarter. Sentences that depend on context ("He …"), are
    cut off, very short or very long count less, sentences of further documents more, and near repetitions are left out.

    Args:
        forms_of: the words of a fact that carry meaning, if they are known already.
    """
    share = {entity.id: entity.share for entity in entities}
    remaining = [
        _Candidate(
            fact,
            forms_of(fact),
            _rate_readability(fact),
            tuple((entity, share[entity]) for entity in sorted(fact.entity_ids & share.keys())),
        )
        for fact in sorted(merge_facts(facts), key=lambda fact: fact.statement)
    ]
    covered: set[str] = set()
    documents: set[str] = set()
    chosen: list[Fact] = []

    def gain_of(candidate: _Candidate) -> float:
        fresh = math.fsum(part * (0.25 if entity in covered else 1.0) for entity, part in candidate.shares)
        heard = all(source.document_id in documents for source in candidate.fact.sources)
        return (fresh + 1e-6) * candidate.readability * (1.0 if heard else _FRESH_DOCUMENT)

    while remaining and len(chosen) < limit:
        best = max(remaining, key=gain_of)
        chosen.append(best.fact)
        covered |= best.fact.entity_ids
        documents.update(source.document_id for source in best.fact.sources)
        remaining = [
            candidate for candidate in remaining if candidate is not best and not _is_similar(candidate.forms, best.forms)
        ]
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A fact with values that are needed repeatedly: its words, its readability, and its shares of central entities."""

    fact: Fact
    forms: frozenset[str]
    readability: float
    shares: tuple[tuple[str, float], ...]


def _rate_readability(fact: Fact) -> float:
    statement = fact.statement
    low, high = _COMFORTABLE_CHARACTERS
    length = len(statement)
    value = min(1.0, length / low) * min(1.0, high / max(1, length))
    if len({source.document_id for source in fact.sources}) >= _FORMULA:
        value *= _FRAGMENT
    if not reads_as_prose(statement):
        value *= _FRAGMENT
    # A heading, a table row or a list of names is useful only without any sentence.
    return value * max(_FRAGMENT, rate_independence(statement))


def _is_similar(forms: frozenset[str], other_forms: frozenset[str]) -> bool:
    if not forms or not other_forms:
        return True
    common = len(forms & other_forms)
    return common / (len(forms) + len(other_forms) - common) > _SAME_SHARE
