"""Compares the chunking strategies on long documents: what do the first five results contain?

``squad2``: the passages of an article are joined to one document. A question counts as found if one of the results contains the
answer where the question's passage has it. ``musique`` and ``hotpotqa``: 20 passages are joined to one Markdown document, each
below a heading with its title. A gold passage counts as found if it and a result overlap by at least half of the shorter one. A
result is the text that is read: the chunk, or the parent around it. Writes ``results/chunking.json`` and ``chunking.md``.
Nothing is asserted. Strategies that call a language model are not measured, because a scripted model chooses nothing.
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

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.documents.chunking.registry import options_of
from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.ingestion.accept.uploads import Upload
from corpora import ingest_uploads
from report import data, finish, make_settings, quiet

STRATEGIES = ("recursive", "fixed", "structure", "semantic", "parent_child")
RETRIEVERS = ("dense", "hybrid")
SIZES = (None, 120)
"""Chunk sizes in tokens. None: the default of the strategy."""
CORPORA = ("squad2", "hotpotqa", "musique")
PASSAGES_PER_DOCUMENT = 20
FIRST = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A question with places of the text.

    Each of ``wanted`` is a document's key and alternatives: places of which one has to be found. ``whole``: the place must be
    inside a result; otherwise an overlap by half of the shorter one is enough.
    """

    text: str
    wanted: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Article:
    """Passages as one text."""

    name: str
    title: str
    text: str
    media_type: str = "text/plain"


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
                chosen.append(Question(question["question"], ((name, places),)))
    return joined, chosen


def load_joined(folder: Path, questions: int, passages: int) -> tuple[list[Article], list[Question]]:
    """Return documents of neighbouring passages below headings, and the first questions. Their gold passages are all there."""
    asked = _lines(folder / "questions.jsonl")[:questions]
    gold = {id for question in asked for id in question["gold"]}
    every = _lines(folder / "corpus.jsonl")
    others = [passage["id"] for passage in every if passage["id"] not in gold]
    kept = gold | set(others[:: max(1, len(others) // max(1, passages - len(gold)))])
    chosen = sorted((each for each in every if each["id"] in kept), key=lambda each: (str(each["title"]), str(each["id"])))
    joined: list[Article] = []
    places: dict[str, tuple[str, tuple[tuple[int, int], ...]]] = {}
    for number, first in enumerate(range(0, len(chosen), PASSAGES_PER_DOCUMENT)):
        name, text = f"volume {number}", ""
        for part in chosen[first : first + PASSAGES_PER_DOCUMENT]:
            text += f"## {part['title']}\n\n"
            places[part["id"]] = (name, ((len(text), len(text) + len(part["text"])),))
            text += f"{part['text']}\n\n"
        joined.append(Article(name, f"Volume {number}", text, "text/markdown"))
    return joined, [Question(each["question"], tuple(places[id] for id in each["gold"]), whole=False) for each in asked]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def found(question: Question, retrieval: Retrieval) -> tuple[float, int]:
    """Return the share of the wanted places that the first results contain, and the tokens of these results."""
    hits = retrieval.hits[:FIRST]
    read = [(hit.visible.document_key, _place(hit)) for hit in hits]
    has = [
        any(key == name and _contains(place, wanted, whole=question.whole) for key, place in read for wanted in alternatives)
        for name, alternatives in question.wanted
    ]
    chunks = (hit.parent.chunks if hit.parent is not None else (hit.visible.chunk,) for hit in hits)
    return sum(has) / len(has), sum(chunk.size_tokens for own in chunks for chunk in own)


def _place(hit: Hit) -> tuple[int, int]:
    """Return the place of the text that is read."""
    place = hit.visible.chunk.location
    return (place.start_char, place.end_char) if hit.parent is None else (hit.parent.start_char, hit.parent.end_char)


def _contains(place: tuple[int, int], wanted: tuple[int, int], *, whole: bool) -> bool:
    if whole:
        return place[0] <= wanted[0] and wanted[1] <= place[1]
    both = min(place[1], wanted[1]) - max(place[0], wanted[0])
    return both >= min(place[1] - place[0], wanted[1] - wanted[0]) / 2


async def measure_one(
    services: Container, corpus: str, strategy: str, size: int | None, articles: Sequence[Article], questions: Sequence[Question]
) -> dict[str, Any]:
    """Ingest the articles with one strategy into a new tenant, and ask the questions."""
    tenant = (await services.tenants.create(f"{corpus}-{strategy}-{size or 'default'}")).id
    chunking = options_of(strategy, size, None, "tokens")
    uploads = [
        Upload(
            content=article.text.encode(),
            media_type=article.media_type,
            title=article.title,
            key=article.name,
            options=ProcessingOptions(chunking=chunking),
        )
        for article in articles
    ]
    ingestion = await ingest_uploads(services, tenant, uploads)
    current = await services.tenants.get(tenant)
    row: dict[str, Any] = {"corpus": corpus, "strategy": strategy, "chunk_size": chunking.chunk_size, "overlap": chunking.overlap}
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


async def measure(folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Measure every strategy with its default size, and with a smaller one."""
    corpora = {}
    for name in chosen.corpora:
        if name == "squad2":
            corpora[name] = load(folder / name, chosen.articles, chosen.questions)
        else:
            corpora[name] = load_joined(folder / name, 2 * chosen.questions, chosen.passages)
    plan = [
        (corpus, name, size)
        for corpus in corpora
        for size in SIZES
        for name in STRATEGIES
        if size is None or name in ("recursive", "structure")
    ]
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False)
        async with open_container(settings) as services:
            rows = [await measure_one(services, corpus, name, size, *corpora[corpus]) for corpus, name, size in plan]
    sizes = {
        corpus: {"documents": len(texts), "characters": sum(len(each.text) for each in texts), "questions": len(asked)}
        for corpus, (texts, asked) in corpora.items()
    }
    return {"corpora": sizes, "rows": rows}


def markdown(results: dict[str, Any]) -> str:
    """Return the tables."""
    lines = []
    for corpus, size in results["corpora"].items():
        lines += [
            f"`{corpus}`: {size['documents']} documents, {size['characters']:,} characters, {size['questions']} questions.",
            "",
            "| strategy | size/overlap | chunks | ingestion s | dense R@5 | tokens read | hybrid R@5 | tokens read |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in (row for row in results["rows"] if row["corpus"] == corpus):
            sizes = f"{row['chunk_size']}/{row['overlap']}"
            figures = [row[f"{name}_{measure}"] for name in RETRIEVERS for measure in ("R@5", "tokens@5")]
            cells = [f"`{row['strategy']}`", sizes, row["chunks"], row["ingestion_s"], *figures]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=12)
    parser.add_argument("--questions", type=int, default=25, help="of each article")
    parser.add_argument("--passages", type=int, default=600, help="of musique and hotpotqa")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = asyncio.run(measure(folder, chosen))
    return finish("chunking", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
