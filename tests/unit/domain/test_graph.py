from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import community_point_id, name_words, normalise_name


def test_the_form_under_which_names_are_compared() -> None:
    for name, form in [
        ("The I.B.M.'s", "ibm"),
        ("Mira Voss's", "mira voss"),
        ("Mira Voss’s", "mira voss"),
        ("An A-Team", "team"),
        ("Vitamin A-Z", "vitamin a z"),
        ("the", "the"),
        ("The The", "the"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "café"),
        ("ﬁne  \t print", "fine print"),
        ("C++ & C#", "c++ c#"),
        ("—", ""),
        ("", ""),
    ]:
        assert normalise_name(name) == form


@given(st.text(max_size=40))
def test_words_of_a_name_are_those_of_its_parts(text: str) -> None:
    assert [word for part in text.split() for word in name_words(part)] == name_words(text)


@given(st.text(st.characters(codec="ascii") | st.sampled_from(".'s "), max_size=20))
def test_plain_text_has_the_same_words_beside_other_text(text: str) -> None:
    assert [*name_words(text), "é"] == name_words(f"{text} é")


@given(st.uuids(version=4), st.integers(1, 1_000_000))
def test_a_communitys_point_leads_back_to_it(id: uuid.UUID, generation: int) -> None:
    point = community_point_id(str(id), generation)
    assert point != str(id)
    assert community_point_id(point, generation) == str(id)
    assert community_point_id(str(id), generation + 1) != point
