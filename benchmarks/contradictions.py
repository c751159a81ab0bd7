"""Measures contradictions: edited copies of Re-DocRED documents, MuSiQue and HotpotQA as they are, and the examples.

A copy has another date, number, or place of birth or death in one sentence. Unedited copies and merely different documents
contradict nothing. Documents with even numbers and MuSiQue were read while the rules were made; odd ones and HotpotQA were
not.

Writes ``results/contradictions.json`` and ``.md``, and all contradictions found in ``results/contradictions.txt``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_question_set
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.knowledge.contradictions.finder import ContradictionFilter
from corpora import ingest, ingest_uploads
from report import RESULTS, data, finish, make_settings, quiet

EXAMPLES = Path(__file__).parents[1] / "examples" / "corpus"
EXPECTED = ({"courier-2014-array-opens", "stec-2014-annual-report"}, {"courier-2014-array-opens", "rdc-2015-audit-note"})
THRESHOLDS = (0.0, 0.5, 0.75)
EDITED, COPIED = 150, 50
"""Documents of a half that get an edited copy, and an unedited one. The others get none."""
_YEAR = re.compile(r"\b(1[5-9]\d\d|20[01]\d)\b")
_NUMBER = re.compile(r"\b\d{1,3}(?:,\d{3})+\b|\b\d{2,6}\b")
_PLACES = {"P19": "birth", "P20": "death"}


@dataclass(frozen=True)
class Edit:
    """One change of a copy: in ``sentence``, ``before`` became ``after``."""

    kind: str
    sentence: int
    before: str
    after: str


def text_of(sentences: Sequence[str]) -> str:
    """Return a document's text, with the spaces around marks as people write them."""
    text = " ".join(sentences)
    text = re.sub(r" ([,.;:!?)%]|'s\b)", r"\1", text)
    return re.sub(r"([(]) ", r"\1", text)


def edits_of(document: Mapping[str, Any], others: Sequence[str], chance: random.Random) -> Iterator[Edit]:
    """Yield the possible edits of a document."""
    by_id = {each["id"]: each for each in document["entities"]}
    for each in document["entities"]:
        for mention in each["mentions"]:
            name = mention["name"]
            if each["type"] == "TIME" and (year := _YEAR.search(name)):
                other = name.replace(year[0], str(int(year[0]) - chance.randint(2, 15)))
                yield Edit("date", mention["sentence"], name, other)
            if each["type"] == "NUM" and (number := _NUMBER.search(name)) and not _YEAR.fullmatch(number[0]):
                plain = int(number[0].replace(",", ""))
                other = name.replace(number[0], f"{plain + max(plain // 3, 3):,}")
                yield Edit("number", mention["sentence"], name, other)
    for relation in document["relations"]:
        tail = by_id[relation["tail"]]
        if relation["property"] in _PLACES:
            for mention in tail["mentions"]:
                if mention["sentence"] in relation["evidence"]:
                    yield Edit("exclusive", mention["sentence"], mention["name"], chance.choice(others))


def edited(document: Mapping[str, Any], edit: Edit) -> list[str] | None:
    """Return the sentences of the copy; None: the sentence does not have the words once."""
    sentence = document["sentences"][edit.sentence]
    if sentence.count(edit.before) != 1 or edit.after == edit.before:
        return None
    return [
        each.replace(edit.before, edit.after) if number == edit.sentence else each
        for number, each in enumerate(document["sentences"])
    ]


def planted(documents: Sequence[Mapping[str, Any]], seed: int) -> tuple[list[Upload], dict[str, Edit]]:
    """Return the documents with their copies, and the edit by the document's id."""
    chance = random.Random(seed)
    places = sorted({each["names"][0] for one in documents for each in one["entities"] if each["type"] == "LOC"})
    uploads, edits = [], {}
    counts: Counter[str] = Counter()
    for number, document in enumerate(documents):
        uploads.append(_upload(document, document["id"], document["sentences"]))
        if number < EDITED:
            possible = [
                (each, text) for each in edits_of(document, places, chance) if (text := edited(document, each)) is not None
            ]
            if possible:
                fewest = min({each.kind for each, _ in possible}, key=lambda kind: (counts[kind], kind))
                edit, sentences = chance.choice([pair for pair in possible if pair[0].kind == fewest])
                counts[fewest] += 1
                edits[document["id"]] = edit
                uploads.append(_upload(document, f"{document['id']}-copy", sentences))
        elif number < EDITED + COPIED:
            uploads.append(_upload(document, f"{document['id']}-copy", document["sentences"]))
    return uploads, edits


def _upload(document: Mapping[str, Any], key: str, sentences: Sequence[str]) -> Upload:
    return Upload(content=text_of(sentences).encode(), media_type="text/plain", title=document["title"], key=key)


async def every(services: Container, tenant: Tenant) -> tuple[list[Contradiction], float, int]:
    """Return all contradictions of a tenant, the seconds, and the number of pages."""
    found: list[Contradiction] = []
    cursor, pages, started = None, 0, time.perf_counter()
    while True:
        page = await services.contradictions.page(tenant, ContradictionFilter(min_confidence=0.0), limit=1000, cursor=cursor)
        found += page.items
        pages, cursor = pages + 1, page.next_cursor
        if cursor is None:
            return found, time.perf_counter() - started, pages


async def keys_of(services: Container, tenant: Tenant, found: Sequence[Contradiction]) -> dict[str, str]:
    """Return the keys of the documents that contradictions name."""
    ids = {side.document_id for each in found for side in (each.a, each.b)}
    return {id: (await services.catalogue.documents.document(tenant.id, id)).key or id for id in ids}


