"""Prove that a change of the code changed no result of searches, answers, extraction, claim checks and communities.

``python benchmarks/same.py --out FILE`` writes the hashes of about 3,000 searches, 570 answers, and everything else by
section, with a few metrics. The results themselves are in ``FILE.results.gz``, so that a comparison can show what differs.
``--base FILE`` compares with an earlier run. Two runs of the same code write the same hashes, on a busy machine, too.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from report import ROOT, data, quiet
from same_corpora import NAMES
from same_results import differences, digest

Cases = dict[str, Any]
"""Canonical results by case."""
Part = tuple[dict[str, Cases], dict[str, dict[str, float]]]
"""The results of sections, and the metrics of sections."""
INDEXED = ("documents", "graph", "communities", "search", "answers")
"""Sections that index the corpora first."""
SECTIONS = (*INDEXED, "extraction", "claims")
PROCESSES = 3
SHOWN = 5


def measure_index(name: str, sections: Sequence[str], folder: Path, keep: Path | None) -> Part:
    """Index a corpus in this process and ask it for the sections."""
    from same_index import measure

    quiet()
    with tempfile.TemporaryDirectory(prefix="agentic-rag-same-") as fresh:
        return asyncio.run(measure(name, sections, folder, Path(fresh) if keep is None else keep / name))


def measure_extraction(name: str, folder: Path) -> Part:
    """Extract names and relationships of a corpus."""
    from same_rules import extract_corpus

    quiet()
    return extract_corpus(name, folder)


def measure_claims(name: str, folder: Path) -> Part:
    """Check altered and reworded sentences of a corpus."""
    from same_rules import check_claims

    quiet()
    return check_claims(name, folder)


def plan_tasks(
    sections: Sequence[str], sets: Sequence[str], folder: Path, keep: Path | None
) -> list[tuple[Callable[..., Part], tuple[Any, ...]]]:
    """Return the functions that processes call, with their arguments."""
    from same_rules import CLAIMS, EXTRACTED

    indexed = [name for name in INDEXED if name in sections]
    tasks: list[tuple[Callable[..., Part], tuple[Any, ...]]] = []
    if indexed:
        tasks += [(measure_index, (name, indexed, folder, keep)) for name in NAMES]
    if "claims" in sections:
        tasks += [(measure_claims, (name, folder)) for name in CLAIMS]
    if "extraction" in sections:
        tasks += [(measure_extraction, (name, folder)) for name in EXTRACTED]
    return [(function, arguments) for function, arguments in tasks if not sets or arguments[0] in sets]


def run(sections: Sequence[str], sets: Sequence[str], folder: Path, keep: Path | None) -> Part:
    """Run the sections in a few processes."""
    results: dict[str, Cases] = {name: {} for name in SECTIONS if name in sections}
    metrics: dict[str, dict[str, float]] = {name: {} for name in results}
    started = time.monotonic()
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        running: list[tuple[str, Future[Part]]] = []
        for function, arguments in plan_tasks(sections, sets, folder, keep):
            running.append((f"{function.__name__.removeprefix('measure_')} {arguments[0]}", pool.submit(function, *arguments)))
        for task, future in running:
            cases, figures = future.result()
            for section in cases:
                results[section] |= cases[section]
            for section in figures:
                metrics[section] |= figures[section]
            print(f"{task}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return results, metrics


def write(path: Path, results: Mapping[str, Cases], metrics: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Write the hashes, and the results beside them. Return the hashes."""
    report = {
        section: {
            "hash": digest({case: digest(result) for case, result in cases.items()}),
            "cases": len(cases),
            "metrics": dict(sorted(metrics[section].items())),
            "hashes": {case: digest(result, 16) for case, result in cases.items()},
        }
        for section, cases in results.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with gzip.open(results_of(path), "wt", encoding="utf-8", compresslevel=3) as lines:
        for section, cases in results.items():
            for case, result in cases.items():
                lines.write(json.dumps([section, case, result], ensure_ascii=False) + "\n")
    return report


def results_of(path: Path) -> Path:
    """Return the file with the results that belong to a file of hashes."""
    return path.with_name(path.name + ".results.gz")


def read_results(path: Path, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """Return the results of some cases; none if they were not kept."""
    file, chosen = results_of(path), set(wanted)
    if not file.exists():
        return {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return {(section, case): result for section, case, result in rows if (section, case) in chosen}


def compare(base_file: Path, new_file: Path, sets: Sequence[str] = ()) -> bool:
    """Print each section as same or changed, with some examples. Return whether all are the same.

    With ``sets``, only cases of these sets are compared: the new run has no others.
    """
    base, new = (json.loads(path.read_text(encoding="utf-8")) for path in (base_file, new_file))
    same = True
    for section in new:
        if section not in base:
            print(f"{section}: not in {base_file}")
            continue
        old_hashes, new_hashes = _hashes(base[section], sets), new[section]["hashes"]
        changed = [case for case in {**old_hashes, **new_hashes} if old_hashes.get(case) != new_hashes.get(case)]
        if not changed:
            print(f"{section}: same ({len(new_hashes)} cases)")
            continue
        same = False
        print(f"{section}: CHANGED, {len(changed)} of {len(new_hashes)} cases")
        metrics = {name: value for name, value in base[section]["metrics"].items() if not sets or name in new[section]["metrics"]}
        for line in _changed_metrics(metrics, new[section]["metrics"]):
            print(f"  {line}")
        _show(base_file, new_file, section, changed[:: max(1, len(changed) // SHOWN)][:SHOWN])
    return same


def _hashes(section: Mapping[str, Any], sets: Sequence[str]) -> dict[str, str]:
    """Return the hash of each case of ``sets``, which begins with the name of its set; without ``sets``, of all."""
    return {case: value for case, value in section["hashes"].items() if not sets or case.partition(": ")[0] in sets}


def _changed_metrics(old: Mapping[str, float], new: Mapping[str, float]) -> list[str]:
    return [f"{name}: {old.get(name)} → {new.get(name)}" for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def _show(base_file: Path, new_file: Path, section: str, cases: Sequence[str]) -> None:
    old, new = (read_results(path, ((section, case) for case in cases)) for path in (base_file, new_file))
    for case in cases:
        print(f"  {case}")
        found = list(differences(old.get((section, case)), new.get((section, case)))) if old else []
        for line in found[:3]:
            print(f"    {line}")
        if len(found) > 3:
            print(f"    and {len(found) - 3} more")


def main() -> int:
    """Run the sections and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / ".reports" / "same.json", help="file of hashes to write")
    parser.add_argument("--base", type=Path, help="file of an earlier run; without it, nothing is compared")
    parser.add_argument("--only", default=",".join(SECTIONS), help=f"sections, separated by commas: {', '.join(SECTIONS)}")
    parser.add_argument("--sets", nargs="*", default=(), help="only these sets, such as examples")
    parser.add_argument("--keep", type=Path, help="folder that keeps the indexed corpora; a later run does not index them again")
    chosen = parser.parse_args()
    sections = [name for name in chosen.only.split(",") if name]
    if unknown := set(sections) - set(SECTIONS):
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}")
    folder = data()
    if folder is None:
        return 1
    report = write(chosen.out, *run(sections, chosen.sets, folder, chosen.keep))
    for section, row in report.items():
        figures = ", ".join(f"{name} {value}" for name, value in row["metrics"].items())
        print(f"{section}: {row['cases']} cases, {row['hash'][:16]}; {figures}")
    print(f"hashes in {chosen.out}")
    return 0 if chosen.base is None else int(not compare(chosen.base, chosen.out, chosen.sets))


if __name__ == "__main__":
    raise SystemExit(main())
