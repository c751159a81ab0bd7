"""Steps of a Neo4j transaction that write or delete knowledge, and the statements that they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.graph import UNDECIDED_TYPES, DocumentKnowledge, GraphDeletion
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.graph import graph_rows, nodes
from agentic_rag_backend.stores.graph.bolt import Transaction
from agentic_rag_backend.stores.graph.nodes import ENTITY, type_labels
from agentic_rag_backend.stores.graph.statements import load_statements

CYPHER = load_statements(".cypher")
_LABELLING_USES = 200
"""Uses that decide the name and the type of an entity: as many as in `label_entities` of the SQLite store."""


async def add_rows(transaction: Transaction, name: str, values: Mapping[str, Any]) -> None:
    """Run a statement that writes one item a row, and check that no row was dropped because its references are missing.

    Raises:
        InvalidRequest: the tenant's graph lacks an entity or relationship that a row refers to.
    """
    if not values["rows"]:
        return
    ((written_count,),) = [row.values() for row in await transaction.rows(CYPHER[name], values)]
    if written_count != len(values["rows"]):
        missing_count = len(values["rows"]) - written_count
        raise InvalidRequest(
            f"the graph store refused {missing_count} rows of {name}: items that they refer to are not in the tenant's graph"
        )


async def refresh(transaction: Transaction, name: str, values: Mapping[str, Any]) -> None:
    """Run a statement that derives values of ``uuids`` from their rows."""
    if values["uuids"]:
        await transaction.run(CYPHER[name], values)


async def label_entities(transaction: Transaction, key: Mapping[str, Any], uuids: Sequence[str]) -> None:
    """Give entities the name and the type that most documents give them, with Graphiti's label of the type."""
    if not uuids:
        return
    labels = await transaction.rows(CYPHER["labels_of_entities"], {**key, "uuids": uuids})
    chosen = [(row, *_label(row["uses"], row["used"], row["name"], row["type"])) for row in labels]
    changed = [
        {
            "uuid": row["uuid"],
            "name": name,
            "type": type_,
            "labels": [ENTITY, *type_labels(type_)],
            "removed": [label for label in row["labels"] if label != ENTITY],
        }
        for row, name, type_ in chosen
        if (name, type_) != (row["name"], row["type"])
    ]
    # Also without changes, so that the number of statements does not depend on the document.
    await transaction.run(CYPHER["label_entities"], {**key, "rows": changed})


def _label(uses: Sequence[tuple[str, str, bool, str]], used: Sequence[str], name: str, type_: str) -> tuple[str, str]:
    """Return the name and the type that most uses give. Aliases, and types that decide nothing, count last.

    An editor's name comes before all others.

    Without a main name, the first name in use; without any name, the present label.
    """
    chosen = min((use[0] for use in uses if use[3] == "label"), default=None)
    typed_uses = sorted((use for use in uses if use[1]), key=lambda use: use[:2])[:_LABELLING_USES]
    if not typed_uses:
        return chosen or min(used, default=name), type_
    names, types = Counter(use[0] for use in typed_uses), Counter(use[1] for use in typed_uses)
    aliases = {use[0] for use in typed_uses if use[2]}
    best_name = min(names, key=lambda candidate: (candidate in aliases, -names[candidate], candidate))
    best_type = min(types, key=lambda candidate: (candidate in UNDECIDED_TYPES, -types[candidate], candidate))
    return chosen or best_name, best_type


async def run_delete(transaction: Transaction, name: str, values: Mapping[str, Any]) -> int:
    """Run a statement that deletes, and return the number of deleted items."""
    (row,) = await transaction.rows(CYPHER[name], values)
    return int(row["gone"])


@dataclass(frozen=True, slots=True)
class Addition:
    """The rows of one version's knowledge.

    Attributes:
        added: the rows by the statement that writes them, in the order of the statements.
        derived: by statement, the nodes whose derived values it refreshes at the end.
    """

    key: Mapping[str, Any]
    version: Mapping[str, Any]
    added: Mapping[str, list[dict[str, Any]]]
    derived: Mapping[str, list[str]]

    @classmethod
    def of(cls, tenant: TenantId, knowledge: DocumentKnowledge, deployment: str | None) -> Addition:
        """Return the rows of ``knowledge``.

        Raises:
            InvalidRequest: it names a passage of another document or version, or a name that is too long.
        """
        require_tenant(tenant)
        graph_rows.check_scope(knowledge)
        version = nodes.version_row(tenant, knowledge)
        names = nodes.name_rows(tenant, knowledge)
        supports = graph_rows.support_rows(tenant, knowledge)
        statements = nodes.statement_rows(tenant, supports)
        return cls(
            key={
                "tenant": tenant.value,
                "deployment": deployment,
                **{name: version[name] for name in ("version_uuid", "prefix")},
            },
            version=version,
            added={
                "add_entities": nodes.entity_rows(tenant, knowledge),
                "add_names": names,
                "add_mentions": nodes.mention_rows(tenant, knowledge),
                "add_relationships": nodes.relationship_rows(tenant, knowledge, supports),
                "add_statements": statements,
            },
            derived={
                "refresh_relationships": sorted({row["edge"] for row in statements}),
                "refresh_chunks": [row["uuid"] for row in version["chunks"]],
                "refresh_entities": sorted({row["entity"] for row in names}),
            },
        )

    async def write(self, transaction: Transaction) -> None:
        """Write the rows. The number of statements does not depend on them."""
        await transaction.run(CYPHER["lock_knowledge"], self.key)
        await transaction.run(CYPHER["add_version"], {**self.key, **self.version})
        for name, keys in self.added.items():
            await add_rows(transaction, name, {**self.key, "rows": keys})
        await label_entities(transaction, self.key, self.derived["refresh_entities"])
        for name, uuids in self.derived.items():
            await refresh(transaction, name, {**self.key, "uuids": uuids})
        await transaction.run(CYPHER["record_version"], self.key)


async def delete_knowledge(transaction: Transaction, key: Mapping[str, Any]) -> GraphDeletion:
    """Remove the knowledge of versions, and everything that only they state."""
    records = await transaction.rows(CYPHER["knowledge_of_versions"], key)
    if not records:
        return GraphDeletion()
    record = records[0]
    mentions = await run_delete(transaction, "delete_mentions", key)
    supports = await run_delete(transaction, "delete_statements", key)
    await transaction.run(CYPHER["delete_versions"], key)
    parameters = {**key, "uuids": sorted(record["edges"])}
    edges = await transaction.rows(CYPHER["delete_unsupported_relationships"], parameters)
    ends = {end for row in edges for end in (row["source"], row["target"])}
    touched = {**key, "uuids": sorted({*record["mentioned"], *record["named"], *ends})}
    deleted_entities = await transaction.rows(CYPHER["delete_unsupported_entities"], touched)
    await label_entities(transaction, key, touched["uuids"])
    for name in ("delete_unsupported_names", "refresh_entities"):
        await refresh(transaction, name, touched)
    await refresh(transaction, "refresh_relationships", parameters)
    await refresh(transaction, "refresh_chunks", {**key, "uuids": sorted(record["chunks"])})
    await transaction.run(CYPHER["delete_unversioned_document"], key)
    return GraphDeletion(
        entities=len(deleted_entities),
        relationships=len(edges),
        mentions=mentions,
        supports=supports,
        entity_ids=tuple(sorted(row["id"] for row in deleted_entities)),
        relationship_ids=tuple(sorted(row["id"] for row in edges)),
    )
