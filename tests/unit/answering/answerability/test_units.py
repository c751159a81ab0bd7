"""Units of passages, and the windows around them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.answering.answerability.units import units_of
from agentic_rag_backend.answering.answerability.windows import (
    EXCESS,
    LIST_CHARACTERS,
    MAX_QUOTATIONS,
    REFERRED_CHARACTERS,
    Window,
    choose_windows,
)

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
    return windows_of(text, [number])[0].text


def windows_of(text: str, numbers: list[int], worth: dict[int, float] | None = None) -> list[Window]:
    """Return the windows that begin with units of one passage."""
    values = {(0, number): value for number, value in (worth or {}).items()}
    return [window for _, window in choose_windows({0: units_of(text)}, [(0, number) for number in numbers], values)]


def test_a_unit_is_quoted_with_what_belongs_to_it() -> None:
    for text, within, expected in [
        (TABLE, "Cook", "Bo Lind – Role: Cook."),
        (LIST, "ferries", "The yard repairs: trawlers; ferries; pilot boats"),
        (LIST, "yard", "The yard repairs: trawlers; ferries; pilot boats"),
        (PROSE, "widened", f"The lock was built in 1904. {PROSE.partition('1904. ')[2]}"),
    ]:
        assert window(text, within) == expected


def test_a_reply_is_quoted_with_its_question() -> None:
    text = "**Who taught you most?**\nAnn Marsh, who supervised my thesis.\n\n**Is it hard?**\nVery."
    assert window(text, "supervised").startswith("Who taught you most? Ann Marsh, who supervised my thesis.")


def test_a_window_that_ends_within_an_announced_list_is_completed() -> None:
    text = "It is used widely. Others that are:\n\n- " + "\n\n- ".join(f"The {name} library of the coast." for name in "ABCDEFGH")
    grown = windows_of(text, [0], {0: 9.0, 1: 5.0, 2: 5.0, 3: 5.0})[0]
    assert grown.text.startswith("It is used widely. Others that are:")
    assert all(f"The {name} library" in grown.text for name in "ABCDEFGH")
    assert len(grown.text) <= LIST_CHARACTERS


def test_a_text_is_quoted_once() -> None:
    units = {0: units_of(PROSE), 1: units_of(PROSE), 2: units_of(LIST)}
    windows = choose_windows(units, [(0, 0), (1, 0), (2, 0)], {})
    assert [passage for passage, _ in windows] == [0, 2]


def test_a_heading_is_quoted_with_what_follows_and_ends_a_window() -> None:
    text = "The parties agree.\n\n## Article 1: The corridor\n\nA corridor shall be kept open. No cable shall lie in it."
    assert window(text, "Article") == "Article 1: The corridor – A corridor shall be kept open. No cable shall lie in it."
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


def test_a_window_takes_what_a_sentence_announces_and_grows_to_what_is_worth_more() -> None:
    libraries = "It is one of five. Other libraries with a similar reach include:\n\n- zlib\n- libpng\n\nLibc is left out."
    assert window(libraries, "one of five").endswith("include: zlib; libpng")
    folders = "The following folders are required.\n\nFolder Use\nbin Commands\nboot Loader\n\n" + "Each is described below. " * 9
    assert "bin Commands boot Loader" in window(folders, "required")
    sentences = [
        f"Pump {number} stands in dock {word}, as it did before the flood of March." for number, word in enumerate("abcdefg")
    ]
    text = " ".join(sentences)
    assert windows_of(text, [3], {2: 0.9, 1: 0.8, 0: 0.7})[0].text == " ".join(sentences[:4])
    assert windows_of(text, [3], {4: 0.9, 5: 0.8, 6: 0.7})[0].text == " ".join(sentences[3:])


@sampled(gate=50, deep=2000)
@given(st.lists(st.sampled_from([TABLE, LIST, FORM, PROSE, "", "- a", "|", "a: b", "\u2028x"]), max_size=4), st.text(max_size=80))
def test_windows_stay_within_their_passage(parts: list[str], other: str) -> None:
    text = "\n\n".join([*parts, other])
    units = units_of(text)
    assert [unit.start for unit in units] == sorted(unit.start for unit in units)
    for unit in units:
        assert 0 <= unit.start <= unit.end <= len(text)
    windows = windows_of(text, list(range(len(units))))
    assert len(windows) <= MAX_QUOTATIONS
    quoted = [number for window in windows for number in range(window.first, window.last + 1)]
    assert len(set(quoted)) == len(quoted)
    for span in windows:
        assert (span.start, span.end) == (units[span.first].start, units[span.last].end)
        longest = max(len(unit.in_context) for unit in units)
        assert len(span.text) <= EXCESS * max(longest, LIST_CHARACTERS + REFERRED_CHARACTERS) + 20
