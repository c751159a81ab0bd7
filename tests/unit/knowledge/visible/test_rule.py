"""The rule of visibility in both of its forms, and the name that an entity is shown under."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from sample_passages import visible_of
from tenant_graphs import build_tenant_graph

from agentic_rag_backend.communities.detection.knowledge import read_visible
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import (
    ChunkMentions,
    DocumentNames,
    EntityLabel,
    KnowledgeBatch,
    Mention,
    Naming,
    Support,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.tenant_graph.visible_knowledge import Knowledge
from agentic_rag_backend.knowledge.visible.facts import all_there, is_visible, states_now, supports_now
from agentic_rag_backend.knowledge.visible.summaries import contains_label, name_order

TENANT = TenantId("t_" + "0" * 32)
DOCUMENTS = st.sampled_from(["d1", "d2", "d3"])
NAMES = st.sampled_from(["Ada", "Countess", "Lovelace"])
ENTITIES = st.sampled_from(["e1", "e2"])
VERSIONS = st.dictionaries(DOCUMENTS, st.integers(1, 3))


def passage(document: str, version: int, text: str = "text", *, title: str = "", headings: tuple[str, ...] = ()) -> VisibleChunk:
    return visible_of(text, f"{document}.c", title=title, document_id=document, version=version, headings=headings)


@given(versions=VERSIONS, document=DOCUMENTS, version=st.integers(1, 3))
def test_both_forms_of_the_rule_agree(versions: Mapping[str, int], document: str, version: int) -> None:
    support = Support(document, version, f"{document}.c")
    passages = {f"{id}.c": passage(id, shown) for id, shown in versions.items()}
    expected = document in versions and versions[document] == version
    assert is_visible(versions, document, version) is expected
    assert supports_now(versions, support) is expected
    assert states_now(passages, support) is expected
    assert all_there(passages, [support]) is (document in versions)


def test_a_text_stays_only_while_all_its_passages_are_there() -> None:
    passages = {"d1.c": passage("d1", 2)}
    assert all_there(passages, [])
    assert all_there(passages, [Support("d1", 1, "d1.c"), Support("d1", 2, "d1.c")])
    assert not all_there(passages, [Support("d1", 1, "d1.c"), Support("d2", 1, "d2.c")])


def test_a_label_is_looked_for_in_text_title_and_headings() -> None:
    found = passage("d1", 1, "Ada wrote it.", title="The Engine", headings=("Notes", "Note G"))
    assert all(contains_label(found, label) for label in ("Ada", "The Engine", "Note G"))
    assert not contains_label(found, "Note H")


class World:
    """A graph store that holds the names and mentions of all versions."""

    def __init__(self, held: list[tuple[str, int, str, str]], labels: Mapping[str, str]) -> None:
        self.held, self.labels = held, labels

    async def all_mentions(self, tenant: TenantId):  # type: ignore[no-untyped-def]
        yield [Mention(entity, Support(document, version, f"{document}.c")) for document, version, entity, _ in self.held]

    async def all_relationships(self, tenant: TenantId):  # type: ignore[no-untyped-def]
        yield []

    async def all_names(self, tenant: TenantId):  # type: ignore[no-untyped-def]
        yield [
            Naming(
                document_id=document,
                version=version,
                entity_id=entity,
                name=name,
                entity_name=self.labels[entity],
                entity_type="person",
            )
            for document, version, entity, name in self.held
        ]


@given(
    versions=VERSIONS,
    held=st.lists(st.tuples(DOCUMENTS, st.integers(1, 3), ENTITIES, NAMES), max_size=8, unique=True),
    labels=st.fixed_dictionaries({"e1": NAMES, "e2": NAMES}),
)
async def test_communities_and_the_tenants_graph_show_the_same_names(
    versions: Mapping[str, int], held: list[tuple[str, int, str, str]], labels: Mapping[str, str]
) -> None:
    by_communities = (await read_visible(World(held, labels), TENANT, versions)).entities  # type: ignore[arg-type]
    batch = KnowledgeBatch(
        [ChunkMentions(Support(document, version, f"{document}.c"), [entity], [False]) for document, version, entity, _ in held],
        [DocumentNames(document, version, [entity], [name]) for document, version, entity, name in held],
        [EntityLabel(entity, name, "person") for entity, name in labels.items()],
    )
    graph = build_tenant_graph(Knowledge(versions, [batch]))
    by_graph = {id: graph.entity(number).name for id in ("e1", "e2") if (number := graph.entity_index.get(id)) is not None}
    assert {id: entity.name for id, entity in by_communities.items()} == by_graph
    for id, name in by_graph.items():
        used = {name for document, version, entity, name in held if entity == id and versions.get(document) == version}
        assert name == min(used, key=lambda each: name_order(each, labels[id]))
