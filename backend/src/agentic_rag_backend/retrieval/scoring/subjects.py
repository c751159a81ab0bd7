"""Subjects: the entities that a passage is about, by its title, headings and fields.

Passages of one article have one subject. They mention much the same entities, so that differences of what the graph finds for
them come from their length, and not from the question. The graph therefore decides between subjects, and the text decides between
passages about one subject.

Measured on MuSiQue, HotpotQA and SQuAD (`docs/reference/benchmarks/retrieval.md`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, TenantGraph

SUBJECT_SHARE = 0.75
"""Share of the subject's value in a passage's value. With 1, R@5 of SQuAD is .970 and of MuSiQue .737; with .5, .953 and .745."""

Subject = tuple[int, ...]
"""Numbers of entities, in the order of their keys."""


def subjects_of(graph: TenantGraph, chunks: Sequence[int]) -> dict[int, Subject]:
    """Return the subject of each chunk by number. Chunks that are about nothing are left out."""
    rows = np.array(chunks, dtype=np.int64)
    position, entities, weights = graph.mentions.gather(rows)
    about = weights == ABOUT_WEIGHT
    found: defaultdict[int, list[int]] = defaultdict(list)
    for chunk, entity in zip(rows[position[about]].tolist(), entities[about].tolist(), strict=True):
        found[chunk].append(entity)
    return {chunk: tuple(about_it) for chunk, about_it in found.items()}


def subject_keys(graph: TenantGraph, chunks: NDArray[np.integer]) -> NDArray[np.uint64]:
    """Return a hash of the subject of each chunk: equal for equal subjects, 0 without a subject.

    It is the sum of the keys of the entities, which are hashes. Two of a million subjects share one with probability 3e-8.
    """
    numbers, place = np.unique(chunks, return_inverse=True)
    position, entities, weights = graph.mentions.gather(numbers)
    about = weights == ABOUT_WEIGHT
    sums = np.zeros(len(numbers), dtype=np.uint64)
    np.add.at(sums, position[about], graph.entity_keys[entities[about]])
    return sums[place]


def share(values: Mapping[int, float], subjects: Mapping[int, Subject]) -> dict[int, float]:
    """Return the values of chunks, each moved by `SUBJECT_SHARE` to the greatest value of a chunk about the same subject.

    Args:
        values: values by chunk, ≥ 0.
        subjects: subjects of chunks. Chunks without a subject keep their value.
    """
    greatest: dict[Subject, float] = {}
    for chunk, value in values.items():
        if (subject := subjects.get(chunk)) is not None:
            greatest[subject] = max(value, greatest.get(subject, 0.0))
    return {
        chunk: value + SUBJECT_SHARE * (greatest[subjects[chunk]] - value) if chunk in subjects else value
        for chunk, value in values.items()
    }
