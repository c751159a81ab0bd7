"""Mixtures of Gaussians with diagonal covariance, fitted by expectation maximisation and compared by BIC.

Dempster, Laird and Rubin (1977) for the fit, Schwarz (1978) for the criterion. In a space of principal components the
covariance of all points is diagonal; that of a component nearly so, and it takes 2 d parameters instead of d²/2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEED = 20_240_131
_ITERATIONS = 50
_ROUNDS = 20
"""Rounds of k-means, which initialises a mixture or balances a division."""
_TOLERANCE = 1e-4
"""Gain of mean log-likelihood below which the fit has converged."""
_VARIANCE_FLOOR = 1e-3
"""Least variance of a component, as a share of the mean variance of all points: it never collapses onto one of them."""
_PATIENCE = 2
"""Numbers of components in a row that are no better, after which no more are tried: the criterion has one valley."""
_SAMPLE = 4_000
"""Points that a mixture is fitted to; of more, evenly spaced ones. All points are assigned."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """``weights`` (k,) sum to 1; ``means`` and ``variances`` are (k, d); a lower ``bic`` is better."""

    weights: Floats
    means: Floats
    variances: Floats
    bic: float

    def compute_responsibilities(self, points: Floats) -> Floats:
        """Return the probability of each component given each point, shape (n, k), rows summing to 1."""
        joint = _joint_log_density(points, self.weights, self.means, self.variances)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return joint


def best_mixture(points: Floats, counts: Iterable[int]) -> Mixture:
    """Return the mixture with the least BIC among ``counts`` (one or more) components. Of equals, return the smallest.

    Args:
        points: shape (n, d), n ≥ 2. Their order affects the result only by rounding.
    """
    sample = points if len(points) <= _SAMPLE else points[np.linspace(0, len(points) - 1, _SAMPLE).astype(np.int64)]
    best: Mixture | None = None
    worse = 0
    for count in sorted(set(counts)):
        mixture = fit_mixture(sample, count)
        if best is None or mixture.bic < best.bic:
            best, worse = mixture, 0
        elif (worse := worse + 1) == _PATIENCE:
            break
    assert best is not None  # noqa: S101 - there is a count
    return best


def fit_mixture(points: Floats, count: int) -> Mixture:
    """Fit a mixture of at most ``count`` components, starting from k-means. Components that lose all points are removed."""
    labels = assign_points(points, count)
    labels_left = np.unique(labels)
    memberships = (labels[:, None] == labels_left[None, :]).astype(np.float64)
    floor = _VARIANCE_FLOOR * max(float(points.var(axis=0).mean()), 1e-12)
    previous = -math.inf
    for _ in range(_ITERATIONS):
        weights, means, variances = _maximise_likelihood(points, memberships, floor)
        joint = _joint_log_density(points, weights, means, variances)
        peak = joint.max(axis=1, keepdims=True)
        np.exp(joint - peak, out=joint)
        total = joint.sum(axis=1, keepdims=True)
        memberships = joint / total
        likelihood = float((np.log(total) + peak).mean())
        if likelihood - previous < _TOLERANCE:
            break
        previous = likelihood
    components, dimensions = means.shape
    free = components * (2 * dimensions + 1) - 1
    bic = free * math.log(len(points)) - 2 * len(points) * likelihood
    return Mixture(weights, means, variances, bic)


def assign_points(points: Floats, count: int) -> Ints:
    """Return the k-means cluster of each point, with k-means++ and a fixed seed (Arthur and Vassilvitskii, 2007).

    Clusters may be empty. Initially none is, if ``count`` ≤ the number of distinct points.
    """
    labels = np.zeros(len(points), np.int64)
    centres = _spread_centres(points, count)
    for _ in range(_ROUNDS):
        nearest_centre = _squared_distances(points, centres).argmin(axis=1)
        if np.array_equal(nearest_centre, labels):
            break
        labels = nearest_centre
        sizes = np.bincount(labels, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, points)
        has_points = sizes > 0
        centres[has_points] = sums[has_points] / sizes[has_points, None]
    return labels


def _spread_centres(points: Floats, count: int) -> Floats:
    """Choose up to ``count`` points, each with a probability that grows with its squared distance to the earlier ones."""
    rng = np.random.default_rng(SEED)
    chosen = [int(rng.integers(len(points)))]
    distance = _squared_distances(points, points[chosen])[:, 0]
    while len(chosen) < count and (total := float(distance.sum())) > 0:
        index = int(np.searchsorted(np.cumsum(distance), rng.random() * total))
        chosen.append(min(index, len(points) - 1))
        distance = np.minimum(distance, _squared_distances(points, points[chosen[-1:]])[:, 0])
    return points[chosen].copy()


def _squared_distances(points: Floats, centres: Floats) -> Floats:
    distance: Floats = (points**2).sum(axis=1)[:, None] - 2 * (points @ centres.T) + (centres**2).sum(axis=1)
    return np.maximum(distance, 0.0)


def _maximise_likelihood(points: Floats, memberships: Floats, floor: float) -> tuple[Floats, Floats, Floats]:
    mass = memberships.sum(axis=0) + 1e-10
    means = (memberships.T @ points) / mass[:, None]
    squares = (memberships.T @ points**2) / mass[:, None] - means**2
    return mass / mass.sum(), means, np.maximum(squares, floor)


def _joint_log_density(points: Floats, weights: Floats, means: Floats, variances: Floats) -> Floats:
    """Return log(weight × density), shape (n, k), without an array of n × k × d."""
    precision = 1.0 / variances
    constant = np.log(weights) - 0.5 * (np.log(2 * np.pi * variances).sum(axis=1) + (means**2 * precision).sum(axis=1))
    joint: Floats = constant + points @ (means * precision).T - 0.5 * (points**2 @ precision.T)
    return joint
