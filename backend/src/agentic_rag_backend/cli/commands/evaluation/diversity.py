"""``analyze-diversity``: diversity of the results of strategies over many questions, and statistics of communities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session
from agentic_rag_backend.cli.options import RerankOption, parse_rerank, split_names
from agentic_rag_backend.cli.output import Output, fields, table
from agentic_rag_backend.cli.progress import ProgressDisplay
from agentic_rag_backend.errors import Forbidden, InvalidRequest

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.evaluation.result_diversity import Listing

COMPARED = ("dense", "sparse", "hybrid", "graph", "community", "dual_level")
"""Default strategies to compare, if they are available. They call no language model."""
_MAX_QUESTIONS = 10_000

Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        metavar="PATH_OR_NAME",
        help="Questions: a JSON Lines file, a folder with questions.jsonl, or a built-in name.",
    ),
]
NumQueries = Annotated[int, typer.Option("--num-queries", min=2, max=_MAX_QUESTIONS, help="Questions asked of each strategy.")]
Strategies = Annotated[str | None, typer.Option("--strategies", metavar="NAME,…", help="Strategies to compare, comma-separated.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100, help="Results per question.")]


async def analyze_diversity(
    session: Session,
    dataset: Dataset = None,
    num_queries: NumQueries = 50,
    strategies: Strategies = None,
    limit: Limit = 5,
    rerank: RerankOption = None,
) -> None:
    """Measure the diversity of results: distinct documents, communities and entities, identical and similar results.

    Without --dataset, the questions are about the tenant's communities and documents.
    """
    from agentic_rag_backend.evaluation.result_diversity import measure_diversity

    client = session.client
    names = await _select_strategies(client, strategies)
    communities = await client.every("/communities", limit=EVERYTHING)
    candidates = _load_dataset(dataset) if dataset is not None else await _make_questions(client, communities)
    questions = _sample_evenly(candidates, num_queries)
    if len(questions) < 2:
        raise InvalidRequest(f"at least 2 questions are required; got {len(questions)}; name questions with --dataset")
    totals = await _count_totals(client, communities)
    search = {"limit": limit, "rerank": parse_rerank(rerank)}
    figures = {
        name: measure_diversity(await _search_questions(session, {"strategy": name, **search}, questions), totals).as_result()
        for name in names
    }
    result = {
        "dataset": dataset,
        "questions": len(questions),
        **search,
        "strategies": figures,
        "communities": await _describe_communities(client, communities),
    }
    session.output.present(result, _show_result)


async def _select_strategies(client: Client, names: str | None) -> list[str]:
    available = {strategy["name"] for strategy in await client.get("/strategies") if strategy["available"]}
    if names is None:
        return [name for name in COMPARED if name in available]
    if not split_names(names):
        raise InvalidRequest("--strategies must name at least one strategy")
    return list(dict.fromkeys(split_names(names)))


def _load_dataset(dataset: str) -> Sequence[str]:
    """Return the questions of a file or folder, or of the evaluation data of that name.

    Raises:
        InvalidRequest: it does not exist.
    """
    from agentic_rag_backend.evaluation.datasets import evaluation_data, load_questions

    path = Path(dataset)
    if not path.exists() and path.name == dataset and (data := evaluation_data(Path.cwd().parent)) is not None:
        path = data / dataset
    return load_questions(path)


async def _make_questions(client: Client, communities: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a question about each community by its name, and about each document by its title."""
    documents = await client.every("/documents", limit=_MAX_QUESTIONS)
    about = [community["name"] for community in communities] + [document["title"] for document in documents]
    return [f"What is said about {name}?" for name in dict.fromkeys(about) if name]


def _sample_evenly(questions: Sequence[str], count: int) -> list[str]:
    """Return ``count`` questions at even distances, so that a repeated run asks the same questions."""
    distinct = list(dict.fromkeys(questions))
    if len(distinct) <= count:
        return distinct
    return [distinct[number * len(distinct) // count] for number in range(count)]


async def _count_totals(client: Client, communities: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    counts = (await client.get("/status")).get("counts", {})
    return {
        "documents": counts.get("documents"),
        "entities": counts.get("entities"),
        "communities": len(communities) or None,
    }


async def _search_questions(session: Session, body: Mapping[str, Any], questions: Sequence[str]) -> list[Listing]:
    listings: list[Listing] = []
    with ProgressDisplay(body["strategy"], total=len(questions)) as display:
        for question in questions:
            listings.append(_read_listing(await session.client.post("/search", {**body, "query": question})))
            display.update(body["strategy"], completed=len(listings))
    return listings


def _read_listing(data: Mapping[str, Any]) -> Listing:
    from agentic_rag_backend.evaluation.result_diversity import Listing

    results = data["results"]
    return Listing(
        ids=tuple(result["id"] for result in results),
        documents=tuple(result["document_id"] for result in results),
        texts=tuple(result["content"] for result in results),
        communities=tuple(theme["id"] for theme in data["themes"]),
        entities=tuple(entity["id"] for result in results for entity in result["entities"]),
    )


async def _describe_communities(client: Client, communities: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return sizes by level, coverage, modularity and staleness of the current generation."""
    from agentic_rag_backend.evaluation.result_diversity import measure_sizes

    counts: defaultdict[int, list[int]] = defaultdict(list)
    for community in communities:
        counts[community["level"]].append(community["entity_count"])
    figures = {"communities": len(communities), "sizes": measure_sizes(counts)}
    try:
        state = await client.get("/admin/communities")
    except Forbidden:
        # A key with the scope `read` cannot see how the generation was built.
        state = (await client.get("/status"))["communities"]
    names = ("generation", "stale", "built_at", "coverage", "modularity", "mode")
    return {**figures, **{name: state[name] for name in names if name in state}}


def _show_result(output: Output, result: Mapping[str, Any]) -> None:
    strategies = result["strategies"]
    measures: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "diversity": lambda of: _format_share(of["diversity_ratio"]),
        "of possible": lambda of: _format_share(of["diversity_of_bound"]),
        "identical pairs": lambda of: _format_share(of["identical_pairs"]),
        "similarity": lambda of: _format_share(of["intra_list_similarity"]),
        "unanswered": lambda of: f"{of['unanswered']} of {of['questions']}",
    }
    for kind in ("documents", "communities", "entities"):
        measures[f"{kind} distinct"] = lambda of, kind=kind: f"{of[kind]['distinct']} in {of[kind]['places']}"  # type: ignore[misc]
        measures[f"{kind} of all"] = lambda of, kind=kind: _format_share(of[kind]["coverage"])  # type: ignore[misc]
    # One row per measure: 80 columns have no room for a column per measure.
    rows = [[name, *(show(of) for of in strategies.values())] for name, show in measures.items()]
    columns = ["measure", *(f"#{name}" for name in strategies)]
    output.show(table(columns, rows, title=f"{result['questions']} questions, {result['limit']} results each"))
    communities = dict(result["communities"])
    levels = communities.pop("sizes")
    output.show("", fields(communities))
    if levels:
        figures = ("communities", "min", "median", "mean", "max")
        rows = [[level, *(of[name] for name in figures)] for level, of in levels.items()]
        output.show("", table(["level", *(f"#{name}" for name in figures)], rows))


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
