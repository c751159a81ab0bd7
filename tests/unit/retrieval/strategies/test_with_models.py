"""HyDE, multi-query and corrective retrieval: with a model, without one, and with a model that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from scripted_models import PromptedModel as Model
from two_axes import Embedder, Vectors

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable, StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, Calibrator
from agentic_rag_backend.retrieval.base import QueryEncoder, Stores
from agentic_rag_backend.retrieval.grading import ModelGrader, grades_of
from agentic_rag_backend.retrieval.rewriting import NO_NAMES, NO_OTHER_WORDING, QueryRewriter
from agentic_rag_backend.retrieval.stages.correction import Corrector
from agentic_rag_backend.retrieval.strategies.corrective import Corrective
from agentic_rag_backend.retrieval.strategies.hyde import NO_MODEL, Hyde
from agentic_rag_backend.retrieval.strategies.multi_query import MultiQuery
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

Ask = Callable[..., Query]
MakeHit = Callable[..., Hit]
MakeGraph = Callable[..., TenantGraph]
SPENT = Usage(10, 5, 1)


class Strategies:
    """A strategy that finds a hit named after the text, and a shared one. Fails for texts in ``fails``."""

    def __init__(self, hit: MakeHit, fails: Sequence[str] = ()) -> None:
        self.hit, self.fails = hit, fails
        self.asked: list[tuple[str, Query]] = []

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        self.asked.append((name, query))
        if query.text in self.fails:
            raise StoreUnavailable("away")
        trace = Trace(strategy=name, methods_used=("dense", "sparse"), details={"as_of": "now"})
        return Retrieval(hits=(self.hit(query.text), self.hit("shared", 0.5)), relevance=0.9, trace=trace)


class Graphs:
    def __init__(self, graph: TenantGraph | None) -> None:
        self.held = graph

    async def graph(self, tenant: object) -> TenantGraph:
        if self.held is None:
            raise StoreUnavailable("the graph is away")
        return self.held


class Grades:
    """Grades by the text of a hit."""

    name = "scripted grades"

    def __init__(self, **grades: float) -> None:
        self.grades = grades

    async def grade(self, question: str, hits: Sequence[Hit]) -> list[float]:
        assert question == "What?"
        return [self.grades.get(hit.id.strip("?").replace(" ", "_"), 0.0) for hit in hits]


@pytest.fixture
def stores() -> Stores:
    nothing = cast("Any", None)
    encoder = QueryEncoder(cast("Any", Embedder()))
    return Stores(
        nothing,
        nothing,
        cast("Any", Vectors()),
        nothing,
        nothing,
        encoder,
        trees=nothing,
        questions=nothing,
        facts=nothing,
        calibrator=Calibrator(nothing, calibration=BUNDLED_CALIBRATION),
    )


PASSAGES = {"passages": [{"text": "It is so."}, {"text": "It is so."}, {"text": " "}, {"text": "Or so."}, "x", {"text": "More."}]}


async def test_hyde_searches_the_mean_of_question_and_passages(stores: Stores, query: Ask, hit: MakeHit) -> None:
    model, inner = Model({"hypothetical_passages": PASSAGES}), Strategies(hit)
    asked = query("What?", options={"base": "graph", "passages": 2}, limit=3)
    found = await Hyde(stores, inner, StructuredCalls(model)).retrieve(asked)
    ((name, searched),) = inner.asked
    assert (name, searched.text) == ("graph", "What?")
    # Two passages of the same direction, and the question.
    assert searched.embedding == pytest.approx(np.array([1.0, 2.0]) / np.sqrt(5))
    assert found.trace.strategy == "hyde"
    assert found.trace.methods_used == ("hyde", "dense", "sparse")
    assert found.trace.details["hyde"] == {"base": "graph", "passages": 2}
    assert (found.usage, found.trace.fallback_used) == (SPENT, False)
    # Measured with the question's own vector, not with that of the invented passages.
    assert found.relevance == pytest.approx(0.6 / 1.5)
    assert "It is so" not in str(found.trace)
    assert "<question>\nWhat?\n</question>" in model.requests[0].messages[1].content


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (None, NO_MODEL),
        (ModelUnavailable("away"), "hypothetical passages failed: model_unavailable"),
        ({"passages": []}, "hypothetical passages failed: the reply has none"),
    ],
)
async def test_hyde_without_passages_searches_the_question_and_says_so(
    stores: Stores, query: Ask, hit: MakeHit, reply: Any, reason: str
) -> None:
    model, inner = Model(None if reply is None else {"hypothetical_passages": reply}), Strategies(hit)
    found = await Hyde(stores, inner, StructuredCalls(model)).retrieve(query("What?"))
    ((name, searched),) = inner.asked
    assert (name, searched.embedding) == ("hybrid", None)
    assert found.trace.fallback_reason == reason
    assert (found.trace.strategy, found.trace.methods_used) == ("hyde", ("dense", "sparse"))
    assert (len(found.hits), found.relevance) == (2, 0.9)


WORDINGS = {"queries": [{"query": "How so?"}, {"query": "what?"}, {"query": "How so?"}, {"query": "And why?"}, {"query": "x"}]}


def rewriter(model: Model, graph: TenantGraph | None) -> QueryRewriter:
    return QueryRewriter(cast("Any", Graphs(graph)), StructuredCalls(model))


async def test_wordings_of_a_model_are_searched_and_fused(query: Ask, hit: MakeHit) -> None:
    model, inner = Model({"query_rewrites": WORDINGS}), Strategies(hit)
    found = await MultiQuery(inner, rewriter(model, None)).retrieve(query("What?", options={"rewrites": 2, "fusion": "rrf"}))
    assert [each.text for _, each in inner.asked] == ["What?", "How so?", "And why?"]
    # Every search found the shared passage, and the question weighs more than the wordings.
    assert [each.id for each in found.hits] == ["shared", "What?", "And why?", "How so?"]
    assert found.trace.details["multi_query"] == {
        "base": "hybrid",
        "queries": ["What?", "How so?", "And why?"],
        "rewritten_by": "model",
    }
    assert (found.trace.fusion, found.usage, found.relevance, found.trace.fallback_used) == ("rrf", SPENT, 0.9, False)


async def test_a_wording_whose_search_fails_is_left_out(query: Ask, hit: MakeHit) -> None:
    model = Model({"query_rewrites": WORDINGS})
    found = await MultiQuery(Strategies(hit, ["How so?"]), rewriter(model, None)).retrieve(query("What?"))
    assert "And why?" in [each.id for each in found.hits]
    assert found.trace.fallback_reason == "the search of rewrite_1 failed: store_unavailable"


async def test_without_a_model_wordings_have_other_names(query: Ask, hit: MakeHit, graph_of: MakeGraph) -> None:
    graph = graph_of({"one": ["World Trade Club"]}, aliases={"World Trade Club": ["WTC"]})
    found = await MultiQuery(Strategies(hit), rewriter(Model(None), graph)).retrieve(query("Where is the WTC?"))
    assert found.trace.details["multi_query"]["queries"] == ["Where is the WTC?", "Where is the World Trade Club?"]
    assert (found.trace.details["multi_query"]["rewritten_by"], found.trace.fallback_used) == ("names", False)


async def test_without_wordings_the_question_alone_is_searched(query: Ask, hit: MakeHit, graph_of: MakeGraph) -> None:
    for reply, graph, reasons in [
        (None, {"one": ["Mira"]}, [NO_NAMES]),
        (None, None, ["the graph is left out: store_unavailable"]),
        ({"queries": [{"query": "WHAT?"}]}, {}, [NO_OTHER_WORDING]),
        (ModelUnavailable("away"), {"one": ["Mira"]}, [NO_NAMES, "rewriting failed: model_unavailable"]),
    ]:
        model, inner = Model(None if reply is None else {"query_rewrites": reply}), Strategies(hit)
        held = None if graph is None else graph_of(graph)
        found = await MultiQuery(inner, rewriter(model, held)).retrieve(query("What?"))
        assert [each.text for _, each in inner.asked] == ["What?"]
        assert found.trace.fallback_reason == "; ".join(reasons)
        assert [each.score for each in found.hits] == [1.0, 0.5]


def corrective(stores: Stores, inner: Strategies, model: Model, grades: Grades) -> Corrective:
    grader = ModelGrader(StructuredCalls(model), cast("Any", grades))
    return Corrective(inner, Corrector(stores, rewriter(model, None), grader))


async def test_sufficient_results_are_not_corrected(stores: Stores, query: Ask, hit: MakeHit) -> None:
    inner, model = Strategies(hit), Model(None)
    found = await corrective(stores, inner, model, Grades(What=0.7)).retrieve(query("What?", options={"base": "graph"}))
    assert [(name, each.text) for name, each in inner.asked] == [("graph", "What?")]
    assert (found.trace.sufficient, found.trace.warnings, found.relevance) == (True, (), 0.9)
    assert [each.scores["grade"] for each in found.hits] == [0.7, 0.0]
    assert [each.score for each in found.hits] == [1.0, 0.5]


async def test_a_wording_that_finds_enough_ends_the_search(stores: Stores, query: Ask, hit: MakeHit) -> None:
    grades = [{"passage": 1, "grade": 1}, {"passage": 2, "grade": 2}]
    model, inner = Model({"query_rewrites": WORDINGS, "passage_grades": {"grades": grades}}), Strategies(hit)
    options = {"relevance_threshold": 0.5, "max_calls": 2}
    # The second call writes the wordings; their results are graded without the model.
    found = await corrective(stores, inner, model, Grades(How_so=0.8)).retrieve(query("What?", options=options))
    assert [each.text for _, each in inner.asked] == ["What?", "How so?"]
    assert found.trace.sufficient is True
    assert found.hits[0].id == "How so?"
    assert found.relevance == pytest.approx(0.6 / 1.5)
    assert found.usage == SPENT + SPENT
    about = found.trace.details["corrective"]
    assert (about["chosen"], about["rewritten_by"], about["sufficient"]) == (1, "model", True)
    assert about["attempts"] == [
        {"query": "What?", "relevant": 0, "best_grade": 0.4, "graded_by": "model"},
        {"query": "How so?", "relevant": 1, "best_grade": 0.8, "graded_by": "scripted grades"},
    ]


async def test_the_best_attempt_is_returned_as_insufficient(stores: Stores, query: Ask, hit: MakeHit) -> None:
    model, inner = Model({"query_rewrites": WORDINGS, "passage_grades": ModelUnavailable("away")}), Strategies(hit, ["How so?"])
    grades = Grades(What=0.2, And_why=0.6)
    found = await corrective(stores, inner, model, grades).retrieve(query("What?"))
    assert [each.text for _, each in inner.asked] == ["What?", "How so?", "And why?"]
    assert found.trace.sufficient is False
    assert found.hits[0].id == "And why?"
    assert found.trace.warnings == ("insufficient: 0 results have a grade of at least 0.7; 1 are required",)
    assert found.trace.fallback_reason == (
        "grading by the model failed: model_unavailable; a search with another wording failed: store_unavailable"
    )
    again = await corrective(stores, Strategies(hit), model, grades).retrieve(
        query("What?", options={"max_refinement_attempts": 0})
    )
    assert [attempt["query"] for attempt in again.trace.details["corrective"]["attempts"]] == ["What?"]
    with pytest.raises(StoreUnavailable):
        await corrective(stores, Strategies(hit, ["What?"]), model, grades).retrieve(query("What?"))


def test_a_passage_gets_the_first_grade_that_the_model_gives() -> None:
    items = [{"passage": 2, "grade": 5}, {"passage": 2, "grade": 0}, {"passage": 9, "grade": 5}, {"passage": True, "grade": 5}]
    assert grades_of({"grades": [*items, {"passage": 3, "grade": 50}, {"passage": 1}, "x"]}, 3) == [0.0, 1.0, 1.0]
    assert grades_of({"grades": "all"}, 2) == [0.0, 0.0]


async def test_vectors_of_a_query_win_over_its_text(query: Ask) -> None:
    encoder = QueryEncoder(cast("Any", Embedder()))
    own = query("What?")
    assert (await encoder.of(own)).tolist() == [1.0, 0.0]
    given = np.array([0.0, 1.0], dtype=np.float32)
    assert (await encoder.of(replace(own, embedding=given))) is given
