"""Rewrites a question for search: a language model does if there is one, otherwise other names of the question's entities."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import NamedSpan, named_spans
from agentic_rag_backend.models.llm.base import list_of, object_of, objects_in, text_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.passages.hydration import shown_graph
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, line_in

MAX_CHARACTERS = 500
"""Characters of a wording by a model."""
TOKENS_PER_REWRITE = 120
NO_NAMES = "no name in the question has another name in the graph: only the question itself was searched"
NO_OTHER_WORDING = "the model wrote no other wording: only the question itself was searched"
_SCHEMA = object_of({"queries": list_of(object_of({"query": text_of(MAX_CHARACTERS)}))})


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Other wordings of a question, best first, without the question.

    ``by`` is ``model`` or ``names``. ``missing`` is the reason why there are none, ``failures`` what failed.
    """

    texts: tuple[str, ...] = ()
    by: Literal["model", "names"] = "names"
    missing: str | None = None
    failures: tuple[str, ...] = field(default=())


class QueryRewriter:
    """Writes other wordings of a question.

    Args:
        graphs: the tenants' graphs, for other names.
        calls: calls of the cheap model.
    """

    def __init__(self, graphs: TenantGraphs, calls: StructuredCalls) -> None:
        self._graphs = graphs
        self._calls = calls

    async def rewrite(self, query: Query, limit: int, spending: Spending) -> Rewrites:
        """Return at most ``limit`` wordings. Without a model, after its failure, or without a call left, they are by names."""
        if self._calls.possible and spending.left:
            model_rewrites = await self._by_model(query.text, limit, spending)
            if not model_rewrites.failures:
                return model_rewrites
            rewrites = await self._by_names(query, limit)
            return Rewrites(rewrites.texts, rewrites.by, rewrites.missing, (*model_rewrites.failures, *rewrites.failures))
        return await self._by_names(query, limit)

    async def _by_model(self, question: str, limit: int, spending: Spending) -> Rewrites:
        values = {"question": fence("question", question), "most": str(limit)}
        spending.begin()
        reply = await self._calls.ask(built_in("query_rewrites"), values, _SCHEMA, max_tokens=TOKENS_PER_REWRITE * limit)
        spending.add_call(reply)
        if reply.parsed is None:
            return Rewrites(by="model", failures=(f"rewriting failed: {reply.failure}",))
        wordings = (line_in(item, "query", limit=MAX_CHARACTERS) for item in objects_in(reply.parsed, "queries"))
        folded = question.casefold()
        texts = tuple(dict.fromkeys(text for text in wordings if text and text.casefold() != folded))[:limit]
        return Rewrites(texts, "model", None if texts else NO_OTHER_WORDING)

    async def _by_names(self, query: Query, limit: int) -> Rewrites:
        graph, failures = await shown_graph(self._graphs, query)
        # In a thread: its cost depends on the names of the tenant.
        texts = tuple(await asyncio.to_thread(rewrites_by_names, graph, query.text, limit)) if graph is not None else ()
        return Rewrites(texts, "names", None if texts or failures else NO_NAMES, failures)


MAX_NAMES = 20
"""Names of a question, and acronyms, that are considered: the longest names and the first acronyms."""
MAX_EXPANSIONS = 2
"""Full names of one acronym that are used, those of the most documents first."""
MAX_READ = 10_000
"""Names of one acronym that are compared by their documents, in alphabetical order."""
_ACRONYM = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,7}(?![\w-])")


def rewrites_by_names(graph: TenantGraph, question: str, limit: int) -> list[str]:
    """Return at most ``limit`` wordings of a question, each with the next other name of every entity that has one.

    A name that several entities share is not replaced. The same graph gives the same wordings, whatever its numbering.
    """
    spans = [span for span in named_spans(graph, question)[:MAX_NAMES] if _exact(question, span)]
    replaced = [(span.start, span.end, _others(graph, span)) for span in spans]
    replaced_spans = [(start, end) for start, end, names in replaced if names]
    acronyms = [
        match
        for match in islice(_ACRONYM.finditer(question), MAX_NAMES)
        if not any(start < match.end() and match.start() < end for start, end in replaced_spans)
    ]
    full_names = {short: _full_names(graph, short) for short in dict.fromkeys(match[0] for match in acronyms)}
    replaced += [(match.start(), match.end(), full_names[match[0]]) for match in acronyms]
    wordings = (_with_names(question, replaced, turn) for turn in range(max((len(names) for *_, names in replaced), default=0)))
    return list(dict.fromkeys(wording for wording in islice(wordings, limit) if wording != question))


def _exact(question: str, span: NamedSpan) -> bool:
    """Return whether the characters of a span are the name and no part of a longer word, and the name is of one entity."""
    return len(span.entities) == 1 and normalise_name(question[span.start : span.end]) == normalise_name(span.name)


def _others(graph: TenantGraph, span: NamedSpan) -> list[str]:
    """Return the other names of a span's entity, then its acronym if documents use it."""
    names = [*graph.names_of(span.entities[0]), *_acronyms(graph, span)]
    by_form = {normalise_name(name): name for name in reversed(names)}
    return [by_form[form] for form in dict.fromkeys(map(normalise_name, names)) if form and form != normalise_name(span.name)]


def _acronyms(graph: TenantGraph, span: NamedSpan) -> Iterator[str]:
    words = span.name.split()
    for chosen in (words, [word for word in words if len(word) > 3]):
        short = "".join(word[0] for word in chosen).upper()
        if len(chosen) > 1 and is_acronym_of(short, words) and _has_known_name(graph, short):
            yield short


def _full_names(graph: TenantGraph, short: str) -> list[str]:
    """Return the names that an acronym may stand for, those of the most documents first."""
    used: list[tuple[int, str, tuple[int, ...]]] = []
    for name, entities in islice(graph.names.expand_abbreviation(short), MAX_READ):
        documents = max((int(graph.document_frequency[number]) for number in entities), default=0)
        if documents:
            used.append((-documents, name, entities))
    return [_display_names(graph, name, entities) for _, name, entities in heapq.nsmallest(MAX_EXPANSIONS, used)]


def _display_names(graph: TenantGraph, form: str, entities: Sequence[int]) -> str:
    """Return a name as documents write it."""
    names = (name for number in entities for name in graph.names_of(number) if normalise_name(name) == form)
    return min(names, default=form)


def _has_known_name(graph: TenantGraph, name: str) -> bool:
    numbers = graph.names.get(normalise_name(name), ())
    return any(graph.document_frequency[number] > 0 for number in numbers)


def _with_names(question: str, replaced: Sequence[tuple[int, int, Sequence[str]]], turn: int) -> str:
    """Return the question with the ``turn``-th other name of each span that has so many."""
    for start, end, names in sorted(replaced, reverse=True):
        if turn < len(names):
            question = question[:start] + names[turn] + question[end:]
    return question
