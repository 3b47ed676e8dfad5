"""Processes of the same points stacked, so that gradient searches evaluate all of them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from designopt.solvers.surrogate.additive import group_derivatives
from designopt.solvers.surrogate.cokriging import CoKriging
from designopt.solvers.surrogate.gaussian_process import GaussianProcess
from designopt.solvers.surrogate.matern import Array, Indices, with_jumps


@dataclass(frozen=True)
class Stack:
    """p processes of n points each, without observed slopes: inverse length `scales` (p, d), points in length scales
    `scaled_points` (p, n, d), `inverse` factors (p, n, n), `weights` (p, n), `mean`, `variance`, `jumps` and `additive`
    shares of the kernel (p,), the latter of columns in `groups` (d,)."""

    scales: Array
    scaled_points: Array
    inverse: Array
    weights: Array
    mean: Array
    variance: Array
    jumps: Array
    additive: Array
    groups: Indices

    @classmethod
    def from_processes(cls, processes: Sequence[GaussianProcess]) -> Stack:
        """The stack of `processes`, at least one."""
        return cls(
            np.stack([p.scales for p in processes]),
            np.stack([p.scaled_points for p in processes]),
            np.stack([p.spread_factor for p in processes]),
            np.stack([p.weights for p in processes]),
            np.array([p.mean for p in processes]),
            np.array([p.variance for p in processes]),
            np.array([p.jumps for p in processes]),
            np.array([p.additive for p in processes]),
            max((p.groups for p in processes), key=lambda groups: int(groups.max())),
        )

    def slopes(self, point: Array) -> tuple[Array, Array, Array, Array]:
        """Means and standard deviations (p,), without the noise, and their derivatives (p, d) at one `point` (d,)."""
        apart = (point * self.scales)[:, None, :] - self.scaled_points
        R, first = with_jumps(np.einsum("pnd,pnd->pn", apart, apart), self.jumps[:, None])
        along = first[:, :, None] * apart  # half the derivatives of R with respect to the scaled point
        if self.additive.any():
            by_group, first_by_column = group_derivatives(apart**2, self.groups)
            share = self.additive[:, None]
            R = (1.0 - share) * R + share * by_group
            along = (1.0 - share)[:, :, None] * along + share[:, :, None] * first_by_column * apart
        projection = (self.inverse @ R[:, :, None])[:, :, 0]
        share = np.maximum(1.0 + self.jumps - np.einsum("pn,pn->p", projection, projection), 1e-14)
        sd = np.sqrt(self.variance * share)
        solutions = (projection[:, None, :] @ self.inverse)[:, 0, :]
        products = np.stack([self.weights, solutions], axis=1) @ along  # (p, 2, d)
        by_mean, by_sd = 2.0 * self.scales * products[:, 0], 2.0 * self.scales * products[:, 1]
        mean = self.mean + np.einsum("pn,pn->p", R, self.weights)
        return mean, sd, by_mean, -(self.variance / sd)[:, None] * by_sd


@dataclass(frozen=True)
class StackedProcesses:
    """All present processes: `stacks`, the indices of their processes, and the remaining processes."""

    stacks: tuple[Stack, ...]
    stack_indices: tuple[tuple[int, ...], ...]
    single: dict[int, GaussianProcess | CoKriging]

    @classmethod
    def from_processes(cls, processes: Sequence[GaussianProcess | CoKriging]) -> StackedProcesses:
        """Processes without slopes or cheap values are stacked with others of as many points."""
        alike: dict[int, list[int]] = defaultdict(list)
        single = {}
        for i, p in enumerate(processes):
            if isinstance(p, GaussianProcess) and p.observed_slopes is None:
                alike[len(p.points)].append(i)
            else:
                single[i] = p
        stacks = tuple(
            Stack.from_processes([p for i in indices if isinstance(p := processes[i], GaussianProcess)])
            for indices in alike.values()
        )
        return cls(stacks, tuple(map(tuple, alike.values())), single)

    def slopes(self, point: Array) -> tuple[Array, Array, Array, Array]:
        """Means and standard deviations (p,), without the noise, and their derivatives (p, d) at one `point` (d,)."""
        count = sum(map(len, self.stack_indices)) + len(self.single)
        values, derivatives = np.empty((2, count)), np.empty((2, count, len(point)))
        for indices, stack in zip(self.stack_indices, self.stacks, strict=True):
            rows = list(indices)
            values[0, rows], values[1, rows], derivatives[0, rows], derivatives[1, rows] = stack.slopes(point)
        for i, p in self.single.items():
            values[0, i], values[1, i], derivatives[0, i], derivatives[1, i] = p.slopes(point)
        return values[0], values[1], derivatives[0], derivatives[1]
