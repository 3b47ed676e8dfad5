"""Verification of a solution by an integrator independent of the collocation: the motion caused by its controls.

The integrator is the explicit method of order 8 of Dormand and Prince (Hairer, Norsett, Wanner, Solving ODE I, 1993,
section II.10; the coefficients are SciPy's) with adaptive steps that never pass a node, where controls have kinks;
LSODA integrates stiff segments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from designopt.arrays import Floats, Indices, Mask
from designopt.collocation.solution.solution import PhaseSolution
from designopt.collocation.solution.verification.equations import EquationsAlong, explicit_rates, integrate
from designopt.collocation.statement.problem import Phase
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
from designopt.lazy import scipy

#: Steps in the order of time: segments, starting places, widths.
Steps = tuple[Indices, Floats, Floats]

#: Relative tolerance of a step, of 1 + the largest absolute value of a state.
TOLERANCE = 1e-9
#: Explicit steps beyond which a segment is stiff.
MOST_STEPS = 300
#: Implicit steps beyond which it is abandoned.
MOST_IMPLICIT = 1000
#: Share of a segment below which a step without finite rates ends the run: the equations end there.
SMALLEST = 1e-9
#: Steps of one run per call.
AT_ONCE = 32
#: A simulation beyond this multiple of the range of the solution has diverged.
FARTHEST = 1e4


@dataclass(frozen=True, eq=False)
class Resimulation:
    """The motion caused by the controls of a phase, and its distance from the solution.

    `states` (intervals + 1,) by name at `times`, simulated in one run from the initial states, infinite after a
    divergence: `end` (s) is the last node that it reaches. Algebraic variables are followed on their branch. `error` is
    the largest difference at a node from the solution, relative to 1 + the largest absolute value of the state.
    `segment_errors` (intervals,) are the same for runs that restart at every node: they do not grow with the
    instability of the motion.
    """

    times: Floats
    states: Mapping[str, Floats]
    error: float
    segment_errors: Floats

    @property
    def end(self) -> float:
        """The last node (s) that the run from the initial states reaches."""
        is_reached = np.isfinite(np.stack(list(self.states.values()))).all(axis=0)
        return float(self.times[np.flatnonzero(is_reached)[-1]])


def resimulate(phase: Phase, solution: PhaseSolution, parameters: Mapping[str, float]) -> Resimulation:
    """Simulate a solved phase with its interpolated controls, clipped to their bounds, at a relative error of 1e-9."""
    runs = _RestartedRuns(phase, solution, parameters)
    states = runs.segments.chain(runs.starts[:, 0], runs.steps)[: len(runs.node_states)]
    return Resimulation(
        times=solution.times[solution.mesh.bases],
        states=dict(zip((v.name for v in phase.system.states), states, strict=True)),
        error=float(runs.differences(states, runs.node_states).max()),
        segment_errors=runs.errors,
    )


def segment_errors(phase: Phase, solution: PhaseSolution, parameters: Mapping[str, float]) -> Floats:
    """`Resimulation.segment_errors` (intervals,) alone, without the run over the whole phase, which takes most of the
    time where segments are stiff."""
    return _RestartedRuns(phase, solution, parameters).errors


class _RestartedRuns:
    """Runs over a solved phase that restart at every node from the states there, `node_states` (nx, intervals + 1)."""

    def __init__(self, phase: Phase, solution: PhaseSolution, parameters: Mapping[str, float]) -> None:
        mesh, names = solution.mesh, [v.name for v in phase.system.states]
        self.node_states = np.stack([solution.values[name][mesh.bases] for name in names])
        self._size = 1.0 + np.abs(np.stack([solution.values[name] for name in names])).max(axis=1)
        self.segments = _Segments(EquationsAlong(phase, solution, parameters), self._size)
        # behind the states: how far the algebraic variables are from those of the solution
        self.starts = np.vstack([self.node_states, np.zeros((len(phase.system.algebraic), self.node_states.shape[1]))])
        ends, self.steps = self.segments.run(self.starts[:, :-1], np.arange(len(mesh)))
        self.errors: Floats = self.differences(ends[: len(names)], self.node_states[:, 1:]).max(axis=0)

    def differences(self, states: Floats, reference: Floats) -> Floats:
        """The differences of states (nx, k) from a reference, relative to 1 + the largest absolute value of each."""
        return np.asarray(np.abs(states - reference) / self._size[:, None])


class _Segments:
    """Runs over the intervals of a solution, each from given states at its left end; `size` (nx,) scales errors.

    States are followed by the corrections of the algebraic variables (see `step_functions`): nx + nz rows.
    """

    def __init__(self, equations: EquationsAlong, size: Floats) -> None:
        self.equations, self.size, self.p = equations, size, equations.p
        self.stages = stage_places()
        system = equations.phase.system
        self.nu = len(system.controls)
        self.names = [v.name for v in (*system.controls, *system.algebraic)]
        bounds = [equations.solution.bounds[name] for name in self.names]
        self.low, self.high = np.array(bounds, float).reshape(-1, 2).T
        self.rates = explicit_rates(system)
        self.stiff: set[int] = set()
        self.step, self.step_many = step_functions(system, AT_ONCE)
        self.trajectories = self._trajectories()

    def _trajectories(self) -> Floats:
        """Controls and algebraic variables on every interval (intervals, n, nu + nz): coefficients of Legendre
        polynomials over the interval."""
        from numpy.polynomial.legendre import legvander

        mesh, values = self.equations.solution.mesh, self.equations.solution.values
        longest = max(len(scheme.collocation_points) for scheme in mesh.schemes)
        coefficients = np.zeros((len(mesh), longest, len(self.names)))
        for scheme, intervals in mesh.groups:
            count = len(scheme.collocation_points)
            inverse = np.linalg.inv(legvander(2.0 * scheme.collocation_points - 1.0, count - 1))
            slots = mesh.bases[intervals, None] + np.arange(scheme.steps + 1)[-count:]
            for i, name in enumerate(self.names):
                coefficients[intervals, :count, i] = values[name][slots] @ inverse.T
        return coefficients

    def inputs_at(self, segments: Indices, tau: Floats) -> Floats:
        """Controls and algebraic variables (k, n, nu + nz) at places (k, n) of segments (k,), within their bounds."""
        from numpy.polynomial.legendre import legvander

        trajectories = self.trajectories[segments]
        values_at = np.matmul(legvander(2.0 * tau - 1.0, trajectories.shape[1] - 1), trajectories)
        return np.asarray(np.clip(values_at, self.low, self.high))

    def _stages(self, segments: Indices, tau: Floats, delta: Floats) -> tuple[Floats, ...]:
        """All arguments of `step` but the states, for steps (k,) of widths `delta` from places `tau` of segments."""
        equations, mesh = self.equations, self.equations.solution.mesh
        stage_times = tau[:, None] + delta[:, None] * self.stages
        fractions = mesh.nodes[segments, None] + mesh.widths[segments, None] * stage_times
        values = self.inputs_at(segments, stage_times).reshape(len(tau), -1)
        data = equations.data(fractions.ravel()).reshape(len(tau), -1)
        t = equations.solution.t0 + fractions * equations.duration
        h = equations.duration * mesh.widths[segments] * delta
        return values.T, np.tile(self.p[:, None], len(tau)), data.T, t.T, h[None, :]

    def _norm(self, h: Floats, five: Any, three: Any) -> Floats:
        """The error (k,) of steps of length h as a share of the tolerance, from both estimates (nx, k)."""
        with np.errstate(all="ignore"):
            a, b = (((np.asarray(e, float) / self.size[:, None]) ** 2).sum(axis=0) for e in (five, three))
            error_norm = np.abs(h) * a / np.sqrt(len(self.size) * (a + 0.01 * b)) / TOLERANCE
        # both estimates are zero without motion; values that are not finite have diverged
        return np.where(np.isfinite(error_norm), error_norm, np.where((a == 0.0) & (b == 0.0), 0.0, math.inf))

    def _lost(self, x: Floats) -> Mask:
        """Which runs (k,) are far from the range of the solution."""
        inside: Mask = np.abs(x[: len(self.size)]) <= FARTHEST * self.size[:, None]
        return np.asarray(~inside.all(axis=0))

    def run(self, x: Floats, segments: Indices, tau: float = 0.0) -> tuple[Floats, Steps | None]:
        """States (nx + nz, k) at the right ends of `segments` (k,) from those at the places `tau`, infinite after a
        divergence.

        And all steps; None if some were implicit or a run diverged.
        """
        if len(segments) == 1 and segments[0] in self.stiff:
            return self._stiff_end(x[:, 0], segments[0], tau)[:, None], None
        ends, x = np.full_like(x, math.inf), x.copy()
        at, width = np.full(len(segments), tau), np.ones(len(segments))
        active, lost = np.arange(len(segments)), np.zeros(len(segments), dtype=bool)
        steps = []
        for _ in range(MOST_STEPS):
            delta = np.minimum(width[active], 1.0 - at[active])
            stage_inputs = self._stages(segments[active], at[active], delta)
            new, five, three = self.step(x[:, active], *stage_inputs)
            norm = self._norm(stage_inputs[-1][0], five, three)
            good = norm <= 1.0
            with np.errstate(divide="ignore"):
                width[active] = delta * np.clip(0.9 * norm ** (-1.0 / 8.0), 0.2, np.where(good, 10.0, 1.0))
            active_good = active[good]
            steps.append((segments[active_good], at[active_good], delta[good]))
            x[:, active_good] = np.asarray(new, float)[:, good]
            at[active_good] += delta[good]
            is_complete = at >= 1.0 - 1e-12
            lost |= self._lost(x)
            lost[active] |= ~np.isfinite(norm) & (delta < SMALLEST)
            ends[:, is_complete & ~lost] = x[:, is_complete & ~lost]
            active = np.flatnonzero(~is_complete & ~lost)
            if not len(active):
                if not np.isfinite(ends).all():
                    return ends, None
                step_segments, begin, delta = (np.concatenate(part) for part in zip(*steps, strict=True))
                order = np.lexsort((begin, step_segments))
                return ends, (step_segments[order], begin[order], delta[order])
        for i in active:
            self.stiff.add(int(segments[i]))
            ends[:, i] = self._stiff_end(x[:, i], segments[i], float(at[i]))
        return ends, None

    def chain(self, x: Floats, steps: Steps | None) -> Floats:
        """States (nx + nz, intervals + 1) at all nodes of one run from `x`, infinite after a divergence.

        The `steps` of the runs over the segments are repeated, many in one call; if their error is too large now, the
        rest of the segment is run with new steps.
        """
        count = len(self.equations.solution.mesh)
        nodes = np.full((len(x), count + 1), math.inf)
        nodes[:, 0] = x
        k, tau = 0, 0.0
        while k < count:
            if steps is not None:
                x, k, tau = self._repeat(x, steps, k, nodes)
                if k == count:
                    break
            ends, _ = self.run(x[:, None], np.array([k]), tau)
            x = nodes[:, k + 1] = ends[:, 0]
            k, tau = k + 1, 0.0
            if not np.isfinite(x).all():
                break
        return nodes

    def _repeat(self, x: Floats, steps: Steps, k: int, nodes: Floats) -> tuple[Floats, int, float]:
        """Take `steps` from segment `k` on as long as their errors are small, and fill `nodes`: states, segment and
        place of the end."""
        segments, begins, delta = steps
        at = int(np.searchsorted(segments, k))
        while at < len(segments):
            size = min(AT_ONCE, len(segments) - at)
            part, fill = slice(at, at + size), (0, AT_ONCE - size)  # steps of zero length fill the rest
            stage_inputs = self._stages(
                np.pad(segments[part], fill, mode="edge"), np.pad(begins[part], fill), np.pad(delta[part], fill)
            )
            states, five, three = (np.asarray(e, float) for e in self.step_many(x, *stage_inputs))
            bad = np.append((self._norm(stage_inputs[-1][0], five, three) > 1.0) | self._lost(states), True)[: size + 1]
            bad[size] = True
            good = int(np.argmax(bad))
            last = at + np.flatnonzero(segments[at : at + good] != np.append(segments, -1)[at + 1 : at + good + 1])
            nodes[:, segments[last] + 1] = states[:, last - at]
            x = states[:, good - 1] if good else x
            at += good
            if good < size:
                return x, int(segments[at]), float(begins[at])
        return x, nodes.shape[1] - 1, 0.0

    def _stiff_end(self, x: Floats, segment: int, tau: float) -> Floats:
        """The end of one segment from states `x` at its place `tau`, by an implicit method."""
        equations, mesh, nx = self.equations, self.equations.solution.mesh, len(self.size)
        segments, h = np.array([segment]), equations.duration * mesh.widths[segment]
        correction = x[nx:].copy()

        def rhs(tau: float, state: Floats) -> Floats:
            values = self.inputs_at(segments, np.array([[tau]]))[0, 0]
            fraction = np.array([mesh.nodes[segment] + mesh.widths[segment] * tau])
            t = equations.solution.t0 + fraction * equations.duration
            u, z = values[: self.nu], values[self.nu :]
            rates, algebraic = self.rates(state, u, z + correction, self.p, equations.data(fraction)[0], t)
            if np.isfinite(slope := np.asarray(rates, float).ravel()).all():
                correction[:] = np.asarray(algebraic, float).ravel() - z
            return np.asarray(h * slope)

        end = integrate(rhs, tau, x[:nx], np.ones(1), TOLERANCE, FARTHEST * self.size, MOST_IMPLICIT)[:, 0]
        return np.concatenate([np.where(np.isfinite(end), end, math.inf), correction])


def stage_places() -> Floats:
    """The stages (13,) as shares of the step; the last is at its end."""
    return np.concatenate([scipy.integrate.DOP853.C, [1.0]])


@lru_cache(maxsize=16)
def step_functions(system: System, at_once: int) -> tuple[Any, Any]:
    """CasADi functions of one step and of `at_once` steps in a row.

    (x with corrections, controls and algebraic variables at all stages, p, data and times at all stages, h) -> states
    with corrections at the end, and the two error estimates of the states, of order 5 and 3, divided by h. The
    corrections (nz,) are the differences of the algebraic variables from those given: each stage searches from the
    solution of the one before, so that algebraic variables stay on their branch far from those given.
    """
    rates = explicit_rates(system)
    stages, nu, nv = len(stage_places()), len(system.controls), len(system.controls) + len(system.algebraic)
    nx, nq = len(system.states), len(system.data)
    start, h, p = ca.MX.sym("x", nx + nv - nu), ca.MX.sym("h"), ca.MX.sym("p", len(system.parameters))
    v, q, t = ca.MX.sym("v", nv * stages), ca.MX.sym("q", nq * stages), ca.MX.sym("t", stages)
    x, correction = ca.vertsplit(start, [0, nx, start.numel()])
    at: Any = x
    slopes: list[Any] = []
    for i in range(stages):
        if slopes:
            row = scipy.integrate.DOP853.A[i, :i] if i < stages - 1 else scipy.integrate.DOP853.B
            at = x + h * ca.mtimes(ca.horzcat(*slopes), ca.DM(row))
        _, u_i, z_i, _ = ca.vertsplit(v, [0, i * nv, i * nv + nu, (i + 1) * nv, v.numel()])
        slope, z = rates(at, u_i, z_i + correction, p, q[i * nq : (i + 1) * nq], t[i])
        slopes.append(slope)
        correction = z - z_i
    K = ca.horzcat(*slopes)
    errors = [ca.mtimes(K, ca.DM(weights)) for weights in (scipy.integrate.DOP853.E5, scipy.integrate.DOP853.E3)]
    step = ca.Function("step", [start, v, p, q, t, h], [ca.vertcat(at, correction), *errors])
    return step, step.mapaccum(at_once)
