"""Input data and result files of the benchmarks."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from agentic_rag_backend.evaluation.datasets import evaluation_data
from agentic_rag_backend.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
NO_DATA = "no evaluation data: set AGENTIC_RAG_EVAL_DATA or put it at shared/data beside the checkout"


def make_settings(**values: Any) -> Settings:
    """Return settings that a file of the checkout does not change."""
    return Settings(_env_file=None, **values)  # type: ignore[call-arg]


def quiet() -> None:
    """Make the product report warnings only."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30), logger_factory=structlog.PrintLoggerFactory(sys.stderr)
    )


def data(instead: str = "nothing measured") -> Path | None:
    """Return the folder of the evaluation data. Without it, return None and print what is done ``instead``."""
    folder = evaluation_data(ROOT.parent)
    if folder is None:
        print(f"{NO_DATA}; {instead}")
    return folder


def finish(name: str, results: Mapping[str, Any], table: str, missed: Sequence[str]) -> int:
    """Write ``results/name.json`` and ``.md``, print the table and the failed assertions, and return the exit code."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (RESULTS / f"{name}.md").write_text(table + "\n", encoding="utf-8")
    print(table)
    for line in missed:
        print("MISSED", line, file=sys.stderr)
    return int(bool(missed))
