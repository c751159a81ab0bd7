"""Subjects: the entities that a passage is about, by its title, headings and fields.

Passages of one article have one subject. They mention much the same entities, so that differences of what the graph finds for
them come from their length, and not from the question. The graph therefore decides between subjects, and the text decides between
passages about one subject.

Measured on MuSiQue, HotpotQA and SQuAD (`docs/reference/benchmarks/retrieval.md`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, Floats, TenantGraph

SUBJECT_SHARE = 0.75
"""Share of the subject's value in a passage's value. With 1, R@5 of SQuAD is .970 and of MuSiQue .737; with .5, .953 and .745."""


def subject_keys(graph: TenantGraph, chunks: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return a hash of the subject of each chunk: equal for equal subjects, 0 without a subject.

    It is the sum of the keys of the entities, which are hashes. Two of a million subjects share one with probability 3e-8.
    """
    numbers, group = np.unique(chunks, return_inverse=True)
    position, entities, weights = graph.mentions.gather(numbers)
    about = weights == ABOUT_WEIGHT
    sums = np.zeros(len(numbers), dtype=np.uint64)
    np.add.at(sums, position[about], graph.entity_keys[entities[about]])
    return sums[group]


def share(values: Floats, subjects: NDArray[np.uint64]) -> Floats:
    """Return values of chunks, each moved by `SUBJECT_SHARE` to the greatest value of a chunk about the same subject.

    Args:
        values: shape (n,), ≥ 0.
        subjects: the `subject_keys` of the same chunks. Chunks without a subject keep their value.
    """
    _, group = np.unique(subjects, return_inverse=True)
    greatest = np.zeros(len(values))
    np.maximum.at(greatest, group, values)
    shared: Floats = np.where(subjects == 0, values, values + SUBJECT_SHARE * (greatest[group] - values))
    return shared
