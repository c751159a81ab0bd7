"""Three people of the examples are called Rowan Teller: a question about one finds none of the others, an open one finds all."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId

pytestmark = pytest.mark.asyncio(loop_scope="module")

Examples = tuple[Container, TenantId]
OPEN = "Who is Rowan Teller?"
KINDS = {"nurse", "oceanographer", "chair"}


async def ask(examples: Examples, question: str, strategy: str = "graph", **fields: Any) -> Retrieval:
    container, tenant = examples
    current = await container.catalogue.tenants.tenant(tenant)
    return await container.retrievers.get(strategy).retrieve(Query(tenant=current, text=question, dual_level=True, **fields))


def bearers(found: Retrieval) -> dict[str, str]:
    """Return the kind of each described bearer by id."""
    return {each.entity.id: each.entity.description.split(";")[0] for name in found.shared_names for each in name.bearers}


def about(found: Retrieval) -> set[str]:
    """Return the kinds of the bearers that the documents of the results mean."""
    documents = {hit.visible.chunk.document_id for hit in found.hits} | {fact.document_id for fact in found.facts}
    known = [each for name in found.shared_names for each in name.bearers]
    return {each.entity.description.split(";")[0] for each in known if each.documents & documents}


@pytest.mark.parametrize("strategy", ["graph", "hybrid", "dense", "auto"])
async def test_an_open_question_finds_all_and_tells_them_apart(examples: Examples, strategy: str) -> None:
    found = await ask(examples, OPEN, strategy)
    assert set(bearers(found).values()) == about(found) == KINDS
    told = {entity.id: entity.description for hit in found.hits for entity in hit.entities if entity.name == "Rowan Teller"}
    assert {id for id, text in told.items() if text.split(";")[0] in KINDS} <= bearers(found).keys()
    assert len({text.split(";")[0] for text in told.values()} & KINDS) >= 2
    (name,) = found.trace.details["same_name"]
    assert (name["name"], name["decided"]) == ("Rowan Teller", False)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    longer = await ask(examples, OPEN, strategy, limit=12)
    assert [hit.id for hit in longer.hits[:5]] == [hit.id for hit in found.hits]
    assert [hit.id for hit in (await ask(examples, OPEN, strategy, limit=2)).hits] == [hit.id for hit in found.hits[:2]]


@pytest.mark.parametrize("strategy", ["graph", "hybrid", "sparse"])
@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What did the nurse Rowan Teller do?", "nurse"),
        ("What did Rowan Teller, the oceanographer, say?", "oceanographer"),
        ("What did the chair Rowan Teller say?", "chair"),
    ],
)
async def test_a_question_about_one_finds_none_of_the_others(examples: Examples, strategy: str, question: str, kind: str) -> None:
    found = await ask(examples, question, strategy, limit=20)
    assert about(found) == {kind}
    assert [name.decided for name in found.shared_names] == [True]
    starts = {step.source_id if step.forward else step.target_id for hit in found.hits for step in hit.graph_path[:1]}
    assert not {id for id, other in bearers(found).items() if other != kind} & starts


async def test_an_entity_of_the_request_decides(examples: Examples) -> None:
    by_kind = {kind: id for id, kind in bearers(await ask(examples, OPEN)).items()}
    found = await ask(examples, OPEN, options={"entities": [by_kind["nurse"]]}, limit=20)
    assert about(found) == {"nurse"}


async def test_filters_of_the_request_hold_for_all_bearers(examples: Examples) -> None:
    found = await ask(examples, OPEN, filters=parse_filter({"title": {"contains": "Staff profile"}}))
    assert about(found) == {"nurse"}


async def test_a_question_without_a_shared_name_is_searched_as_before(examples: Examples) -> None:
    container, tenant = examples
    question = "Who succeeded Ingrid Vassall?"
    found = await ask(examples, question)
    assert found.shared_names == ()
    current = await container.catalogue.tenants.tenant(tenant)
    plain = await container.retrievers.strategy("graph").retrieve(Query(tenant=current, text=question))
    assert [hit.id for hit in found.hits] == [hit.id for hit in plain.hits[:5]]
