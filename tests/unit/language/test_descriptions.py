"""What texts say about the bearer of a name."""

from __future__ import annotations

from agentic_rag_backend.language.descriptions import (
    Description,
    describe,
    describe_title,
    names_of,
)

MARSH = ("john", "marsh")


def test_a_description_stands_beside_the_name() -> None:
    for text, label in [
        ("John Marsh was a painter who worked at Aldry.", "painter"),
        ("John Marsh (1820–1891) was a chemist from Leeds.", "chemist"),
        ("The painter John Marsh won it.", "painter"),
        ("John Marsh, a retired chemist and poet from Leeds, came.", "chemist and poet"),
        ("John Marsh, 57, chair of the association, came.", "chair"),
        ("John Marsh, 40, is reader in physical oceanography.", "oceanographer"),
        ("John A. Marsh was a professor of chemistry.", "professor and chemist"),
        ("John Marsh (born 1901) is an English footballer.", "footballer"),
        ("John Marsh was born in 1901.", "born 1901"),
        ("It was directed by John Marsh.", "director"),
        ("Which prize did John Marsh the painter win?", "painter"),
        ("John Marsh, the painter's son, came.", ""),
        ("John Marsh was the son of a chemist.", ""),
        ("John Marsh was a student of the painter Poole.", ""),
        ("After John Marsh, the chemist Anna Brandt spoke.", ""),
        ("The painter met John Marsh.", ""),
        ("Peter Marsh was a painter.", ""),
    ]:
        assert describe(MARSH, text).label == label


def test_a_longer_name_is_another_one() -> None:
    assert describe(("argo",), "The Argo, a trawler, was built.").label == "trawler"
    assert describe(("argo",), "HMS Argo was a frigate.").label == "frigate"
    assert not describe(("elleri",), "Port Ellery was a town.")


def test_titles_have_parentheses() -> None:
    assert describe_title(MARSH, "John Marsh (rower)").tag == "rower"


def test_some_descriptions_exclude_each_other() -> None:
    for one, other, excludes in [
        (Description(born=frozenset([1802])), Description(born=frozenset([1911])), True),
        (Description(born=frozenset([1901])), Description(born=frozenset([1902])), False),
        (Description(tag="rower"), Description(tag="politician"), True),
        (Description(tag="rower"), Description(), False),
        (Description(gender=frozenset("m")), Description(gender=frozenset("f")), True),
        (Description(kinds=frozenset(["painter"])), Description(kinds=frozenset(["chemist"])), False),
    ]:
        assert one.excludes_bearer(other) == other.excludes_bearer(one) == excludes


def test_kinds_of_other_fields_differ() -> None:
    for one, other, differs, loosely in [
        ("painter", "chemist", True, True),
        ("painter", "sculptor", False, False),
        ("painter", "politician", False, True),
        ("author", "novelist", False, False),
        ("frigate", "trawler", True, True),
        ("ship", "trawler", False, True),
        ("river", "town", True, True),
    ]:
        first, second = describe(MARSH, f"John Marsh was a {one}."), describe(MARSH, f"John Marsh was a {other}.")
        assert first.has_other_kind(second) == second.has_other_kind(first) == differs
        assert first.has_other_kind(second, strictly=False) == loosely


def test_names_and_statements_about_them() -> None:
    assert list(names_of("Who directed The Salt Road with John Marsh at Tarn in 1990?")) == [("salt", "road"), MARSH, ("tarn",)]
