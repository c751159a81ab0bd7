from __future__ import annotations

from itertools import permutations

from agentic_rag_backend.knowledge.identity.bearers import Bearer, choose_ids, divide
from agentic_rag_backend.language.descriptions import Description

NURSE, CHAIR, OCEANOGRAPHER = "nurse; female", "chair; male", "oceanographer; female"


def bearer(document: str, said: str = "", *near: str, id: str | None = None) -> Bearer:
    return Bearer(document, Description.parse(said), frozenset(near), id)


THREE = [
    bearer("a", NURSE, "aldry hospital", "clinic boat", "scarrow"),
    bearer("b", "nurse", "clinic boat"),
    bearer("c", CHAIR, "narrows accord", "ingrid vassall", "scarrow"),
    bearer("d", OCEANOGRAPHER, "university of port ellery", "tideglass", "clinic boat project"),
]


def documents(bearers: list[Bearer]) -> list[list[str]]:
    return [[each.document_id for each in group] for group in divide(bearers).groups]


def test_people_of_one_name_are_divided_in_any_order() -> None:
    for order in permutations(THREE):
        assert documents(list(order)) == [["a", "b"], ["c"], ["d"]]


def test_other_documents_join_a_bearer_or_stay_undecided() -> None:
    for said, near, expected in [
        ("male", (), "c"),  # the only one who is no woman
        ("", ("narrows accord", "ingrid vassall"), "c"),
        ("", ("narrows accord",), None),  # one name may be a coincidence
        ("", ("scarrow", "clinic boat"), None),  # names near several bearers do not count
        ("", ("narrows accord", "ingrid vassall", "aldry hospital"), None),  # and neither do names of two bearers
        ("female", (), None),
        ("nurse", (), "a"),
        ("", (), None),
    ]:
        division = divide(THREE)
        number = division.place(bearer("z", said, *near))
        assert (None if number is None else division.groups[number][0].document_id) == expected


def test_without_evidence_of_difference_a_name_is_one_bearer() -> None:
    # One person may be a nurse and chair a board, and may be called Mr in one text and nothing in another.
    for said in (("nurse", "chair"), ("nurse", "nurse"), ("nurse", "male"), ("", ""), ("painter; born 1901", "born 1902")):
        assert not divide([bearer("a", said[0]), bearer("b", said[1])])


def test_documents_that_share_names_are_about_one_bearer_although_kinds_differ() -> None:
    near = ("leeds", "anna brandt")
    assert not divide([bearer("a", "painter", *near), bearer("b", "chemist", *near)])
    assert divide([bearer("a", "painter", *near), bearer("b", "chemist", near[0])])
    assert divide([bearer("a", "painter; born 1850", *near), bearer("b", "painter; born 1950", *near)])


def test_ids_are_kept_by_the_larger_part_and_never_shared() -> None:
    held = [
        bearer("a", NURSE, id="x"),
        bearer("b", "nurse", id="x"),
        bearer("c", CHAIR, id="x"),
        bearer("d", OCEANOGRAPHER, id="whole"),
    ]
    assert choose_ids(divide(held), "whole") == ["x", None, None]


def test_a_written_description_is_read_again() -> None:
    for text in [
        "",
        "nurse",
        "painter, engraver; born 1901; died 1970",
        "oceanographer; born 1976; female",
        "songwriters; male; (1902 film)",
    ]:
        assert Description.parse(text).written == text


def test_a_description_with_unknown_parts_is_read_as_far_as_it_is_known() -> None:
    assert Description.parse("leads the choir; nurse; born once; born 1901").written == "nurse; born 1901"
