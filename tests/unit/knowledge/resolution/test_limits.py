from __future__ import annotations

import pickle
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, NameDescription
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS
from agentic_rag_backend.knowledge.resolution.assembly import ResolvedVersion, build_knowledge
from agentic_rag_backend.knowledge.resolution.groups import GroupedNames, group_names, names_of_document
from agentic_rag_backend.knowledge.resolution.limits import NameLimits

TENANT = TenantId("t_" + "a" * 32)
NAMES = ("Ada Quin", "ada quin", "Ben Marsh", "Cara Holm", "UN", "Rome", "the Rome", "Rome (film)", "")


def mention(name: str, *, about: bool = False) -> EntityMention:
    return EntityMention(name=name, type="person", start_char=0, end_char=0, about=about)


def relation(source: str, target: str) -> ExtractedRelationship:
    ends = {"source": source, "source_type": "person", "target": target, "target_type": "person"}
    return ExtractedRelationship(**ends, relation="knows", fact=f"{source} knows {target}", fact_start=0, fact_end=1)


def chain(length: int) -> list[Extraction]:
    """Return chunks of which each gives the name of the next one as an alias of its own."""
    pairs = ((f"Name {number}", f"Name {number + 1}") for number in range(length))
    return [
        Extraction(
            chunk_id=full, mentions=(mention(full), mention(alias)), aliases=(Alias(name=full, alias=alias, type="person"),)
        )
        for full, alias in pairs
    ]


def grouped(extractions: Sequence[Extraction], **limits: int) -> GroupedNames:
    return group_names(extractions, NameLimits(**limits), NO_EDITS)


def warnings(extractions: Sequence[Extraction], **limits: int) -> tuple[str, ...]:
    names = names_of_document(extractions, NameLimits(**limits), NO_EDITS)
    ids = {name.key: f"id of {name.key}" for name in names.names}
    return build_knowledge(ResolvedVersion(TENANT, "d", 1, "", ids), extractions, NameLimits(**limits), NO_EDITS).warnings


def test_a_chain_of_aliases_is_one_entity_up_to_the_limit() -> None:
    assert set(grouped(chain(100)).roots.values()) == {"name 0"}
    halves = grouped(chain(101))
    assert set(halves.roots.values()) == {"name 0", "name 101"}
    assert halves.left_out.aliases == 1
    assert warnings(chain(101)) == ("1 aliases are not in the graph: a name has more than 100 (EXTRACTION_MAX_ALIASES_PER_NAME)",)


def test_the_first_names_of_a_chunk_and_its_subjects_are_kept_with_what_is_said_about_them() -> None:
    chunk = Extraction(
        chunk_id="c",
        mentions=(*map(mention, ("A", "B", "C", "A")), mention("Subject", about=True)),
        relationships=(relation("A", "B"), relation("A", "C"), relation("A", "D")),
        aliases=(Alias(name="A", alias="Aa", type="person"), Alias(name="Subject", alias="B", type="person")),
        descriptions=(NameDescription(name="C", text="painter"), NameDescription(name="Subject", text="painter")),
    )
    limited = grouped([chunk], names_per_chunk=3)
    (kept,) = limited.extractions
    assert [said.name for said in kept.mentions] == ["A", "B", "A", "Subject"]
    assert kept.relationships == chunk.relationships[:1]
    assert kept.aliases == chunk.aliases[1:]
    assert kept.descriptions == chunk.descriptions[1:]
    assert limited.left_out.of_chunks == 3  # C, D and Aa
    assert warnings([chunk], names_per_chunk=3) == (
        "3 names are not in the graph: a chunk has more than 3 (EXTRACTION_MAX_NAMES_PER_CHUNK)",
    )


def test_the_first_names_of_a_document_are_kept_wherever_they_stand() -> None:
    chunks = [Extraction(chunk_id=f"c{number}", mentions=(mention("First"), mention(f"N{number}"))) for number in range(5)]
    limited = grouped(chunks, names_per_document=3)
    assert list(limited.groups) == ["first", "n0", "n1"]
    assert [len(chunk.mentions) for chunk in limited.extractions] == [2, 2, 1, 1, 1]
    assert warnings(chunks, names_per_document=3) == (
        "3 names are not in the graph: the document has more than 3 (EXTRACTION_MAX_NAMES_PER_DOCUMENT)",
    )


def test_documents_within_the_limits_have_no_warning_and_all_names() -> None:
    assert warnings(chain(5)) == ()
    assert grouped(chain(5)).extractions == chain(5)


extractions_of_names = st.lists(
    st.builds(
        Extraction,
        chunk_id=st.sampled_from(("c1", "c2", "c3")),
        mentions=st.lists(st.builds(mention, st.sampled_from(NAMES), about=st.booleans()), max_size=6).map(tuple),
        relationships=st.lists(st.builds(relation, st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=3).map(tuple),
        aliases=st.lists(
            st.builds(Alias, name=st.sampled_from(NAMES), alias=st.sampled_from(NAMES), type=st.just("person")), max_size=4
        ).map(tuple),
    ),
    max_size=4,
)


@given(extractions_of_names)
def test_names_have_the_root_that_following_the_first_aliases_gives(extractions: list[Extraction]) -> None:
    limited = grouped(extractions)
    parents: dict[str, str] = {}

    def root(key: str) -> str:
        return root(parents[key]) if key in parents else key

    for alias in (alias for extraction in extractions for alias in extraction.aliases):
        key, parent = limited.keys(alias.alias), limited.keys(alias.name)
        if key and parent and key not in parents and root(parent) != key:
            parents[key] = parent
    assert limited.roots == {key: root(key) for key in limited.roots}
    assert set(limited.groups) == {root(key) for key in limited.roots}


@given(extractions_of_names, st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_no_limit_is_exceeded_and_nothing_is_said_about_names_that_are_left_out(
    extractions: list[Extraction], per_chunk: int, per_document: int, aliases: int
) -> None:
    limited = grouped(extractions, names_per_chunk=per_chunk, names_per_document=per_document, aliases_per_name=aliases)
    assert len(limited.roots) <= per_document
    for extraction in limited.extractions:
        names = {limited.keys(said.name) for said in extraction.mentions} - {""}
        assert len(names) <= per_chunk
    sizes = [sum(root == key for root in limited.roots.values()) for key in limited.groups]
    assert all(size <= aliases + 1 for size in sizes)


@given(extractions_of_names)
def test_the_names_near_a_name_are_those_of_its_chunks(extractions: list[Extraction]) -> None:
    names = names_of_document(extractions, NameLimits(), NO_EDITS)
    limited = grouped(extractions)
    chunks = names.chunks_by_name()
    for number, name in enumerate(names.names):
        mentioned = ({limited.roots[limited.keys(one.name)] for one in chunk.mentions if one.name} for chunk in extractions)
        beside = {other for roots in mentioned if name.key in roots for other in roots} - {name.key}
        expected = {key for other in beside for key in (other, *limited.groups[other].aliases)}
        assert names.near(number, chunks) == expected


def test_names_of_a_document_pass_to_another_process() -> None:
    names = names_of_document(chain(3), NameLimits(), NO_EDITS)
    assert pickle.loads(pickle.dumps(names)) == names
