from __future__ import annotations

from typing import Any, cast

import pytest
from theme_doubles import HashedWords

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, Calibrator
from agentic_rag_backend.retrieval.agentic.stopping import POLICIES
from agentic_rag_backend.retrieval.base import QueryEncoder, Stores
from agentic_rag_backend.retrieval.parts import Parts
from agentic_rag_backend.retrieval.registry import (
    STRATEGIES,
    RetrieverRegistry,
    check_options,
    options_without_effect,
    with_names,
)
from agentic_rag_backend.retrieval.rerank.graph import SIGNALS
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from agentic_rag_backend.retrieval.scoring import FUSIONS
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevelOptions
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.raptor import ORDERS, SEARCHES


class English(HashedWords):
    languages = ("en",)


@pytest.fixture
def registry() -> RetrieverRegistry:
    """Return a registry whose strategies are built but never used."""
    nothing = cast("Any", None)
    stores = Stores(
        nothing,
        nothing,
        nothing,
        nothing,
        English(4),
        QueryEncoder(nothing),
        trees=nothing,
        questions=nothing,
        facts=nothing,
        calibrator=Calibrator(nothing, calibration=BUNDLED_CALIBRATION),
    )
    return RetrieverRegistry(
        Parts(
            stores,
            TenantGraphs(nothing, nothing, max_bytes=1),
            DualLevelOptions(),
            StructuredCalls(nothing),
            nothing,
            strategies=STRATEGIES,
        )
    )


def test_names_and_aliases(registry: RetrieverRegistry) -> None:
    names = [(name, key) for key, strategy in STRATEGIES.items() for name in (key, *strategy.aliases)]
    assert len(dict(names)) == len(names), "no alias stands for two"
    for name, key in names:
        assert registry.canonical(name) == key
        assert registry.get(name) is registry.get(key)
        assert getattr(registry.strategy(name), "name", key) == key


@pytest.mark.parametrize("name", ["", "Dense", "nonsense", "x" * 500])
def test_unknown_names_are_refused_with_the_known_ones(registry: RetrieverRegistry, name: str) -> None:
    with pytest.raises(InvalidRequest, match="known are agentic, auto, basic") as error:
        registry.get(name)
    assert len(error.value.message) < 400


@pytest.mark.parametrize("switched_on", [True, False])
def test_the_description_says_what_is_available(registry: RetrieverRegistry, switched_on: bool) -> None:
    rows = {row["name"]: row for row in registry.describe(dual_level=switched_on)}
    assert list(rows) == list(STRATEGIES)
    for name, row in rows.items():
        assert row["available"] is (switched_on or name != "dual_level")
        assert (row["why_not"] is None) is row["available"]
        assert row["description"]
        assert row["options"]["additionalProperties"] is (
            "base" in STRATEGIES[name].options.schemas() or name in ("agentic", "fusion")
        )
    assert rows["dense"]["languages"] == rows["graph"]["languages"] == ["en"]
    assert rows["sparse"]["languages"] is None
    assert rows["dense"]["aliases"] == ["basic", "semantic", "vector"]
    assert rows["hybrid"]["options"]["properties"]["fusion"]["enum"] == ["min_max", "rrf", "dbsf"]


def test_options_within_their_schema() -> None:
    for name, options in [
        ("dense", {}),
        ("hybrid", {"fusion": "rrf"}),
        ("graph", {"entities": []}),
        ("community", {"entities": ["Mira"]}),
        ("graph", {"entities": ["x" * 512] * 20}),
        ("community", {"level": 0}),
        ("community", {"level": 9}),
        ("dual_level", {"level": 1, "entities": ["Mira"]}),
        ("community", {"budget_tokens": 200, "rate": "model", "max_calls": 32}),
        ("global", {"budget_tokens": 100_000, "rate": "score", "max_calls": 1, "level": 0}),
        ("drift", {"follow_ups": 0, "rate": "model"}),
        ("drift", {"follow_ups": 8}),
        ("hyde", {"passages": 5}),
        ("hyde", {"base": "graph", "entities": ["Mira"]}),
        ("parent_child", {"context_window": 0, "max_chunks": 50, "base": "dense"}),
        ("multi_query", {"rewrites": 1, "fusion": "min_max"}),
        ("fusion", {}),
        ("fusion", {"methods": ["dense", "graph"], "entities": ["Mira"]}),
        ("fusion", {"weights": {"dense": 0.5, "raptor": 1}, "levels": [0]}),
        ("fusion", {"preset": "question"}),
        ("corrective", {"relevance_threshold": 1, "max_refinement_attempts": 0, "min_relevant": 10}),
        ("corrective", {"base": "parent_child", "max_chunks": 3, "relevance_threshold": 0.5}),
        ("agentic", {"policy": "budget", "epsilon": 0, "max_seconds": 0.5, "negative_constraints": ["x"], "entities": ["y"]}),
    ]:
        check_options(name, options)


