"""Reflects on the best passages of a round: by the cheap model, or by rules without one."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from agentic_rag_backend.domain.query import FactHit, Hit
from agentic_rag_backend.models.llm.schemas import INTEGER, TEXT, list_of, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.agentic.findings import (
    Reflection,
    VerifiedFact,
    by_rules,
    next_plan,
    suggest_constraints,
    verify_facts,
)
from agentic_rag_backend.retrieval.agentic.plan import MAX_QUERIES, NEGATIVE_CONSTRAINTS, SEARCH_QUERIES
from agentic_rag_backend.retrieval.agentic.stopping import Meter
from agentic_rag_backend.retrieval.grading.base import read_text
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

MAX_CHARACTERS = 2000
"""Characters of a passage that the model reads."""
SHOWN_ENTITIES = 12
_SCHEMA = object_of(
    {
        "verified_facts": list_of(object_of({"passage": INTEGER, "quote": TEXT})),
        "negative_constraints": NEGATIVE_CONSTRAINTS,
        "search_queries": SEARCH_QUERIES,
        "hyde_passage": TEXT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reflection reads.

    Attributes:
        question: the user's question.
        hits: the best passages, at most `findings.READ`.
        facts: facts that the graph search found, for reflections by rules.
        known: the facts that earlier rounds, and earlier requests of the session, verified.
        searched: the queries of all rounds, case-folded.
        bearers: the ids of the entities of each name of the question.
        avoided: the ids of entities that are avoided already.
        round: number of the round.
    """

    question: str
    hits: Sequence[Hit]
    facts: Sequence[FactHit] = ()
    known: Sequence[VerifiedFact] = ()
    searched: Set[str] = frozenset()
    bearers: Sequence[Set[str]] = field(default=())
    avoided: Set[str] = frozenset()
    round: int = 1


class Reflector:
    """Writes reflections. ``calls`` are the calls of the cheap model."""

    def __init__(self, calls: StructuredCalls) -> None:
        self._calls = calls

    async def reflect(self, reading: Reading, meter: Meter) -> Reflection:
        """Return the reflection. Without a model, after its failure, or without budget, rules make it."""
        failures: tuple[str, ...] = ()
        if reading.hits and meter.may_call(self._calls):
            meter.spending.begin()
            reply = await meter.within_time(self._calls).ask(built_in("agentic_reflection"), _values(reading), _SCHEMA)
            meter.spending.add_call(reply)
            if reply.parsed is not None:
                facts, wrong = verify_facts(reply.parsed, reading.hits, reading.round)
                negative, notes = suggest_constraints(
                    reply.parsed, reading.hits, reading.question, reading.bearers, reading.avoided
                )
                unstated = [f"verified facts that no passage states word by word were dropped: {wrong}"] if wrong else []
                plan = next_plan(reply.parsed, reading.searched)
                return Reflection(tuple(facts), tuple(negative), plan, by="model", notes=(*unstated, *notes))
            failures = (f"reflection by the model failed: {reply.failure}",)
        ruled = by_rules(reading.question, reading.hits, reading.facts, reading.searched, reading.round, reading.known)
        return Reflection(ruled.facts, plan=ruled.plan, entities=ruled.entities, failures=failures)


def _values(reading: Reading) -> dict[str, str]:
    passages_text = "\n".join(
        fence(
            "passage",
            f"{read_text(hit)[:MAX_CHARACTERS]}\n\nentities: {_entities(hit)}",
            attributes={"number": number, "title": hit.visible.document_title},
        )
        for number, hit in enumerate(reading.hits, 1)
    )
    return {
        "question": fence("question", reading.question),
        "facts": fence("facts", "\n".join(f"- {fact.text}" for fact in reading.known) or "none"),
        "passages": passages_text,
        "most": str(MAX_QUERIES - 1),
    }


def _entities(hit: Hit) -> str:
    return "; ".join(f"{entity.name} ({entity.type}, id {entity.id})" for entity in hit.entities[:SHOWN_ENTITIES]) or "none"
