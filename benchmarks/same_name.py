"""Measures same-name precision: of the results about people of one name, the share that is about the person a question means.

Every signature of ``name_collisions`` (author, affiliation and co-authors of one publication) is a document. Two sets:

- ``affiliation``: documents of names with at most `MEDIUM` signatures, as they are. A question names the author and an
  affiliation that only one person of the name has.
- ``kind``: documents of names with at most `SMALL` signatures, and a made-up profession for each person. Every second document of
  a person states it. A question names the author and the profession. The other documents have to be assigned by their
  affiliations and co-authors, or stay undecided.

The baseline ``exact name`` asks for the name alone. Results that do not have the name do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import CorpusPassage
from corpora import ingest
from report import data, finish, make_settings, quiet

LIMIT = 5
SMALL, MEDIUM = 60, 120
STRATEGIES = ("dense", "hybrid", "graph")
KINDS = ("chemist", "painter", "footballer", "bishop", "surgeon", "poet", "carpenter")
Signature = Mapping[str, Any]
Asked = tuple[str, str, str]
"""Question, name and person."""


def author(signature: Signature) -> str:
    """Return the name as a text writes it: "J. C. Wang" for "Wang, J.C."."""
    last, _, first = str(signature["name"]).partition(", ")
    return f"{first.replace('.', '. ').strip()} {last}"


def passage(signature: Signature, kind: str = "") -> CorpusPassage:
    """Return a signature as a document."""
    called = f"the {kind} {author(signature)}" if kind else author(signature)
    text = f"Publication {signature['publication']} was written by {called}"
    text += f" of {signature['affiliation']}." if signature["affiliation"] else "."
    if signature["coauthors"]:
        text += f" Co-authors: {'; '.join(signature['coauthors'])}."
    return CorpusPassage(id=str(signature["id"]), title=f"Publication {signature['publication']}", text=text)


def by_name(signatures: Sequence[Signature]) -> dict[str, list[Signature]]:
    """Return the signatures of each name."""
    found: dict[str, list[Signature]] = defaultdict(list)
    for each in signatures:
        found[str(each["name"])].append(each)
    return found


def affiliation_questions(signatures: Sequence[Signature]) -> list[Asked]:
    """Return a question for each affiliation that one of the people of a name has alone."""
    asked = []
    for name, held in by_name(signatures).items():
        people: dict[str, set[str]] = defaultdict(set)
        for each in held:
            if each["affiliation"]:
                people[each["affiliation"]].add(each["person"])
        alone = [(affiliation, *found) for affiliation, found in sorted(people.items()) if len(found) == 1]
        asked += [(f"Which publications were written by {author(held[0])} of {at}?", name, person) for at, person in alone]
    return asked


def professions(held: Sequence[Signature]) -> dict[str, str]:
    """Return a profession for each person of one name."""
    return dict(zip(sorted({str(each["person"]) for each in held}), KINDS, strict=False))


def with_professions(signatures: Sequence[Signature]) -> tuple[list[CorpusPassage], list[Asked]]:
    """Return the documents of the rarer names, every second one of a person with its profession, and the questions."""
    passages, asked = [], []
    for name, held in by_name(signatures).items():
        if len(held) > SMALL:
            continue
        kinds, seen = professions(held), dict.fromkeys(professions(held), 0)
        for each in held:
            person = str(each["person"])
            passages.append(passage(each, kinds[person] if seen[person] % 2 == 0 else ""))
            seen[person] += 1
        asked += [(f"What did the {kind} {author(held[0])} publish?", name, person) for person, kind in kinds.items()]
    return passages, asked


async def precision(
    services: Container, tenant: TenantId, signatures: Sequence[Signature], asked: Sequence[Asked]
) -> dict[str, Any]:
    """Return the mean share of the right person among the results of the name, by strategy, and of the exact name."""
    owner = {str(each["id"]): (str(each["name"]), str(each["person"])) for each in signatures}
    writes = {name: author(held[0]) for name, held in by_name(signatures).items()}
    current = await services.tenants.get(tenant)

    async def share(question: str, name: str, person: str, strategy: str) -> tuple[float, int] | None:
        found = await services.retrievers.get(strategy).retrieve(Query(tenant=current, text=question, limit=LIMIT))
        people = [owner[str(hit.visible.document_key)] for hit in found.hits]
        of_name = [held for called, held in people if called == name]
        return (sum(held == person for held in of_name) / len(of_name), len(of_name)) if of_name else None

    async def mean(questions: Sequence[Asked], strategy: str) -> dict[str, float]:
        shares = [held for each in questions if (held := await share(*each, strategy)) is not None]
        return {
            "precision": round(statistics.fmean(each for each, _ in shares), 3),
            "results": round(statistics.fmean(count for _, count in shares), 2),
            "questions": len(shares),
        }

    plain = [(f"Which publications were written by {writes[name]}?", name, person) for _, name, person in asked]
    return {"exact name": await mean(plain, "hybrid"), **{name: await mean(asked, name) for name in STRATEGIES}}


async def measure(signatures: Sequence[Signature], sets: Sequence[str]) -> dict[str, Any]:
    """Measure both sets in a new data folder."""
    results = {}
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as folder:
        settings = make_settings(data_dir=Path(folder), community_auto_rebuild=False)
        async with open_container(settings) as services:
            for name in sets:
                tenant = (await services.tenants.create(name)).id
                if name == "affiliation":
                    held = [each for group in by_name(signatures).values() if len(group) <= MEDIUM for each in group]
                    passages, asked = list(map(passage, held)), affiliation_questions(held)
                else:
                    passages, asked = with_professions(signatures)
                print(name, await ingest(services, tenant, passages), flush=True)
                await settled(services)
                results[name] = await precision(services, tenant, signatures, asked)
                print(name, results[name], flush=True)
    return results


async def settled(services: Container) -> None:
    """Wait until names whose meaning changed are resolved again."""
    await asyncio.sleep(10)


def table(results: Mapping[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    lines = [
        "| set | questions | exact name | " + " | ".join(f"`{name}`" for name in STRATEGIES) + " |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        figures = [f"{row[each]['precision']:.3f} ({row[each]['results']})" for each in ("exact name", *STRATEGIES)]
        lines.append(f"| {name} | {row['graph']['questions']} | {' | '.join(figures)} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=["affiliation", "kind"], choices=["affiliation", "kind"])
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    lines = (folder / "name_collisions" / "signatures.jsonl").read_text(encoding="utf-8").splitlines()
    results = asyncio.run(measure([json.loads(line) for line in lines], chosen.sets))
    return finish("same_name", results, table(results), missed=())


if __name__ == "__main__":
    raise SystemExit(main())
