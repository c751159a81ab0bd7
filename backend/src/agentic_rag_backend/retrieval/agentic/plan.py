"""Plans of searches, by the cheap model or by rules. Invalid parts of a model's plan are dropped with a note."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentic_rag_backend.domain.filters import LINK_FIELDS, And, Filter
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.models.llm.base import TEXT, list_of, object_of, text_of
from agentic_rag_backend.prompts import Prompt, built_in, fence
from agentic_rag_backend.retrieval.agentic.constraints import NegativeConstraint, written_by_model
from agentic_rag_backend.retrieval.agentic.stopping import Meter
from agentic_rag_backend.retrieval.options.filters import parse_filter
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, StructuredReply, line_in, objects_in

MAX_QUERIES = 4
"""Queries of one round."""
MAX_QUERY = 500
MAX_PASSAGE = 1200
MAX_INTENT = 200
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?\Z")
_MAX_CONSTRAINTS = 10
_WORD = text_of(MAX_QUERY)
_CONSTRAINT = object_of({"kind": _WORD, "name": _WORD, "value": _WORD})
NEGATIVE_CONSTRAINTS = list_of(_CONSTRAINT, _MAX_CONSTRAINTS)
SEARCH_QUERIES = list_of(text_of(MAX_QUERY), MAX_QUERIES)
PLAN_SCHEMA = object_of(
    {
        "primary_intent": text_of(MAX_INTENT),
        "hyde_passage": TEXT,
        "search_queries": SEARCH_QUERIES,
        "filter_constraints": list_of(object_of({"field": _WORD, "operator": _WORD, "values": list_of(_WORD)}), _MAX_CONSTRAINTS),
        "negative_constraints": NEGATIVE_CONSTRAINTS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The searches of one round.

    Attributes:
        primary_intent: what the question asks for, in a few words.
        hyde_passage: hypothetical passage, whose vector is searched. Empty: the vector of the first query is.
        search_queries: texts for BM25, the most important first. The first is also the text of the other searches.
        filter_constraints: narrows the request's own filter. It may still hold comparisons of entities.
        negative_constraints: what results must not be about.
        by: who made the plan: `model`, `rules`, or `question` for the question as it is.
        notes: about invalid parts that were dropped.
    """

    search_queries: tuple[str, ...]
    primary_intent: str = ""
    hyde_passage: str = ""
    filter_constraints: Filter | None = None
    negative_constraints: tuple[NegativeConstraint, ...] = ()
    by: str = "rules"
    notes: tuple[str, ...] = ()


def plan_of(parsed: Mapping[str, Any], question: str) -> Plan:
    """Return the plan in a model's reply. The question is always its first query."""
    filters, dropped = filters_of(objects_in(parsed, "filter_constraints"))
    negative, wrong = written_by_model(objects_in(parsed, "negative_constraints"), "plan")
    return Plan(
        search_queries=distinct([question, *texts_in(parsed, "search_queries")]),
        primary_intent=line_in(parsed, "primary_intent", limit=MAX_INTENT),
        hyde_passage=line_in(parsed, "hyde_passage", limit=MAX_PASSAGE),
        filter_constraints=filters,
        negative_constraints=tuple(negative),
        by="model",
        notes=(*dropped, *wrong),
    )


def plan_by_rules(question: str, wordings: Sequence[str]) -> Plan:
    """Return the plan without a model: the question and its other wordings."""
    return Plan(search_queries=distinct([question, *wordings]), primary_intent=question[:MAX_INTENT])


def filters_of(items: Sequence[Mapping[str, Any]]) -> tuple[Filter | None, list[str]]:
    """Return the conjunction of a model's filter constraints, and a note for each invalid one.

    Each is validated like the filter of a request. A number is compared as text and as a number, since the model cannot know how
    documents write it.
    """
    valid: list[Filter] = []
    notes: list[str] = []
    for item in items:
        field, operator = line_in(item, "field", limit=MAX_QUERY), line_in(item, "operator", limit=40)
        try:
            parsed = parse_filter(_grammar(field, operator, item.get("values")))
        except InvalidRequest as error:
            notes.append(f"a filter constraint of the plan was dropped: {error.message}")
            continue
        if parsed is not None:
            valid.append(parsed)
    if len(valid) < 2:
        return (valid[0] if valid else None), notes
    return And(tuple(valid)), notes


