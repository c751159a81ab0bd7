"""Writes a page with theme summaries and answers to theme questions over the examples, without a model, and its figures.

``python theme_samples.py --page`` writes ``docs/reference/benchmarks/theme-samples.md``: the largest themes and some answers
of ``global``, exactly as the product returns them. Without ``--page``, it prints the figures only. ``--data FOLDER`` reads a
filled data folder instead of ingesting the examples. ``--corpus NAME=FOLDER`` adds the ten largest themes of another filled data
folder: their names, and the beginning of one sentence of each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean

from agentic_rag_backend import open_embedded
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.language.sentences import leans_on_context, split_sentences
from agentic_rag_backend.library import Embedded
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.theme_index import CommunityView
from report import ROOT

PAGE = ROOT / "docs" / "reference" / "benchmarks" / "theme-samples.md"
CORPUS = ROOT / "examples" / "corpus"
QUESTIONS = ROOT / "examples" / "questions.jsonl"
FURTHER = ("What worries the fishers?", "What are the main topics of these documents?")
SUMMARIES = 10
QUOTED_CHARACTERS = 160
"""Most characters that the page quotes of a document that is not one of the examples."""
ANSWERS = 4
INTRODUCES = "documents of this theme"
"""Part of the introduction of a summary, which is counted and not quoted."""
SEARCHES = (
    ("`community`, five themes", "community", {"limit": 5}),
    ("`drift`, ten passages and five themes", "drift", {"limit": 10}),
    ("`global`, 4,000 tokens", "global", {"options": {"budget_tokens": 4_000}}),
    ("`global`, 12,000 tokens allowed", "global", {"options": {"budget_tokens": 12_000}}),
)


@dataclass(frozen=True)
class Question:
    """A question, with the keys of the documents that are expected behind its answer."""

    text: str
    expected: frozenset[str] = frozenset()


def questions() -> list[Question]:
    """Return the theme questions of the examples, then two further ones."""
    read = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    asked = [Question(each["question"], frozenset(each["gold"])) for each in read if each["type"] == "theme"]
    return [*asked, *(Question(text) for text in FURTHER)]


async def keys(rag: Embedded, document_ids: set[str]) -> set[str]:
    """Return the keys of documents without their suffix."""
    found = [await rag.container.catalogue.documents.document(rag.tenant_id, id) for id in sorted(document_ids)]
    return {str(each.key).rpartition("/")[2].rpartition(".")[0] for each in found}


def behind(found: Retrieval) -> set[str]:
    """Return the documents behind the results."""
    sources = {source.document_id for theme in found.themes for finding in theme.findings for source in finding.sources}
    return sources | {hit.visible.chunk.document_id for hit in found.hits}


async def expected_documents(rag: Embedded, asked: Sequence[Question]) -> dict[str, float]:
    """Return, by search, the mean share of expected documents among the documents behind the results."""
    shares: dict[str, float] = {}
    for name, strategy, options in SEARCHES:
        found = [(each, await rag.search(each.text, strategy=strategy, **options)) for each in asked if each.expected]
        shares[name] = mean([len(each.expected & await keys(rag, behind(result))) / len(each.expected) for each, result in found])
    return shares


async def style(rag: Embedded, themes: Sequence[CommunityView]) -> dict[str, float]:
    """Return how independent and how similar the quoted sentences of the summaries are."""
    quoted = [[each.text for each in split_sentences(theme.summary) if INTRODUCES not in each.text] for theme in themes]
    sentences = [each for those in quoted for each in those]
    cosines = []
    for those in quoted:
        if len(those) > 1:
            vectors = await rag.container.embedder.embed(those)
            cosines.append(mean(float(vectors[one] @ vectors[other]) for one, other in combinations(range(len(those)), 2)))
    return {
        "sentences": len(sentences),
        "sentences that begin with a pronoun or a connective": sum(map(leans_on_context, sentences)),
        "mean cosine of two sentences of one summary": round(mean(cosines), 3),
    }


async def cited(rag: Embedded, answers: Sequence[tuple[Question, Answer]]) -> tuple[int, int]:
    """Return the number of citations of expected documents, and of all citations, of questions with expected documents."""
    good = every = 0
    for asked, answer in answers:
        for citation in answer.citations if asked.expected else ():
            every += 1
            good += bool(await keys(rag, {citation.document_id}) & asked.expected)
    return good, every


def page(
    themes: Sequence[CommunityView], answers: Sequence[tuple[Question, Answer]], figures: Sequence[str], names: Sequence[str]
) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Theme samples",
        "[All benchmarks](../benchmarks.md).",
        "Written by `python benchmarks/theme_samples.py --page` from the documents in `examples/corpus`, without a model.\n"
        "The texts are exactly those of the product.",
        "## Figures",
        "\n".join(figures),
        "## Summaries",
        "The largest themes of the coarsest level. The first sentence of a summary is counted, the others are quoted.",
    ]
    for theme in themes[:SUMMARIES]:
        parts += [f"### {theme.name}", f"Keywords: {', '.join(theme.keywords)}.", _quote(theme.summary)]
    parts += names
    parts += ["## Answers", "Answers of `global`. The first sentence is the `introduction`, which has no citation."]
    for asked, answer in answers[:ANSWERS]:
        parts += [f"### {asked.text}", _quote(answer.text)]
    return "\n\n".join(parts) + "\n"


def _quote(text: str) -> str:
    # Code and markup of the documents must not become markup of the page.
    return f"> {text.replace('<', '&lt;').replace('|', chr(92) + '|').replace('*', chr(92) + '*').replace('_', chr(92) + '_')}"


async def largest_themes(rag: Embedded) -> list[CommunityView]:
    """Rebuild the communities, and return them: the coarsest level first, then the largest community."""
    await rag._await_end(await rag.container.communities.request_rebuild(rag.tenant_id, RebuildOptions(mode="full")))
    found = await rag.container.communities.list(rag.tenant_id, level=None, limit=1000, cursor=None)
    return sorted(found.items, key=lambda theme: (theme.level, -theme.entity_count, theme.name))


async def names_of(name: str, data: str) -> list[str]:
    """Return the rows of the page about another corpus."""
    async with open_embedded(data) as rag:
        themes = await largest_themes(rag)
    count = sum(theme.level == 0 for theme in themes)
    rows = [f"### Names: {name}", f"{count} themes at the coarsest level. The largest ones, with the beginning of one sentence:"]
    for theme in themes[:SUMMARIES]:
        sentences = [each.text for each in split_sentences(theme.summary) if INTRODUCES not in each.text]
        rows.append(f"**{theme.name}**\n\n{_quote((sentences or [''])[0][:QUOTED_CHARACTERS])}")
    return rows


async def main(data: Path | None, corpora: Sequence[str], *, write: bool) -> None:
    """Print the figures, and write the page."""
    with tempfile.TemporaryDirectory() as temporary:
        async with open_embedded(data or temporary) as rag:
            if data is None:
                await rag.ingest(CORPUS)
            themes = await largest_themes(rag)
            asked = questions()
            answers = [(each, await rag.ask(each.text, strategy="global")) for each in asked]
            good, every = await cited(rag, answers)
            rows = {
                **{
                    f"expected documents, {name}": f"{share:.3f}"
                    for name, share in (await expected_documents(rag, asked)).items()
                },
                "citations of `global` from expected documents": f"{good} of {every}",
                **{name: str(value) for name, value in (await style(rag, themes)).items()},
            }
    figures = ["| Figure | Value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    print("\n".join(figures))
    if write:
        names = [row for corpus in corpora for row in await names_of(*corpus.split("=", 1))]
        PAGE.write_text(page(themes, answers, figures, names))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", action="append", default=[])
    arguments = parser.parse_args()
    asyncio.run(main(arguments.data, arguments.corpus, write=arguments.page))
