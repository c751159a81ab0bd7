"""Writes the summaries of nodes, lower levels first, each summary once."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import CommunitySummary, Label, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.stores.catalogue.summaries.trees import SummaryKey, TreeCatalogue
from agentic_rag_backend.themes.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    SummaryEvidence,
    merge_facts,
    telling_facts,
)
from agentic_rag_backend.themes.communities.summaries.extractive_summaries import extractive_summary
from agentic_rag_backend.themes.communities.summaries.keywords import spread
from agentic_rag_backend.themes.communities.summaries.recording import SummaryTally, write_summaries
from agentic_rag_backend.themes.communities.summaries.summary_writing import Summariser, WrittenSummary
from agentic_rag_backend.themes.communities.theme_index import SUMMARISE, RebuildProgress
from agentic_rag_backend.themes.raptor.reading import PassageReader

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


_BATCH = 32


@dataclass(frozen=True, slots=True)
class Signed:
    """Nodes with the keys of their summaries, and these summaries by node."""

    nodes: list[TreeNode]
    summaries: dict[str, CommunitySummary]


def key_of(node: TreeNode) -> SummaryKey:
    """Return the key of a node's summary."""
    return node.fingerprint, node.prompt_version, node.model


@dataclass(frozen=True, slots=True)
class NodeWriter:
    """Finds or writes the summary of each node.

    Args:
        summariser: uses the model if it is generative, otherwise writes extractive summaries.
    """

    trees: TreeCatalogue
    passages: PassageReader
    summariser: Summariser

    async def write_nodes(
        self,
        tenant: TenantId,
        nodes: Sequence[TreeNode],
        known_nodes: Mapping[str, TreeNode],
        *,
        by_model: bool,
        report: RebuildProgress,
    ) -> tuple[Signed, SummaryTally]:
        """Return ``nodes`` with their summaries, which are all recorded.

        Args:
            known_nodes: the other nodes of the tree by id, whose summaries are recorded.
            by_model: whether a model may be called.
        """
        tally = SummaryTally()
        recorded_summaries = await self._on_record(tenant, nodes, by_model=by_model)
        signed = {node.id: _sign_node(node, recorded_summaries[node.id]) for node in nodes if node.id in recorded_summaries}
        tally.reused = len(recorded_summaries)
        missing_nodes = [node for node in nodes if node.id not in recorded_summaries]
        weights = await self._weigh_terms(tenant, missing_nodes, known_nodes)
        tree = {**known_nodes, **signed}
        count_done = 0
        for batch in _batch_nodes(missing_nodes):
            await report(SUMMARISE, count_done, len(missing_nodes))
            evidence_of_batch = await self._gather_evidence(tenant, batch, tree, weights)
            writers = [
                partial(self._write_node, node, node_evidence, by_model=by_model)
                for node, node_evidence in zip(batch, evidence_of_batch, strict=True)
            ]
            save = partial(self.trees.save_summaries, tenant)
            progress = partial(report, SUMMARISE, count_done, len(missing_nodes))
            written_summaries = await write_summaries(writers, save, progress, report.wait_for_model)
            for node, written_summary in zip(batch, written_summaries, strict=True):
                tally.count_summary(node.id, written_summary)
                signed[node.id] = tree[node.id] = _sign_node(node, written_summary.summary)
                recorded_summaries[node.id] = written_summary.summary
            count_done += len(batch)
        await report(SUMMARISE, count_done, len(missing_nodes))
        return Signed([signed[node.id] for node in nodes], recorded_summaries), tally

    async def estimate_usage(
        self, tenant: TenantId, nodes: Sequence[TreeNode], *, by_model: bool, report: RebuildProgress
    ) -> tuple[int, Usage]:
        """Return the number of summaries to write, and the model usage for them, without calling the model.

        The estimate for a higher node uses the expected size of its children's summaries.
        """
        recorded_summaries = await self._on_record(tenant, nodes, by_model=by_model)
        missing_nodes = [node for node in nodes if node.id not in recorded_summaries]
        paid = [node for node in missing_nodes if self._by_model(node, by_model)]
        usage = Usage()
        for start in range(0, len(paid), _BATCH):
            await report("estimate", start, len(paid))
            leaves = [node for node in paid[start : start + _BATCH] if node.level == 1]
            for node_evidence in await self._gather_evidence(tenant, leaves, {}, {}):
                usage += self.summariser.estimate_usage(node_evidence.evidence)
        above = sum(node.level > 1 for node in paid)
        if above:
            of_leaves = max(1, usage.calls)
            usage += Usage(above * (usage.prompt_tokens // of_leaves), above * (usage.completion_tokens // of_leaves), above)
        return len(missing_nodes), usage

    def _by_model(self, node: TreeNode, requested: bool) -> bool:
        # A single passage serves as its own summary.
        return requested and self.summariser.generative and node.size > 1

    async def _on_record(self, tenant: TenantId, nodes: Sequence[TreeNode], *, by_model: bool) -> dict[str, CommunitySummary]:
        """Return the existing summaries: the best writer's, or the extractive one if no model would write."""
        best, plain = self.summariser.keys[0], self.summariser.keys[-1]
        keys_by_node: dict[str, list[SummaryKey]] = {}
        for node in nodes:
            keys = [(node.fingerprint, *best)]
            if not self._by_model(node, by_model):
                keys.append((node.fingerprint, *plain))
            keys_by_node[node.id] = keys
        summaries = await self.trees.summaries(tenant, list({key for keys in keys_by_node.values() for key in keys}))
        return {
            id: next(summaries[key] for key in keys if key in summaries)
            for id, keys in keys_by_node.items()
            if any(k in summaries for k in keys)
        }

    async def _weigh_terms(
        self, tenant: TenantId, new_nodes: Sequence[TreeNode], known_nodes: Mapping[str, TreeNode]
    ) -> dict[str, float]:
        if not new_nodes:
            return {}
        ids = {id for node in (*new_nodes, *known_nodes.values()) if node.level == 1 for id in node.children}
        return await self.passages.term_weights(tenant, sorted(ids))

    async def _write_node(self, node: TreeNode, node_evidence: _Given, *, by_model: bool) -> WrittenSummary:
        written_summary = await self.summariser.instead_of(
            node_evidence.plain, node_evidence.evidence, by_model=self._by_model(node, by_model)
        )
        return replace(written_summary, summary=replace(written_summary.summary, names=node_evidence.names))

    async def _gather_evidence(
        self, tenant: TenantId, nodes: Sequence[TreeNode], tree: Mapping[str, TreeNode], weights: Mapping[str, float]
    ) -> list[_Given]:
        below = [tree[id] for node in nodes if node.level > 1 for id in node.children]
        summaries = await self.trees.summaries(tenant, [key_of(child) for child in below])
        texts = await self.passages.read_texts(tenant, [id for node in nodes if node.level == 1 for id in node.children])

        def gather_one(node: TreeNode) -> _Given:
            if node.level == 1:
                passages = [texts[id] for id in node.children if id in texts]
                evidence, names = leaf_evidence(node, passages, weights), leaf_names(passages)
            else:
                keys = [key_of(tree[id]) for id in node.children]
                child_summaries = [summaries[key] for key in keys if key in summaries]
                evidence, names = inner_evidence(node, child_summaries, weights), inner_names(child_summaries)
            return _Given(evidence, names, extractive_summary(evidence, weights))

        # Reading sentences takes half a second, so let the event loop serve others.
        return await asyncio.to_thread(lambda: [gather_one(node) for node in nodes])


@dataclass(frozen=True, slots=True)
class _Given:
    """The evidence of a summary, the names of the node, and the extractive summary."""

    evidence: SummaryEvidence
    names: tuple[Label, ...]
    plain: CommunitySummary


def _sign_node(node: TreeNode, summary: CommunitySummary) -> TreeNode:
    return replace(node, prompt_version=summary.prompt_version, model=summary.model)


def _batch_nodes(nodes: Sequence[TreeNode]) -> Iterator[list[TreeNode]]:
    """Yield batches, each of one level, the lowest level first."""
    for level in sorted({node.level for node in nodes}):
        here = [node for node in nodes if node.level == level]
        yield from (here[start : start + _BATCH] for start in range(0, len(here), _BATCH))
