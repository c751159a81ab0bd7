"""Verified facts, and the next round that follows from them: reflection by the cheap model, or by rules without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.query import FactHit, Hit
from agentic_rag_backend.models.llm.base import INTEGER, TEXT, list_of, object_of, objects_in
from agentic_rag_backend.prompts import built_in, fence, without_markers
from agentic_rag_backend.retrieval.agentic.plan import (
    MAX_PASSAGE,
    MAX_QUERIES,
    NEGATIVE_CONSTRAINTS,
    SEARCH_QUERIES,
    NegativeConstraint,
    Plan,
    against_question,
    distinct,
    texts_in,
    written_by_model,
)
from agentic_rag_backend.retrieval.agentic.stopping import Meter
from agentic_rag_backend.retrieval.grading import read_text
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, line_in

READ = 5
"""Passages that a reflection reads."""
MAX_FACTS = 8
"""Verified facts of one reflection."""
MAX_QUOTE = 600
BEFORE = 0
"""Round of facts from earlier requests of the session."""


@dataclass(frozen=True, slots=True)
class VerifiedFact:
    """A statement that a passage makes in these words. ``round`` is the round after which it was found.

    A fact that an earlier request of the session verified has the round `BEFORE`.
    """

    text: str
    chunk_id: str
    round: int


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a round taught: facts, negative constraints, and the plan of the next round. None: nothing is left to search.

    ``entities`` are ids for the next round's graph search.
    """

    facts: tuple[VerifiedFact, ...] = ()
    negative_constraints: tuple[NegativeConstraint, ...] = ()
    plan: Plan | None = None
    entities: tuple[str, ...] = ()
    by: str = "rules"
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def verify_facts(parsed: Mapping[str, Any], hits: Sequence[Hit], round: int) -> tuple[list[VerifiedFact], int]:
    """Return the facts of a model's reply that their passage states word by word, and the number of the others."""
    facts: dict[str, VerifiedFact] = {}
    wrong = 0
    for item in objects_in(parsed, "verified_facts")[:MAX_FACTS]:
        number, quote = item.get("passage"), line_in(item, "quote", limit=MAX_QUOTE)
        valid = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(hits)
        hit = hits[int(str(number)) - 1] if valid else None
        text = " ".join(read_text(hit).split()) if hit is not None else ""
        start = without_markers(text).find(without_markers(quote))  # the model has read "(3)" for "[3]"
        if hit is None or not quote or start < 0:
            wrong += 1
            continue
        statement = text[start : start + len(quote)]
        facts.setdefault(statement, VerifiedFact(statement, hit.id, round))
    return list(facts.values()), wrong


def suggest_constraints(
    parsed: Mapping[str, Any], hits: Sequence[Hit], question: str, bearers: Sequence[Set[str]], avoided: Set[str]
) -> tuple[list[NegativeConstraint], list[str]]:
    """Return the negative constraints of a model's reply that may apply, and a note for each other one.

    The model has read passages, which nobody vouches for. Its constraints may not avoid words of the question, entities that it
    was not shown, nor all entities that a name of the question may mean.

    Args:
        bearers: the ids of the entities of each name of the question.
        avoided: the ids of entities that are avoided already.
    """
    constraints, notes = written_by_model(objects_in(parsed, "negative_constraints"), "reflection")
    entity_ids = {entity.id: entity.id for hit in hits for entity in hit.entities}
    valid: list[NegativeConstraint] = []
    removed_ids = set(avoided)
    for constraint in constraints:
        if constraint.kind == "entity":
            if constraint.value not in entity_ids:
                notes.append(f"a negative constraint was dropped: no passage that was read mentions {constraint.value[:60]!r}")
                continue
            if any(ids <= {*removed_ids, constraint.value} for ids in bearers if ids):
                notes.append(f"a negative constraint was dropped: the question asks about {constraint.value[:60]!r}")
                continue
            removed_ids.add(constraint.value)
        elif against_question(constraint, question):
            notes.append(f"a negative constraint was dropped: the question asks about {constraint.value[:60]!r}")
            continue
        valid.append(constraint)
    return valid, notes


def next_plan(parsed: Mapping[str, Any], searched: Set[str]) -> Plan | None:
    """Return the plan of the next round in a model's reply: the queries that no round has searched. None without any."""
    queries = distinct([text for text in texts_in(parsed, "search_queries") if text.casefold() not in searched])
    if not queries:
        return None
    return Plan(search_queries=queries, hyde_passage=line_in(parsed, "hyde_passage", limit=MAX_PASSAGE), by="model")


def by_rules(
    question: str,
    hits: Sequence[Hit],
    facts: Iterable[FactHit],
    searched: Set[str],
    round: int,
    earlier_facts: Sequence[VerifiedFact] = (),
) -> Reflection:
    """Reflect without a model: facts that the best passages state, and the question about the entities that these lead to.

    A fact leads from an entity of the question to another one. The next query is the question with the other name, so that a
    question about "the spouse of the director of X" is asked about the director.

    Args:
        earlier_facts: facts of earlier rounds. The passages of earlier requests of the session count as read.
    """
    chunk_ids = {hit.id for hit in hits} | {fact.chunk_id for fact in earlier_facts if fact.round == BEFORE}
    statements = sorted((fact for fact in facts if fact.chunk_id in chunk_ids), key=_by_text)[:MAX_FACTS]
    queries: dict[str, str] = {}
    for fact in statements:
        for entity, counterpart in ((fact.source, fact.target), (fact.target, fact.source)):
            text = with_name(question, entity.name, counterpart.name)
            if text is not None and text.casefold() not in searched:
                queries.setdefault(text, counterpart.id)
    chosen = distinct(list(queries))[: MAX_QUERIES - 1]
    return Reflection(
        facts=tuple(VerifiedFact(fact.fact, fact.chunk_id, round) for fact in statements if fact.fact),
        plan=Plan(search_queries=chosen) if chosen else None,
        entities=tuple(dict.fromkeys(queries[text] for text in chosen)),
    )


def _by_text(fact: FactHit) -> tuple[float, str, str, str]:
    """Return the key of an order by score, and by text for equal scores: ids of the same fact differ between tenants."""
    return -round(fact.score, 6), fact.fact, fact.source.name, fact.target.name


def with_name(question: str, known_name: str, replacement: str) -> str | None:
    """Return the question with one name replaced. None if it lacks ``known_name``, or has ``replacement`` already."""
    lowered, name = question.lower(), known_name.lower()
    # Lower case may have another length in some languages, and offsets would be wrong.
    if len(lowered) != len(question) or not name or replacement.lower() in lowered:
        return None
    start = lowered.find(name)
    end = start + len(name)
    if start < 0 or question[start - 1 : start].isalnum() or question[end : end + 1].isalnum():
        return None
    return question[:start] + replacement + question[end:]


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
