"""Plans of searches, by the cheap model or by rules, with what results must not be about.

A constraint is hard: it removes every passage that it matches.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.filters import LINK_FIELDS, And, Filter
from agentic_rag_backend.domain.query import FactHit, Hit, Query
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.language.words import words
from agentic_rag_backend.models.llm.base import TEXT, list_of, object_of, objects_in, text_of
from agentic_rag_backend.prompts import Prompt, built_in, fence
from agentic_rag_backend.retrieval.agentic.stopping import Meter
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, StructuredReply, line_in

MAX_CONSTRAINTS = 12
"""Negative constraints of one request, from all sources."""
MAX_VALUE = 200
"""Characters of a value."""
LEAST_PHRASE = 3
"""Characters of a phrase. A shorter one would match nearly every passage."""
ENTITY_PREFIX = "entity:"
Kind = Literal["entity", "attribute", "phrase"]
KINDS: Mapping[str, Kind] = {"entity": "entity", "attribute": "attribute", "phrase": "phrase"}
Source = Literal["request", "session", "plan", "reflection"]


@dataclass(frozen=True, slots=True)
class NegativeConstraint:
    """One constraint. ``name`` is the attribute's name, and empty for the other kinds.

    ``value`` is an entity's id or name, the value of the attribute, or the phrase. ``source`` is for the trace.
    """

    kind: Kind
    value: str
    name: str = ""
    source: Source = field(default="request", compare=False)

    @property
    def details(self) -> dict[str, str]:
        """The form of the trace."""
        name_field = {"name": self.name} if self.name else {}
        return {"kind": self.kind, **name_field, "value": self.value, "source": self.source}


@dataclass(frozen=True, slots=True)
class Avoided:
    """A constraint. That of an entity has the passages that mention it, and the documents about it alone.

    Documents are known of entities that share their name. Their other passages do not say whom they are about.
    """

    constraint: NegativeConstraint
    chunks: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()

    @property
    def details(self) -> dict[str, Any]:
        """The form of the trace."""
        counts = {"passages": len(self.chunks), "documents": len(self.documents)}
        return {**self.constraint.details, **(counts if self.constraint.kind == "entity" else {})}

    def removes(self, hit: Hit) -> bool:
        """Return whether the constraint removes a hit.

        An attribute is compared with the field of the document's metadata, in any case. If the document lacks the field, the
        value is searched in the passage as a phrase.
        """
        constraint = self.constraint
        if constraint.kind == "entity":
            return hit.id in self.chunks or hit.visible.chunk.document_id in self.documents
        if constraint.kind == "attribute":
            value = hit.visible.fields.get(constraint.name)
            if value is not None:
                return _holds(value, constraint.value)
        return contains_phrase(f"{hit.visible.document_title}\n{hit.visible.chunk.text}", constraint.value)

    def removes_fact(self, fact: FactHit, removed: Set[str]) -> bool:
        """Return whether the constraint removes a fact. ``removed`` are the ids of removed passages."""
        constraint = self.constraint
        if fact.chunk_id in removed or fact.chunk_id in self.chunks or fact.document_id in self.documents:
            return True
        return constraint.kind != "entity" and contains_phrase(fact.fact, constraint.value)


def _holds(field_value: Any, value: str) -> bool:
    items = field_value if isinstance(field_value, list | tuple) else [field_value]
    return any(str(item).casefold() == value.casefold() for item in items)


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text has the words of a phrase in this order, in any case and with any regular English ending."""
    forms = [word.form for word in words(phrase)]
    if not forms:
        return False
    return f" {' '.join(forms)} " in _forms(text)


@lru_cache(maxsize=1024)
def _forms(text: str) -> str:
    """Return the words of a text. Every round compares the passages of the rounds before again."""
    return f" {' '.join(word.form for word in words(text))} "


def keep_hits(hits: Iterable[Hit], avoided: Sequence[Avoided]) -> tuple[list[Hit], dict[str, int]]:
    """Return the hits that no constraint removes, and the number of hits that each value removed."""
    remaining: list[Hit] = []
    counts: dict[str, int] = {}
    for hit in hits:
        cause = next((constraint for constraint in avoided if constraint.removes(hit)), None)
        if cause is None:
            remaining.append(hit)
        else:
            counts[cause.constraint.value] = counts.get(cause.constraint.value, 0) + 1
    return remaining, counts


def parse_constraints(texts: Sequence[str]) -> list[NegativeConstraint]:
    """Return the constraints of a request: ``entity:ID``, ``NAME=VALUE``, or a phrase.

    Raises:
        InvalidRequest: a constraint names nothing, so it would remove nothing.
    """
    return [_parse_constraint(f"options.negative_constraints[{number}]", text) for number, text in enumerate(texts)]


def _parse_constraint(path: str, text: str) -> NegativeConstraint:
    text = " ".join(text.split())
    name, equals, value = text.partition("=")
    if text.startswith(ENTITY_PREFIX):
        constraint = NegativeConstraint("entity", text.removeprefix(ENTITY_PREFIX).strip())
    elif equals:
        constraint = NegativeConstraint("attribute", value.strip(), name.strip())
    else:
        constraint = NegativeConstraint("phrase", text)
    nameless = constraint.kind == "attribute" and not constraint.name
    if nameless or "\0" in text or not any(character.isalnum() for character in constraint.value):
        raise InvalidRequest(
            f"{path} must be entity:ID, NAME=VALUE or a phrase with a word; got {reprlib.repr(text)}", field=path
        )
    return constraint


def written_by_model(items: Sequence[Mapping[str, Any]], source: Source) -> tuple[list[NegativeConstraint], list[str]]:
    """Return the valid constraints of a model's reply, and a note for each other one."""
    valid: list[NegativeConstraint] = []
    notes: list[str] = []
    for item in items:
        kind, name, value = (" ".join(str(item.get(key, "")).split()) for key in ("kind", "name", "value"))
        if kind not in KINDS:
            notes.append(f"a negative constraint was dropped: unknown kind {kind[:40]!r}")
        elif not LEAST_PHRASE <= len(value) <= MAX_VALUE:
            notes.append(f"a negative constraint was dropped: its value has {len(value)} characters, not 3 to {MAX_VALUE}")
        elif kind == "attribute" and not name:
            notes.append(f"a negative constraint was dropped: the value {value[:40]!r} has no attribute")
        else:
            valid.append(NegativeConstraint(KINDS[kind], value, name[:MAX_VALUE] if kind == "attribute" else "", source))
    return valid, notes


def unite_constraints(
    constraints: Sequence[NegativeConstraint], new_constraints: Sequence[NegativeConstraint]
) -> tuple[list[NegativeConstraint], list[str]]:
    """Return ``constraints`` with ``new_constraints``, at most `MAX_CONSTRAINTS`, and a note if some were dropped."""
    merged = list(dict.fromkeys((*constraints, *new_constraints)))
    lost = len(merged) - MAX_CONSTRAINTS
    notes = [f"negative constraints above the limit of {MAX_CONSTRAINTS} were dropped: {lost}"] if lost > 0 else []
    return merged[:MAX_CONSTRAINTS], notes


def against_question(constraint: NegativeConstraint, question: str) -> bool:
    """Return whether a constraint that passages suggested would avoid words of the question itself."""
    return constraint.kind != "entity" and contains_phrase(question, constraint.value)


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


REQUIRED_PLACEHOLDERS = ("question",)
PLACEHOLDERS = (*REQUIRED_PLACEHOLDERS, "most")
"""Placeholders of a planner's prompt, and the required ones among them. ``most`` is the maximum number of queries."""
NO_MODEL = "no language model plans and reflects: rules do"


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