def scored(found: Sequence[Contradiction], keys: Mapping[str, str], edits: Mapping[str, Edit]) -> list[dict[str, Any]]:
    """Return precision and recall at each threshold, over all and by kind of the edit."""
    rows = []
    for least in THRESHOLDS:
        kept = [each for each in found if each.confidence >= least]
        hits = {id: edit.kind for each in kept if (id := _planted(each, keys, edits)) for edit in [edits[id]]}
        right = sum(_planted(each, keys, edits) is not None for each in kept)
        row: dict[str, Any] = {"min_confidence": least, "found": len(kept), "right": right}
        row["precision"] = round(right / len(kept), 3) if kept else None
        row["recall"] = round(len(hits) / len(edits), 3)
        for kind, count in sorted(Counter(edit.kind for edit in edits.values()).items()):
            row[f"recall_{kind}"] = f"{sum(held == kind for held in hits.values())} of {count}"
        rows.append(row)
    return rows


def _planted(found: Contradiction, keys: Mapping[str, str], edits: Mapping[str, Edit]) -> str | None:
    """Return the id of the document whose edit a contradiction shows."""
    pair = {keys[found.a.document_id], keys[found.b.document_id]}
    id = min(pair, key=len)
    if pair != {id, f"{id}-copy"} or id not in edits:
        return None
    edit = edits[id]
    quotes = sorted((found.a.quote, found.b.quote), key=lambda quote: edit.after in quote)
    return id if text_of([edit.before]) in quotes[0] and text_of([edit.after]) in quotes[1] else None


def listed(name: str, found: Sequence[Contradiction], keys: Mapping[str, str], edits: Mapping[str, Edit]) -> str:
    """Return all contradictions as text, for a reader."""
    lines = [f"== {name}"]
    for each in sorted(found, key=lambda each: -each.confidence):
        mark = "planted" if _planted(each, keys, edits) else "other"
        lines += [f"{each.confidence} {each.kind} {mark}: {each.reason}"]
        lines += [f"    {keys[side.document_id]} · {side.title}: {side.quote}" for side in (each.a, each.b)]
    return "\n".join(lines)


async def measure(folder: Path, data_dir: Path) -> tuple[dict[str, Any], str]:
    """Measure the sets. A data folder that holds them already is not filled again."""
    documents = [json.loads(line) for line in (folder / "redocred" / "dev.jsonl").read_text().splitlines()]
    results: dict[str, Any] = {}
    texts: list[str] = []
    settings = make_settings(data_dir=data_dir, community_auto_rebuild=False)
    async with open_container(settings) as services:
        tenants = {each.name: each for each in (await services.tenants.list(limit=100)).items}
        for half, name in enumerate(("redocred, development", "redocred, held out")):
            uploads, edits = planted(documents[half::2], seed=half)
            tenant = tenants.get(name) or await services.tenants.create(name)
            if name not in tenants:
                await ingest_uploads(services, tenant.id, uploads)
            await _measured(services, tenant, name, edits, (results, texts))
        for name, passages in (
            ("musique", load_question_set(folder / "musique").passages),
            ("hotpotqa", load_question_set(folder / "hotpotqa").passages),
            ("examples", [CorpusPassage(path.stem, "", path.read_text()) for path in sorted(EXAMPLES.iterdir())]),
        ):
            tenant = tenants.get(name) or await services.tenants.create(name)
            if name not in tenants:
                await ingest(services, tenant.id, passages, media_type="text/markdown")
            await _measured(services, tenant, name, {}, (results, texts))
    return results, "\n\n".join(texts)


async def _measured(
    services: Container, tenant: Tenant, name: str, edits: Mapping[str, Edit], into: tuple[dict[str, Any], list[str]]
) -> None:
    results, texts = into
    tenant = await services.tenants.get(tenant.id)
    await services.graphs.graph(tenant)
    found, seconds, pages = await every(services, tenant)
    keys = await keys_of(services, tenant, found)
    row: dict[str, Any] = {"found": len(found), "seconds": round(seconds, 2), "pages": pages}
    if edits:
        row |= {"planted": len(edits), "scores": scored(found, keys, edits)}
    else:
        row["found_from"] = {str(least): sum(each.confidence >= least for each in found) for least in THRESHOLDS}
    if name == "examples":
        pairs = [{keys[each.a.document_id], keys[each.b.document_id]} for each in found]
        row["expected"] = f"{sum(pair in pairs for pair in EXPECTED)} of {len(EXPECTED)}"
    results[name] = row
    texts.append(listed(name, found, keys, edits))


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table."""
    lines = [
        "| set | least confidence | found | precision | recall | dates | numbers | exclusive values |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        for each in row.get("scores", ()):
            figures = [each["min_confidence"], each["found"], each["precision"], each["recall"]]
            figures += [each.get(f"recall_{kind}", "") for kind in ("date", "number", "exclusive")]
            lines.append(f"| {name} | {' | '.join(map(str, figures))} |")
        for least, count in row.get("found_from", {}).items():
            lines.append(f"| {name} | {least} | {count} | | {row.get('expected', '')} | | | |")
    return "\n".join(lines)


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", type=Path, help="data folder that is kept and used again")
    arguments = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as temporary:
        results, texts = asyncio.run(measure(folder, arguments.keep or Path(temporary)))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "contradictions.txt").write_text(texts, encoding="utf-8")
    return finish("contradictions", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
