"""Sessions: what a request takes over from earlier requests of its session, and what it leaves to later ones.

A fact is stored as a place in a chunk. Each request reads it again, so that it is used only while the catalogue shows its chunk
and the chunk passes the filter and the time of the request. A place holds no words that would have to be deleted with a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.search_session import FactPlace, RememberedConstraint, SessionMemory
from agentic_rag_backend.retrieval.agentic.findings import BEFORE, VerifiedFact
from agentic_rag_backend.retrieval.agentic.plan import KINDS, NegativeConstraint, against_question
from agentic_rag_backend.retrieval.passages.hydration import visible_chunks
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, SearchSessions

_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a request takes over.

    Attributes:
        continued: whether the session existed.
        facts: verified facts whose passages the request may show.
        hits: these passages.
        constraints: negative constraints, before they are compared with the question.
        left_out: number of facts whose passages the request may not show.
    """

    continued: bool = False
    facts: tuple[VerifiedFact, ...] = ()
    hits: tuple[Hit, ...] = ()
    constraints: tuple[NegativeConstraint, ...] = ()
    left_out: int = 0


class SessionReader:
    """Reads and writes sessions.

    Args:
        sessions: the store.
        documents: shows the passages of facts.
        kept_s: seconds for which a session is kept after its last request.
    """

    def __init__(self, sessions: SearchSessions, documents: DocumentCatalogue, *, kept_s: float) -> None:
        self._sessions = sessions
        self._documents = documents
        self._kept_s = kept_s

    async def carry_over(self, query: Query, session: str) -> Carried:
        """Return what a request takes over.

        Raises:
            StoreUnavailable: the catalogue does not answer.
        """
        memory = await self._sessions.recall(query.tenant_id, session)
        if memory is None:
            return Carried()
        ids = list(dict.fromkeys(fact.chunk_id for fact in memory.facts))
        visible = await visible_chunks(self._documents, query, ids) if ids else {}
        facts = [fact for fact_place in memory.facts if (fact := _fact(fact_place, visible)) is not None]
        return Carried(
            continued=True,
            facts=tuple({fact.text: fact for fact in facts}.values()),
            hits=tuple(Hit(visible=chunk, score=0.0) for chunk in visible.values()),
            constraints=tuple(
                NegativeConstraint(KINDS[constraint.kind], constraint.value, constraint.name, "session")
                for constraint in memory.constraints
            ),
            left_out=len(memory.facts) - len(facts),
        )

    async def remember(self, query: Query, session: str, memory: SessionMemory) -> None:
        """Add to a session. Its time starts again, also if there is nothing to add.

        Raises:
            StoreUnavailable: the catalogue does not answer.
            NotFound: the tenant was removed meanwhile.
        """
        await self._sessions.remember(query.tenant_id, session, memory, kept_s=self._kept_s)


def _fact(fact_place: FactPlace, visible: Mapping[str, VisibleChunk]) -> VerifiedFact | None:
    if fact_place.chunk_id not in visible:
        return None
    text = " ".join(visible[fact_place.chunk_id].chunk.text[fact_place.start : fact_place.end].split())
    return VerifiedFact(text, fact_place.chunk_id, BEFORE) if text else None


def applicable(
    constraints: Sequence[NegativeConstraint], question: str, bearers: Sequence[Set[str]], not_meant: Set[str]
) -> list[NegativeConstraint]:
    """Return the constraints of a session that apply to a question.

    A session may turn to what it avoided before. A constraint does not apply if the question has its words, or if all entities
    that a name of the question may mean would be avoided.

    Args:
        bearers: the ids of the entities of each name of the question.
        not_meant: ids of entities that the question does not mean, although they have a name of it.
    """
    ids = {constraint.value for constraint in constraints if constraint.kind == "entity"}
    intended = [bearer - not_meant or bearer for bearer in bearers]
    requested_ids = set[str]().union(*(bearer_ids for bearer_ids in intended if bearer_ids <= ids))
    return [
        constraint
        for constraint in constraints
        if not (constraint.value in requested_ids if constraint.kind == "entity" else against_question(constraint, question))
    ]


def memory_of(
    facts: Iterable[VerifiedFact], texts: Mapping[str, str], constraints: Iterable[NegativeConstraint], *, negative: bool
) -> SessionMemory:
    """Return what a request leaves to its session.

    Facts are those of its own rounds that the text of their chunk states word by word. A constraint of a reflection may have
    words of a document, so only its entities are kept. Constraints of the request and of the plan have the user's own words.

    Args:
        texts: the texts of chunks by id.
        negative: whether negative constraints are kept.
    """
    places = [_place(fact, texts.get(fact.chunk_id, "")) for fact in facts if fact.round != BEFORE]
    remembered = [
        constraint
        for constraint in constraints
        if negative and (constraint.kind == "entity" or constraint.source in ("request", "plan"))
    ]
    return SessionMemory(
        tuple(fact_place for fact_place in places if fact_place is not None),
        tuple(
            RememberedConstraint(constraint.kind, constraint.value, constraint.name)
            for constraint in remembered
            if constraint.source != "session"
        ),
    )


def _place(fact: VerifiedFact, text: str) -> FactPlace | None:
    quote = " ".join(fact.text.split())
    words = [word.span() for word in _WORD.finditer(text)]
    at = " ".join(text[start:end] for start, end in words).find(quote) if quote else -1
    if at < 0:
        return None
    return FactPlace(fact.chunk_id, _offset(words, at), _offset(words, at + len(quote) - 1) + 1)


def _offset(words: Sequence[tuple[int, int]], at: int) -> int:
    """Return the offset in a text of a letter at the position ``at`` in the words of the text, joined by single spaces."""
    for start, end in words:
        if at < end - start:
            return start + at
        at -= end - start + 1
    raise ValueError(f"the text ends {at} characters before the position")


def session_details(
    carried: Carried, facts: Sequence[VerifiedFact], constraints: Sequence[NegativeConstraint], memory: SessionMemory
) -> dict[str, Any]:
    """Return the trace of a session as JSON values.

    Args:
        facts: the facts of the session that the request used.
        constraints: the negative constraints of the session that the request used.
        memory: what the request leaves to its session.
    """
    return {
        "continued": carried.continued,
        "facts": [{"fact": fact.text, "chunk_id": fact.chunk_id} for fact in facts],
        "facts_left_out": carried.left_out + len(carried.facts) - len(facts),
        "negative_constraints": [constraint.details for constraint in constraints],
        "constraints_left_out": len(carried.constraints) - len(constraints),
        "kept": {"facts": len(memory.facts), "negative_constraints": len(memory.constraints)},
    }
