"""The explicit equations of a phase with the numbers of a solution, at any places of its intervals; a motion
that equations cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.statement.problem import Phase
from designopt.dynamics.signals import Signal
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
from designopt.lazy import scipy

#: Share of the change of a residual beyond which an algebraic equation is not solved.
UNSOLVED = 1e-6
#: Newton steps after which a search for algebraic variables has failed.
MOST_NEWTON = 30


@dataclass(frozen=True, eq=False)
class EquationsAlong:
    """The equations of `phase` along its `solution`, with the values of all `parameters` by name."""

    phase: Phase
    solution: PhaseSolution
    parameters: Mapping[str, float]

    @property
    def duration(self) -> float:
        """tf - t0 (s)."""
        return self.solution.tf - self.solution.t0

    def fractions(self, intervals: Indices, tau: Floats) -> Floats:
        """Fractions (k, n) of the phase at the places `tau` (n,) of the intervals `intervals` (k,)."""
        mesh = self.solution.mesh
        return np.asarray(mesh.nodes[intervals, None] + mesh.widths[intervals, None] * tau)

    def states(self, intervals: Indices, tau: Floats) -> Floats:
        """States (k, n, nx) at the places `tau` (n,) of the intervals `intervals` (k,), which have one scheme."""
        mesh, solution = self.solution.mesh, self.solution
        scheme = mesh.schemes[intervals[0]]
        of_values, of_rates = scheme.states_at(tau)
        slots = mesh.bases[intervals, None] + np.arange(scheme.steps + 1)
        h = self.duration * mesh.widths[intervals, None]
        trajectories = [
            solution.values[v.name][slots] @ of_values.T + h * (solution.rates[v.name][slots] @ of_rates.T)
            for v in self.phase.system.states
        ]
        return np.stack(trajectories, axis=2)

    def inputs_at(self, intervals: Indices, tau: Floats, names: Sequence[str]) -> Floats:
        """Controls, algebraic variables or unknown rates (k, n, names) at these places, within their bounds."""
        mesh, solution = self.solution.mesh, self.solution
        scheme = mesh.schemes[intervals[0]]
        slots = mesh.bases[intervals, None] + np.arange(scheme.steps + 1)
        weights = scheme.controls_at(tau).T
        trajectories = [np.clip(solution.values[n][slots] @ weights, *solution.bounds[n]) for n in names]
        return np.stack(trajectories, axis=2) if names else np.empty((len(intervals), len(tau), 0))

    def data(self, fractions: Floats) -> Floats:
        """The data entries (n, nq) at `fractions` (n,) of the phase."""
        return data_at(self.phase, fractions, self.solution.t0, self.solution.tf)

    @property
    def p(self) -> Floats:
        """Parameters (np,) of the system."""
        return np.array([self.parameters[v.name] for v in self.phase.system.parameters])

    def rates(self, states: Floats, intervals: Indices, tau: Floats) -> Floats:
        """The rates (k, n, nx) from the equations for `states` (k, n, nx) and the interpolated controls."""
        system = self.phase.system
        fractions = self.fractions(intervals, tau).ravel()
        count = len(fractions)
        u = self.inputs_at(intervals, tau, [v.name for v in system.controls]).reshape(count, -1)
        z = self.inputs_at(intervals, tau, [v.name for v in system.algebraic]).reshape(count, -1)
        t = self.solution.t0 + fractions * self.duration
        arguments = (states.reshape(count, -1), u, z, np.tile(self.p, (count, 1)), self.data(fractions), t[:, None])
        rates, _ = explicit_rates(system).map(count)(*(array.T for array in arguments))
        return np.asarray(rates, float).T.reshape(states.shape)


def data_at(phase: Phase, fractions: Floats, t0: float, tf: float) -> Floats:
    """The data entries (n, nq) of a phase that runs from t0 to tf, at `fractions` (n,) of it."""
    columns = []
    for v in phase.system.data:
        value = phase.data[v.name]
        if isinstance(value, Signal):
            columns.append(value.at(fractions if value.of_duration else t0 + fractions * (tf - t0)))
        else:
            columns.append(np.full(len(fractions), float(value)))
    return np.stack(columns, axis=1) if columns else np.empty((len(fractions), 0))


def is_determined(system: System) -> bool:
    """Whether the algebraic equations determine the algebraic variables (index 1), judged by their structure."""
    residual = system.algebraic_residual
    if residual is None:
        return True
    a = [ca.MX.sym(residual.name_in(i), residual.size1_in(i)) for i in range(residual.n_in())]
    return bool(ca.sprank(ca.jacobian_sparsity(residual(*a), a[2])) == a[2].numel())


def explicit_rates(system: System) -> Any:
    """The CasADi function (x, u, z, p, q, t) -> rates, z, with algebraic variables solved for, starting from z.

    Without a structural solution (a higher index), the given z are used. Where the search finds no solution the rates
    are NaN: residuals then exceed `UNSOLVED` times what a change of z by 1 + |z| makes.
    """
    rhs, residual = system.rhs, system.algebraic_residual
    x, u, z, p, q, t = (ca.MX.sym(rhs.name_in(i), rhs.size1_in(i)) for i in range(6))
    arguments = [x, u, z, p, q, t]
    if residual is None or not is_determined(system):
        return ca.Function("explicit_rates", arguments, [rhs(*arguments), z])
    symbols = ca.vertcat(x, u, p, q, t)
    numbers, unknown = ca.MX.sym("given", symbols.numel()), ca.MX.sym("z", z.numel())
    parts = ca.vertsplit(numbers, np.cumsum([0, *(s.numel() for s in (x, u, p, q, t))]).tolist())
    equations = {"x": unknown, "p": numbers, "g": residual(parts[0], parts[1], unknown, *parts[2:])}
    options = {"abstol": 1e-12, "max_iter": MOST_NEWTON, "error_on_fail": False, "show_eval_warnings": False}
    root = ca.rootfinder("root", "newton", equations, options)
    slope = ca.jacobian(equations["g"], unknown)
    sizes = ca.mtimes(ca.fabs(slope), 1.0 + ca.fabs(unknown))
    left = ca.Function("left", [unknown, numbers], [ca.mmax(ca.fabs(equations["g"]) - UNSOLVED * sizes)])
    z_root = root(z, symbols)
    rates = ca.if_else(left(z_root, symbols) <= 0.0, rhs(x, u, z_root, p, q, t), np.nan)
    return ca.Function("explicit_rates", arguments, [rates, z_root])


def integrate(
    rhs: Callable[[float, Floats], Floats], start: float, x: Floats, at: Floats, tolerance: float, farthest: Floats,
    most_steps: int,
) -> Floats:  # fmt: skip
    """States (nx, n) at increasing places `at` (n,) from states `x` at `start`; NaN from where the run failed: a state
    is beyond `farthest` (nx,) or `most_steps` are used up.

    `tolerance` is relative and absolute.
    """
    states_at = np.full((len(x), len(at)), np.nan)
    states_at[:, at <= start] = x[:, None]
    with np.errstate(all="ignore"):
        solver = scipy.integrate.LSODA(rhs, start, x, float(at[-1]), rtol=tolerance, atol=tolerance)
        for _ in range(most_steps):
            if solver.status != "running":
                break
            solver.step()
            if solver.status == "failed" or not (np.abs(solver.y) <= farthest).all():
                break
            in_step = (at > solver.t_old) & (at <= solver.t)
            if in_step.any():
                states_at[:, in_step] = solver.dense_output()(at[in_step])
    return states_at