def nested() -> list[Any]:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dense", {"fusion": "rrf"}, "strategy 'dense' has no option 'fusion'; it has contradictions"),
        ("hybrid", {"x" * 500: 1}, "it has fusion"),
        ("auto", {"entities": []}, "has no option 'entities'"),
        ("hybrid", {"fusion": "sum"}, "must be one of min_max, rrf, dbsf; got 'sum'"),
        ("hybrid", {"fusion": None}, "got None"),
        ("hybrid", {"fusion": ["rrf"]}, "got ['rrf']"),
        ("hybrid", {"fusion": {}}, "got {}"),
        ("hybrid", {"fusion": nested()}, "must be one of"),
        ("community", {"level": -1}, "from 0 to 9; got -1"),
        ("community", {"level": 10}, "got 10"),
        ("community", {"level": 1.0}, "got 1.0"),
        ("community", {"level": True}, "got True"),
        ("community", {"level": "1"}, "got '1'"),
        ("community", {"level": nested()}, "from 0 to 9"),
        ("graph", {"entities": "Mira"}, "a list of at most 20 names; got 'Mira'"),
        ("graph", {"entities": ["x"] * 21}, "at most 20 names"),
        ("graph", {"entities": ["Mira", 5]}, "at most 20 names"),
        ("graph", {"entities": nested()}, "at most 20 names"),
        ("graph", {"entities": ["x" * 513]}, "at most 512 characters; got 513"),
        ("dual_level", {"level": 10, "entities": []}, "got 10"),
        ("global", {"budget_tokens": 199}, "options.budget_tokens must be an integer from 200 to 100000; got 199"),
        ("global", {"max_calls": 33}, "from 1 to 32; got 33"),
        ("global", {"max_calls": 0}, "from 1 to 32; got 0"),
        ("global", {"follow_ups": 1}, "has no option 'follow_ups'"),
        ("drift", {"follow_ups": 9}, "from 0 to 8; got 9"),
        ("drift", {"rate": "cheap"}, "options.rate must be one of score, model; got 'cheap'"),
        ("drift", {"rate": ["model"]}, "got ['model']"),
        ("hyde", {"passages": 6}, "options.passages must be an integer from 1 to 5; got 6"),
        ("hyde", {"base": "hyde"}, "options.base must be one of auto, dense,"),
        ("hyde", {"base": "community"}, "got 'community'"),
        ("hyde", {"base": nested()}, "options.base must be one of"),
        ("hyde", {"entities": ["Mira"]}, "has no option 'entities'"),
        ("hyde", {"base": "corrective", "relevance_threshold": 0.5}, "got 'corrective'"),
        ("parent_child", {"context_window": -1}, "from 0 to 10; got -1"),
        ("parent_child", {"max_chunks": 0}, "from 1 to 50; got 0"),
        ("fusion", {"methods": ["dense"]}, "options.methods must be a list of 2 to 5 names; got ['dense']"),
        ("fusion", {"methods": ["dense"] * 6}, "must be a list of 2 to 5 names"),
        ("fusion", {"methods": ["dense", "dense"], "entities": []}, "2 to 5 different strategies; got dense, dense"),
        ("fusion", {"methods": ["dense", "fusion"]}, "options.methods must have names among auto,"),
        ("fusion", {"methods": ["dense", ["graph"]]}, "got ['graph']"),
        ("fusion", {"methods": nested()}, "must be a list of 2 to 5 names"),
        ("fusion", {"weights": {"dense": 2, "graph": 1}}, "options.weights.dense must be a number from 0 to 1; got 2"),
        ("fusion", {"weights": {"dense": True}}, "got True"),
        ("fusion", {"weights": {"dense": float("nan")}}, "got nan"),
        ("fusion", {"weights": {"nobody": 1}}, "options.weights must have names among auto"),
        ("fusion", {"weights": {}}, "options.weights must be an object of names and numbers; got {}"),
        ("fusion", {"weights": []}, "got []"),
        ("fusion", {"weights": {"dense": 1}}, "options.weights must name 2 to 5 different strategies; got dense"),
        ("fusion", {"methods": ["dense", "graph"], "weights": {"dense": 1}}, "one weight for each of dense, graph; got dense"),
        ("corrective", {"base": "fusion", "methods": ["dense", "dense"]}, "2 to 5 different strategies; got dense, dense"),
        ("fusion", {"preset": "best"}, "one of balanced, factual, exploratory, question; got 'best'"),
        ("corrective", {"relevance_threshold": 1.5}, "options.relevance_threshold must be a number from 0 to 1; got 1.5"),
        ("corrective", {"relevance_threshold": "0.5"}, "got '0.5'"),
        ("corrective", {"base": "corrective"}, "got 'corrective'"),
        ("corrective", {"max_refinement_attempts": 6}, "from 0 to 5; got 6"),
    ],
)
def test_options_outside_their_schema(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        check_options(name, options)
    assert message in error.value.message
    assert len(error.value.message) < 300


def test_strategies_that_others_hold_have_aliases() -> None:
    given = {
        "base": "parent-child",
        "methods": ["semantic", "bm25"],
        "weights": {"bm25": 0.2, "vector": 0.8},
        "entities": ["local"],
    }
    named = with_names("corrective", given)
    assert named == {
        "base": "parent_child",
        "methods": ["dense", "sparse"],
        "weights": {"sparse": 0.2, "dense": 0.8},
        "entities": ["local"],
    }
    check_options("fusion", {name: named[name] for name in ("methods", "weights")})
    for odd in ({"base": ["dense"], "methods": "semantic", "weights": ["bm25"]}, {"base": "nobody", "methods": [["bm25"], 5]}):
        assert with_names("corrective", odd) == odd
    with pytest.raises(InvalidRequest, match="must name each strategy once; got dense, semantic") as refused:
        with_names("fusion", {"weights": {"dense": 0.5, "semantic": 0.5}})
    assert refused.value.field == "weights"


def test_a_refused_name_is_shown_as_the_caller_wrote_it() -> None:
    for name, options, got in [
        ("fusion", {"methods": ["bm25", "parent-child"]}, "options.methods must have names among .*; got 'parent-child'"),
        ("fusion", {"methods": ["bm25"]}, r"options.methods must be a list of 2 to 5 names; got \['bm25'\]"),
        ("fusion", {"weights": {"bm25": 1, "parent-child": 1}}, "options.weights must have names among .*; got 'parent-child'"),
        ("hyde", {"base": "parent-child"}, "options.base must be one of .*; got 'parent-child'"),
    ]:
        with pytest.raises(InvalidRequest, match=got):
            check_options(name, with_names(name, options))


def test_options_that_others_override_are_told() -> None:
    for name, options, warnings in [
        ("fusion", {"preset": "factual"}, ()),
        ("fusion", {"weights": {"dense": 1, "graph": 1}}, ()),
        (
            "fusion",
            {"preset": "factual", "methods": ["dense", "graph"]},
            ("options.preset has no effect: options.methods",),
        ),
        (
            "fusion",
            {"preset": "factual", "weights": {"dense": 1, "graph": 1}},
            ("options.preset has no effect: options.w",),
        ),
        ("corrective", {"base": "fusion", "preset": "factual", "methods": ["dense", "graph"]}, ("options.preset has no effect",)),
        (
            "agentic",
            {"policy": "novelty", "novelty_circuit": False},
            ("options.novelty_circuit has no effect: options.p",),
        ),
        ("agentic", {"policy": "budget", "novelty_circuit": True}, ("options.novelty_circuit has no effect",)),
        ("agentic", {"policy": "novelty", "novelty_circuit": True}, ()),
        ("agentic", {"policy": "fixed_rounds", "novelty_circuit": False}, ()),
        ("agentic", {"novelty_circuit": False}, ()),
        ("dense", {}, ()),
    ]:
        check_options(name, options)
        found = options_without_effect(name, options)
        assert len(found) == len(warnings)
        assert all(warning in text for warning, text in zip(warnings, found, strict=True))


def test_options_offer_what_the_strategy_knows() -> None:
    for strategy, option, names in [
        ("hybrid", "fusion", FUSIONS),
        ("multi_query", "fusion", FUSIONS),
        ("fusion", "fusion", FUSIONS),
        ("raptor", "search", SEARCHES),
        ("raptor", "order", ORDERS),
        ("agentic", "policy", POLICIES),
    ]:
        assert STRATEGIES[strategy].options.schemas()[option]["enum"] == list(names)


def test_the_graph_reranker_offers_its_signals() -> None:
    assert RERANKERS["graph"].options.schemas()["by"]["enum"] == list(SIGNALS)