def _grammar(field: str, operator: str, values: Any) -> dict[str, Any]:
    texts = [text for text in values if isinstance(text, str)] if isinstance(values, list) else []
    if operator in ("exists", "missing"):
        return {field: {operator: True}}
    if operator in ("in", "nin"):
        numbers = [_number(text) for text in texts if _NUMBER.match(text)] if field not in LINK_FIELDS else []
        return {field: {operator: [*texts, *numbers]}}
    if len(texts) != 1:
        raise InvalidRequest(f"the operator {operator[:40]!r} takes one value; got {len(texts)}")
    if not _NUMBER.match(texts[0]) or operator in ("contains", "prefix") or field in LINK_FIELDS:
        return {field: {operator: texts[0]}}
    candidates = [{field: {operator: texts[0]}}, {field: {operator: _number(texts[0])}}]
    return {"and": candidates} if operator == "ne" else {"or": candidates}


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def texts_in(parsed: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts in a list of a reply, each as one line of at most `MAX_QUERY` characters."""
    items = parsed.get(name)
    lines = (" ".join(item.split())[:MAX_QUERY] for item in items if isinstance(item, str)) if isinstance(items, list) else ()
    return [line for line in lines if line]


def distinct(queries: Sequence[str]) -> tuple[str, ...]:
    """Return the first `MAX_QUERIES` queries that differ, in any case."""
    queries_by_form: dict[str, str] = {}
    for query in queries:
        queries_by_form.setdefault(query.casefold(), query)
    return tuple(queries_by_form.values())[:MAX_QUERIES]


def narrow_filter(query_filter: Filter | None, added_filter: Filter | None) -> Filter | None:
    """Return the conjunction of two filters. A plan can only narrow the filter of a request."""
    if query_filter is None or added_filter is None:
        return added_filter if query_filter is None else query_filter
    return And((query_filter, added_filter))


REQUIRED_PLACEHOLDERS = ("question",)
PLACEHOLDERS = (*REQUIRED_PLACEHOLDERS, "most")
"""Placeholders of a planner's prompt, and the required ones among them. ``most`` is the maximum number of queries."""
NO_MODEL = "no language model plans and reflects: rules do"


class FirstPlans(Protocol):
    """Makes the plan of the first round, and says why a model's plan failed."""

    @property
    def prompt(self) -> Prompt:
        """The prompt of the model."""

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan, and what failed."""


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """Returns one plan for every question: it measures a plan that was made before."""

    prompt: Prompt
    fixed: Plan

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan."""
        return self.fixed, ()


class Planner:
    """Writes plans.

    Args:
        rewriter: gives other names of the question's entities, for plans by rules.
        calls: calls of the cheap model.
        prompt: None: the built-in prompt.
    """

    def __init__(self, rewriter: QueryRewriter, calls: StructuredCalls, prompt: Prompt | None = None) -> None:
        self._rewriter = rewriter
        self._calls = calls
        self.prompt = prompt or built_in("agentic_plan")

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan, and what failed. Without a model, after its failure, or without budget, rules make the plan."""
        failures: tuple[str, ...] = ()
        if meter.may_call(self._calls):
            meter.spending.begin()
            reply = await self.ask(query.text, meter.within_time(self._calls))
            meter.spending.add_call(reply)
            if reply.parsed is not None:
                return plan_of(reply.parsed, query.text), ()
            failures = (f"planning by the model failed: {reply.failure}",)
        plan, unnamed = await self.by_rules(query)
        return plan, (*failures, *unnamed)

    async def ask(self, question: str, calls: StructuredCalls) -> StructuredReply:
        """Return the model's reply. `plan_of` reads it."""
        return await calls.ask(self.prompt, prompt_values(question), PLAN_SCHEMA)

    async def by_rules(self, query: Query) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan by rules, and what failed."""
        # No call is left for it, so that the rewriter uses names.
        rewrites = await self._rewriter.rewrite(query, MAX_QUERIES - 1, Spending(0))
        return plan_by_rules(query.text, rewrites.texts), tuple(rewrites.failures)


def prompt_values(question: str) -> dict[str, str]:
    """Return the values of a planner prompt's placeholders."""
    return {"question": fence("question", question), "most": str(MAX_QUERIES)}
