"""Ownership of tenants in a Neo4j database: a node per deployment, and the deployment's id on its tenants.

Deployments share constraints and indexes only. Every node and relationship is bound to a tenant, whose id no other deployment
has. Tenants of an earlier release have no deployment. The deployment whose catalogue has the tenant adopts it. Until then, no
deployment lists the tenant.
"""

from __future__ import annotations

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.bolt import Neo4jConnections, Transaction
from agentic_rag_backend.stores.ownership import OWNED_BY, OWNER, Owner

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
