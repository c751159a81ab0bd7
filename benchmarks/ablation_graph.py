"""Turns off each ingredient of `graph` in turn, on MuSiQue, HotpotQA and SQuAD 2.0, without a language model.

Every set is ingested once. Each question is asked with each case in turn. The difference of R@5 from `graph` has its 95 %
interval by paired bootstrap over the questions. Writes ``results/ablation_graph.json`` and ``results/ablation_graph.md``. Nothing
is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.evaluation.datasets import QuestionSet
from agentic_rag_backend.evaluation.ranking_metrics import recall_at
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.strategies import graph as strategy
from held_strategies import interval
from report import data, finish, make_settings, quiet
from reranking import filled, keys_of, question_set

SETS = ("musique", "hotpotqa", "squad2")
WHOLE = "graph"


def unwalked(_graph: TenantGraph, evidence: strategy.GraphEvidence) -> dict[str, float]:
    """Return the hybrid scores, as `strategy.direct_scores` does for a question without entities."""
    best = max(evidence.hybrid.values(), default=0.0) or 1.0
    return {id: score / best for id, score in evidence.hybrid.items()}


CASES: Mapping[str, Mapping[str, Any]] = {
    WHOLE: {},
    "without entities of the question": {"link_question": lambda _graph, _text: {}},
    "without the walk": {"direct_scores": unwalked},
    "without shares of subjects": {"share": lambda values, _subjects: values},
    "without the second hop": {"with_hops": lambda direct, _hops: dict(direct)},
    "without passages about named entities first": {"select_named_passages": lambda _graph, _evidence, _scores: set()},
    "without marginal relevance": {"RELEVANCE_SHARE": 1.0},
}
"""Names of `strategy` that a case replaces."""


@contextmanager
def without(replaced: Mapping[str, Any]) -> Iterator[None]:
    """Replace names of the strategy's module."""
    with ExitStack() as stack:
        for name, value in replaced.items():
            stack.enter_context(mock.patch.object(strategy, name, value))
        yield


async def measure(services: Container, questions: QuestionSet) -> dict[str, dict[str, Any]]:
    """Return the row of each case, and of `hybrid`."""
    tenant = await filled(services, questions)
    recalls: dict[str, list[list[float]]] = {name: [] for name in (*CASES, "hybrid")}
    for labelled in questions.questions:
        query = Query(tenant=tenant, text=labelled.question, limit=20)
        for name in recalls:
            with without(CASES.get(name, {})):
                chosen = services.retrievers.get("hybrid" if name == "hybrid" else WHOLE)
                keys = keys_of(await chosen.retrieve(replace(query)))
            recalls[name].append([recall_at(keys, labelled.gold, k) for k in (2, 5, 10)])
    return {name: row(values, recalls[WHOLE]) for name, values in recalls.items()}


def row(values: Sequence[Sequence[float]], base: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return recall, and the difference of R@5 from the whole."""
    differences = [one[1] - other[1] for one, other in zip(values, base, strict=True)]
    low, high = interval(differences)
    means = [round(statistics.fmean(each[number] for each in values), 3) for number in range(3)]
    return {
        **dict(zip(("R@2", "R@5", "R@10"), means, strict=True)),
        "difference": round(statistics.fmean(differences), 3),
        "interval": [round(low, 3), round(high, 3)],
    }


async def measure_all(folder: Path, filled_folder: Path, sets: Sequence[str]) -> dict[str, Any]:
    """Measure the sets in one data folder."""
    results = {}
    settings = make_settings(data_dir=filled_folder, community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
    async with open_container(settings) as services:
        for name in sets:
            results[name] = await measure(services, question_set(folder, name))
            print(name, results[name], flush=True)
    return results


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table."""
    lines = ["| set | case | R@2 | R@5 | R@10 | difference of R@5 | 95 % interval |", "|---|---|---|---|---|---|---|"]
    for name, cases in results.items():
        for case, found in cases.items():
            low, high = found["interval"]
            cells = [name, case, found["R@2"], found["R@5"], found["R@10"], f"{found['difference']:+}", f"{low:+} to {high:+}"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--filled", type=Path, help="data folder that keeps the ingested sets")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as made:
        results = asyncio.run(measure_all(folder, chosen.filled or Path(made), chosen.sets))
    return finish("ablation_graph", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
