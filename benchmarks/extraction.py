"""Measures rule-based extraction and resolution: names on Re-DocRED, time on MuSiQue, identity on name_collisions.

Run ``python benchmarks/extraction.py``. The data is in ``AGENTIC_RAG_EVAL_DATA`` or in ``../shared/data`` next to the
checkout. Without it the script prints a message and exits with 0. The rules are developed on the even documents of Re-DocRED;
quote the figures of the odd ones ("held out").
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import EntityMention, Extraction, normalise_name
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.lexicon import THING_CUES
from agentic_rag_backend.knowledge.extraction.relations.relations import RELATED
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from contradictions import text_of
from report import data, finish
from seed_names import SEED_NAMES
from typed_documents import TYPED_DOCUMENTS

NAMED = {"PER", "LOC", "ORG", "MISC"}
CLASS_OF = {"person": "PER", "organisation": "ORG", "place": "LOC", "group": "LOC", "work": "MISC", "other": "MISC"}
CLASS_OF |= dict.fromkeys((*THING_CUES, "event", "concept"), "MISC")
"""Re-DocRED's type of ours. It annotates peoples ("Norwegian") as LOC; it has faiths as ORG and languages as MISC, but ours are
all ``group``, so these count as errors."""
TYPED = {"types_held_out": "held out", "types_fitted_to": "fitted to", "types_own_documents": "documents of our own"}
FREQUENT = 12
NEVER_NAMES = {"date", "code"}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def chunk(text: str, id_: str = "c") -> Chunk:
    """Return ``text`` as the only chunk of a document."""
    return Chunk(
        id=id_,
        document_id="d",
        version=1,
        ordinal=0,
        text=text,
        size_tokens=0,
        content_hash="",
        location=Location(start_char=0, end_char=len(text), start_line=1, end_line=1),
    )


def gold_types(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each annotated name of a document, dates and numbers left out; of two, the one of more entities."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for entity in document["entities"]:
        if entity["type"] in NAMED:
            for key in {normalise_name(name) for name in entity["names"]} - {""}:
                counts[key][entity["type"]] += 1
    return {key: each.most_common(1)[0][0] for key, each in counts.items()}


def measure_names(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare, per document, the sets of extracted and annotated names, both normalised. Dates are left out."""
    extractor = RuleExtractor()
    hits = gold_count = found_count = 0
    recalled: Counter[str] = Counter()
    annotated: Counter[str] = Counter()
    typed: dict[str, Counter[str]] = defaultdict(Counter)
    for document in documents:
        extraction = extractor.extract_document(document["title"], [chunk(" ".join(document["sentences"]))])[0]
        types = {normalise_name(one.name): one.type for one in extraction.mentions if not one.about}
        found = {name for name, type_ in types.items() if type_ not in NEVER_NAMES}
        gold: set[str] = set()
        for entity in document["entities"]:
            names = {normalise_name(name) for name in entity["names"]} - {""}
            annotated[entity["type"]] += len(names)
            recalled[entity["type"]] += len(names & types.keys())
            typed[entity["type"]].update(types[name] for name in names & types.keys())
            if entity["type"] in NAMED:
                gold |= names
        hits += len(gold & found)
        gold_count += len(gold)
        found_count += len(found)
    return {
        "documents": len(documents),
        "recall": round(hits / gold_count, 4),
        "precision": round(hits / found_count, 4),
        "recall_by_type": {name: round(recalled[name] / annotated[name], 4) for name in sorted(annotated)},
        "types_given": {name: dict(counts.most_common()) for name, counts in sorted(typed.items())},
    }


