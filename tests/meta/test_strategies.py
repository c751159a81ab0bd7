"""The reference lists all strategies, rerankers, presets, flags, generators and filter operators, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from agentic_rag_backend.answering.generators.registry import GENERATORS
from agentic_rag_backend.domain.filters import OPERATORS
from agentic_rag_backend.retrieval.options.leg_weights import PRESETS
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.retrieval.requests.builder import SharedRerankOptions
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS

Rows = Sequence[Sequence[str]]


def names_in(cell: str) -> set[str]:
    """Return the texts in backticks."""
    return set(re.findall(r"`([^`]+)`", cell))


def by_name(rows: Rows, width: int) -> dict[str, Sequence[str]]:
    """Return the rows of the tables with ``width`` columns by the name in the first column."""
    return {row[0].strip("`"): row for row in rows if len(row) == width}


def test_every_strategy_has_its_row_with_aliases_and_options(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = by_name(table_rows(root / "docs/reference/strategies.md"), 4)

    assert {name: (names_in(row[1]), names_in(row[2])) for name, row in rows.items()} == {
        name: (set(strategy.aliases), set(strategy.options.schemas())) for name, strategy in STRATEGIES.items()
    }


def test_every_reranker_has_its_row_with_options(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs/reference/rerankers.md")
    described = {row[0].strip("`"): names_in(row[1]) for row in rows if len(row) == 4 and "Values" not in row}
    options = {name for entry in RERANKERS.values() for name in entry.options.schemas()} | set(SharedRerankOptions.schemas())

    assert {name: described[name] for name in RERANKERS} == {
        name: set(entry.options.schemas()) for name, entry in RERANKERS.items()
    }
    assert described.keys() == RERANKERS.keys() | options


def test_presets_are_described_with_their_weights(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = by_name(table_rows(root / "docs/reference/strategies.md"), 3)

    assert {name: (float(row[1]), float(row[2])) for name, row in rows.items()} == {
        name: (weights.low, weights.high) for name, weights in PRESETS.items()
    }


def test_generators_are_described(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    assert set(by_name(table_rows(root / "docs/reference/strategies.md"), 2)) == set(GENERATORS)


def test_every_operator_of_the_filter_grammar_has_its_row(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs/reference/filters.md")

    assert set().union(*(names_in(row[0]) for row in rows)) == {*OPERATORS, "default"}
