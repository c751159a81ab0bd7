from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled
from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.knowledge.extraction.names.references import references
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor

TITLE = "Tidal flow in narrow straits"
LISTS = {
    "numbers": f"""[1] M. Keller and J. Oduya. {TITLE}. Journal of Coasts, 2014.
[2] A. Voss, T. Eld, et al. Lobster Landings Before and After a Barrage. In Proc. of Fisheries, pages 4-9, 2016.
[3] See the appendix.""",
    "years": f"""Keller, M., & Oduya, J. (2014). {TITLE}. Journal of Coasts, 12(3), 4-9.
Voss, A. (2016, May 4). Lobster Landings Before and After a Barrage. Fisheries, 3.""",
    "quotes": f"""1. Keller, M., “{TITLE},” J. Coasts, vol. 12, 2014.

2. Voss, A., “Lobster Landings Before and After a Barrage,” Proc. Fisheries, 2016.""",
    "wrapped": """[1] M. Keller and J. Oduya. Tidal flow
    in narrow straits. Journal of Coasts, 2014.
[2] A. Voss. Lobster Landings Before
    and After a Barrage. Fisheries, 2016.""",
    "paragraphs": f"""M. Keller, J. Oduya. {TITLE}. Journal of Coasts, 2014.

A. Voss. Lobster Landings Before and After a Barrage. Fisheries, 2016.""",
}


def titles(text: str) -> list[str]:
    return [" ".join(text[each.title_start : each.title_end].split()) for each in references(text)]


@pytest.mark.parametrize("layout", LISTS)
def test_titles_are_found_in_usual_layouts(layout: str) -> None:
    assert titles(LISTS[layout]) == [TITLE, "Lobster Landings Before and After a Barrage"]


def test_entries_without_a_title_are_left_out() -> None:
    for text in [
        "",
        "Keller said so in 2014.",
        "[1] M. Keller. Personal communication.",  # no year
        "[1] Keller, M., Oduya, J., Voss, A. and Eld, T. 2014.",  # people only
        "[1] http://example.org/2014/a/b, accessed 2015.",
        f"[1] {'word ' * 300}2014.",
    ]:
        assert titles(text) == []


@sampled(gate=100, deep=5_000)
@given(text=st.text(st.sampled_from('[1] 2014.,\n"()AaKk-'), max_size=400))
def test_places_are_in_order_and_inside_of_their_entries(text: str) -> None:
    last = 0
    for each in references(text):
        assert last <= each.start <= each.title_start < each.title_end <= each.end <= len(text)
        assert each.title_end - each.title_start <= 250
        last = each.end


async def test_a_document_cites_works_and_other_documents_are_them(chunks: MakeChunks) -> None:
    body = chunks("The barrage hurts eels.", headings=("Barrages and eels",))
    listed = chunks(LISTS["numbers"], headings=("Barrages and eels", "7. References"), document="d2")
    later = chunks("[9] A. Voss. Not a reference at all. 2014.", headings=("Barrages and eels", "Appendix"), document="d3")
    found = await RuleExtractor().extract("Barrages and eels", [*body, *listed, *later])
    cited = [each for extraction in found for each in extraction.relationships if each.relation == "cites"]
    assert [(each.source, each.target) for each in cited] == [
        ("Barrages and eels", TITLE),
        ("Barrages and eels", "Lobster Landings Before and After a Barrage"),
    ]
    text = listed[0].text
    assert [text[each.fact_start : each.fact_end] for each in cited] == [each.fact for each in cited]
    assert {each.type for extraction in found for each in extraction.mentions if each.name == "Barrages and eels"} == {"work"}
    (mention,) = (each for each in found[1].mentions if each.name == TITLE)
    assert (text[mention.start_char : mention.end_char], mention.type) == (TITLE, "work")


async def test_a_plain_text_begins_its_references_with_a_line(chunks: MakeChunks) -> None:
    pieces = chunks("The barrage hurts eels.\n\nReferences", LISTS["numbers"])
    found = await RuleExtractor().extract("Barrages and eels", pieces)
    assert [each.target for extraction in found for each in extraction.relationships if each.relation == "cites"] == [
        TITLE,
        "Lobster Landings Before and After a Barrage",
    ]
