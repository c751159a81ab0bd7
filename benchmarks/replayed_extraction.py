"""Measures extraction by a language model on MuSiQue. A scripted server replays what a real model extracted from each passage.

Writes ``results/replayed_extraction.json`` and ``.md``. Asserted: at most one call for a chunk, and `AIM` for ``graph`` with
``llm``.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import open_container
from agentic_rag_backend.evaluation.datasets import load_question_set
from agentic_rag_testing.models.server import ModelServer
from corpora import ingest
from report import data, finish, make_settings, quiet
from retrieval import ask_all

AIM = {"R@5": 0.75, "R@10": 0.88}
METHODS = ("rules", "llm", "rules+llm")


async def measure(folder: Path, method: str, server: ModelServer, **limits: int) -> dict[str, Any]:
    """Measure one method in a new data folder."""
    questions = load_question_set(folder / "musique")
    server.reset()
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(
            data_dir=Path(data_dir),
            community_auto_rebuild=False,
            llm="openai",
            openai_api_key="any",
            openai_base_url=server.base_url,
            llm_model="recorded-musique",
            extraction=method,
            **limits,
        )
        async with open_container(settings) as services:
            tenant = (await services.tenants.create("musique")).id
            ingestion = await ingest(services, tenant, questions.passages)
            counts = await services.graph.counts(tenant)
            strategies = await ask_all(services, tenant, questions)
    total = server.stats().total
    return {
        "ingestion": ingestion,
        "calls_per_chunk": round(total.calls / ingestion["chunks"], 3),
        "tokens_read": total.prompt_tokens,
        "tokens_written": total.completion_tokens,
        "entities": counts.entities,
        "relationships": counts.relationships,
        "strategies": strategies,
    }


def failures(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return the aims that are not met."""
    missed = [
        f"{name}: {row['calls_per_chunk']} calls a chunk, above 1" for name, row in results.items() if row["calls_per_chunk"] > 1
    ]
    found = results["llm"]["strategies"]["graph"]
    missed += [f"llm: graph {metric} {found[metric]}, below {aim}" for metric, aim in AIM.items() if found[metric] < aim]
    return missed


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """Return the table."""
    lines = [
        "| method | calls a chunk | entities | relationships | graph R@2 | R@5 | R@10 | all@10 | hybrid R@5 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        graph, hybrid = row["strategies"]["graph"], row["strategies"]["hybrid"]
        figures = [row["calls_per_chunk"], row["entities"], row["relationships"]]
        figures += [graph[metric] for metric in ("R@2", "R@5", "R@10", "all@10")]
        lines.append(f"| `{name}` | {' | '.join(map(str, figures))} | {hybrid['R@5']} |")
    return "\n".join(lines)


def main() -> int:
    """Measure the methods."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--max-entities", type=int)
    arguments = parser.parse_args()
    folder = data()
    if folder is None:
        return 0
    quiet()
    limits = {} if arguments.max_entities is None else {"extraction_max_entities": arguments.max_entities}
    results = {}
    with ModelServer() as server:
        for method in arguments.method or METHODS:
            results[method] = asyncio.run(measure(folder, method, server, **limits))
            print(method, results[method], flush=True)
    return finish("replayed_extraction", results, markdown(results), failures(results) if "llm" in results else [])


if __name__ == "__main__":
    raise SystemExit(main())
