"""Turns off each rule of retrieval in turn, without a language model.

The sets: MuSiQue, HotpotQA, SQuAD 2.0 (also its questions that name a time), the examples, real documents, and people who share a
name. Every set is ingested once into ``--filled``. Each question is asked with each case in turn. R@2, R@5 and MRR are of
documents, for real documents of passages. Of people who share a name, the measure is the share of results about the right person.
Differences from the whole have the number of questions lost and won. Writes ``results/ablation_retrieval-SETS.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from ablation_cases import CASES, Case
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_passages
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.language.times import time_phrase
from corpora import ingest, rebuild
from report import ROOT, data, finish, make_settings, quiet
from reranking import question_set, reranking
from same_name import MEDIUM, Asked, affiliation_questions, by_name, passage, with_professions

SETS = ("examples", "realdocs", "name_collisions", "affiliations", "hotpotqa", "musique", "squad2", "times")
NAME_SETS = ("name_collisions", "affiliations")
PACKAGE = "agentic_rag_backend"
LEAST_OVERLAP = 0.8
LIMIT = 10
WHOLE = "nothing"
SUFFIXES = (".md", ".txt")


@dataclass(frozen=True, slots=True)
class Question:
    """A question. Each of ``gold`` is a set of ids of chunks that serve alike, or of one document's key.

    ``precision`` replaces recall if it is there.
    """

    text: str
    gold: Sequence[frozenset[str]] = ()
    one_suffices: bool = False
    of_passages: bool = False
    precision: Callable[[Retrieval], float | None] | None = None


def figures_of(question: Question, result: Retrieval) -> list[float] | None:
    """Return R@2, R@5 and the reciprocal rank, or the precision three times. None: the results do not have the name."""
    if question.precision is not None:
        value = question.precision(result)
        return None if value is None else [value] * 3
    ids = [hit.id if question.of_passages else str(hit.visible.document_key) for hit in result.hits]
    ranks = [next((rank for rank, id in enumerate(dict.fromkeys(ids), 1) if id in gold), None) for gold in question.gold]
    best = min((rank for rank in ranks if rank), default=None)
    if question.one_suffices:
        ranks = [best]
    recalls = [sum(rank is not None and rank <= k for rank in ranks) / len(ranks) for k in (2, 5)]
    return [*recalls, 1 / best if best else 0.0]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def files_of(name: str, folder: Path) -> Path | None:
    """Return the folder of files of a set that has files; None for sets of passages."""
    return {"examples": ROOT / "examples" / "corpus", "realdocs": folder / "realdocs" / "corpus"}.get(name)


async def fill(services: Container, name: str, folder: Path) -> Tenant:
    """Return the tenant of a set. Fill it if it is new."""
    known = await services.tenants.by_name(name)
    if known is not None:
        return known
    tenant = (await services.tenants.create(name)).id
    files = files_of(name, folder)
    if files is not None:
        for path in sorted(path for path in files.rglob("*") if path.is_file()):
            await services.ingestion.submit(
                tenant, Upload(content=path.read_bytes(), file_name=path.name, key=str(path.relative_to(files)))
            )
        await settle(services, tenant)
        print(name, await rebuild(services, tenant), flush=True)
    elif name in NAME_SETS:
        passages, _ = names_of(name, folder)
        print(name, await ingest(services, tenant, passages), flush=True)
        await asyncio.sleep(20)  # names are resolved again
    else:
        print(name, await ingest(services, tenant, load_passages(folder / name / "corpus.jsonl")), flush=True)
    return await services.tenants.get(tenant)


async def settle(services: Container, tenant: Any) -> None:
    """Wait until no document changes for 15 seconds."""
    counts, since = None, time.monotonic()
    while time.monotonic() - since < 15:
        await asyncio.sleep(1)
        now = dict(await services.catalogue.documents.counts(tenant))
        if now != counts:
            counts, since = now, time.monotonic()


async def real_questions(services: Container, tenant: Tenant, folder: Path) -> list[Question]:
    """Return the questions about real documents with the chunks that contain the quoted passages."""
    spec = importlib.util.spec_from_file_location("score", folder / "realdocs" / "score.py")
    assert spec is not None
    assert spec.loader is not None
    score = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(score)
    documents = services.catalogue.documents
    ids, cursor = list[str](), None
    while not ids or cursor:
        page = await documents.documents(tenant.id, limit=100, cursor=cursor)
        ids, cursor = ids + [document.id for document in page.items], page.next_cursor
    chunks: dict[str, list[tuple[str, str]]] = {}
    for own in (await documents.visible_chunk_ids(tenant.id, ids)).values():
        shown = await documents.hydrate(tenant.id, own)
        for visible in (shown[id] for id in own):
            text = f"{visible.document_title}\n{visible.chunk.text}"
            chunks.setdefault(str(visible.document_key), []).append((visible.chunk.id, text))

    def find(gold: Mapping[str, Any]) -> frozenset[str]:
        # An attachment has the key of its message and its own name.
        texts = [pair for key, pairs in chunks.items() if key == gold["file"] or gold["file"] in key for pair in pairs]
        matching = [id for id, text in texts if score.overlap(gold["quote"], text) >= LEAST_OVERLAP]
        for number, (id, text) in enumerate(texts if not matching else ()):
            around = "\n".join(text for _, text in texts[max(0, number - 1) : number + 2])
            if score.overlap(gold["quote"], text) >= 0.3 and score.overlap(gold["quote"], around) >= LEAST_OVERLAP:
                matching.append(id)
        return frozenset(matching)

    rows = [row for row in read_lines(folder / "realdocs" / "questions.jsonl") if row["gold"]]
    questions = [
        Question(row["question"], [find(gold) for gold in row["gold"]], row.get("gold_mode") == "any", of_passages=True)
        for row in rows
    ]
    print("realdocs: questions with a passage that no chunk has:", sum(not all(item.gold) for item in questions), flush=True)
    return questions


def names_of(name: str, folder: Path) -> tuple[list[CorpusPassage], list[Asked]]:
    """Return the documents and questions about people who share a name: by profession, or by affiliation."""
    signatures = read_lines(folder / "name_collisions" / "signatures.jsonl")
    if name == "name_collisions":
        return with_professions(signatures)
    rarer = [row for rows in by_name(signatures).values() if len(rows) <= MEDIUM for row in rows]
    return list(map(passage, rarer)), affiliation_questions(rarer)


def names_questions(name: str, folder: Path) -> list[Question]:
    """Return the questions about people who share a name, with the share of results about the right one."""
    signatures = read_lines(folder / "name_collisions" / "signatures.jsonl")
    people = {str(row["id"]): (str(row["name"]), str(row["person"])) for row in signatures}

    def measure(result: Retrieval, author: str, person: str) -> float | None:
        authors = [people[str(hit.visible.document_key)] for hit in result.hits[:5]]
        of_name = [bearer for called, bearer in authors if called == author]
        return sum(bearer == person for bearer in of_name) / len(of_name) if of_name else None

    return [
        Question(text, precision=lambda result, author=author, person=person: measure(result, author, person))  # type: ignore[misc]
        for text, author, person in names_of(name, folder)[1]
    ]


async def questions_of(services: Container, tenant: Tenant, name: str, folder: Path) -> list[Question]:
    """Return the questions of a set."""
    if name == "realdocs":
        return await real_questions(services, tenant, folder)
    if name in NAME_SETS:
        return names_questions(name, folder)
    if name == "examples":
        rows = [row for row in read_lines(ROOT / "examples" / "questions.jsonl") if row["gold"]]
        return [
            Question(row["question"], [frozenset([f"{gold}{suffix}" for suffix in SUFFIXES]) for gold in row["gold"]])
            for row in rows
        ]
    if name == "times":
        rows = [row for row in read_lines(folder / "squad2" / "questions.jsonl") if row["answerable"]]
        dated = [row for row in rows if time_phrase(row["question"], datetime.now(UTC)) is not None]
        return [Question(row["question"], [frozenset([row["passage"]])]) for row in dated]
    return [Question(each.question, [frozenset([gold]) for gold in each.gold]) for each in question_set(folder, name).questions]


@contextmanager
def without(case: Case) -> Iterator[None]:
    """Replace what a case replaces: names of modules, or attributes of their classes."""
    with ExitStack() as stack:
        for path, value in case.replaced.items():
            module, *classes, name = path.split(":")
            target: Any = importlib.import_module(f"{PACKAGE}.{module}")
            for attribute in classes:
                target = getattr(target, attribute)
            stack.enter_context(mock.patch.object(target, name, value(getattr(target, name)) if case.wraps else value))
        yield


async def ask(services: Container, tenant: Tenant, question: Question, strategy: str, options: Mapping[str, Any]) -> Retrieval:
    """Return ten results of a strategy, reranked as by default."""
    rerank = reranking("graph") if strategy == "hybrid" else None
    query = Query(tenant=tenant, text=question.text, limit=LIMIT, options=options, rerank=rerank)
    return await services.retrievers.get(strategy).retrieve(query)


async def measure(services: Container, name: str, folder: Path, chosen: Mapping[str, Case], most: int) -> dict[str, Any]:
    """Return the rows of each case and strategy of a set."""
    tenant = await fill(services, "squad2" if name == "times" else name, folder)
    questions = await questions_of(services, tenant, name, folder)
    questions = [questions[place * len(questions) // most] for place in range(most)] if len(questions) > most else questions
    pairs = [(label, case, strategy) for label, case in chosen.items() for strategy in case.strategies if name in case.sets]
    whole = [(WHOLE, Case(), strategy) for strategy in dict.fromkeys(strategy for *_, strategy in pairs)]
    values: dict[tuple[str, str], list[list[float] | None]] = {(label, strategy): [] for label, _, strategy in (*whole, *pairs)}
    for number, question in enumerate(questions):
        for label, case, strategy in (*whole, *pairs):
            with without(case):
                result = await ask(services, tenant, question, strategy, case.options)
            values[label, strategy].append(figures_of(question, result))
        if number % 20 == 19:
            print(name, number + 1, "of", len(questions), flush=True)
    return {f"{label} | {strategy}": row(rows, values[WHOLE, strategy]) for (label, strategy), rows in values.items()}


def row(values: Sequence[list[float] | None], whole: Sequence[list[float] | None]) -> dict[str, Any]:
    """Return the means, their differences from the whole, and the questions lost and won in the first five."""
    both = [(value, base) for value, base in zip(values, whole, strict=True) if value is not None and base is not None]
    means = [statistics.fmean(value[place] for value, _ in both) for place in range(3)]
    differences = [statistics.fmean(value[place] - base[place] for value, base in both) for place in range(3)]
    lost, won = sum(value[1] < base[1] for value, base in both), sum(value[1] > base[1] for value, base in both)
    return {
        "means": [round(mean, 3) for mean in means],
        "differences": [round(difference, 3) for difference in differences],
        "lost": lost,
        "won": won,
        "questions": len(both),
    }


async def measure_all(folder: Path, filled: Path, sets: Sequence[str], chosen: Mapping[str, Case], most: int) -> dict[str, Any]:
    """Measure the sets, each in its own tenant of one data folder."""
    settings = make_settings(data_dir=filled, community_auto_rebuild=False, search_cache_mb=0)
    results = {}
    async with open_container(settings) as services:
        for name in sets:
            results[name] = await measure(services, name, folder, chosen, most)
            print(markdown({name: results[name]}), flush=True)
    return results


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table: differences of R@2, R@5 and MRR, with lost and won questions."""
    lines = ["| set | left out | strategy | R@2 | R@5 | MRR | differences | lost, won |", "|---|---|---|---|---|---|---|---|"]
    for name, rows in results.items():
        for label, figures in rows.items():
            means, differences = (
                " | ".join(f"{value:.3f}" for value in figures["means"]),
                [f"{value:+.3f}" for value in figures["differences"]],
            )
            lines.append(f"| {name} | {label} | {means} | {', '.join(differences)} | {figures['lost']}, {figures['won']} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--filled", type=Path, required=True, help="data folder that keeps the ingested sets")
    parser.add_argument("--questions", type=int, default=300, help="maximum number of questions of a set, at even distances")
    parser.add_argument("--cases", nargs="*", default=list(CASES), help="cases by name")
    arguments = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    chosen = {label: case for label, case in CASES.items() if any(part in label for part in arguments.cases)}
    results = asyncio.run(measure_all(folder, arguments.filled, arguments.sets, chosen, arguments.questions))
    return finish(f"ablation_retrieval-{'-'.join(arguments.sets)}", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
