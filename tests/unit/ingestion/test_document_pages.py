from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.location import Region, regions_within
from agentic_rag_backend.ingestion.document_pages import merge_regions

LINES = [
    Region(0, 40, page=1, box=(72.0, 700.0, 272.0, 710.0)),
    Region(40, 70, page=1, box=(72.0, 688.0, 222.0, 698.0)),  # a divided word has nothing between its lines
    Region(71, 100, page=1, box=(72.0, 676.0, 222.0, 686.0)),
]


@given(st.integers(1, 99), st.integers(0, 40))
def test_parts_of_overlapping_chunks_are_whole_lines_again(cut: int, overlap: int) -> None:
    parts = [*regions_within(LINES, 0, cut), *regions_within(LINES, max(0, cut - overlap), 100)]
    found = merge_regions(parts)
    assert [(each.start_char, each.end_char) for each in found] == [(each.start_char, each.end_char) for each in LINES]
    for one, other in zip(found, LINES, strict=True):
        assert one.box is not None
        assert other.box is not None
        assert all(abs(a - b) < 0.01 for a, b in zip(one.box, other.box, strict=True))


def test_shapes_without_boxes_stay_apart() -> None:
    shapes = [Region(0, 10, page=2), Region(11, 20, page=2)]
    assert merge_regions(shapes) == shapes
