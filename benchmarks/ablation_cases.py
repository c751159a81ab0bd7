"""The rules of retrieval that `ablation_retrieval` leaves out, each with what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.language.questions.kinds import Literals
from agentic_rag_backend.retrieval.agentic.findings import Reflection
from agentic_rag_backend.retrieval.hops import share, subject_keys
from agentic_rag_backend.retrieval.rerank import graph as graph_reranker
from agentic_rag_backend.retrieval.strategies import graph as strategy

GENERAL = ("examples", "realdocs", "hotpotqa", "musique", "squad2")
NAMES = ("examples", "realdocs", "name_collisions", "affiliations", "musique")
TIMES = ("times", "realdocs")
EVERY = (*GENERAL, "name_collisions", "times")


@dataclass(frozen=True, slots=True)
class Case:
    """What replaces names of modules (``module:name`` or ``module:class:name``), and where that is measured.

    ``wraps``: a value is a function from what it replaces.
    """

    replaced: Mapping[str, Any] = field(default_factory=dict)
    strategies: Sequence[str] = ("graph",)
    sets: Sequence[str] = GENERAL
    options: Mapping[str, Any] = field(default_factory=dict)
    wraps: bool = False


def give(value: Any) -> Callable[..., Any]:
    """Return a function that returns a value, whatever it is given."""
    return lambda *_args, **_kwargs: value


def give_later(value: Any) -> Callable[..., Any]:
    """Return the asynchronous form of `give`."""

    async def answer(*_args: Any, **_kwargs: Any) -> Any:
        return value

    return answer


def first(value: Any, *_args: Any, **_kwargs: Any) -> Any:
    """Return the first argument."""
    return value


def unwalked(_graph: Any, evidence: strategy.GraphEvidence) -> dict[str, float]:
    """Return the hybrid scores, as `direct_scores` does for a question without entities."""
    best = max(evidence.hybrid.values(), default=0.0) or 1.0
    return {id: score / best for id, score in evidence.hybrid.items()}


def always_walked(graph: Any, evidence: strategy.GraphEvidence) -> dict[str, float]:
    """Return the product of walk and hybrid score, also for a question without entities."""
    walked = strategy.walked_mass(graph, evidence)
    factors = share(walked.mass**0.5, subject_keys(graph, walked.numbers)).tolist()
    by_id = dict(zip([graph.chunk_ids[number] for number in walked.numbers.tolist()], factors, strict=True))
    by_id |= {id: mass**0.5 for id, mass in walked.outside.items()}
    scores = {id: (evidence.hybrid.get(id, 0.0) + strategy.SCORE_BASE) * factor for id, factor in by_id.items()}
    best = max(scores.values(), default=0.0) or 1.0
    return {id: score / best for id, score in scores.items()}


def single_masses(pool: graph_reranker.Pool) -> list[float]:
    """Return the square root of the walk mass of each candidate ÷ the greatest one."""
    roots = [value**0.5 for value in graph_reranker.walk(pool)]
    best = max(roots, default=0.0) or 1.0
    return [root / best for root in roots]


GRAPH, HOPS, STAGES = "retrieval.strategies.graph", "retrieval.hops", "retrieval.stages"
NAMESAKES, AGENTIC = f"{STAGES}.namesakes", "retrieval.agentic"
LEGS, RERANK = "retrieval.options.leg_weights", "retrieval.rerank.graph"
TEMPORAL = "retrieval.strategies.temporal_search"

CASES: Mapping[str, Case] = {
    # The strategy graph.
    "graph: names of the question": Case({f"{GRAPH}:link_question": give({})}),
    "graph: common words as names": Case(
        {"knowledge.tenant_graph.linking:COMMON_WORD_WEIGHT": 0.0}, sets=(*GENERAL, "name_collisions")
    ),
    "graph: the walk": Case({f"{GRAPH}:direct_scores": unwalked}),
    "graph: no walk without names": Case({f"{GRAPH}:direct_scores": always_walked}),
    "graph: shares of subjects": Case({f"{GRAPH}:share": first}),
    "graph: second hop": Case({f"{GRAPH}:with_hops": lambda direct, _hops: dict(direct), f"{GRAPH}:reached_by_hop": give(set())}),
    "graph: named passages first": Case({f"{GRAPH}:select_named_passages": give(set())}),
    "graph: marginal relevance": Case({f"{GRAPH}:RELEVANCE_SHARE": 1.0}),
    "hop: types that are not followed": Case({f"{HOPS}:UNRELATED": frozenset()}),
    "hop: hubs are not followed": Case({f"{HOPS}:HUB_MINIMUM": 10**9, f"{HOPS}:HUB_MAXIMUM": 10**9}),
    "hop: price of shared entities": Case({f"{HOPS}:SHARING": 0.0}),
    "hop: to other subjects only": Case({f"{GRAPH}:to_other_subjects": lambda _graph, links: links}),
    "hop: least best score": Case({f"{HOPS}:LEAST_BEST": 1e-9}),
    "hop: words newly covered": Case({f"{HOPS}:COVERAGE_WEIGHT": 0.0}),
    "hop: cosine with the question": Case(
        {f"{GRAPH}:score_hops": lambda whole: lambda links, direct, _similarity, coverage: whole(links, direct, {}, coverage)},
        wraps=True,
    ),
    "hop: cosines that the leg lacks": Case({f"{GRAPH}:GraphRetriever:_exact_cosines": give_later({})}),
    # Stages.
    "names: shared names, in all": Case(
        {f"{NAMESAKES}:NamesakeRetriever:_find_names": give_later(())}, ("graph", "hybrid"), NAMES
    ),
    "names: described names, in all": Case({f"{NAMESAKES}:described_names": give(())}, ("graph", "hybrid"), NAMES),
    "names: a passage of each bearer": Case(
        {f"{NAMESAKES}:NamesakeRetriever:_add_bearers": lambda self, query, names, retrieval: give_later(retrieval)()},
        ("graph", "hybrid"),
        NAMES,
    ),
    "names: what a bearer belongs to": Case(
        {f"{STAGES}.described_names:find_belongings": give(frozenset())},
        ("graph", "hybrid"),
        NAMES,
    ),
    "names: kinds of the question": Case({f"{STAGES}.described_names:_shares": give(False)}, ("graph", "hybrid"), NAMES),
    # Hybrid search and its reranker.
    "hybrid: leaning to words": Case({f"{LEGS}:_find_leaning": give(None)}, ("hybrid",)),
    "hybrid: identifiers": Case(
        {f"{LEGS}:find_literals": lambda whole: lambda text: Literals(whole(text).quoted, ())}, ("hybrid",), wraps=True
    ),
    "hybrid: quoted phrases": Case(
        {f"{LEGS}:find_literals": lambda whole: lambda text: Literals((), whole(text).identifiers)}, ("hybrid",), wraps=True
    ),
    "hybrid: scripts": Case({f"{LEGS}:is_mostly_latin": give(True)}, ("hybrid",)),
    "rerank graph: means of titles": Case({f"{RERANK}:SIGNALS": {"mass": single_masses}}, ("hybrid",)),
    "rerank graph: in all": Case(
        {f"{STAGES}.pipeline:RerankedRetriever:retrieve": lambda self, query: self._candidates.retrieve(query)}, ("hybrid",)
    ),
    # The default strategy and its rounds.
    "auto: rounds": Case(strategies=("auto",), options={"low_strategy": "auto"}),
    "auto: hybrid for accounts": Case({"retrieval.strategies.dual_level:_OF_FORM": {}}, ("auto",)),
    "auto: no second round if covered": Case({f"{AGENTIC}.strategy:has_covering_passage": give(False)}, ("auto",)),
    "auto: other names of the question": Case(
        {f"{AGENTIC}.plan:plan_by_rules": lambda whole: lambda question, _wordings: whole(question, ())},
        ("auto",),
        (*GENERAL, "name_collisions"),
        wraps=True,
    ),
    "auto: acronyms": Case({"retrieval.rewriting:_full_names": give([]), "retrieval.rewriting:_acronyms": give(())}, ("auto",)),
    "auto: facts of the second round": Case(
        {f"{AGENTIC}.findings:by_rules": give(Reflection())}, ("auto",), (*GENERAL, "name_collisions")
    ),
    "auto: entities of the second round": Case(
        {f"{AGENTIC}.search_rounds:with_entities": lambda query, entities: query}, ("auto",)
    ),
    # Times.
    "temporal: in all": Case({f"{TEMPORAL}:time_phrase": give(None)}, ("temporal",), TIMES),
    "temporal: fit of dates": Case({f"{TEMPORAL}:preferring": first}, ("temporal",), TIMES),
    "temporal: dates in the text": Case({f"{TEMPORAL}:find_moments": give(())}, ("temporal",), TIMES),
    "temporal: dates of documents": Case({f"{TEMPORAL}:document_period": give(None)}, ("temporal",), TIMES),
}
