"""After adding and removing passages, the tree stays valid, and unaffected parts stay unchanged."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode, fingerprint_children, fingerprint_leaves
from agentic_rag_backend.themes.raptor.build_options import TreeOptions
from agentic_rag_backend.themes.raptor.structure.clustering import Leaves, plan_tree
from agentic_rag_backend.themes.raptor.structure.growing_tree import GrowingTree

TENANT = TenantId("t_" + "a" * 32)
OPTIONS = TreeOptions(cluster_size=4)


def planted(count: int, seed: int) -> list[TreeNode]:
    rng = np.random.default_rng(seed)
    themes = rng.normal(size=(5, 16))
    rows = (themes[rng.integers(0, 5, count)] + 0.5 * rng.normal(size=(count, 16))).astype(np.float32)
    leaves = Leaves(tuple(f"c{n}" for n in range(count)), tuple(f"d{n % 7}" for n in range(count)), rows)
    return plan_tree(TENANT, leaves, OPTIONS)


def passages(nodes: list[TreeNode]) -> set[str]:
    return {chunk for node in nodes if node.level == 1 for chunk in node.children}


def ancestors(nodes: list[TreeNode], level: set[str]) -> set[str]:
    found = set(level)
    while level:
        level = {node.id for node in nodes if node.level > 1 and level & set(node.children)}
        found |= level
    return found


def after(before: list[TreeNode], tree: GrowingTree) -> list[TreeNode]:
    grown = tree.take_growth()
    now = {node.id: node for node in before if node.id not in grown.removed} | {node.id: node for node in grown.written}
    return list(now.values())


def require_tree(nodes: list[TreeNode]) -> None:
    by_id = {node.id: node for node in nodes}
    top = max((node.level for node in nodes), default=0)
    for node in nodes:
        assert node.children
        if node.level == 1:
            assert len(node.children) == len(node.documents)
            assert node.fingerprint == fingerprint_leaves(node.children)
        else:
            assert node.fingerprint == fingerprint_children(node.level, (by_id[child].fingerprint for child in node.children))
        if node.level < top:
            assert any(node.id in other.children for other in nodes if other.level == node.level + 1)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(0, 1000), st.data())
def test_passages_come_and_go_along_their_paths(count: int, seed: int, data: st.DataObject) -> None:
    nodes = planted(count, seed)
    tree = GrowingTree(TENANT, nodes)
    wanted = passages(nodes)
    changed: set[str] = set()
    for step in range(data.draw(st.integers(0, 12))):
        leaves = tree.list_level(1)
        if leaves and data.draw(st.booleans()):
            node = data.draw(st.sampled_from(leaves))
            tree.take_in(f"new{step}", "paper", node)
            wanted.add(f"new{step}")
            changed.add(node)
        elif wanted:
            gone = data.draw(st.sampled_from(sorted(wanted)))
            changed |= {id for id in leaves if gone in tree.children_of(id)}
            tree.take_out(gone)
            wanted.discard(gone)
    found = after(nodes, tree)

    assert passages(found) == wanted
    require_tree(found)
    path = ancestors(nodes, changed)
    for node in nodes:  # type: ignore[assignment]
        assert node.id in path or node in found or len(wanted) < count / 2  # type: ignore[attr-defined]
    assert set(tree.unchanged_nodes()) == {node.id for node in found} - {node.id for node in tree.take_growth().written}


@settings(max_examples=40)
@given(st.integers(8, 60), st.integers(0, 1000))
def test_a_divided_node_keeps_its_place(count: int, seed: int) -> None:
    nodes = planted(count, seed)
    tree = GrowingTree(TENANT, nodes)
    node = next(node for node in nodes if len(node.children) > 1)
    (made,) = tree.divide_node(node.id, [[0], list(range(1, len(node.children)))])
    found = after(nodes, tree)

    assert passages(found) == passages(nodes)
    assert set(tree.children_of(made)) | set(tree.children_of(node.id)) == set(node.children)
    for other in (each for each in found if node.id in each.children):
        assert made in other.children
    if node.level < max(each.level for each in nodes):
        require_tree(found)


def test_a_root_over_nothing_but_one_node_goes() -> None:
    nodes = planted(40, 1)
    tree = GrowingTree(TENANT, nodes)
    kept = next(node for node in nodes if node.level == 1)
    for chunk in passages(nodes) - set(kept.children):
        tree.take_out(chunk)
    found = after(nodes, tree)

    assert [(node.level, set(node.children)) for node in found] == [(1, set(kept.children))]


def test_two_nodes_of_the_same_children_have_two_ids() -> None:
    tree = GrowingTree(TENANT, [])
    first = tree.add_node(1, ["c1"], ["d1"])
    tree.take_in("c2", "d1", first)
    assert tree.add_node(1, ["c1"], ["d1"]) != first
