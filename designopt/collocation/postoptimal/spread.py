"""Standard deviations of an optimum due to uncertain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from designopt.arrays import Floats
from designopt.collocation.postoptimal.sensitivities import Sensitivities
from designopt.collocation.statement.stated_values import ProblemError


@dataclass(frozen=True, eq=False)
class Spread:
    """Standard deviations of an optimum: of its `objective`, of `parameters` and `figures` by name, of the values
    (slots,) of variables by phase and name, at fixed fractions of a phase.

    `covariance` (n, n) is that of the parameters, in the order of their names.
    """

    objective: float
    parameters: Mapping[str, float]
    figures: Mapping[str, float]
    phases: Mapping[str, Mapping[str, Floats]]
    covariance: Floats


def spread(sensitivities: Sensitivities, uncertainty: Mapping[str, float] | ArrayLike) -> Spread:
    """The standard deviations of the optimum, to first order, for uncertain numbers of its problem.

    `uncertainty` are the standard deviations of these numbers by name, zero for others, or the covariance (k, k) of
    all numbers of `sensitivities`, in their order. The model re-optimises for every value of the numbers. Raises
    `ProblemError` (bad_statement) for unknown names and for a matrix that is not a covariance.
    """
    root = _root(sensitivities.names, uncertainty)
    parameters = np.array([d @ root for d in sensitivities.parameters.values()]).reshape(-1, root.shape[1])
    return Spread(
        objective=float(np.linalg.norm(sensitivities.objective @ root)),
        parameters=dict(zip(sensitivities.parameters, np.linalg.norm(parameters, axis=1).tolist(), strict=True)),
        figures={name: float(np.linalg.norm(d @ root)) for name, d in sensitivities.figures.items()},
        phases={
            name: {n: np.linalg.norm(d @ root, axis=1) for n, d in phase.values.items()}
            for name, phase in sensitivities.phases.items()
        },
        covariance=parameters @ parameters.T,
    )


def _root(names: tuple[str, ...], uncertainty: Mapping[str, float] | ArrayLike) -> Floats:
    """A matrix (k, r) whose product with its transpose is the covariance of the numbers."""
    if isinstance(uncertainty, Mapping):
        for name, deviation in uncertainty.items():
            if name not in names:
                text = f"there is no sensitivity to it; known: {', '.join(names) or 'none'}"
                raise ProblemError("bad_statement", name, text)
            if not 0.0 <= float(deviation) < np.inf:
                raise ProblemError(
                    "bad_statement", name, f"its standard deviation is {deviation!r}: give one from 0 on"
                )
        return np.diag([float(uncertainty.get(name, 0.0)) for name in names])
    covariance = np.asarray(uncertainty, float)
    size = len(names)
    if (
        covariance.shape != (size, size)
        or not np.isfinite(covariance).all()
        or not np.allclose(covariance, covariance.T, rtol=1e-9)
    ):
        raise ProblemError("bad_statement", "covariance", f"give a finite, symmetric matrix ({size}, {size})")
    values, vectors = np.linalg.eigh(covariance)
    if size and values.min() < -1e-9 * max(abs(values).max(), 1e-300):
        raise ProblemError("bad_statement", "covariance", f"it has a negative eigenvalue, {values.min():.3g}")
    root: Floats = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
