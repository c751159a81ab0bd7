"""The state of a loop: its rounds, what they found, and what they taught; and the form of it in a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.query import FactHit, Hit, Retrieval
from agentic_rag_backend.retrieval.agentic.agentic_options import AgenticOptions
from agentic_rag_backend.retrieval.agentic.constraints import Avoided, NegativeConstraint, keep_hits
from agentic_rag_backend.retrieval.agentic.findings import VerifiedFact
from agentic_rag_backend.retrieval.agentic.plan import Plan
from agentic_rag_backend.retrieval.agentic.recall import Recalled
from agentic_rag_backend.retrieval.agentic.sessions import Carried
from agentic_rag_backend.retrieval.agentic.stopping import Meter, Progress
from agentic_rag_backend.retrieval.legs.fused_hits import fused_hits, united_facts


@dataclass(frozen=True, slots=True)
class SearchRound:
    """One round: its plan, the passages that it found after the hard filter, and how many of them are new."""

    plan: Plan
    found: int
    new: int
    novelty: float
    removed: Mapping[str, int]

    @property
    def details(self) -> dict[str, Any]:
        """The form of the trace. A hypothetical passage is invented, so it is not shown."""
        return {
            "queries": list(self.plan.search_queries),
            "planned_by": self.plan.by,
            "hyde_passage": bool(self.plan.hyde_passage),
            "found": self.found,
            "new": self.new,
            "novelty": round(self.novelty, 4),
            "removed": dict(self.removed),
        }


@dataclass(slots=True)
class Loop:
    """The loop of one request."""

    options: AgenticOptions
    meter: Meter
    rounds: list[SearchRound] = field(default_factory=list)
    found: dict[str, Retrieval] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    constraints: list[NegativeConstraint] = field(default_factory=list)
    avoided: list[Avoided] = field(default_factory=list)
    facts: list[VerifiedFact] = field(default_factory=list)
    carried: Carried = field(default_factory=Carried)
    session: Mapping[str, Any] | None = None
    planner_prompt: str | None = None
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    fallbacks: list[str] = field(default_factory=list)
    reflected_by: list[str] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        """What stop policies read."""
        return Progress([loop_round.novelty for loop_round in self.rounds], self.meter.spent)

    @property
    def searched(self) -> set[str]:
        """The queries of all rounds, case-folded."""
        return {text.casefold() for loop_round in self.rounds for text in loop_round.plan.search_queries}

    @property
    def removed(self) -> bool:
        """Whether negative constraints removed passages: those found, or those of an entity, which are not searched."""
        return any(search_round.removed for search_round in self.rounds) or any(avoided.chunks for avoided in self.avoided)

    def known_ids(self) -> set[str]:
        """Return the ids of the passages of all rounds, after the hard filter as it is now."""
        unique = {hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}
        return {hit.id for hit in keep_hits(unique.values(), self.avoided)[0]}

    def fact_ids(self) -> set[str]:
        """Return the ids of passages whose facts count: `known_ids`, and the passages of the session after the hard filter."""
        return self.known_ids() | {hit.id for hit in keep_hits(self.carried.hits, self.avoided)[0]}

    def of_session(self) -> list[NegativeConstraint]:
        """Return the negative constraints of the session that apply."""
        applied = [exclusion.constraint for exclusion in self.avoided]
        return [constraint for constraint in self.carried.constraints if constraint in applied]

    def drop_session_constraints(self) -> bool:
        """Drop the negative constraints of the session. Return whether there were any."""
        before = len(self.constraints)
        self.constraints = [constraint for constraint in self.constraints if constraint.source != "session"]
        self.avoided = [exclusion for exclusion in self.avoided if exclusion.constraint.source != "session"]
        return len(self.constraints) < before

    def texts(self) -> dict[str, str]:
        """Return the texts of the chunks of all rounds by id."""
        return {hit.id: hit.visible.chunk.text for retrieval in self.found.values() for hit in retrieval.hits}

    def add(self, recalled: Recalled) -> None:
        """Add what a round found."""
        self.found.update(recalled.found)
        self.weights.update(recalled.weights)
        self.failures += recalled.failures
        self.hidden += recalled.hidden

    def hits(self) -> list[Hit]:
        """Return the passages of all rounds after the hard filter, fused, best first. A single search keeps its scores."""
        searches = list(self.found.values())
        fused = searches[0].hits if len(searches) == 1 else fused_hits(self.found, self.weights, "min_max", named=False)
        return keep_hits(fused, self.avoided)[0]

    @property
    def of_question(self) -> Mapping[str, Any]:
        """Details of the graph search for the question itself."""
        retrieval = self.found.get("round_1_graph")
        return retrieval.trace.details if retrieval is not None else {}

    def graph_facts(self) -> list[FactHit]:
        """Return the facts of all graph searches that no constraint removes, best first."""
        unique = {hit.id: hit for retrieval in self.found.values() for hit in retrieval.hits}
        removed = unique.keys() - {hit.id for hit in keep_hits(unique.values(), self.avoided)[0]}
        facts = united_facts(list(self.found.values()))
        return [fact for fact in facts if not any(retrieval.removes_fact(fact, removed) for retrieval in self.avoided)]


def loop_details(loop: Loop, stopped: str) -> dict[str, Any]:
    """Return the trace of a loop as JSON values."""
    options, limits, spent = loop.options, loop.options.limits, loop.meter.spent
    return {
        "rounds": [{"round": number, **loop_round.details} for number, loop_round in enumerate(loop.rounds, 1)],
        "stop_reason": stopped,
        "policy": options.stop_policy,
        "epsilon": limits.epsilon,
        "max_rounds": limits.rounds,
        "primary_intent": loop.rounds[0].plan.primary_intent if loop.rounds else "",
        "planner_prompt": loop.planner_prompt,
        "reflected_by": list(loop.reflected_by),
        "verified_facts": [{"fact": fact.text, "chunk_id": fact.chunk_id, "round": fact.round} for fact in loop.facts],
        "negative_constraints": [loop_round.details for loop_round in loop.avoided],
        "calls": spent.calls,
        "tokens": spent.tokens,
        "flags": flags(options),
        **({"session": dict(loop.session)} if loop.session is not None else {}),
    }


def flags(options: AgenticOptions) -> dict[str, bool]:
    """Return the flags by name."""
    return {
        name: bool(getattr(options, name)) for name in ("query_planning", "novelty_circuit", "negative_memory", "cascade_recall")
    }


def methods(retrievals: Sequence[Retrieval]) -> tuple[str, ...]:
    """Return the methods of searches, each once."""
    return tuple(dict.fromkeys(method for retrieval in retrievals for method in retrieval.trace.methods_used))
