"""Follow-up questions on the examples: how often the passages found hold the answer, with and without the conversation.

Every conversation of ``examples/conversations.jsonl`` whose question leans on its history is searched twice with `hybrid`: with
the question as asked, and with the question that the rules made self-contained. The rules were written with the set
``development``; ``held_out`` was written afterwards. Writes ``results/follow_ups.json`` and ``.md``. Asserted: a self-contained
question finds a wanted document among the first five more often, in both sets.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_backend.answering.conversation import Rewriter
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.datasets import CorpusPassage
from agentic_rag_backend.models.llm.base import Message
from corpora import ingest
from report import ROOT, finish, make_settings, quiet

EXAMPLES = ROOT / "examples"
STRATEGY = "hybrid"
RESULTS = 5
ALONE, IN_CONTEXT = "as asked", "self-contained"
ROLES = ("user", "assistant")


def conversations() -> list[dict[str, Any]]:
    """Return the conversations whose last question leans on its history."""
    rows = [json.loads(line) for line in (EXAMPLES / "conversations.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] != "stays" and row["gold"]]


def history_of(row: Mapping[str, Any]) -> list[Message]:
    """Return the turns of a conversation: users and assistants alternate."""
    return [Message("assistant" if index % 2 else "user", text) for index, text in enumerate(row["history"])]


async def found(services: Container, tenant: Tenant, question: str, keys: Mapping[str, str]) -> list[str]:
    """Return the keys of the documents of the first passages, best first."""
    query = Query(tenant=tenant, text=question, limit=RESULTS)
    retrieval = await services.retrievers.get(STRATEGY).retrieve(query)
    return [keys[hit.visible.chunk.document_id] for hit in retrieval.hits]


async def measure(services: Container) -> list[dict[str, Any]]:
    """Return one row for each conversation: its question in both forms, and the place of the first wanted document."""
    tenant = await services.tenants.create("examples")
    passages = [CorpusPassage(path.stem, "", path.read_text()) for path in sorted((EXAMPLES / "corpus").iterdir())]
    await ingest(services, tenant.id, passages, media_type="text/markdown")
    listed = await services.catalogue.documents.documents(tenant.id, limit=100)
    keys = {document.id: document.key or "" for document in listed.items}
    rewriter, rows = Rewriter(), []
    for row in conversations():
        rewritten = (await rewriter.rewrite(row["question"], history_of(row))).question
        places = {}
        for form, question in ((ALONE, row["question"]), (IN_CONTEXT, rewritten)):
            documents = await found(services, tenant, question, keys)
            places[form] = next((place for place, key in enumerate(documents, 1) if key in row["gold"]), None)
        rows.append({**{name: row[name] for name in ("id", "set", "kind", "question")}, "rewritten": rewritten, "places": places})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the counts of both sets as Markdown."""
    lines = ["| set | follow-up questions | first passage: as asked | self-contained | first five: as asked | self-contained |"]
    lines.append("|---|---|---|---|---|---|")
    for name, chosen in by_set(rows).items():
        cells = [str(_hits(chosen, form, most)) for most in (1, RESULTS) for form in (ALONE, IN_CONTEXT)]
        lines.append(f"| {name} | {len(chosen)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def by_set(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of each set."""
    sets: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        sets[row["set"]].append(row)
    return dict(sets)


def _hits(rows: Sequence[Mapping[str, Any]], form: str, most: int) -> int:
    return sum(row["places"][form] is not None and row["places"][form] <= most for row in rows)


async def main() -> int:
    """Measure, write the results and return the exit code."""
    quiet()
    with tempfile.TemporaryDirectory() as folder:
        settings = make_settings(data_dir=Path(folder), community_auto_rebuild=False, job_polling_interval_s=0.05)
        async with open_container(settings) as services:
            rows = await measure(services)
    missed = [
        f"{name}: a self-contained question does not find more than the question as asked"
        for name, chosen in by_set(rows).items()
        if _hits(chosen, IN_CONTEXT, RESULTS) <= _hits(chosen, ALONE, RESULTS)
    ]
    return finish("follow_ups", {"rows": rows}, table(rows), missed)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
