"""Sections of `same` that index a corpus: its documents, graph and communities, searches and answers."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_backend.evaluation.ranking_metrics import recall_at
from same_corpora import Corpus, Question, load_corpus
from same_results import Canon, digest
from same_server import Service, make_ids_reproducible, open_service

STRATEGIES = (
    "auto", "dense", "sparse", "hybrid", "question", "graph", "community", "paths", "temporal", "dual_level", "global", "drift",
    "raptor", "hyde", "multi_query", "parent_child", "fusion", "corrective", "agentic",
)  # fmt: skip
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "hybrid, rrf": {"strategy": "hybrid", "options": {"fusion": "rrf"}},
    "hybrid, not reranked": {"strategy": "hybrid", "rerank": False},
    "dense, mmr": {"strategy": "dense", "rerank": "mmr"},
    "graph, late interaction": {"strategy": "graph", "rerank": "late_interaction"},
    "dense, corrective": {"strategy": "dense", "corrective": True},
    "hybrid, filtered": {"strategy": "hybrid", "filters": {"title": {"nin": ["nothing"]}}, "limit": 3, "min_score": 0.2},
    "graph, in 2015": {"strategy": "graph", "as_of": "2015-01-01T00:00:00Z"},
    "dual_level, conceptual": {"strategy": "dual_level", "weights": {"preset": "conceptual"}},
    "parent_child of graph": {"strategy": "parent_child", "options": {"base": "graph", "context_window": 2}},
}
VARIED = 6
"""Questions of a corpus that are also searched in the other ways."""
GENERATORS = ("standard", "verified")
LIMIT = 10
_MARKER = re.compile(r"\[\d+\]")
Figures = dict[str, dict[str, float]]


async def measure(name: str, sections: Sequence[str], data: Path, data_dir: Path) -> tuple[dict[str, dict[str, Any]], Figures]:
    """Index a corpus, unless the data folder holds it, and return the results and metrics of the sections."""
    make_ids_reproducible()
    corpus = load_corpus(name, data)
    finished = data_dir / "indexed"
    started = time.monotonic()
    async with open_service(data_dir) as service:
        if not finished.exists():
            for file in corpus.files:
                await service.upload(file)
            await service.rebuild("communities")
            await service.rebuild("raptor")
            finished.touch()
        print(f"{name}: {len(corpus.files)} documents indexed in {time.monotonic() - started:.0f} s", flush=True)
        run = _Run(corpus, service)
        await run.load_documents()
        for section in sections:
            await getattr(run, f"run_{section}")()
            print(f"{name}: {section} after {time.monotonic() - started:.0f} s", flush=True)
    return {section: run.results[section] for section in sections}, run.metrics


class _Run:
    """Asks a service for the sections."""

    def __init__(self, corpus: Corpus, service: Service) -> None:
        self._corpus = corpus
        self._service = service
        self._canon = Canon()
        self._keys: dict[str, str] = {}
        self._chunks: list[str] = []
        self.results: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self.metrics: Figures = defaultdict(dict)

    async def load_documents(self) -> None:
        """Read the documents, chunks and entities, whose ids get names."""
        labels = self._canon.labels
        documents = await self._service.list_items("/documents")
        for document in documents:
            self._keys[document["id"]] = document["key"]
            labels[document["id"]] = f"document {document['key']}"
        graph = await self._service.get("/graph/export", format="json")
        labels |= {node["id"]: f"entity {node['name']}" for node in graph["nodes"] if "name" in node}
        for document in reversed(documents):
            chunks = await self._service.list_items(f"/documents/{document['id']}/chunks")
            self._chunks += [chunk["id"] for chunk in chunks]
            for chunk in chunks:
                labels[chunk["id"]] = f"chunk {digest(chunk['content'], 12)} of {document['key']}"
            detail = await self._service.get(f"/documents/{document['id']}")
            self._keep("documents", document["key"], {"document": detail["data"], "chunks": chunks})

    def _keep(self, section: str, case: str, result: Any) -> None:
        self.results[section][f"{self._corpus.name}: {case}"] = self._canon.clean(result)

    def _count(self, section: str, name: str, value: float) -> None:
        self.metrics[section][f"{self._corpus.name} {name}"] = round(value, 4)

    async def run_documents(self) -> None:
        """Count what `load_documents` read."""
        self._count("documents", "documents", len(self._keys))
        self._count("documents", "chunks", len(self._chunks))

    async def run_graph(self) -> None:
        """Read the entities and relationships of each chunk, and the contradictions."""
        relationships = 0
        for number, id_ in enumerate(self._chunks):
            chunk = (await self._service.get(f"/chunks/{id_}"))["data"]
            relationships += len(chunk["relationships"])
            self._keep("graph", f"{number} {self._canon.labels[id_]}", chunk)
        self._keep("graph", "contradictions", await self._service.list_items("/graph/contradictions"))
        self._count("graph", "relationships of chunks", relationships)

    async def run_communities(self) -> None:
        """Read the communities and the tree."""
        for path in ("communities", "raptor"):
            items = await self._service.list_items(f"/{path}")
            names = {item["id"]: f"{path} {item['level']} {digest([item['name'], item['summary']], 8)}" for item in items}
            self._canon.labels |= names
            for number, item in enumerate(items):
                detail = await self._service.get(f"/{path}/{item['id']}")
                self._keep("communities", f"{path} {number} {item['name']}", detail["data"])
            self._count("communities", path, len(items))

    async def run_search(self) -> None:
        """Search by every strategy, and for some questions in other ways."""
        recalls: defaultdict[str, list[float]] = defaultdict(list)
        ways = {name: {"strategy": name} for name in STRATEGIES}
        for number, question in enumerate(self._corpus.searched):
            for way, body in ({**ways, **VARIANTS} if number < VARIED else ways).items():
                response = await self._service.post("/search", {"query": question.text, "limit": LIMIT, **body})
                self._keep("search", f"{way}: {question.id}", response)
                if question.gold and response["data"]:
                    keys = [self._keys.get(result["document_id"], "") for result in response["data"]["results"]]
                    recalls[way].append(recall_at(list(dict.fromkeys(keys)), question.gold, 5))
            if number < VARIED:
                await self._explain(question)
        for way in STRATEGIES:
            if recalls[way]:
                self._count("search", f"{way} R@5", sum(recalls[way]) / len(recalls[way]))

    async def _explain(self, question: Question) -> None:
        body = {"query": question.text}
        self._keep("search", f"dual-level: {question.id}", await self._service.post("/search/dual-level", body))
        document = next((id_ for id_, key in self._keys.items() if key in question.gold), next(iter(self._keys)))
        explained = await self._service.post("/search/explain", {**body, "document_id": document})
        self._keep("search", f"explain: {question.id}", explained)

    async def run_answers(self) -> None:
        """Answer without a model, and for some questions with the other generators."""
        outcomes: defaultdict[str, list[bool]] = defaultdict(list)
        for number, question in enumerate(self._corpus.answered):
            turns = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(question.history)]
            body = {"query": question.text, "history": turns}
            response = await self._service.post("/answers", body)
            self._keep("answers", question.id, response)
            if response["data"]:
                _judge(question, response["data"], outcomes)
            for generator in GENERATORS if number < VARIED else ():
                other = await self._service.post("/answers", {**body, "generator": generator})
                self._keep("answers", f"{generator}: {question.id}", other)
        for name, values in outcomes.items():
            self._count("answers", name, sum(values) / len(values))


def _judge(question: Question, answer: Mapping[str, Any], outcomes: defaultdict[str, list[bool]]) -> None:
    """Count whether a question is answered, and whether the answer has an accepted text."""
    if not question.answerable:
        outcomes["unanswerable refused"].append(not answer["grounded"])
        return
    kind = "follow-up" if question.history else "answerable"
    outcomes[f"{kind} answered"].append(answer["grounded"])
    if question.answers:
        text = f" {_plain(_MARKER.sub('', answer['answer']))} "
        outcomes["right"].append(answer["grounded"] and any(f" {_plain(known)} " in text for known in question.answers))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
