"""Plans a tree over passages: clusters of passages, then clusters of those clusters' centres, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode, fingerprint_children, fingerprint_leaves
from agentic_rag_backend.raptor.build_options import TreeOptions
from agentic_rag_backend.raptor.structure.clustering import Vectors, centre_of, cluster_rows


@dataclass(frozen=True, slots=True)
class Leaves:
    """Passages ordered by their texts: chunk ids, their documents, and their vectors, shape (n, d)."""

    ids: tuple[str, ...]
    documents: tuple[str, ...]
    vectors: Vectors


def plan_tree(tenant: TenantId, leaves: Leaves, options: TreeOptions) -> list[TreeNode]:
    """Return the nodes, children before their parents; each level has fewer than the one below it.

    The centres of the passages below the nodes divide a level, not the embeddings of the nodes' summaries as in the paper.
    The tree is then the same for every writer, and the cost of a build is known before it begins. A node's id derives from its
    set of children.
    """
    nodes: list[TreeNode] = []
    below: list[TreeNode] = []
    members: list[tuple[int, ...]] = []
    centres = leaves.vectors
    for level in range(1, options.max_levels + 1):
        groups = cluster_rows(centres, options)
        members = [_list_rows(group, members) for group in groups]
        level_nodes = [_make_node(tenant, level, group, leaves, below) for group in groups]
        level_nodes = [replace(node, size=len(rows)) for node, rows in zip(level_nodes, members, strict=True)]
        nodes += level_nodes
        below = level_nodes
        if len(level_nodes) < 2:
            break
        centres = np.stack([centre_of(leaves.vectors[list(rows)]) for rows in members])
    return nodes


def new_node_id(tenant: TenantId, level: int, children: Sequence[str]) -> str:
    """Return the id of a new node with these children."""
    return stable_id("raptor-node", tenant, level, *sorted(children))


def _make_node(tenant: TenantId, level: int, group: tuple[int, ...], leaves: Leaves, below: Sequence[TreeNode]) -> TreeNode:
    if level == 1:
        children = tuple(leaves.ids[row] for row in group)
        documents = tuple(leaves.documents[row] for row in group)
        fingerprint = fingerprint_leaves(children)
    else:
        children, documents = tuple(below[row].id for row in group), ()
        fingerprint = fingerprint_children(level, (below[row].fingerprint for row in group))
    return TreeNode(
        id=new_node_id(tenant, level, children),
        level=level,
        children=children,
        documents=documents,
        fingerprint=fingerprint,
        size=len(group),
    )


def _list_rows(group: tuple[int, ...], members: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the passages below a group of children, each once."""
    if not members:
        return group
    return tuple(sorted({row for child in group for row in members[child]}))
