from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import Extraction, normalise_name
from agentic_rag_backend.domain.ontology import EntityField, EntityType, Ontology
from agentic_rag_backend.knowledge.extraction.fields import MAX_NAME_CHARACTERS, MAX_NAMED, entities_of, with_fields

ONTOLOGY = Ontology(
    (EntityType("person"), EntityType("concept")),
    entity_fields=(EntityField("author", "person"), EntityField("label", "concept"), EntityField("editor", "person")),
)
VALUES = st.one_of(st.text(max_size=200), st.integers(), st.none(), st.booleans(), st.lists(st.one_of(st.text(), st.integers())))


def test_the_fields_of_the_ontology_name_entities_of_every_chunk() -> None:
    metadata = {"author": ["Mara  Voss ", "Ina Holt"], "label": "tides", "editor": "mara voss", "shelf": "Nine", "year": 2019}
    found = with_fields([Extraction(chunk_id="c1"), Extraction(chunk_id="c2")], metadata, ONTOLOGY)
    expected = [("Mara Voss", "person"), ("Ina Holt", "person"), ("tides", "concept")]
    for each in found:
        assert [(one.name, one.type) for one in each.mentions] == expected
        assert all(one.about and (one.start_char, one.end_char) == (0, 0) for one in each.mentions)


def test_values_that_are_no_names_are_skipped() -> None:
    for value in (7, 1.5, True, None, "", "  ", "?!", [], [7, None], "x" * (MAX_NAME_CHARACTERS + 1)):
        assert entities_of({"author": value}, ONTOLOGY) == (), value
    assert len(entities_of({"label": [f"label {number}" for number in range(200)]}, ONTOLOGY)) == MAX_NAMED
    assert entities_of({"author": "Mara Voss"}, None) == ()


@given(metadata=st.dictionaries(st.sampled_from(["author", "label", "editor", "other"]), VALUES))
def test_every_metadata_gives_bounded_names(metadata: dict[str, Any]) -> None:
    found = entities_of(metadata, ONTOLOGY)
    assert len({(normalise_name(each.name), each.type) for each in found}) == len(found) <= MAX_NAMED
    assert all(normalise_name(each.name) and len(each.name) <= MAX_NAME_CHARACTERS for each in found)
