"""The schema of the graph in Neo4j, and the deployments that own its tenants.

Deployments share constraints and indexes only. Every node and relationship is bound to a tenant, whose id no other deployment
has. Tenants of an earlier release have no deployment. The deployment whose catalogue has the tenant adopts it. Until then, no
deployment lists the tenant.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, StoreUnavailable
from agentic_rag_backend.stores.graph.bolt import Neo4jConnections, Transaction, Unreachable
from agentic_rag_backend.stores.ownership import OWNED_BY, OWNER, Owner

STEPS = (
    "0001_graph.cypher",
    "0002_deployments.cypher",
    "0003_weights.cypher",
    "0004_types.cypher",
    "0005_document_weights.cypher",
)
"""Applied in this order. The schema's version is the number of applied steps."""

_NAME = "agentic-rag graph"
_ONE_RECORD = "CREATE CONSTRAINT unique_schema_version IF NOT EXISTS FOR (n:SchemaVersion) REQUIRE n.name IS UNIQUE"
_READ = "MATCH (n:SchemaVersion {name: $name}) RETURN n.version AS version"
# Never downgrade: another process may have a newer release.
_WRITE = """
MERGE (n:SchemaVersion {name: $name})
WITH n WHERE coalesce(n.version, 0) < $version
SET n.version = $version, n.migrated_at = datetime()
"""
_MAX_WAITS = 10
_PAUSE_S = 0.3


async def migrate(connections: Neo4jConnections) -> None:
    """Migrate the schema to this release. Every statement is idempotent, so several processes may migrate at once.

    Raises:
        ConfigurationError: a newer release wrote the database.
        StoreUnavailable: the server does not answer.
    """
    current_version = await _read_version(connections)
    if current_version > len(STEPS):
        raise ConfigurationError(f"the graph has schema version {current_version}; this release knows {len(STEPS)} and older")
    if current_version == 0:
        await connections.define(_ONE_RECORD)
    for version, name in enumerate(STEPS[current_version:], start=current_version + 1):
        for statement in statements(files(__package__).joinpath("migrations", name).read_text(encoding="utf-8")):
            await connections.define(statement)
        # Wait until all indexes are online before anything is read.
        await _await_indexes(connections)
        await _record_version(connections, version)


async def require_migrated(connections: Neo4jConnections) -> None:
    """Raise `ConfigurationError` unless the schema matches this release."""
    version = await _read_version(connections)
    if version != len(STEPS):
        raise ConfigurationError(
            f"the graph has schema version {version}; this release needs {len(STEPS)}: run 'agentic-rag migrate'"
        )


def statements(script: str) -> list[str]:
    """Return the statements of a script. A statement ends with a semicolon at a line's end. Lines of ``//`` are comments."""
    lines = [line for line in script.splitlines() if not line.startswith("//")]
    return [statement.strip() for statement in "\n".join(lines).split(";\n") if statement.strip(" ;\n")]


async def _read_version(connections: Neo4jConnections) -> int:
    async def work(transaction: Transaction) -> int:
        records = await transaction.rows(_READ, {"name": _NAME})
        return int(records[0]["version"]) if records else 0

    return await connections.read(work)


async def _await_indexes(connections: Neo4jConnections) -> None:
    """Wait until all indexes are online. The wait fails if another process drops one of them, so it is repeated."""
    for attempt in range(1, _MAX_WAITS + 1):
        try:
            await connections.define("CALL db.awaitIndexes(300)")
        except Unreachable:
            raise
        except StoreUnavailable:
            if attempt == _MAX_WAITS:
                raise
            await asyncio.sleep(_PAUSE_S)
        else:
            return


async def _record_version(connections: Neo4jConnections, version: int) -> None:
    await connections.write(lambda transaction: transaction.run(_WRITE, {"name": _NAME, "version": version}))


_NAMED = "MATCH (d:Deployment {name: $name}) RETURN d.id AS id, d.described AS described"
_CLAIM = """
MERGE (d:Deployment {name: $name})
ON CREATE SET d.id = $id, d.described = $described, d.created_at = datetime()
RETURN d.id AS id, d.described AS described
"""
_UNMARKED = "MATCH (t:Tenant) WHERE t.deployment IS NULL RETURN t.group_id AS tenant"
_ADOPT = "MATCH (t:Tenant) WHERE t.group_id IN $tenants AND t.deployment IS NULL SET t.deployment = $id"


async def claim(connections: Neo4jConnections, owner: Owner) -> None:
    """Register the deployment under its name, and adopt its tenants that have no deployment. Idempotent.

    Raises:
        ConfigurationError: the name belongs to another deployment.
        StoreUnavailable: the server does not answer.
    """
    name, mark = owner.deployment.name, owner.mark()
    values = {"name": name, "id": owner.deployment.id, "described": mark[OWNED_BY]}

    async def register(transaction: Transaction) -> dict[str, str]:
        # Read first: only the first start has to write.
        owner_rows = await transaction.rows(_NAMED, values) or await transaction.rows(_CLAIM, values)
        return {OWNER: owner_rows[0]["id"], OWNED_BY: owner_rows[0]["described"]}

    owner_row = await connections.write(register)
    owner.owns(
        f"the name {name!r} in this Neo4j database",
        owner_row,
        way_out="Give this deployment a name of its own in DEPLOYMENT, or, if the other one is gone for good, run in Neo4j: "
        f"MATCH (d:Deployment {{name: '{name}'}}) SET d.id = '{owner.deployment.id}'",
    )
    await _adopt_graph(connections, owner)


async def _adopt_graph(connections: Neo4jConnections, owner: Owner) -> None:
    unmarked = await connections.read(lambda transaction: transaction.rows(_UNMARKED, {}))
    known_ids = await owner.known_tenants([TenantId(row["tenant"]) for row in unmarked]) if unmarked else frozenset()
    if known_ids:
        values = {"tenants": sorted(tenant.value for tenant in known_ids), "id": owner.deployment.id}
        await connections.write(lambda transaction: transaction.run(_ADOPT, values))
