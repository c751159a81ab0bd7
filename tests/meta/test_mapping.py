"""The table of names: each name of the product exists, each accepted name is accepted, and no alias of a strategy is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.api.schemas.questions.questions import SearchBody
from agentic_rag_backend.container import Container
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.settings import Settings

Rows = Sequence[Sequence[str]]
_SETTING = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_ROUTE = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE) /api/v1\S+")
SPECIFIED = {
    *("USE_DSPY_SIGNATURES", "USE_NOVELTY_CIRCUIT", "USE_NEGATIVE_MEMORY", "USE_CASCADE_RECALL"),
    *("SYNTHETIC_QUESTIONS_ENABLED", "QUESTION_GENERATION_METHOD", "QUESTIONS_PER_CHUNK"),
    *("/api/resources/{id}/chunks", "/api/search/advanced", "POST /api/graph/extract/{chunk_id}", "top_k", "group_id"),
}
"""Names of the specifications that are no names of the product."""


def quoted(cell: str) -> list[str]:
    """Return the texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def mapping(root: Path, table_rows: Callable[[Path], Rows]) -> Rows:
    """Return the rows of the table."""
    return table_rows(root / "docs/reference/mapping.md")


@pytest.fixture(scope="module")
def specification() -> dict[str, Any]:
    """Return the OpenAPI document."""
    container = cast(Container, SimpleNamespace(settings=Settings(_env_file=None)))  # type: ignore[call-arg]
    return create_app(container).openapi()


def test_every_name_of_the_specifications_has_a_row(mapping: Rows) -> None:
    assert {name for row in mapping for name in quoted(row[0])} >= SPECIFIED


def test_the_aliases_of_strategies_are_listed_as_accepted(mapping: Rows) -> None:
    rows = [row for row in mapping if row[0].startswith("strateg")]

    assert {quoted(row[1])[0]: set(quoted(row[0])) for row in rows} == {
        name: set(strategy.aliases) for name, strategy in STRATEGIES.items() if strategy.aliases
    }
    assert {row[2] for row in rows} == {"accepted"}


def test_settings_on_the_right_exist_and_those_on_the_left_do_not(mapping: Rows) -> None:
    settings = {name.upper() for name in Settings.model_fields}

    assert {name for row in mapping for name in quoted(row[1]) if _SETTING.fullmatch(name)} <= settings
    assert {name for row in mapping for name in quoted(row[0]) if _SETTING.fullmatch(name)}.isdisjoint(settings)


def test_routes_on_the_right_exist(mapping: Rows, specification: dict[str, Any]) -> None:
    routes = {f"{method.upper()} {path}" for path, methods in specification["paths"].items() for method in methods}
    named = {name for row in mapping for name in quoted(row[1]) if _ROUTE.fullmatch(name)}

    assert len(named) >= 5
    assert named <= routes


def test_options_of_the_agentic_strategy_exist(mapping: Rows) -> None:
    named = {name.removeprefix("options.") for row in mapping for name in quoted(row[1]) if name.startswith("options.")}

    assert named
    assert named <= STRATEGIES["agentic"].options.schemas().keys()


def test_fields_exist_under_the_names_on_the_right_only(mapping: Rows, specification: dict[str, Any]) -> None:
    schemas = specification["components"]["schemas"]

    assert "path" in schemas["Location"]["properties"]
    assert {"function", "functions"} <= schemas["Location"]["properties"].keys()
    assert "dry_run" not in schemas["NewDocument"]["properties"]
    assert set(schemas["Questions"]["properties"]["method"]["enum"]) == {"off", "patterns", "model"}
    assert "enabled" not in schemas["Questions"]["properties"]
    assert SearchBody.model_validate({"query": "Who?", "top_k": 3}).limit == 3
