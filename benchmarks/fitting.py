"""Fits linear functions of features: which of several rows is right, and whether a row is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Rows = Mapping[str, NDArray[Any]]
"""Values of each feature, one for each row."""
Signs = Mapping[str, int]
"""Required sign of a feature's weight; 0 or absent: either."""


def fit_choice(
    groups: Sequence[tuple[Rows, NDArray[np.bool_]]], names: Sequence[str], signs: Signs, *, penalty: float = 3.0
) -> dict[str, float]:
    """Return the weights of a conditional logit (McFadden 1974): in each group some rows are right, the others are not.

    Groups in which all or no rows are right are left out. ``penalty`` is of the squared weights of standardised features.
    """
    used = [(rows, right) for rows, right in groups if right.any() and not right.all()]
    values = np.concatenate([np.stack([rows[name] for name in names], axis=1) for rows, _ in used]).astype(float)
    right = np.concatenate([each for _, each in used])
    group = np.repeat(np.arange(len(used)), [len(each) for _, each in used])
    starts = np.flatnonzero(np.append(True, np.diff(group) > 0))
    scale = values.std(axis=0) + 1e-9
    scaled = values / scale

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = scaled @ weights
        odds = np.exp(score - np.maximum.reduceat(score, starts)[group])
        total, of_right = np.add.reduceat(odds, starts), np.add.reduceat(odds * right, starts)
        gradient = scaled.T @ (odds * right / of_right[group] - odds / total[group])
        return float(-np.log(of_right / total).sum() + penalty * weights @ weights), -gradient + 2 * penalty * weights

    found = minimize(loss, np.zeros(len(names)), jac=True, method="L-BFGS-B", bounds=_bounds(names, signs))
    return {name: float(weight) for name, weight in zip(names, found.x / scale, strict=True)}


def fit_logistic(
    rows: Rows, right: NDArray[np.bool_], share: NDArray[np.float64], names: Sequence[str], signs: Signs, *, penalty: float = 3.0
) -> tuple[dict[str, float], float]:
    """Return weights and intercept of a logistic regression. ``share`` is the weight of each row."""
    values = np.stack([rows[name] for name in names], axis=1).astype(float)
    mean = share @ values / share.sum()
    scale = np.sqrt(share @ (values - mean) ** 2 / share.sum()) + 1e-6
    scaled = np.column_stack([(values - mean) / scale, np.ones(len(values))])

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        chance = 1.0 / (1.0 + np.exp(-(scaled @ weights)))
        likelihood = np.where(right, np.log(chance + 1e-12), np.log(1.0 - chance + 1e-12))
        gradient = scaled.T @ (share * (chance - right))
        gradient[:-1] += 2 * penalty * weights[:-1]
        return float(-(share @ likelihood) + penalty * weights[:-1] @ weights[:-1]), gradient

    bounds = [*_bounds(names, signs), (None, None)]
    found = minimize(loss, np.zeros(len(names) + 1), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500})
    weights = found.x[:-1] / scale
    return {name: float(weight) for name, weight in zip(names, weights, strict=True)}, float(found.x[-1] - weights @ mean)


def _bounds(names: Sequence[str], signs: Signs) -> list[tuple[float | None, float | None]]:
    return [(0.0 if signs.get(name, 0) > 0 else None, 0.0 if signs.get(name, 0) < 0 else None) for name in names]
