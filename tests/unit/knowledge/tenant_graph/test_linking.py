from __future__ import annotations

from collections.abc import Callable

import pytest
from cpu_time import cpu_s
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.linking import COMMON_WORD_WEIGHT, link_question
from agentic_rag_backend.language.words import MAX_NAME_WORDS, STOP_WORDS

Build = Callable[..., TenantGraph]
NAMES = (
    "Mira Voss", "Physics", "Journal of Mathematical Physics", "Seahorse", "IBM", "The Who", "Vitamin A-Z",
    "Jean-Luc Picard", "Area 51", "C++", "Straße", "Café Noir", "7",
)  # fmt: skip


@pytest.fixture
def link(graph_of: Build) -> Callable[[str], dict[str, float]]:
    """Return a function that links a question against `NAMES`."""
    graph = graph_of({"c1": list(NAMES)}, aliases={"Mira Voss": ["M. Voss", "Mira"]})

    def names(text: str) -> dict[str, float]:
        return {graph.entity(number).name: weight for number, weight in link_question(graph, text).items()}

    return names


@pytest.mark.parametrize(
    ("question", "linked"),
    [
        ("Who is Mira Voss?", {"Mira Voss": 1.0}),
        ("Is Mira here", {"Mira Voss": 1.0}),
        ("MIRA VOSS", {"Mira Voss": 1.0}),
        ("what did mira voss do", {"Mira Voss": 1.0}),
        ("Mira Voss's physics", {"Mira Voss": 1.0, "Physics": COMMON_WORD_WEIGHT}),
        ("Mira Voss’s house", {"Mira Voss": 1.0}),
        ("“Mira Voss”, they said (Physics).", {"Mira Voss": 1.0, "Physics": 1.0}),
        ("the Journal of Mathematical Physics", {"Journal of Mathematical Physics": 1.0}),
        ("Journal of Mathematical Physics and Physics", {"Journal of Mathematical Physics": 1.0, "Physics": 1.0}),
        ("what does a seahorse eat", {"Seahorse": COMMON_WORD_WEIGHT}),
        ("what does a Seahorse eat", {"Seahorse": 1.0}),
        ("seahorse or Seahorse", {"Seahorse": 1.0}),
        ("Seahorse or seahorse", {"Seahorse": 1.0}),
        ("when was I.B.M. founded", {"IBM": 1.0}),
        ("who sings", {}),
        ("The Who sings", {}),
        ("near area 51", {"Area 51": 1.0}),
        ("Which vitamins has Vitamin A-Z?", {"Vitamin A-Z": 1.0}),
        ("Jean Luc Picard", {"Jean-Luc Picard": 1.0}),
        ("Is C++ old", {"C++": 1.0}),
        ("die STRASSE", {"Straße": 1.0}),
        ("at the Cafe\u0301 Noir", {"Café Noir": 1.0}),
        ("7 days", {}),
        ("Mira  \n Voss", {"Mira Voss": 1.0}),
        ("Voss Mira", {"Mira Voss": 1.0}),
        ("", {}),
        (" \t\n", {}),
        ("?!… — ()", {}),
    ],
)
def test_what_a_question_names(link: Callable[[str], dict[str, float]], question: str, linked: dict[str, float]) -> None:
    assert link(question) == linked


def test_a_shared_name_is_shared(graph_of: Build) -> None:
    graph = graph_of(
        {"c1": ["Paris (France)", "Paris (Texas)"]}, aliases={"Paris (France)": ["Paris"], "Paris (Texas)": ["Paris"]}
    )
    assert sorted(link_question(graph, "Where is Paris?").values()) == [0.5, 0.5]
    assert list(link_question(graph, "Where is Paris (Texas)?").values()) == [1.0]


def test_no_word_serves_twice(graph_of: Build) -> None:
    graph = graph_of({"c1": ["Carrow Bay", "Bay Report", "Carrow Bay Report", "Report"]})
    found = [graph.entity(number).name for number in link_question(graph, "the Carrow Bay Report")]
    assert found == ["Carrow Bay Report"]
    found = [graph.entity(number).name for number in link_question(graph, "Carrow Bay, Bay Report")]
    assert found == ["Carrow Bay", "Bay Report"]


def test_names_longer_than_the_limit_are_not_looked_for(graph_of: Build) -> None:
    long, longest = " ".join(["Word"] * (MAX_NAME_WORDS + 1)), " ".join(["Term"] * MAX_NAME_WORDS)
    graph = graph_of({"c1": [long, longest]})
    assert link_question(graph, long) == {}
    assert [graph.entity(number).name for number in link_question(graph, f"about {longest} then")] == [longest]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.lists(st.text("abAB'’.-&éß1 ", min_size=1, max_size=6).map(str.strip).filter(bool), min_size=1, max_size=4).map(
        " ".join
    ),
    before=st.sampled_from(["", "Who is ", "Tell me about “"]),
    after=st.sampled_from(["", "?", "”.", ", please"]),
)
def test_a_name_links_to_itself(graph_of: Build, name: str, before: str, after: str) -> None:
    form = normalise_name(name)
    words = form.split()
    assume(len(words) <= MAX_NAME_WORDS and len(form) > 1 and not all(word in STOP_WORDS for word in words))
    graph = graph_of({"c1": [name]})
    assert 0 in link_question(graph, f"{before}{name}{after}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_any_text_is_read(link: Callable[[str], dict[str, float]], text: str) -> None:
    assert all(0.0 < weight <= 1.0 for weight in link(text).values())


@pytest.mark.parametrize("part", ["a b ", "Aa–a", "a-a-", "((()"])
def test_the_longest_question_costs_about_its_length(graph_of: Build, part: str) -> None:
    graph = graph_of({"c1": ["Mira Voss", "a b a b a b a b a c", "Aa", "a"]})

    def seconds(text: str) -> float:
        return cpu_s(lambda: link_question(graph, text), runs=5)

    assert seconds(part * 2_000) < 24 * seconds(part * 250)
