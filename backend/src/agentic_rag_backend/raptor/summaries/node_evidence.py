"""The evidence of a node's summary: sentences of its passages, or the findings of its children."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from agentic_rag_backend.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    SummaryEvidence,
    merge_facts,
    telling_facts,
)
from agentic_rag_backend.communities.summaries.labels import spread
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Label, Support
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import content_forms

_TELLING = 12
_TERMS = 24
_NAMES = 3
_LONGEST = 300
"""Characters of a passage that is one sentence or none, such as code."""


def leaf_evidence(node: TreeNode, passages: Sequence[VisibleChunk], weights: Mapping[str, float]) -> SummaryEvidence:
    """Return the sentences of the passages: first the most telling ones, then the others in the order of reading."""
    return _make_evidence(node, [fact for passage in passages for fact in _read_facts(passage)], weights)


def inner_evidence(node: TreeNode, children: Sequence[CommunitySummary], weights: Mapping[str, float]) -> SummaryEvidence:
    """Return the findings of the children, and their summaries."""
    facts = [_make_fact(finding.statement, finding.sources) for child in children for finding in child.findings]
    return replace(_make_evidence(node, facts, weights), children=tuple(children))


def leaf_names(passages: Sequence[VisibleChunk]) -> tuple[Label, ...]:
    """Return the titles of the passages' documents, by falling number of passages."""
    supports_by_name: defaultdict[str, list[Support]] = defaultdict(list)
    for passage in passages:
        if title := " ".join(passage.document_title.split()):
            supports_by_name[title].append(_support_of(passage))
    return _rank_labels({title: tuple(supports) for title, supports in supports_by_name.items()})


def inner_names(children: Sequence[CommunitySummary]) -> tuple[Label, ...]:
    """Return the names that most of the children have."""
    supports_by_name: defaultdict[str, list[Support]] = defaultdict(list)
    for child in children:
        for label in child.names:
            supports_by_name[label.text] += label.sources
    return _rank_labels({text: tuple(dict.fromkeys(supports)) for text, supports in supports_by_name.items()})


def _make_evidence(node: TreeNode, facts: Sequence[Fact], weights: Mapping[str, float]) -> SummaryEvidence:
    merged = merge_facts(facts)
    telling = telling_facts(merged, _select_terms(merged, weights), limit=_TELLING, forms_of=attrgetter("entity_ids"))
    telling_statements = {fact.statement for fact in telling}
    return SummaryEvidence(
        fingerprint=node.fingerprint,
        entity_count=0,
        entities=(),
        facts=(*telling, *(fact for fact in merged if fact.statement not in telling_statements)),
        passages=node.size,
    )


def _select_terms(facts: Sequence[Fact], weights: Mapping[str, float]) -> list[CentralEntity]:
    """Return the words that several of the facts contain and few others do; informative facts cover these words."""
    counts = Counter(form for fact in facts for form in fact.entity_ids)
    rarest = max(weights.values(), default=1.0)
    value = {form: (count - 1) * weights.get(form, rarest) for form, count in counts.items() if count > 1}
    best = sorted(value, key=lambda form: (-value[form], form))[:_TERMS]
    total = sum(value[form] for form in best) or 1.0
    return [CentralEntity(form, form, "word", value[form] / total) for form in best]


def _read_facts(passage: VisibleChunk) -> Iterable[Fact]:
    text = passage.chunk.text
    sentences = [" ".join(sentence.text.split()) for sentence in split_sentences(text)]
    statements = [sentence for sentence in sentences if sentence] or [" ".join(text.split())[:_LONGEST]]
    return (_make_fact(sentence, (_support_of(passage),)) for sentence in statements)


def _make_fact(statement: str, sources: tuple[Support, ...]) -> Fact:
    return Fact(statement, sources, content_forms(statement))


def _support_of(passage: VisibleChunk) -> Support:
    return Support(passage.chunk.document_id, passage.chunk.version, passage.chunk.id)


def _rank_labels(supports_by_text: Mapping[str, tuple[Support, ...]]) -> tuple[Label, ...]:
    order = sorted(supports_by_text, key=lambda text: (-len(supports_by_text[text]), text))
    return tuple(Label(text, spread(supports_by_text[text])) for text in order[:_NAMES])
