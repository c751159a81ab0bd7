"""Wordings of a question with other names of its entities."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cpu_time import cpu_s

from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question, named_spans
from agentic_rag_backend.retrieval import rewriting
from agentic_rag_backend.retrieval.rewriting import rewrites_by_names

MakeGraph = Callable[..., TenantGraph]


@pytest.fixture
def graph(graph_of: MakeGraph) -> TenantGraph:
    chunks = {
        "one": ["Northern Lights Society", "Mira Voss"],
        "two": ["Harbour Trade Council", "HTC"],
        "three": ["Harbour Trade Council", "Paris"],
    }
    return graph_of(chunks, aliases={"Northern Lights Society": ["NLS", "Aurora Club"], "Mira Voss": ["M. Voss"]})


def test_names_are_replaced(graph: TenantGraph) -> None:
    for question, expected in [
        ("Who directs the NLS?", ["Who directs the Northern Lights Society?", "Who directs the Aurora Club?"]),
        ("Mira Voss's boat", ["M. Voss's boat"]),
        ("Mira Voss’s boat", ["M. Voss’s boat"]),
        (
            'Did "Mira Voss" join the Aurora Club?',
            ['Did "M. Voss" join the Northern Lights Society?', 'Did "Mira Voss" join the NLS?'],
        ),
        ("What is the Harbour Trade Council?", ["What is the HTC?"]),
        ("Where is Paris?", []),
        ("mira voss-paris", []),
        ("", []),
        ("Nobody known", []),
    ]:
        assert sorted(rewrites_by_names(graph, question, 5)) == sorted(expected)


def test_an_acronym_that_is_no_name_stands_for_names_with_its_initials(graph_of: MakeGraph) -> None:
    graph = graph_of({"one": ["River Trade Council"], "two": ["River Trade Council", "Royal Tea Club"], "three": ["Rotunda"]})
    assert rewrites_by_names(graph, "When did the RTC meet?", 5) == [
        "When did the River Trade Council meet?",
        "When did the Royal Tea Club meet?",
    ]
    assert rewrites_by_names(graph, "When did the RTC meet?", 1) == ["When did the River Trade Council meet?"]


def test_a_name_of_several_entities_is_not_replaced(graph_of: MakeGraph) -> None:
    graph = graph_of({"one": ["Ann Lee", "Ann Low"]}, aliases={"Ann Lee": ["Ann"], "Ann Low": ["Ann"]})
    assert rewrites_by_names(graph, "Who is Ann?", 3) == []


def test_spans_and_links_agree(graph: TenantGraph) -> None:
    question = "(Mira Voss), the NLS and Paris!"
    spans = named_spans(graph, question)
    assert {question[span.start : span.end] for span in spans} == {"Mira Voss", "NLS", "Paris"}
    assert set(link_question(graph, question)) == {entity for span in spans for entity in span.entities}


@pytest.mark.parametrize("part", ["Mira Voss–", "Paris–", "NLS AB "])
def test_the_longest_question_costs_about_its_length(graph: TenantGraph, part: str) -> None:
    def seconds(characters: int) -> float:
        return cpu_s(lambda: rewrites_by_names(graph, (part * characters)[:characters], 4))

    assert seconds(8_000) < 24 * seconds(1_000)


def test_only_the_first_acronyms_are_looked_up(graph: TenantGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def full_names(_: TenantGraph, short: str) -> list[str]:
        looked_up.append(short)
        return []

    monkeypatch.setattr(rewriting, "_full_names", full_names)
    rewrites_by_names(graph, " ".join(f"Q{number}" for number in range(1_000)) + " Q1" * 100, 4)
    assert looked_up == [f"Q{number}" for number in range(rewriting.MAX_NAMES)]


def test_of_many_names_of_one_acronym_only_the_chosen_ones_are_displayed(
    graph_of: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of({"one": [f"Naa{number} Corporation" for number in range(100)], "two": ["Naa7 Corporation"]})
    displayed: list[int] = []
    read_names = TenantGraph.names_of

    def names_of(graph: TenantGraph, number: int) -> list[str]:
        displayed.append(number)
        return read_names(graph, number)

    monkeypatch.setattr(TenantGraph, "names_of", names_of)
    assert rewrites_by_names(graph, "What is NC?", 4) == ["What is Naa7 Corporation?", "What is Naa0 Corporation?"]
    assert len(displayed) == rewriting.MAX_EXPANSIONS
