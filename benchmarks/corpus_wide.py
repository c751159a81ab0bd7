"""Corpus-wide questions on the podcasts: answered or refused within the budgets, and the variety of the results.

All 125 questions with `global` and no model, compared with `hybrid`, `community` and `dual_level`. Some questions again with the
scripted model server as model, which repeats the passages nearest to the question and counts calls and tokens. Then, a few times,
a cited document is deleted and the question asked again. Writes ``results/corpus_wide.json`` and ``.md``.

Asserted: themes, and the input of partial answers, never exceed the token budget; model calls never exceed their limit and
equal the reported usage; a refusal costs no call for an answer, and every answer has a citation; every quote is verbatim in a
visible chunk at its offsets; no text of a deleted document is cited again.

``--filled FOLDER`` takes the podcasts from a data folder that has them in its tenant ``default``, and uses a copy of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import report
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.datasets import load_passages, load_questions
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from agentic_rag_backend.evaluation.result_diversity import Listing, measure_diversity
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.retrieval.themes.global_search import MAX_THEMES
from agentic_rag_testing.models.server import ModelServer
from corpora import ingest, rebuild
from report import make_settings

TENANT = "default"
GLOBAL = "global"
COMPARED = ("hybrid", "community", "dual_level", GLOBAL)
LIMIT = 10
FAST, FINAL = "fast+cite", "final+cite"
ASKS_FOR_POINTS = 'list of at most 6 objects {"statement"'
_PASSAGE = re.compile(r'<passage id="(\d+)"[^>]*>\n(.*?)\n</passage>', re.DOTALL)
_QUESTION = re.compile(r"<question>\n(.*?)\n</question>", re.DOTALL)


@dataclass
class Measured:
    """Outcomes of the questions with one model, or without."""

    seconds: list[float] = field(default_factory=list)
    answered: int = 0
    refused: int = 0
    theme_tokens: int = 0
    partial_tokens: int = 0
    most_calls: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    most_prompt_tokens: int = 0
    citations: int = 0
    verbatim: int = 0
    cited: set[str] = field(default_factory=set)
    missed: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "questions": len(self.seconds),
            "answered": self.answered,
            "refused": self.refused,
            "most_theme_tokens": self.theme_tokens,
            "most_partial_tokens": self.partial_tokens,
            "calls": self.calls,
            "most_calls": self.most_calls,
            "prompt_tokens": self.prompt_tokens,
            "most_prompt_tokens": self.most_prompt_tokens,
            "citations": self.citations,
            "verbatim": self.verbatim,
            "documents_cited": len(self.cited),
            "p50_s": round(find_percentile(self.seconds, 0.5), 3),
            "p95_s": round(find_percentile(self.seconds, 0.95), 3),
        }


@dataclass(frozen=True)
class Podcasts:
    """The podcasts in an application. ``server`` counts if a model is configured."""

    services: Container
    tenant: Tenant
    server: ModelServer | None = None

    async def ask(self, question: str, measured: Measured) -> Answer:
        """Answer with `global`, count, and record failed assertions."""
        if self.server is not None:
            self.server.reset()
        started = time.perf_counter()
        query = Query(tenant=self.tenant, text=question, limit=LIMIT, high_limit=MAX_THEMES, dual_level=True)
        answer = await self.services.answers.answer(query, strategy=GLOBAL)
        measured.seconds.append(time.perf_counter() - started)
        details = answer.retrieval.trace.details
        themes, partial = int(details["themes"]["tokens"]), int(details["partial_answers"]["tokens"])
        verbatim = await self.verbatim(answer)
        measured.answered += answer.grounded
        measured.refused += not answer.grounded
        measured.theme_tokens = max(measured.theme_tokens, themes)
        measured.partial_tokens = max(measured.partial_tokens, partial)
        measured.citations += len(answer.citations)
        measured.verbatim += verbatim
        measured.cited |= {each.document_id for each in answer.citations}
        budget = self.services.settings.global_budget_tokens
        broken = {
            f"{themes} tokens of themes, {partial} of partial answers, above {budget}": max(themes, partial) > budget,
            f"{len(answer.citations)} citations, grounded: {answer.grounded}": answer.grounded != bool(answer.citations),
            f"{verbatim} of {len(answer.citations)} quotes are verbatim": verbatim != len(answer.citations),
            **self._calls(answer, measured),
        }
        measured.missed += [f"{question!r}: {what}" for what, does in broken.items() if does]
        return answer

    def _calls(self, answer: Answer, measured: Measured) -> dict[str, bool]:
        if self.server is None:
            return {f"{answer.usage.calls} calls without a model": answer.usage.calls > 0}
        stats = self.server.stats()
        total, final = stats.total, stats.models.get(FINAL)
        measured.calls += total.calls
        measured.most_calls = max(measured.most_calls, total.calls)
        measured.prompt_tokens += total.prompt_tokens
        measured.most_prompt_tokens = max(measured.most_prompt_tokens, total.prompt_tokens)
        bound, asked = self.services.settings.global_max_calls, final.calls if final else 0
        needless = not answer.grounded and not answer.retrieval.trace.details["partial_answers"]["used"] and asked > 0
        return {
            f"{total.calls} calls, above {bound}": total.calls > bound,
            f"{total.calls} calls and {total.prompt_tokens} tokens, but usage is {answer.usage}": (
                (total.calls, total.prompt_tokens) != (answer.usage.calls, answer.usage.prompt_tokens)
            ),
            f"a refusal without a point took {asked} calls for an answer": needless,
        }

    async def verbatim(self, answer: Answer) -> int:
        """Return the number of quotes that are in a visible chunk at their offsets."""
        visible = await self.services.catalogue.documents.hydrate(self.tenant.id, [each.chunk_id for each in answer.citations])
        found = 0
        for each in answer.citations:
            if each.chunk_id in visible:
                chunk = visible[each.chunk_id].chunk
                held = chunk.text[each.start_char - chunk.location.start_char : each.end_char - chunk.location.start_char]
                found += bool(held) and held == each.quote
        return found

    async def listing(self, strategy: str, question: str) -> Listing:
        """Return the results of one strategy for one question."""
        most = MAX_THEMES if strategy == GLOBAL else 5
        query = Query(tenant=self.tenant, text=question, limit=LIMIT, high_limit=most, dual_level=True)
        return listing(await self.services.retrievers.get(strategy).retrieve(query))

    async def without(self, questions: Sequence[str], measured: Measured) -> dict[str, int]:
        """Delete the document that each answer cites most, and ask again before a rebuild."""
        ends = {"cites others": 0, "refused": 0}
        for question in questions:
            before = [each.document_id for each in (await self.ask(question, Measured())).citations]
            if not before:
                continue
            gone = max(before, key=before.count)
            await self.services.ingestion.delete(self.tenant.id, gone)
            after = await self.ask(question, measured)
            if gone in {each.document_id for each in after.citations}:
                measured.missed.append(f"{question!r}: cites {gone}, which was deleted")
            ends["cites others" if after.grounded else "refused"] += 1
        return ends


def listing(found: Retrieval) -> Listing:
    """Return passages and themes as places. Each document counts once per question, for a passage or a supporting document."""
    sources = (source.document_id for theme in found.themes for finding in theme.findings for source in finding.sources)
    return Listing(
        ids=tuple(hit.id for hit in found.hits),
        documents=tuple(dict.fromkeys((*(hit.visible.chunk.document_id for hit in found.hits), *sources))),
        texts=(*(hit.visible.chunk.text for hit in found.hits), *(theme.summary for theme in found.themes)),
        communities=tuple(theme.id for theme in found.themes),
        entities=tuple(entity.id for hit in found.hits for entity in hit.entities),
    )


def points(prompt: str) -> str:
    """Return the three passages nearest to the question, as the cheap model would. Half of its words are the best score."""
    asked = _QUESTION.search(prompt)
    wanted = content_forms(asked[1]) if asked else frozenset()
    near = [(len(content_forms(text) & wanted), number, text) for number, text in _PASSAGE.findall(prompt)]
    best = sorted(near, key=lambda each: (-each[0], int(each[1])))[:3]
    made = [
        {"statement": text, "sources": [int(number)], "score": min(100, 200 * shared // max(1, len(wanted)))}
        for shared, number, text in best
    ]
    return json.dumps({"points": made})


def opened(folder: Path, server: ModelServer | None = None) -> AbstractAsyncContextManager[Container]:
    """Open the application on a folder, with the scripted model or without a model."""
    model: dict[str, Any] = {}
    if server is not None:
        model = {
            "llm": "openai",
            "extraction": "rules",
            "openai_base_url": server.base_url,
            "openai_api_key": "any",
            "llm_model": FINAL,
            "llm_fast_model": FAST,
            "dual_level_synthesis_model": FINAL,
        }
    settings = make_settings(
        data_dir=folder,
        dual_level_retrieval_enabled=True,
        community_auto_rebuild=False,
        search_cache_mb=0,
        embedding_cache_mb=0,
        **model,
    )
    return open_container(settings)


async def fill(services: Container, data: Path) -> Tenant:
    """Ingest the podcasts and build communities, unless they exist."""
    tenant = await services.tenants.by_name(TENANT) or await services.tenants.create(TENANT)
    passages = load_passages(data / "podcasts" / "corpus.jsonl")
    if (await services.catalogue.documents.counts(tenant.id))["documents"] < len(passages):
        print("ingestion", await ingest(services, tenant.id, passages), flush=True)
    if (await services.catalogue.communities.pointer(tenant.id)).generation == 0:
        print("communities", await rebuild(services, tenant.id), flush=True)
    return await services.tenants.get(tenant.id)


async def varied(podcasts: Podcasts, questions: Sequence[str]) -> dict[str, Any]:
    """Ask every strategy all questions. Return the figures of `analyze-diversity`."""
    services, tenant = podcasts.services, podcasts.tenant.id
    counts = await services.catalogue.documents.counts(tenant)
    pointer = await services.catalogue.communities.pointer(tenant)
    held = await services.graph.communities(tenant, pointer.generation)
    totals = {"documents": counts["documents"], "communities": len(held), "entities": None}
    rows = {}
    for strategy in COMPARED:
        rows[strategy] = measure_diversity([await podcasts.listing(strategy, each) for each in questions], totals).as_result()
        print(strategy, rows[strategy], flush=True)
    return rows


async def measure(folder: Path, data: Path, *, with_model: int, deletions: int) -> tuple[dict[str, Any], list[str]]:
    """Run the measurements in ``folder``. Return the figures and the failed assertions."""
    questions = load_questions(data / "podcasts")
    plain, written, after = Measured(), Measured(), Measured()
    async with opened(folder) as services:
        podcasts = Podcasts(services, await fill(services, data))
        for question in questions:
            await podcasts.ask(question, plain)
        print("without a model", plain.row(), flush=True)
        results: dict[str, Any] = {"without a model": plain.row(), "diversity": await varied(podcasts, questions)}
    with ModelServer(matchers=[(lambda prompt: ASKS_FOR_POINTS in prompt, points)]) as server:
        async with opened(folder, server) as services:
            podcasts = Podcasts(services, await services.tenants.get(podcasts.tenant.id), server)
            for question in spread(questions, with_model):
                await podcasts.ask(question, written)
    results["scripted model"] = written.row()
    print("scripted model", written.row(), flush=True)
    async with opened(folder) as services:
        podcasts = Podcasts(services, await services.tenants.get(podcasts.tenant.id))
        ends = await podcasts.without(spread(questions, deletions), after)
    results["after a deletion"] = {**after.row(), **ends} if after.seconds else ends
    return results, [*plain.missed, *written.missed, *after.missed]


def spread(questions: Sequence[str], count: int) -> list[str]:
    """Return ``count`` questions, evenly spaced."""
    return [questions[number * len(questions) // count] for number in range(min(count, len(questions)))]


def markdown(results: Mapping[str, Any]) -> str:
    """Return the tables."""
    rows = {name: row for name, row in results.items() if name != "diversity"}
    figures = list(dict.fromkeys(figure for row in rows.values() for figure in row))
    lines = [f"| `{GLOBAL}` | {' | '.join(rows)} |", "|---" * (len(rows) + 1) + "|"]
    lines += [f"| {figure} | {' | '.join(str(row.get(figure, '–')) for row in rows.values())} |" for figure in figures]
    head = ("strategy", "unanswered", "documents", "of all", "communities", "of all", "identical pairs", "similarity in a list")
    lines += ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, row in results["diversity"].items():
        documents, communities = row["documents"], row["communities"]
        cells = [
            row["unanswered"],
            documents["distinct"],
            documents["coverage"],
            communities["distinct"],
            communities["coverage"],
        ]
        cells += [row["identical_pairs"], row["intra_list_similarity"]]
        lines.append(f"| `{name}` | {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filled", type=Path, help="a data folder that holds the podcasts as its tenant 'default'")
    parser.add_argument("--with-model", type=int, default=25, help="questions asked with the scripted model")
    parser.add_argument("--deletions", type=int, default=10, help="questions whose document cited most is deleted")
    chosen = parser.parse_args()
    report.quiet()
    data = report.data()
    if data is None:
        return 0
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as made:
        folder = Path(made, "data")
        if chosen.filled is not None:
            shutil.copytree(chosen.filled, folder)
        results, missed = asyncio.run(measure(folder, data, with_model=chosen.with_model, deletions=chosen.deletions))
    return report.finish("corpus_wide", results, markdown(results), missed)


if __name__ == "__main__":
    raise SystemExit(main())
