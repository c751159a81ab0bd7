"""Accuracy of labels: the votes of `POST /label` against plain dense retrieval, on labelled texts of your own.

``python benchmarks/labelling.py FILE.csv --text-column text --label-column label``. A part of the rows of each label becomes
documents, and others are labelled. Plain dense retrieval is measured twice: the label of the nearest document, and the commonest
label of the nearest ten. Consistency is the share of texts that keep their label if they are written differently: in lower case,
after a greeting, with two letters swapped.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from agentic_rag_backend import Embedded, open_embedded
from report import finish, quiet

MAJORITY = 10
CONCURRENT = 8
GREETINGS = ("Hello, ", "Hi there! ", "Good morning. ")

Labeller = Callable[[str], Awaitable[str | None]]


def split_rows(rows: Sequence[tuple[str, str]], shots: int, tests: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return ``shots`` rows of each label, and at most ``tests`` others. The same rows give the same split."""
    generator, by_label = random.Random(7), defaultdict[str, list[str]](list)
    for text, label in rows:
        by_label[label].append(text)
    examples, others = [], []
    for label, texts in sorted(by_label.items()):
        generator.shuffle(texts)
        examples += [(text, label) for text in texts[:shots]]
        others += [(text, label) for text in texts[shots:]]
    return examples, generator.sample(others, min(tests, len(others)))


def rewrite(text: str, generator: random.Random) -> str:
    """Return ``text`` in lower case, after a greeting, and with two neighbouring letters of one word swapped."""
    words = text.lower().split()
    number = generator.randrange(len(words))
    word = words[number]
    if len(word) > 3:
        at = generator.randrange(1, len(word) - 2)
        words[number] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return generator.choice(GREETINGS) + " ".join(words)


def list_labellers(rag: Embedded) -> dict[str, Labeller]:
    """Return the ways to label a text by name."""

    async def nearest(text: str) -> str | None:
        results = await rag.search(text, strategy="dense", limit=1, filters={"label": {"exists": True}})
        return str(results.hits[0].visible.metadata["label"]) if results.hits else None

    async def majority(text: str) -> str | None:
        results = await rag.search(text, strategy="dense", limit=MAJORITY, filters={"label": {"exists": True}})
        counts = Counter(str(hit.visible.metadata["label"]) for hit in results.hits)
        return counts.most_common(1)[0][0] if counts else None

    def votes(strategy: str) -> Labeller:
        async def label(text: str) -> str | None:
            return (await rag.label(text, strategy=strategy)).label

        return label

    return {
        "nearest document": nearest,
        f"majority of {MAJORITY}": majority,
        **{f"votes, {strategy}": votes(strategy) for strategy in ("dense", "hybrid", "graph")},
    }


async def _label_all(label: Labeller, texts: Sequence[str]) -> list[str | None]:
    slots = asyncio.Semaphore(CONCURRENT)

    async def one(text: str) -> str | None:
        async with slots:
            return await label(text)

    return list(await asyncio.gather(*(one(text) for text in texts)))


async def measure(rows: Sequence[tuple[str, str]], shots: int, tests: int) -> list[dict[str, object]]:
    """Return accuracy and consistency of each way to label."""
    examples, others = split_rows(rows, shots, tests)
    generator = random.Random(3)
    texts = [text for text, _ in others]
    rewritten = [rewrite(text, generator) for text in texts]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_embedded(folder, dual_level=False, operator_key=None) as rag:
            slots = asyncio.Semaphore(CONCURRENT)

            async def add(text: str, label: str) -> None:
                async with slots:
                    await rag.ingest(text=text, metadata={"label": label})

            await asyncio.gather(*(add(*example) for example in examples))
            for name, label in list_labellers(rag).items():
                plain, changed = await _label_all(label, texts), await _label_all(label, rewritten)
                right = sum(given == expected for given, (_, expected) in zip(plain, others, strict=True))
                same = sum(a == b for a, b in zip(plain, changed, strict=True))
                results.append(
                    {
                        "shots": shots,
                        "method": name,
                        "texts": len(texts),
                        "labels": len({label for _, label in rows}),
                        "accuracy": right / len(texts),
                        "consistency": same / len(texts),
                    }
                )
    return results


def main() -> int:
    """Measure one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--shots", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--tests", type=int, default=300)
    arguments = parser.parse_args()
    quiet()
    with arguments.file.open(encoding="utf-8", newline="") as stream:
        rows = [(row[arguments.text_column], row[arguments.label_column]) for row in csv.DictReader(stream)]
    results = [item for shots in arguments.shots for item in asyncio.run(measure(rows, shots, arguments.tests))]
    lines = ["| documents for each label | method | accuracy | consistency |", "|---|---|---|---|"]
    lines += [f"| {item['shots']} | {item['method']} | {item['accuracy']:.3f} | {item['consistency']:.3f} |" for item in results]
    return finish(f"labelling-{arguments.file.stem}", {"results": results}, "\n".join(lines), [])


if __name__ == "__main__":
    sys.exit(main())
