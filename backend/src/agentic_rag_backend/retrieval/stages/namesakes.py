"""Questions about a name that several entities have: the question's other words choose one, or each is among the results.

Every strategy is wrapped. If the question means one bearer ("the nurse Rowan Teller"), documents about the others are left out.
`described_names` leaves out passages about others. If the question does not say which, the first results have a passage of each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.filters import Comparison, narrow_filter
from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.query import EntityRef, Hit, KnownBearer, Query, Retrieval, SharedName
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.visible.entity_reader import BearerReader, NameBearer, namesakes
from agentic_rag_backend.language.words import words
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.caching import forbid_reuse
from agentic_rag_backend.retrieval.stages.described_names import (
    SAMPLE,
    DescribedName,
    described_names,
    keep_described_bearers,
    select_meant_bearers,
)
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

FIRST = 5
"""Results among which each bearer has a passage. A constant, so that a smaller limit returns the beginning of the same list."""
MAX_SHOWN = 4
"""Bearers that get a passage among the first results: those with most mentions."""
MAX_WANTED = 100
_MAX_NAMES = 20
"""Names of a question, and names of results, whose bearers are read. Others are not told apart."""


@dataclass(frozen=True, slots=True)
class AskedName:
    """A name of the question, its bearers, and the numbers of those that the question may mean."""

    name: str
    bearers: tuple[NameBearer, ...]
    meant: frozenset[int]

    @property
    def known(self) -> tuple[NameBearer, ...]:
        """The bearers of whom documents say who they are."""
        bearers = (bearer for bearer in self.bearers if bearer.known)
        # Ids differ between tenants with the same documents, so they decide last.
        return tuple(sorted(bearers, key=lambda bearer: (-len(bearer.documents), bearer.description.written, bearer.entity.id)))

    @property
    def decided(self) -> bool:
        """Whether the question means some of the known bearers only."""
        return any(bearer.number not in self.meant for bearer in self.known)

    @property
    def others(self) -> tuple[NameBearer, ...]:
        """The known bearers that the question does not mean."""
        return tuple(bearer for bearer in self.known if bearer.number not in self.meant)

    @property
    def own_documents(self) -> frozenset[str]:
        """The documents about the known bearers that the question means."""
        return frozenset[str]().union(*(bearer.documents for bearer in self.known if bearer.number in self.meant))

    @property
    def others_documents(self) -> frozenset[str]:
        """The documents about the others only. Documents that may be about any bearer are not among them."""
        own_documents = frozenset[str]().union(*(bearer.documents for bearer in self.bearers if bearer not in self.others))
        return frozenset[str]().union(*(bearer.documents for bearer in self.others)) - own_documents

    @property
    def found(self) -> SharedName:
        """The form of results."""
        described = ((bearer, bearer.description.written) for bearer in self.known)
        bearers = (KnownBearer(replace(bearer.entity, description=text), bearer.documents) for bearer, text in described)
        return SharedName(self.bearers[0].entity.name, self.decided, tuple(bearers))

    @property
    def details(self) -> dict[str, Any]:
        """The form of the trace."""
        bearers = [
            {"id": bearer.entity.id, "description": bearer.description.written, "meant": bearer not in self.others}
            for bearer in self.bearers
        ]
        return {"name": self.bearers[0].entity.name, "decided": self.decided, "bearers": bearers}


class NamesakeRetriever:
    """Retriever that tells apart the bearers of shared names, in the question and in the results of another one."""

    def __init__(self, ranked: Retriever, graphs: TenantGraphs, bearers: BearerReader) -> None:
        self._ranked = ranked
        self._graphs = graphs
        self._bearers = bearers

    async def retrieve(self, query: Query) -> Retrieval:
        """See `Retriever`. ``trace.details.same_name`` has the shared names of the question, if there are any."""
        started = time.perf_counter()
        try:
            graph = await self._graphs.graph(query.tenant)
            names = await self._find_names(query, graph)
        except StoreUnavailable as error:
            # The strategy reports the store, or does without it.
            forbid_reuse()
            _log.warning("namesakes_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return await self._ranked.retrieve(query)
        # A long question takes a tenth of a second.
        described = await asyncio.to_thread(described_names, query.text)
        query = narrow_query(query, names)
        retrieval = await self._ranked.retrieve(replace(query, limit=_choose_limit(query, names, described)))
        own_documents = {tuple(word.form for word in words(name.name)): name.own_documents for name in names if name.decided}
        retrieval = keep_described_bearers(retrieval, described, own_documents)
        retrieval = await self._add_bearers(query, names, retrieval)
        retrieval = await self._describe_entities(query, graph, names, replace(retrieval, hits=retrieval.hits[: query.limit]))
        times = {**retrieval.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        details = {**retrieval.trace.details, **({"same_name": [name.details for name in names]} if names else {})}
        shared = tuple(name.found for name in names)
        return replace(retrieval, shared_names=shared, trace=replace(retrieval.trace, processing_time_ms=times, details=details))

    async def _find_names(self, query: Query, graph: TenantGraph) -> tuple[AskedName, ...]:
        """Return the names of the question with at least two known bearers."""
        linked = link_question(graph, query.text)
        called = dict.fromkeys(normalise_name(graph.entity(number).name) for number in linked)
        shared = {name: numbers for name in called if len(numbers := namesakes(graph, name)) > 1}
        bearers_by_name = await self._bearers.read(
            query.tenant_id, graph, {name: shared[name] for name in sorted(list(shared)[:_MAX_NAMES])}
        )
        several = {name: bearers for name, bearers in bearers_by_name.items() if sum(bearer.known for bearer in bearers) > 1}
        return tuple(AskedName(name, bearers, _select_meant_bearers(query, name, bearers)) for name, bearers in several.items())

    async def _add_bearers(self, query: Query, names: Sequence[AskedName], retrieval: Retrieval) -> Retrieval:
        """Return the results with a passage of each bearer that the question may mean among the first."""
        if not retrieval.hits or retrieval.usage.calls:
            # Only themes, or a model would be paid again.
            return retrieval
        open_ = [bearer for name in names if not name.decided for bearer in name.known[:MAX_SHOWN]]
        present = {bearer.number: hit for bearer in open_ for hit in reversed(retrieval.hits[:FIRST]) if _about(hit, bearer)}
        absent = [bearer for bearer in open_ if bearer.number not in present][: FIRST - 1]
        # One after the other, so that a question with many shared names takes no more turns of the loop than others.
        retrievals = [await self._ranked.retrieve(_of_bearer(query, bearer)) for bearer in absent]
        extra = [
            hit for bearer, retrieval in zip(absent, retrievals, strict=True) for hit in _naming_first(retrieval.hits, bearer)[:1]
        ]
        return replace(retrieval, hits=insert_hits(retrieval.hits, extra, {hit.id for hit in present.values()}))

    async def _describe_entities(
        self, query: Query, graph: TenantGraph, names: Sequence[AskedName], retrieval: Retrieval
    ) -> Retrieval:
        """Return the results with the descriptions of entities that share their name."""
        bearers_by_id = {bearer.entity.id: bearer for name in names for bearer in name.bearers}
        refs = [ref for hit in retrieval.hits for ref in hit.entities]
        refs += [end for fact in retrieval.facts for end in (fact.source, fact.target)]
        called = dict.fromkeys(
            normalise_name(ref.name) for ref in {ref.id: ref for ref in refs}.values() if ref.id not in bearers_by_id
        )
        shared = {name: numbers for name in called if len(numbers := namesakes(graph, name)) > 1}
        try:
            bearers_by_name = await self._bearers.read(query.tenant_id, graph, dict(list(shared.items())[:_MAX_NAMES]))
        except StoreUnavailable as error:
            forbid_reuse()
            _log.warning("descriptions_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            bearers_by_name = {}
        bearers_by_id |= {bearer.entity.id: bearer for bearers in bearers_by_name.values() for bearer in bearers}
        return (
            _with_descriptions(retrieval, {id: bearer.description.written for id, bearer in bearers_by_id.items()})
            if bearers_by_id
            else retrieval
        )


def narrow_query(query: Query, names: Iterable[AskedName]) -> Query:
    """Return the query without the documents about bearers that it does not mean."""
    excluded = [bearer for name in names if name.decided for bearer in name.bearers if not bearer.known or bearer in name.others]
    documents = sorted({id for name in names for id in name.others_documents})
    if documents:
        query = replace(query, filters=narrow_filter(query.filters, Comparison("document_id", "nin", tuple(documents))))
    return replace(query, not_meant=frozenset(bearer.entity.id for bearer in excluded))


def _choose_limit(query: Query, names: Sequence[AskedName], described: Sequence[DescribedName]) -> int:
    """Return the number of results to ask for, some of which may not fit or may make room."""
    if described:
        return min(MAX_WANTED, max(SAMPLE, 2 * query.limit + FIRST))
    return max(query.limit, FIRST) if any(not name.decided for name in names) else query.limit


def insert_hits(hits: Sequence[Hit], extra: Sequence[Hit], needed: Set[str] = frozenset()) -> tuple[Hit, ...]:
    """Return hits with ``extra`` ones among the first `FIRST`, none of them twice.

    The last of the first hits make room, except the ``needed`` ones. Scores stay in order: a hit that comes before others has at
    least their score.
    """
    if not extra:
        return tuple(hits)
    ids = {hit.id for hit in extra}
    hits_left = [hit for hit in hits if hit.id not in ids]
    head = hits_left[:FIRST]
    for hit in [hit for hit in reversed(head) if hit.id not in needed][: max(0, len(head) + len(extra) - FIRST)]:
        head.remove(hit)
    chosen = {hit.id for hit in head}
    followers = [hit for hit in hits_left if hit.id not in chosen]
    least, highest = (followers[0].score if followers else 0.0), (hits[0].score if hits else 1.0)
    leading_hits = [replace(hit, score=min(highest, max(least, hit.score))) for hit in (*head, *extra)]
    return (*sorted(leading_hits, key=lambda hit: -hit.score), *followers)


def _select_meant_bearers(query: Query, name: str, bearers: Sequence[NameBearer]) -> frozenset[int]:
    """Return the bearers that a query may mean. Those that nobody knows may always be meant."""
    requested = {str(entity) for entity in query.options.get("entities", ())}
    if chosen := {bearer.number for bearer in bearers if bearer.entity.id in requested}:
        return frozenset(chosen)
    forms = tuple(word.form for word in words(name))
    descriptions = {bearer.number: bearer.description for bearer in bearers if bearer.known}
    meant = select_meant_bearers(query.text, forms, descriptions)
    return frozenset(meant) | {bearer.number for bearer in bearers if not bearer.known}


def _about(hit: Hit, bearer: NameBearer) -> bool:
    return any(entity.id == bearer.entity.id for entity in hit.entities) or hit.visible.chunk.document_id in bearer.documents


def _naming_first(hits: Sequence[Hit], bearer: NameBearer) -> list[Hit]:
    """Return hits, the ones that mention the bearer first."""
    return sorted(hits, key=lambda hit: not any(entity.id == bearer.entity.id for entity in hit.entities))


def _of_bearer(query: Query, bearer: NameBearer) -> Query:
    documents = Comparison("document_id", "in", tuple(sorted(bearer.documents)))
    return replace(query, filters=narrow_filter(query.filters, documents), limit=FIRST)


def _with_descriptions(retrieval: Retrieval, descriptions: Mapping[str, str]) -> Retrieval:
    def told(ref: EntityRef) -> EntityRef:
        return replace(ref, description=descriptions[ref.id]) if descriptions.get(ref.id) else ref

    hits = tuple(replace(hit, entities=tuple(map(told, hit.entities))) for hit in retrieval.hits)
    facts = tuple(replace(fact, source=told(fact.source), target=told(fact.target)) for fact in retrieval.facts)
    return replace(retrieval, hits=hits, facts=facts)
