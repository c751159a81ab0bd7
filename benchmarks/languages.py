"""Measures retrieval and answers in German, French and Chinese with the encoder of the settings.

All passages of `language_sets` are in one tenant. Passages of the same number in two languages are about the same subject.

- ``R@1`` and ``MRR``: the rank of the passage in the language of the question, among the passages of all languages.
- ``subject R@1``: the first result is about the right subject, in any language.
- ``across R@1``: the same question with a filter for another language, on average over the other languages. A bilingual reader
  would find the passage there.
- ``margin``: cosine of the right passage minus that of the best passage about another subject, in the language of the question
  and, on average, in the other languages. If it is negative, questions are closer to a wrong passage on average.

Another encoder needs its settings only: ``EMBEDDER=openai``, ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``EMBEDDING_MODEL`` and
``EMBEDDING_DIMENSIONS``, or ``EMBEDDING_MODEL_PATH``. ``--label NAME`` names its table. Writes ``results/languages.json`` and
``.md``, and keeps the tables of other labels there. Nothing is asserted: the sets have 12 questions for each language.

`language_checks` measures answers and the checks of their sentences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import language_checks
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Query, Rerank
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.retrieval.requests.builder import RerankDefaults
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from corpora import ingest_uploads
from report import RESULTS, ROOT, finish, make_settings, quiet

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from language_sets import PASSAGES, QUESTIONS

LIMIT = 10
CHOSEN = RerankDefaults().reranker
RERANK = Rerank(name=CHOSEN, candidates=max(RERANKERS[CHOSEN].least, 3 * LIMIT), timeout_s=60)
STRATEGIES: Mapping[str, tuple[str, Rerank | None]] = {
    "sparse": ("sparse", None),
    "dense": ("dense", None),
    "hybrid": ("hybrid", None),
    f"hybrid · {CHOSEN}": ("hybrid", RERANK),
    "graph": ("graph", None),
}
"""Name in the table → strategy and reranking. ``hybrid`` is reranked by default."""
SUBJECTS: Mapping[str, int] = {
    f"{code}/{key}": number for code, passages in PASSAGES.items() for number, key in enumerate(passages)
}
"""Key of a document → number of its subject, which is the same in all languages."""
Rows = dict[str, dict[str, dict[str, float]]]
"""Strategy or ``cosine`` → language → figures."""


async def filled(services: Container) -> Tenant:
    """Return a tenant with the passages of all languages."""
    made = await services.tenants.create("languages")
    uploads = [
        Upload(content=text.encode(), media_type="text/plain", key=f"{code}/{key}", metadata={"language": code})
        for code, passages in PASSAGES.items()
        for key, text in passages.items()
    ]
    await ingest_uploads(services, made.id, uploads)
    return await services.tenants.get(made.id)


async def found(services: Container, tenant: Tenant, question: str, name: str, language: str | None = None) -> list[str]:
    """Return the keys of the results, best first, of all languages or of one."""
    strategy, rerank = STRATEGIES[name]
    filters = parse_filter({"language": language}) if language else None
    query = Query(tenant=tenant, text=question, limit=LIMIT, rerank=rerank, filters=filters)
    result = await services.retrievers.get(strategy).retrieve(query)
    return list(dict.fromkeys(str(hit.visible.document_key) for hit in result.hits))


async def ranked(services: Container, tenant: Tenant, name: str, code: str) -> dict[str, float]:
    """Ask the questions of a language, and return the figures of a strategy."""
    firsts: list[float] = []
    ranks: list[float] = []
    subjects: list[float] = []
    across: list[float] = []
    for question, key in QUESTIONS[code]:
        right = f"{code}/{key}"
        keys = await found(services, tenant, question, name)
        firsts.append(keys[:1] == [right])
        ranks.append(1 / (keys.index(right) + 1) if right in keys else 0.0)
        subjects.append(bool(keys) and SUBJECTS[keys[0]] == SUBJECTS[right])
        for other in PASSAGES.keys() - {code}:
            keys = await found(services, tenant, question, name, other)
            across.append(bool(keys) and SUBJECTS[keys[0]] == SUBJECTS[right])
    figures = {"R@1": firsts, "MRR": ranks, "subject R@1": subjects, "across R@1": across}
    return {measure: round(mean(values), 3) for measure, values in figures.items()}


async def margins(services: Container, code: str) -> dict[str, float]:
    """Return the mean cosine margins of the questions of a language."""
    vectors = {each: await services.embedder.embed(list(passages.values())) for each, passages in PASSAGES.items()}
    own: list[float] = []
    across: list[float] = []
    for question, key in QUESTIONS[code]:
        asked = await services.embedder.embed_query(question)
        number = SUBJECTS[f"{code}/{key}"]
        for other, rows in vectors.items():
            cosines = (rows @ asked).tolist()
            right = cosines.pop(number)
            (own if other == code else across).append(right - max(cosines))
    return {"margin": round(mean(own), 3), "across margin": round(mean(across), 3)}


async def measure(data_dir: Path) -> dict[str, Any]:
    """Measure all strategies with the encoder of the settings."""
    settings = make_settings(data_dir=data_dir, community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
    async with open_container(settings) as services:
        tenant = await filled(services)
        rows: Rows = {name: {code: await ranked(services, tenant, name, code) for code in PASSAGES} for name in STRATEGIES}
        rows["cosine"] = {code: await margins(services, code) for code in PASSAGES}
        answers = await language_checks.measured(services)
        return {"encoder": services.embedder.fingerprint, "rows": rows, "answers": answers}


def table(rows: Rows, names: Sequence[str]) -> list[str]:
    """Return a table of some rows: a line for each language and name."""
    measures = list(next(iter(rows[names[0]].values())))
    lines = [f"| language | | {' | '.join(measures)} |", "|---" * (len(measures) + 2) + "|"]
    lines += [
        f"| {code} | {name} | " + " | ".join(f"{rows[name][code][each]:.2f}" for each in measures) + " |"
        for code in PASSAGES
        for name in names
    ]
    return [*lines, ""]


def markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables of every label."""
    lines = []
    for label, held in results.items():
        lines += [f"## {label}", "", f"Encoder: `{held['encoder']}`", ""]
        lines += [*table(held["rows"], list(STRATEGIES)), *table(held["rows"], ["cosine"])]
        lines += language_checks.table(held.get("answers", {}))
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", default="encoder of the settings", help="name of the table")
    chosen = parser.parse_args()
    quiet()
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        measured = asyncio.run(measure(Path(data_dir)))
    earlier = RESULTS / "languages.json"
    results = json.loads(earlier.read_text(encoding="utf-8")) if earlier.exists() else {}
    return finish("languages", {**results, chosen.label: measured}, markdown({**results, chosen.label: measured}), [])


if __name__ == "__main__":
    raise SystemExit(main())
