"""Compares the chunking strategies on whole articles of SQuAD 2.0: is the answer in the first five chunks?

The passages of an article are joined to one document. A question counts as found if one of the first five chunks contains the
answer where the question's passage has it. Writes ``results/chunking.json`` and ``results/chunking.md``. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora import ingest_uploads
from report import data, finish, quiet

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.ingestion.chunking.registry import options_of
from agentic_rag_backend.ingestion.service import Upload
from agentic_rag_backend.settings import Settings

STRATEGIES = ("recursive", "fixed", "structure", "semantic")
RETRIEVERS = ("dense", "hybrid")
SIZES = (None, 120)
"""Chunk sizes in tokens. None: the default of the strategy."""
FIRST = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the places of its answers in the article."""

    text: str
    article: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Article:
    """An article as one text."""

    name: str
    title: str
    text: str


def load(folder: Path, articles: int, questions: int) -> tuple[list[Article], list[Question]]:
    """Return the first articles, and evenly chosen questions about each."""
    passages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for passage in _lines(folder / "corpus.jsonl"):
        passages[passage["id"].rpartition("-")[0]].append(passage)
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in _lines(folder / "questions.jsonl"):
        if question["answerable"]:
            asked[question["article"]].append(question)
    joined, chosen = [], []
    for name in [name for name in passages if name in asked][:articles]:
        parts = sorted(passages[name], key=lambda passage: int(passage["id"].rpartition("-")[2]))
        starts, at = {}, 0
        for part in parts:
            starts[part["id"]] = at
            at += len(part["text"]) + 2
        text = "\n\n".join(part["text"] for part in parts)
        joined.append(Article(name, parts[0]["title"], text))
        some = asked[name]
        for question in some[:: max(1, len(some) // questions)][:questions]:
            start = starts[question["passage"]]
            own = next(part["text"] for part in parts if part["id"] == question["passage"])
            found = [(start + own.find(answer), len(answer)) for answer in question["answers"] if answer in own]
            if found:
                places = tuple((place, place + length) for place, length in found)
                chosen.append(Question(question["question"], name, places))
    return joined, chosen


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def found(question: Question, retrieval: Retrieval) -> tuple[bool, int]:
    """Return whether one of the first chunks has the answer, and the tokens of these chunks."""
    hits = [hit.visible for hit in retrieval.hits[:FIRST]]
    places = [hit.chunk.location for hit in hits if hit.document_key == question.article]
    has = any(place.start_char <= start and end <= place.end_char for place in places for start, end in question.places)
    return has, sum(hit.chunk.size_tokens for hit in hits)


async def measure_one(
    services: Container, strategy: str, size: int | None, articles: Sequence[Article], questions: Sequence[Question]
) -> dict[str, Any]:
    """Ingest the articles with one strategy into a new tenant, and ask the questions."""
    tenant = (await services.tenants.create(f"{strategy}-{size or 'default'}")).id
    chunking = options_of(strategy, size, None, "tokens")
    uploads = [
        Upload(
            content=article.text.encode(),
            media_type="text/plain",
            title=article.title,
            key=article.name,
            options=ProcessingOptions(chunking=chunking),
        )
        for article in articles
    ]
    ingestion = await ingest_uploads(services, tenant, uploads)
    current = await services.tenants.get(tenant)
    row: dict[str, Any] = {"strategy": strategy, "chunk_size": chunking.chunk_size, "overlap": chunking.overlap}
    row |= {"chunks": ingestion["chunks"], "ingestion_s": ingestion["total_s"]}
    for name in RETRIEVERS:
        results = []
        for question in questions:
            query = Query(tenant=current, text=question.text, limit=FIRST, dual_level=False)
            results.append(found(question, await services.retrievers.get(name).retrieve(query)))
        row[f"{name}_R@5"] = round(sum(has for has, _ in results) / len(results), 3)
        row[f"{name}_tokens@5"] = round(sum(tokens for _, tokens in results) / len(results))
    print(row, flush=True)
    return row


async def measure(folder: Path, articles: int, questions: int) -> dict[str, Any]:
    """Measure every strategy with its default size, and with a smaller one."""
    texts, asked = load(folder / "squad2", articles, questions)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = Settings(data_dir=Path(data_dir), community_auto_rebuild=False, _env_file=None)
        async with open_container(settings) as services:
            rows = [await measure_one(services, name, size, texts, asked) for size in SIZES for name in STRATEGIES]
    return {"articles": len(texts), "characters": sum(len(each.text) for each in texts), "questions": len(asked), "rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """Return the table."""
    lines = [
        f"{results['articles']} articles, {results['characters']:,} characters, {results['questions']} questions.",
        "",
        "| strategy | size/overlap | chunks | ingestion s | dense R@5 | tokens read | hybrid R@5 | tokens read |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        sizes = f"{row['chunk_size']}/{row['overlap']}"
        figures = [row[f"{name}_{measure}"] for name in RETRIEVERS for measure in ("R@5", "tokens@5")]
        cells = [f"`{row['strategy']}`", sizes, row["chunks"], row["ingestion_s"], *figures]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=12)
    parser.add_argument("--questions", type=int, default=25, help="of each article")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = asyncio.run(measure(folder, chosen.articles, chosen.questions))
    return finish("chunking", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
