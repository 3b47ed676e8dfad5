"""Constraints and sums at given times of a phase: values of the polynomials, for any mesh points.

On an interval of a Radau scheme all variables are Lagrange polynomials through its points, so that those at a sample
are linear in the variables of the program: a constant sparse matrix (the stencil). The values at a sample, and their
derivatives, come from functions of one sample, formed once and mapped over all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.mesh import Mesh
from designopt.collocation.statement.problem import Phase
from designopt.collocation.statement.stated_values import ProblemError
from designopt.collocation.statement.symbols import Symbols
from designopt.collocation.statement.terms import Samples
from designopt.collocation.transcription.functions.points import CollocationPoint, expression_of, nonzeros
from designopt.dynamics.expressions import column
from designopt.dynamics.signals import Signal
from designopt.lazy import casadi as ca

#: Tolerance for equal fractions of a phase.
SAME = 1e-9


class SamplePoint:
    """One sample of a phase: the expression of an entry of `Phase.integrals` or `Phase.samples`.

    `kind` is "sum" (with the number of the integral) or "constraint". `value` is a column of the variables of the point
    and of `numbers`, the sample's own data.
    """

    def __init__(self, phase: int, point: CollocationPoint, kind: str, name: str, number: int = -1) -> None:
        self.phase, self.kind, self.name, self.number = phase, kind, name, number
        entry = point.phase.integrals[name] if kind == "sum" else point.phase.samples[name]
        assert entry.at is not None
        self.where = f"{point.phase.name}: {'integrals' if kind == 'sum' else 'samples'}.{name}"
        self.data_names = tuple(entry.at.data)
        numbers = {n: ca.SX.sym(n) for n in self.data_names}
        if clashes := [n for n in numbers if n in point.symbols]:
            raise ProblemError(
                "bad_statement", f"{self.where}.{clashes[0]}", "is the name of a variable: rename the data"
            )
        self.numbers = column(numbers.values())
        self.nw, self.ns = point.w.numel(), point.signals.numel()
        self.signal_names = point.signal_names
        self.arguments = [*point.arguments, self.numbers]
        self.symbols = Symbols({**point.symbols, **numbers}, point.symbols.time)
        self.value = expression_of(self.where, entry.value, self.symbols, scalar=kind == "sum")

    @property
    def size(self) -> int:
        """Number of rows of the value."""
        return int(self.value.numel())

    @cached_property
    def _variables(self) -> Any:
        return ca.vertcat(self.arguments[0], self.arguments[1])

    @cached_property
    def values(self) -> Any:
        """The function of the arguments -> value."""
        return ca.Function("sample", self.arguments, [ca.densify(self.value)])

    @cached_property
    def jacobian(self) -> tuple[Any, Indices, Indices]:
        """Derivatives with respect to the variables of the point and of the phase: the function -> nonzeros; rows and
        columns."""
        J: Any = ca.jacobian(self.value, self._variables)
        nonzero_function = ca.Function("sample_jacobian", self.arguments, [ca.cse(nonzeros(J))])
        return nonzero_function, np.array(J.sparsity().row(), np.int64), np.array(J.sparsity().get_col(), np.int64)

    @cached_property
    def hessian(self) -> tuple[Any, Indices, Indices]:
        """The same, with multipliers of the rows, for second derivatives (upper triangle)."""
        mu = ca.SX.sym("mu", self.size)
        H: Any = ca.triu(ca.hessian(ca.dot(mu, self.value), self._variables)[0])
        nonzero_function = ca.Function("sample_hessian", [*self.arguments, mu], [ca.cse(nonzeros(H))])
        return nonzero_function, np.array(H.sparsity().row(), np.int64), np.array(H.sparsity().get_col(), np.int64)

    @cached_property
    def by_numbers(self) -> Any:
        """The function of the arguments and of multipliers -> gradient with respect to the constants and signals of the
        phase."""
        mu = ca.SX.sym("mu", self.size)
        by = ca.vertcat(self.arguments[2], self.arguments[3])
        gradient = ca.densify(ca.gradient(ca.dot(mu, self.value), by)) if by.numel() else ca.SX(0, 1)
        return ca.Function("sample_by_numbers", [*self.arguments, mu], [gradient])


@dataclass(frozen=True, eq=False)
class SampleEntries:
    """The n samples of a `SamplePoint` in a program.

    `fractions` (n,) of the phase; `sample`, `variable`, `columns`, `weights` (e,) are the entries of the stencil,
    sorted by sample and variable (those of the phase come last). Its parameters of the program's functions are those
    from `begin`: its data sample by sample, then, from `signals` to `end`, the signals.
    """

    fractions: Floats
    sample: Indices
    variable: Indices
    columns: Indices
    weights: Floats
    begin: int
    signals: int
    end: int

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.fractions)

    def joined(self, sample: Indices, variable: Indices, width: int) -> tuple[Indices, Indices]:
        """The entries of the stencil for pairs (k,) of a sample and a variable: indices of the pairs, and of the
        entries."""
        keys = self.sample * width + self.variable
        pair_keys = sample * width + variable
        begin, end = np.searchsorted(keys, pair_keys, "left"), np.searchsorted(keys, pair_keys, "right")
        repeats = end - begin
        each = np.repeat(np.arange(len(pair_keys)), repeats)
        return each, begin[each] + np.arange(len(each)) - np.repeat(np.cumsum(repeats) - repeats, repeats)


def sample_points(points: Sequence[CollocationPoint]) -> tuple[SamplePoint, ...]:
    """All entries of phases with samples, in their order."""
    return tuple(sample for i, point in enumerate(points) for sample in phase_samples(i, point))


def phase_samples(i: int, point: CollocationPoint) -> list[SamplePoint]:
    """The entries of phase i with samples."""
    sums = [(j, name) for j, (name, entry) in enumerate(point.phase.integrals.items()) if entry.at is not None]
    sample_points = [SamplePoint(i, point, "sum", name, j) for j, name in sums]
    return sample_points + [SamplePoint(i, point, "constraint", name) for name in point.phase.samples]


def sample_entries(
    point: SamplePoint, phase: Phase, mesh: Mesh, states: Indices, at_points: Indices, theta: Indices, begin: int
) -> SampleEntries:
    """The place of its samples on a `mesh` with variables at `states` (slots, nx), `at_points` (points, nw), `theta`.

    Raises `ProblemError` for times outside the phase, and for schemes without one polynomial for all variables.
    """
    at = samples_of(phase, point)
    if not mesh.schemes[0].has_linear_states:
        text = f"values between the points of {mesh.schemes[0].name} are not linear in the variables: use radau"
        raise ProblemError("bad_statement", point.where, text)
    fractions = fractions_of(phase, point)
    intervals, tau = mesh.interval_of(fractions)
    entries: list[tuple[Any, Any, Any, Any]] = []
    nx, nw = states.shape[1], point.nw
    for scheme, group in mesh.groups:
        of_scheme = np.flatnonzero(np.isin(intervals, group))
        state_multipliers, _ = scheme.states_at(tau[of_scheme])
        of_controls = scheme.controls_at(tau[of_scheme])
        for r in range(scheme.steps + 1):
            slots = mesh.bases[intervals[of_scheme]] + r
            entries.append(_entries(of_scheme, np.arange(nx), states[slots], state_multipliers[:, r]))
            if r and nw > nx:
                other_columns = at_points[slots - mesh.first, nx:]
                entries.append(_entries(of_scheme, np.arange(nx, nw), other_columns, of_controls[:, r]))
    everyone = np.arange(len(fractions))
    entries.append(
        _entries(everyone, nw + np.arange(len(theta)), np.tile(theta, (len(fractions), 1)), np.ones(len(fractions)))
    )
    sample, variable, columns, weights = (np.concatenate(part) for part in zip(*entries, strict=True))
    nonzero = weights != 0.0
    order = np.lexsort((variable[nonzero], sample[nonzero]))
    sample, variable, columns, weights = (part[nonzero][order] for part in (sample, variable, columns, weights))
    signals = begin + len(at.data) * len(fractions)
    return SampleEntries(
        fractions, sample, variable, columns, weights, begin, signals, signals + point.ns * len(fractions)
    )


def _entries(sample: Indices, variable: Indices, columns: Indices, weights: Floats) -> tuple[Any, ...]:
    broadcast = np.broadcast_arrays(sample[:, None], variable[None, :], columns, weights[:, None])
    return tuple(part.ravel() for part in broadcast)


def samples_of(phase: Phase, point: SamplePoint) -> Samples:
    """The samples of an entry of a phase."""
    table = phase.integrals if point.kind == "sum" else phase.samples
    at = table[point.name].at
    assert at is not None
    return at


def fractions_of(phase: Phase, point: SamplePoint) -> Floats:
    """The fractions (n,) of the phase at which the samples are. Raises `ProblemError` for times in s in a phase with
    free ends."""
    at = samples_of(phase, point)
    times = np.asarray(at.times, float)
    if at.of_duration:
        begin, end = 0.0, 1.0
    else:
        if phase.t0_range is None or any(phase.free_times):
            text = (
                "a phase with free ends has samples at fractions of its duration: give Samples(..., of_duration=True)"
            )
            raise ProblemError("bad_statement", point.where, text)
        begin, end = phase.t0_range[0], phase.tf_range[0]
    fractions = (times - begin) / (end - begin)
    outside = np.flatnonzero((fractions < -SAME) | (fractions > 1.0 + SAME))
    if len(outside):
        text = f"a sample is at {times[outside[0]]:g}, which is not between {begin:g} and {end:g}"
        raise ProblemError("bad_bounds", point.where, text)
    return np.asarray(np.clip(fractions, 0.0, 1.0))


def sample_numbers(phase: Phase, point: SamplePoint, entries: SampleEntries) -> Floats:
    """The parameters of the program that belong to the samples, for a `phase` that may be a variant.

    Raises `ProblemError` if it has other samples than the program.
    """
    at = samples_of(phase, point)
    if tuple(at.data) != point.data_names or len(np.atleast_1d(at.times)) != entries.count:
        raise ProblemError(
            "bad_statement", point.where, "has other samples than when the program was built: build it again"
        )
    if np.abs(fractions_of(phase, point) - entries.fractions).max(initial=0.0) > SAME:
        text = "samples are at other fractions of the phase than when the program was built: build it again"
        raise ProblemError("bad_statement", point.where, text)
    data = [np.broadcast_to(np.asarray(value, float), entries.count) for value in at.data.values()]
    signals = []
    for name in point.signal_names:
        signal = phase.data[name]
        assert isinstance(signal, Signal)
        times = entries.fractions
        if not signal.of_duration:
            t0 = phase.t0_range[0] if phase.t0_range is not None else math.nan
            times = t0 + entries.fractions * (phase.tf_range[0] - t0)
        signals.append(signal.at(times))
    return np.concatenate([np.array(part, float).reshape(-1, entries.count).T.ravel() for part in (data, signals)])


def numeric_arguments(
    point: SamplePoint, entries: SampleEntries, x: Floats, theta: Floats, constants: Floats, parameters: Floats
) -> list[Floats]:
    """The arguments (size, n) of the functions of a sample at variables `x`, not scaled, side by side."""
    n = entries.count
    W = np.zeros((n, point.nw))
    is_point_variable = entries.variable < point.nw
    np.add.at(
        W,
        (entries.sample[is_point_variable], entries.variable[is_point_variable]),
        entries.weights[is_point_variable] * x[entries.columns[is_point_variable]],
    )
    data = parameters[entries.begin : entries.signals].reshape(n, -1)
    signals = parameters[entries.signals : entries.end].reshape(n, -1)
    constant_arrays = (np.tile(part[:, None], n) for part in (theta, constants))
    return [W.T, *constant_arrays, signals.T, entries.fractions[None], data.T]
