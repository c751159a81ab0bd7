"""One map of several neighbourhoods: their union, and a place for each entity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.paths.base import Connection
from agentic_rag_backend.knowledge.paths.neighbourhood import Neighbourhood, NeighbourNode

MAX_MAP_NODES = 500
MAX_CENTRES = 20
"""Entities whose neighbourhoods a map unites."""
_MAX_STEPS = 200
_WORK = 20_000
"""Steps times nodes."""
_GOLDEN_ANGLE = np.pi * (3 - 5**0.5)
_GRAVITY = 0.4
"""Pull to the middle, which keeps parts without a connection on the map."""


def merge_neighbourhoods(parts: Sequence[Neighbourhood]) -> Neighbourhood:
    """Return the union of neighbourhoods: at most 500 entities, the nearest to any centre, and the connections among them."""
    nodes: dict[str, NeighbourNode] = {}
    for node in (node for part in parts for node in part.nodes):
        nodes[node.entity.id] = min(nodes.get(node.entity.id, node), node, key=lambda node: node.hops)
    map_nodes = sorted(nodes.values(), key=lambda node: node.hops)[:MAX_MAP_NODES]
    ids = {node.entity.id for node in map_nodes}
    edges: dict[tuple[str, str, str], Connection] = {}
    for edge in (edge for part in parts for edge in part.edges):
        if edge.source.id in ids and edge.target.id in ids:
            edges.setdefault((edge.source.id, edge.target.id, edge.fact.id if edge.fact is not None else ""), edge)
    return Neighbourhood(
        tuple(map_nodes),
        tuple(sorted(edges.values(), key=lambda edge: (-edge.weight, edge.source.id, edge.target.id))),
        any(part.bounded for part in parts) or len(nodes) > len(map_nodes),
    )


def place_entities(neighbourhood: Neighbourhood) -> Neighbourhood:
    """Return the neighbourhood with a position for each node. Equal neighbourhoods get equal positions. CPU: up to 0.1 s."""
    numbers = {node.entity.id: number for number, node in enumerate(neighbourhood.nodes)}
    pairs = sorted({(numbers[edge.source.id], numbers[edge.target.id]) for edge in neighbourhood.edges})
    positions = place_nodes(len(numbers), pairs)
    nodes = [
        replace(node, position=(round(float(x), 4), round(float(y), 4)))
        for node, (x, y) in zip(neighbourhood.nodes, positions, strict=True)
    ]
    return replace(neighbourhood, nodes=tuple(nodes))


def place_nodes(count: int, pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return places in the unit square, of shape (count, 2), such that connected nodes are near and no two are close.

    Fruchterman and Reingold, Graph drawing by force-directed placement (1991), from a spiral in the order of the nodes instead
    of random places.
    """
    if count == 0:
        return np.zeros((0, 2))
    order = np.arange(count)
    radius = np.sqrt((order + 0.5) / count)
    places = np.stack([radius * np.cos(order * _GOLDEN_ANGLE), radius * np.sin(order * _GOLDEN_ANGLE)], axis=1)
    links = np.array([pair for pair in pairs if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)
    ideal = np.sqrt(4 / count)
    steps = min(_MAX_STEPS, max(40, _WORK // count))
    for step in range(steps):
        norms = (places**2).sum(axis=1)
        square = np.maximum(norms[:, None] + norms[None, :] - 2 * places @ places.T, 1e-6)
        push = ideal**2 / square
        force = places * push.sum(axis=1, keepdims=True) - push @ places - _GRAVITY * places
        along = places[links[:, 1]] - places[links[:, 0]]
        pull = along * (np.linalg.norm(along, axis=1, keepdims=True) / ideal)
        np.add.at(force, links[:, 0], pull)
        np.add.at(force, links[:, 1], -pull)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        places += force / length * np.minimum(length, 0.2 * (1 - step / steps))
    low, high = places.min(axis=0), places.max(axis=0)
    return np.where(high - low > 1e-9, (places - low) / np.maximum(high - low, 1e-9), 0.5)
