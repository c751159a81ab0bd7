"""Every Cypher statement of the graph store is bound to one tenant in every pattern."""

from __future__ import annotations

import re

import pytest

from agentic_rag_backend.stores.graph.statements import load_statements

_COMMENT = re.compile(r"//[^\n]*")
_CLAUSE = re.compile(
    r"\b(?:MATCH|MERGE|CREATE)\b(.*?)(?=\b(?:MATCH|MERGE|CREATE|ON_NEW|UNWIND|WITH|RETURN|SET|DELETE|DETACH|CALL|FOREACH|UNION)\b|\Z)",
    re.DOTALL,
)
_BOUND = re.compile(r"\{[^{}]*\bgroup_id: \$tenant\b|\b\w+\.group_id = \$tenant\b")
_VARIABLE = re.compile(r"[(\[](\w+)\b")
_ALIAS = re.compile(r"([^\n]*?)\bAS (\w+)")
_SUBQUERY = re.compile(r"\b(?:EXISTS|COUNT|COLLECT) \{ \((\w*)")
_OPERATORS = {"list_tenants"}
"""Statements of the operator's housekeeping. They read ids of tenants only."""


def unbound(statement: str) -> str | None:
    """Return the first pattern of a statement that does not start at the tenant or at a bound variable. None if there is none."""
    cypher = _COMMENT.sub("", statement).replace("ON CREATE", "ON_NEW").replace("STARTS WITH", "STARTS_WITH")
    if "$tenant" not in cypher:
        return "the tenant is not bound"
    known: set[str] = set()
    for clause in _CLAUSE.finditer(cypher):
        pattern = re.split(r"\bWHERE\b", clause[1])[0]
        if re.search(r"\)\s*,\s*\(", pattern):
            return f"two patterns in one clause: {pattern.strip()}"
        for of, alias in _ALIAS.findall(cypher[: clause.start()]):
            known |= {alias} if set(re.findall(r"\w+", of)) & known else set()
        variables = set(_VARIABLE.findall(pattern))
        if not _BOUND.search(clause[1]) and not variables & known:
            return f"not bound to the tenant: {pattern.strip()}"
        known |= variables
    strangers = set(_SUBQUERY.findall(cypher)) - known
    return f"a subquery begins anywhere: {sorted(strangers)}" if strangers else None


def test_only_the_list_of_tenants_is_not_bound_to_one() -> None:
    statements = load_statements(".cypher")

    assert statements
    assert {name for name, statement in statements.items() if unbound(statement) is not None} == _OPERATORS
    assert re.search(r"RETURN t\.group_id AS tenant ORDER BY tenant;$", statements["list_tenants"])


@pytest.mark.parametrize(("name", "statement"), sorted(load_statements(".cypher").items()))
def test_a_statement_binds_the_tenant_wherever_it_begins(name: str, statement: str) -> None:
    assert name in _OPERATORS or unbound(statement) is None


def test_a_statement_that_reaches_other_tenants_is_found() -> None:
    for statement in [
        "MATCH (e:Entity {uuid: $uuid}) RETURN e",
        "MATCH (e:Entity {uuid: $uuid}) // {group_id: $tenant}\nRETURN e",
        "MATCH (e:Entity {group_id: $tenant}) MATCH (n:EntityName) RETURN n",
        "MATCH (e:Entity {group_id: $tenant}), (n:EntityName) RETURN n",
        "MATCH (e:Entity {group_id: $tenant}) WHERE EXISTS { MATCH ()-[m:MENTIONS]->() } RETURN e",
        "MATCH (e:Entity {group_id: $tenant}) WHERE EXISTS { ()-[:MENTIONS]->() } RETURN e",
        "MERGE (e:Entity {uuid: $uuid}) ON CREATE SET e.group_id = $tenant",
        "MATCH (e:Entity) WHERE e.name = $tenant DELETE e",
        "MATCH (e:Entity {group_id: 't'}) SET e.name = $tenant",
    ]:
        assert unbound(statement) is not None


def test_both_engines_have_their_own_statements() -> None:
    assert not [text for text in load_statements().values() if "MATCH (" in text]
    assert not [text for text in load_statements(".cypher").values() if "SELECT " in text]
