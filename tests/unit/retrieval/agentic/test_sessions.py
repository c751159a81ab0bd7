"""What a session keeps, and what of it applies to a later question."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.search_session import (
    MAX_SESSION_BYTES,
    MAX_SESSION_CONSTRAINTS,
    MAX_SESSION_FACTS,
    FactPlace,
    RememberedConstraint,
    SessionMemory,
    session_digest,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.agentic.findings import BEFORE, VerifiedFact
from agentic_rag_backend.retrieval.agentic.plan import NegativeConstraint
from agentic_rag_backend.retrieval.agentic.sessions import SessionReader, applicable, memory_of

PLACES = st.builds(FactPlace, st.sampled_from(["a", "b", "c"]), st.integers(0, 20), st.integers(20, 40))
VALUES = st.builds(RememberedConstraint, st.just("phrase"), st.text(min_size=1, max_size=2000))
MEMORIES = st.builds(SessionMemory, st.lists(PLACES, max_size=60).map(tuple), st.lists(VALUES, max_size=8).map(tuple))


@given(MEMORIES, MEMORIES)
def test_a_memory_is_within_its_limits_and_keeps_the_newest(known: SessionMemory, more: SessionMemory) -> None:
    whole = known.extend_memory(more)
    assert len(whole.facts) <= MAX_SESSION_FACTS
    assert len(whole.constraints) <= MAX_SESSION_CONSTRAINTS
    assert sum(len((each.kind + each.name + each.value).encode()) for each in whole.constraints) <= MAX_SESSION_BYTES
    assert len(set(whole.facts)) == len(whole.facts)
    assert set(whole.facts) <= {*known.facts, *more.facts}
    if more.facts:
        assert whole.facts[-1] == more.facts[-1]
    assert whole.extend_memory(SessionMemory()) == whole


def test_keys_and_ids_make_different_sessions() -> None:
    assert len({session_digest(key, session) for key in ("k1", "k2") for session in ("s", "t")}) == 4


class Store:
    def __init__(self, memory: SessionMemory | None) -> None:
        self.memory = memory

    async def recall(self, tenant: TenantId, digest: str) -> SessionMemory | None:
        return self.memory

    async def remember(self, tenant: TenantId, digest: str, more: SessionMemory, *, kept_s: float) -> SessionMemory:
        self.memory = (self.memory or SessionMemory()).extend_memory(more)
        return self.memory

    async def sweep(self) -> int:
        return 0


class Documents:
    """The visible chunks."""

    def __init__(self, *chunks: VisibleChunk) -> None:
        self.chunks = {each.chunk.id: each for each in chunks}

    async def hydrate(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        return {id: self.chunks[id] for id in ids if id in self.chunks}


async def test_a_fact_is_read_again_while_its_passage_may_be_shown(
    query: Callable[..., Query], visible: Callable[..., VisibleChunk]
) -> None:
    text = "Ada led the survey.\n  She was born\tin Aldry, in 1950."
    fact = VerifiedFact("She was born in Aldry, in 1950.", "c1", 1)
    memory = memory_of([fact], {"c1": text}, [], negative=True)
    assert memory.facts == (FactPlace("c1", 22, len(text)),)
    store, asked = Store(memory), query("When was she born?")

    async def carried(*chunks: VisibleChunk, **more: object) -> tuple[list[str], int]:
        reader = SessionReader(store, Documents(*chunks), kept_s=60)  # type: ignore[arg-type]
        found = await reader.carry_over(query("When?", **more), "s")
        assert found.continued
        assert {hit.id for hit in found.hits} == {fact.chunk_id for fact in found.facts}
        assert all(fact.round == BEFORE for fact in found.facts)
        return [fact.text for fact in found.facts], found.left_out

    assert await carried(visible("c1", text)) == (["She was born in Aldry, in 1950."], 0)
    # Deleted, not valid at the time of the request, or outside its filter.
    assert await carried() == ([], 1)
    assert await carried(visible("c1", text, valid_from="2999-01-01")) == ([], 1)
    nothing = await SessionReader(Store(None), Documents(), kept_s=60).carry_over(asked, "s")  # type: ignore[arg-type]
    assert (nothing.continued, nothing.facts) == (False, ())


def test_only_own_facts_that_a_chunk_states_are_kept() -> None:
    facts = [
        VerifiedFact("of a session", "c1", BEFORE),
        VerifiedFact("in its parent only", "c1", 1),
        VerifiedFact("a (b", "c1", 1),
        VerifiedFact("of an unknown chunk", "c2", 1),
    ]
    assert memory_of(facts, {"c1": "of a session: a (b"}, [], negative=True).facts == (FactPlace("c1", 14, 18),)


def test_words_of_documents_are_not_kept() -> None:
    constraints = [
        NegativeConstraint("phrase", "of the user", source="request"),
        NegativeConstraint("phrase", "of the plan", source="plan"),
        NegativeConstraint("phrase", "of a passage", source="reflection"),
        NegativeConstraint("attribute", "of a passage", "city", source="reflection"),
        NegativeConstraint("entity", "e1", source="reflection"),
        NegativeConstraint("entity", "e2", source="session"),
    ]
    kept = memory_of([], {}, constraints, negative=True).constraints
    assert [each.value for each in kept] == ["of the user", "of the plan", "e1"]
    assert memory_of([], {}, constraints, negative=False).constraints == ()


def test_a_session_may_turn_to_what_it_avoided() -> None:
    nurse, singer = NegativeConstraint("entity", "nurse"), NegativeConstraint("entity", "singer")
    phrase = NegativeConstraint("phrase", "night boat")
    bearers = [{"nurse", "singer"}]
    every = [nurse, singer, phrase]
    # No name of the question: all apply.
    assert applicable(every, "Who led?", [], set()) == every
    # One bearer is left.
    assert applicable([nurse], "Who is Rowan?", bearers, set()) == [nurse]
    # None would be left.
    assert applicable(every, "Who is Rowan?", bearers, set()) == [phrase]
    # The question means the nurse.
    assert applicable(every, "Who is Rowan, the nurse?", bearers, {"singer"}) == [singer, phrase]
    assert applicable(every, "Who led the Night Boats?", [], set()) == [nurse, singer]


@given(st.lists(st.text("ab\n\t é", min_size=1), min_size=1).map("".join), st.data())
def test_a_place_has_the_words_of_its_fact(text: str, data: st.DataObject) -> None:
    joined = " ".join(text.split())
    start = data.draw(st.integers(0, len(joined)))
    quote = " ".join(joined[start : data.draw(st.integers(start, len(joined)))].split())
    places = memory_of([VerifiedFact(quote, "c", 1)], {"c": text}, [], negative=True).facts
    if not quote:
        assert places == ()
    else:
        (place,) = places
        assert " ".join(text[place.start : place.end].split()) == quote
