"""People of one name who have other professions in other places are several; one person with two roles is one."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.language.descriptions import Description, describe
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

EXTRACTOR = RuleExtractor()
SENTENCES = {
    "research": "Qian Chen, researcher at Meta, wrote about graphs.",
    "law": "Qian Chen, a lawyer in Shanghai, won the case.",
    "bank": "Qian Chen is a banker at Harbour Bank.",
}
ONE_PERSON = {
    "council": "Mary Poole is a councillor in Leeds.",
    "board": "Mary Poole, chair of the school board, spoke.",
    "ward": "Mary Poole is a nurse at Leeds Hospital.",
}
COMPANY = {
    "invoice": "Acme Inc delivered the pumps. Acme sent the bill.",
    "contract": "ACME Incorporated signed in Leeds.",
    "memo": "We met Acme in May.",
}
LONGER = {
    "phones": "Microsoft Mobile Oy was founded in Espoo.",
    "software": "Microsoft was founded by Bill Gates.",
    "both": "Microsoft bought the unit. It became Microsoft Mobile Oy.",
}


async def bearers(path: Path, chunks: MakeChunks, documents: list[tuple[str, str, str]], name: str) -> int:
    """Write documents (id, title, text) and settle their names. Return the number of entities that have a name."""
    tenant = TenantId("t_" + "b" * 32)
    store = await SqliteGraphStore.open(path)
    resolver = Resolver(store)
    ids: dict[str, set[str]] = {}
    for version in (1, 2):
        for id_, title, text in documents:
            extractions = EXTRACTOR.extract_document(title, chunks(text, document=id_))
            knowledge = await resolver.resolve(tenant, id_, version, title, extractions)
            await store.write_document(tenant, knowledge)
            ids[id_] = {entity.id for entity in knowledge.entities if name in (entity.name, *entity.aliases)}
    await store.close()
    return len(set().union(*ids.values()))


@pytest.mark.parametrize(
    ("texts", "name", "count"),
    [(SENTENCES, "Qian Chen", 3), (ONE_PERSON, "Mary Poole", 1), (COMPANY, "Acme", 1), (LONGER, "Microsoft", 1)],
    ids=["three people", "one person", "one company", "no longer name"],
)
async def test_every_order_of_documents_gives_the_same_entities(
    tmp_path: Path, chunks: MakeChunks, texts: dict[str, str], name: str, count: int
) -> None:
    for number, order in enumerate(permutations(texts)):
        for heading in (False, True):
            documents = [(id_, name if heading else f"Notes {id_}", texts[id_]) for id_ in order]
            assert await bearers(tmp_path / f"{number}-{heading}.db", chunks, documents, name) == count, (order, heading)


def test_a_document_with_both_professions_joins_them() -> None:
    banker, lawyer = (Description.parse(text) for text in ("banker; at Harbour Bank", "lawyer; at Shanghai"))
    assert banker.works_elsewhere(lawyer)
    for other in ("lawyer", "lawyer; at the Harbour", "banker, lawyer; at Shanghai", "professor; at Shanghai"):
        assert not banker.works_elsewhere(Description.parse(other)), other
    read = describe(("qian", "chen"), "Qian Chen is a banker at the Harbour Bank in Lyon.")
    assert Description.parse(read.written) == read
    assert read.places == ("Harbour Bank",)