def measure_relations(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many relationships between annotated entities have a name, and how many of these are annotated as related."""
    extractor = RuleExtractor()
    named = related = 0
    for document in documents:
        ids = {normalise_name(text_of([name])): entity["id"] for entity in document["entities"] for name in entity["names"]}
        annotated = {frozenset((relation["head"], relation["tail"])) for relation in document["relations"]}
        extraction = extractor.extract_document(document["title"], [chunk(text_of(document["sentences"]))])[0]
        for relationship in extraction.relationships:
            ends = {ids.get(normalise_name(name)) for name in (relationship.source, relationship.target)}
            if relationship.relation != RELATED and None not in ends and len(ends) > 1:
                named += 1
                related += frozenset(ends) in annotated
    return {"named": named, "related": related, "precision": round(related / named, 4)}


def measure_types(documents: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, Any]:
    """Compare the types of found names with the gold types of documents: title, text, type of each normalised name."""
    extractor = RuleExtractor()
    confusion: dict[str, Counter[str]] = {name: Counter() for name in sorted(NAMED)}
    errors: Counter[tuple[str, str, str]] = Counter()
    annotated = 0
    for title, text, gold in documents:
        extraction = extractor.extract_document(title, [chunk(text)])[0]
        types = {normalise_name(one.name): one.type for one in extraction.mentions if not one.about}
        annotated += len(gold)
        for key in sorted(gold.keys() & types.keys()):
            given = CLASS_OF.get(types[key], types[key])
            confusion[gold[key]][given] += 1
            errors[key, types[key], gold[key]] += given != gold[key]
    found = sum(sum(row.values()) for row in confusion.values())
    return {
        "annotated": annotated,
        "found": found,
        "accuracy": round(sum(confusion[name][name] for name in NAMED) / found, 4),
        "confusion": {name: dict(row.most_common()) for name, row in confusion.items()},
        "frequent_errors": [[*error, count] for error, count in errors.most_common(FREQUENT) if count],
    }


def own_documents() -> list[tuple[str, str, dict[str, str]]]:
    """Return the documents of `typed_documents` with normalised names, without names that the scores are fitted to."""
    fitted_to = {normalise_name(name) for names in SEED_NAMES.values() for name in names.split(",")}
    return [
        (
            one.title,
            one.text,
            {key: type_ for name, type_ in one.names.items() if (key := normalise_name(name)) not in fitted_to},
        )
        for one in TYPED_DOCUMENTS
    ]


def annotated_documents(documents: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, dict[str, str]]]:
    """Return title, text and gold types of documents of Re-DocRED."""
    return [(each["title"], " ".join(each["sentences"]), gold_types(each)) for each in documents]


def measure_time(passages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Time the extraction of single-passage documents, each once."""
    extractor = RuleExtractor()
    times_ms, mentions, relationships = [], 0, 0
    for passage in passages:
        start = time.perf_counter()
        extraction = extractor.extract_document(passage["title"], [chunk(passage["text"])])[0]
        times_ms.append((time.perf_counter() - start) * 1000)
        mentions += len(extraction.mentions)
        relationships += len(extraction.relationships)
    return {
        "passages": len(passages),
        "mean_ms": round(statistics.fmean(times_ms), 3),
        "p95_ms": round(statistics.quantiles(times_ms, n=20)[-1], 3),
        "mentions_per_passage": round(mentions / len(passages), 2),
        "relationships_per_passage": round(relationships / len(passages), 2),
    }


async def measure_identity(signatures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Resolve each signature (author, affiliation, co-authors of one publication) as a separate document. Return B-cubed."""
    tenant = TenantId.new()
    predicted: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteGraphStore.open(Path(folder) / "graph.db")
        resolver = Resolver(store)
        for signature in signatures:
            document = f"publication-{signature['id']}"
            knowledge = await resolver.resolve(tenant, document, 1, "", [_signed(signature)])
            await store.write_document(tenant, knowledge)
            predicted[signature["id"]] = knowledge.mentions[0].entity_id
        await store.close()
    gold = {signature["id"]: str(signature["person"]) for signature in signatures}
    return {"signatures": len(signatures), **b_cubed(predicted, gold)}


def _signed(signature: Mapping[str, Any]) -> Extraction:
    names = [(signature["name"], "person"), *((name, "person") for name in signature["coauthors"])]
    if signature["affiliation"]:
        names.append((signature["affiliation"], "organisation"))
    mentions = tuple(EntityMention(name=name, type=type_, start_char=0, end_char=0) for name, type_ in names)
    return Extraction(chunk_id=f"c{signature['id']}", mentions=mentions)


def b_cubed(predicted: Mapping[int, str], gold: Mapping[int, str]) -> dict[str, float]:
    """Return precision, recall and F1 of two clusterings (Bagga and Baldwin, 1998)."""
    together = Counter((predicted[item], gold[item]) for item in gold)
    precision = _mean(together[predicted[item], gold[item]] / size for item, size in _sizes(predicted))
    recall = _mean(together[predicted[item], gold[item]] / size for item, size in _sizes(gold))
    f1 = 2 * precision * recall / (precision + recall)
    return {"b3_precision": round(precision, 4), "b3_recall": round(recall, 4), "b3_f1": round(f1, 4)}


def _sizes(clusters: Mapping[int, str]) -> Iterable[tuple[int, int]]:
    sizes = Counter(clusters.values())
    return ((item, sizes[cluster]) for item, cluster in clusters.items())


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


def table(results: Mapping[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    held, tuned, timed, identity = (results[name] for name in ("names_held_out", "names_developed_on", "time", "identity"))
    rows = [
        ("Re-DocRED names, held out: recall / precision", f"{held['recall']:.3f} / {held['precision']:.3f}", "≥ .85 / .75"),
        ("Re-DocRED names, developed on: recall / precision", f"{tuned['recall']:.3f} / {tuned['precision']:.3f}", ""),
        *(
            (
                f"named relationships, {which}: annotated as related",
                f"{of['related']} of {of['named']} ({of['precision']:.3f})",
                "",
            )
            for which, of in (("held out", results["relations_held_out"]), ("developed on", results["relations_developed_on"]))
        ),
        *(
            (f"types of found names, {which}", f"{results[name]['accuracy']:.3f} of {results[name]['found']}", "≥ .90")
            for name, which in TYPED.items()
        ),
        ("MuSiQue passage: mean / p95 ms", f"{timed['mean_ms']:.2f} / {timed['p95_ms']:.2f}", ""),
        (
            "MuSiQue: mentions / relationships a passage",
            f"{timed['mentions_per_passage']} / {timed['relationships_per_passage']}",
            "",
        ),
        ("name_collisions B³ precision / recall", f"{identity['b3_precision']:.3f} / {identity['b3_recall']:.3f}", ""),
        ("name_collisions B³ F1", f"{identity['b3_f1']:.3f}", "≥ .95"),
    ]
    return "\n".join(
        [
            *_confusion(results["types_held_out"]),
            "| measure | value | aim |",
            "|---|---|---|",
            *(f"| {name} | {value} | {aim} |" for name, value, aim in rows),
        ]
    )


def _confusion(typed: Mapping[str, Any]) -> list[str]:
    columns = sorted(NAMED)
    return [
        f"| held out: annotated as | {' | '.join(columns)} |",
        f"|{'---|' * (len(columns) + 1)}",
        *(f"| {name} | {' | '.join(str(typed['confusion'][name].get(each, 0)) for each in columns)} |" for name in columns),
        "",
        "Most frequent errors (name: given, annotated): "
        + ", ".join(f"{name}: {given}, {gold} ({count})" for name, given, gold, count in typed["frequent_errors"]),
        "",
    ]


def main() -> int:
    """Measure, print the table and write the JSON."""
    folder = data()
    if folder is None:
        return 0
    annotated = read(folder / "redocred" / "dev.jsonl")
    results = {
        "names_held_out": measure_names(annotated[1::2]),
        "names_developed_on": measure_names(annotated[0::2]),
        "relations_held_out": measure_relations(annotated[1::2]),
        "relations_developed_on": measure_relations(annotated[0::2]),
        "types_held_out": measure_types(annotated_documents(annotated[1::2])),
        "types_fitted_to": measure_types(annotated_documents(annotated[0::2])),
        "types_own_documents": measure_types(own_documents()),
        "time": measure_time(read(folder / "musique" / "corpus.jsonl")),
        "identity": asyncio.run(measure_identity(read(folder / "name_collisions" / "signatures.jsonl"))),
    }
    return finish("extraction", results, table(results), missed=())


if __name__ == "__main__":
    sys.exit(main())
