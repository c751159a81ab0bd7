"""List the slowest tests and test files of the last `make test`, from the JUnit reports that it writes.

    python infra/durations.py [--most 50] [REPORT.xml ...]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

REPORTS = Path(".reports")


def durations(reports: Iterable[Path]) -> Counter[tuple[str, str]]:
    """Return the seconds of each test, with its set-up and tear-down, by (module, name)."""
    found: Counter[tuple[str, str]] = Counter()
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            found[case.get("classname", ""), case.get("name", "")] += float(case.get("time", 0))  # type: ignore[assignment]
    return found


def main(arguments: Sequence[str]) -> int:
    """Print both lists; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=50, metavar="N", help="tests and files to list (default 50)")
    parser.add_argument("reports", nargs="*", type=Path, metavar="REPORT.xml", help="default: those of the last `make test`")
    given = parser.parse_args(arguments)
    reports = given.reports or sorted(REPORTS.glob("*.xml"))
    if not reports:
        print(f"{REPORTS} contains no report; run `make test` first", file=sys.stderr)
        return 1
    tests = durations(reports)
    files: Counter[str] = Counter()
    for (module, _), took_s in tests.items():
        files[module] += took_s  # type: ignore[assignment]
    print(f"{len(tests)} tests, {sum(tests.values()):.0f} s in all")
    for module, took_s in files.most_common(given.most):
        print(f"{took_s:8.1f} s  {module}")
    print()
    for (module, name), took_s in tests.most_common(given.most):
        print(f"{took_s:8.1f} s  {module}::{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
