"""Every statement of the graph store is bound to one tenant, in every table that it uses."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from agentic_rag_backend.stores import graph
from agentic_rag_backend.stores.graph.statements import load_statements

_TABLE = re.compile(r"\b(?:FROM|JOIN|(?<!DO )UPDATE|INTO)\s+(\w+)", re.IGNORECASE)
_PREDICATE = re.compile(r"\btenant\s*=\s*(?::tenant\b|\w+\.tenant\b)")
_COMMENT = re.compile(r"--[^\n]*")


def unbound(statement: str) -> str | None:
    """Return the first table that a statement reads or writes without naming the tenant. None if there is none.

    Each mention of a table needs a condition on its tenant, directly or through a table that has one. An INSERT binds the tenant
    as
    its first value.
    """
    sql = _COMMENT.sub("", statement)
    tables = [name for name in _TABLE.findall(sql) if name.lower() != "json_each"]
    inserted = re.match(r"\s*INSERT INTO \w+\s*\(\s*tenant\s*,[^)]*\)\s*VALUES\s*\(\s*:tenant\s*,", sql)
    bound = len(_PREDICATE.findall(sql)) + (1 if inserted else 0)
    if ":tenant" not in sql:
        return "the tenant is not bound"
    return None if bound >= len(tables) else f"{len(tables)} tables, {bound} bound to a tenant"


_OPERATORS = re.compile(r"\s*SELECT MIN\(tenant\) FROM \w+ WHERE tenant > :after;\s*\Z")
"""Statements that list tenants. They read ids of tenants only."""


def test_only_the_list_of_tenants_is_not_bound_to_one() -> None:
    unbounded = {name: statement for name, statement in load_statements().items() if unbound(statement) is not None}
    assert set(unbounded) == {"next_tenant_entities", "next_tenant_communities", "next_tenant_written_versions"}
    assert all(_OPERATORS.match(statement) for statement in unbounded.values())


@pytest.mark.parametrize(
    ("name", "statement"), sorted(each for each in load_statements().items() if not _OPERATORS.match(each[1]))
)
def test_a_statement_binds_the_tenant_in_every_table(name: str, statement: str) -> None:
    assert unbound(statement) is None, name


def test_a_statement_that_reaches_other_tenants_is_found() -> None:
    for statement in [
        "SELECT id FROM entities WHERE id = :id",
        "SELECT id FROM entities -- tenant = :tenant",
        "DELETE FROM mentions WHERE document_id = :document",
        "SELECT e.id FROM entities AS e JOIN mentions AS m ON m.entity_id = e.id WHERE e.tenant = :tenant",
        "DELETE FROM entities WHERE tenant = :tenant AND NOT EXISTS (SELECT 1 FROM mentions AS m WHERE m.entity_id = id)",
        "INSERT INTO entities (tenant, id) VALUES ('t', :id)",
        "UPDATE entities SET name = :tenant WHERE id = :id",
    ]:
        assert unbound(statement) is not None


def test_every_table_is_keyed_by_its_tenant_first() -> None:
    folder = files(graph).joinpath("migrations")
    schema = "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql"))
    tables = re.findall(r"CREATE TABLE (\w+)\s*\((.*?)\n\)", schema, re.DOTALL)

    assert tables
    for name, columns in tables:
        assert re.search(r"PRIMARY KEY \(tenant\b", columns), name


def test_every_index_begins_with_the_tenant() -> None:
    folder = files(graph).joinpath("migrations")
    schema = "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".sql"))
    indexes = re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)\s+ON \w+\s*\((\w+)", schema)

    assert indexes
    assert {first for _, first in indexes} == {"tenant"}
