"""Regions of a text in its file: rows, parts of them, and the box around several."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.location import Location, Region, enclose_regions, regions_within

LINES = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), max_size=12).map(
    lambda sizes: [
        Region(start, start + size, page=1, box=(0.0, 0.0, float(size), 10.0))
        for start, size in zip(
            [sum(gap + length for gap, length in sizes[:index]) + sizes[index][0] for index in range(len(sizes))],
            [size for _, size in sizes],
            strict=True,
        )
    ]
)


def test_a_row_describes_a_region_and_leaves_out_what_is_missing_at_its_end() -> None:
    line = Region(3, 9, page=2, label="iv", box=(1.0, 2.0, 3.0, 4.0))
    assert line.as_row() == [3, 9, 2, "iv", [1.0, 2.0, 3.0, 4.0]]
    assert Region.of_row(line.as_row()) == line
    row = Region(0, 4, sheet="Sales", cells="A2:D2")
    assert Region.of_row(row.as_row()) == row
    assert Region(0, 4).as_row() == [0, 4]


def test_fields_describe_a_location() -> None:
    place = Location(
        start_char=1,
        end_char=9,
        start_line=1,
        end_line=2,
        headings=("A",),
        regions=(Region(1, 9, page=1, box=(0.0, 1.0, 2.0, 3.0)),),
    )
    assert Location.of_fields(place.as_fields()) == place


@given(regions=LINES, start=st.integers(0, 200), length=st.integers(1, 200))
def test_the_regions_of_a_passage_are_the_parts_within_it(regions: list[Region], start: int, length: int) -> None:
    found = regions_within(regions, start, start + length)
    held = {char for region in regions for char in range(region.start_char, region.end_char)}
    assert [char for region in found for char in range(region.start_char, region.end_char)] == sorted(
        held & set(range(start, start + length))
    )
    for region in found:
        assert region.box is not None
        # A character is one point wide here.
        assert round(region.box[2] - region.box[0], 6) == region.end_char - region.start_char


def test_the_part_of_a_line_has_the_part_of_its_box() -> None:
    line = Region(10, 20, page=1, box=(100.0, 50.0, 200.0, 60.0))
    assert line.clip_region(15, 17).box == (150.0, 50.0, 170.0, 60.0)
    assert line.clip_region(0, 99) == line


def test_the_box_around_regions() -> None:
    lines = [Region(0, 5, page=1, box=(10, 50, 60, 60)), Region(6, 9, page=1, box=(5, 40, 40, 49)), Region(9, 10, page=1)]
    assert enclose_regions(lines) == (5, 40, 60, 60)
    assert enclose_regions([Region(0, 1)]) is None
