"""Units of passages, and the windows around them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.answering.answerability.evidence import LIST_CHARACTERS, units_of, window_of

TABLE = "Crew of the Ada:\n\n| Name | Role |\n| --- | --- |\n| Ann Pell | Pilot |\n| Bo Lind | Cook |"
LIST = "The yard repairs:\n\n- trawlers\n- ferries\n- pilot boats\n\nIt opened in 1887."
FORM = "Invoice\nDate: 3 March 2024\nTotal: 412.50\nDue within thirty days."
PROSE = (
    "The lock was built in 1904. It was widened twice. Barges of the canal company use it at high water every day of the year."
)


def window(text: str, within: str) -> str:
    """Return the text of the window around the unit that contains ``within``."""
    units = units_of(text)
    number = next(number for number, unit in enumerate(units) if within in unit.text)
    return window_of(units, number).text


def test_a_unit_is_quoted_with_what_belongs_to_it() -> None:
    for text, within, expected in [
        (TABLE, "Cook", "Bo Lind – Role: Cook."),
        (LIST, "ferries", "The yard repairs: trawlers; ferries; pilot boats"),
        (LIST, "yard", "The yard repairs: trawlers; ferries; pilot boats"),
        (PROSE, "widened", f"The lock was built in 1904. {PROSE.partition('1904. ')[2]}"),
    ]:
        assert window(text, within) == expected


def test_a_heading_is_quoted_with_what_follows_and_ends_a_window() -> None:
    text = "The parties agree.\n\n## Article 1: The corridor\n\nA corridor shall be kept open. No cable shall lie in it."
    assert window(text, "Article") == "Article 1: The corridor – A corridor shall be kept open."
    assert window(text, "parties") == "The parties agree."


def test_short_lines_are_units_and_wrapped_prose_is_not_cut() -> None:
    assert [unit.text for unit in units_of("Premier Group\nCommission: 10%\n555 Broadway")] == [
        "Premier Group",
        "Commission: 10%",
        "555 Broadway",
    ]
    wrapped = "The harbour board met on Tuesday to hear what\nBrandt had found in the mud below the quay."
    assert [unit.text for unit in units_of(wrapped)] == [wrapped.replace("\n", " ")]


def test_an_item_of_a_long_list_is_quoted_with_the_line_that_introduces_the_list() -> None:
    items = "\n".join(f"- quay number {number} on the northern side of the basin" for number in range(40))
    quoted = window(f"The harbour has:\n\n{items}", "number 31")
    assert quoted.startswith("The harbour has:")
    assert "number 31" in quoted
    assert len(quoted) <= LIST_CHARACTERS


@sampled(gate=50, deep=2000)
@given(st.lists(st.sampled_from([TABLE, LIST, FORM, PROSE, "", "- a", "|", "a: b", "\u2028x"]), max_size=4), st.text(max_size=80))
def test_windows_stay_within_their_passage(parts: list[str], other: str) -> None:
    text = "\n\n".join([*parts, other])
    units = units_of(text)
    assert [unit.start for unit in units] == sorted(unit.start for unit in units)
    for number, unit in enumerate(units):
        assert 0 <= unit.start <= unit.end <= len(text)
        span = window_of(units, number)
        assert span.first <= number <= span.last
        assert span.start <= unit.start
        assert unit.end <= span.end <= len(text)
