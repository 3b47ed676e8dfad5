"""A solution checked by an integrator that knows nothing of the collocation: the motion that its controls cause.

The integrator is the explicit method of order 8 of Dormand and Prince (Hairer, Norsett, Wanner, Solving ODE I, 1993,
section II.10) with adaptive steps that never pass a node, where controls have kinks; segments that are too stiff for
it go to SciPy's implicit Radau method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from designopt.collocation.equations import Equations, Indices
from designopt.collocation.problem import Phase
from designopt.collocation.solution import PhaseSolution

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Relative tolerance of a step, of 1 + the largest absolute value of a state.
TOLERANCE = 1e-9
#: A segment that takes more explicit steps than this is stiff.
MOST_STEPS = 300
#: A simulation that goes beyond so many times the range of the solution has left it for good.
FARTHEST = 1e4


@dataclass(frozen=True, eq=False)
class Resimulation:
    """What the controls of a phase cause, and how far that is from the solution.

    `states` (intervals + 1,) by name at `times`, simulated in one run from the initial states, infinite after a run
    that left all bounds; `error` is the largest difference at a node from the solution, relative to 1 + the largest
    absolute value of the state. `segment_errors` (intervals,) are the same for runs that begin anew at every node: they
    do not grow with the instability of the motion.
    """

    times: Vector
    states: Mapping[str, Vector]
    error: float
    segment_errors: Vector


def resimulate(phase: Phase, found: PhaseSolution, parameters: Mapping[str, float]) -> Resimulation:
    """Simulate a solved phase with its interpolated controls, kept within their bounds, at a relative error of 1e-9."""
    equations = Equations(phase, found, parameters)
    mesh, names = found.mesh, [v.name for v in phase.system.states]
    solved = np.stack([found.values[name][mesh.bases] for name in names])
    size = 1.0 + np.abs(np.stack([found.values[name] for name in names])).max(axis=1)
    segments = _Segments(equations, size)
    every = np.arange(len(mesh))
    ends = segments.run(solved[:, :-1], every)
    simulated = np.full_like(solved, math.inf)
    simulated[:, 0] = solved[:, 0]
    for k in every:
        simulated[:, k + 1] = segments.run(simulated[:, k : k + 1], every[k : k + 1])[:, 0]
        if not np.isfinite(simulated[:, k + 1]).all():
            break
    return Resimulation(
        times=found.times[mesh.bases],
        states=dict(zip(names, simulated, strict=True)),
        error=float((np.abs(simulated - solved) / size[:, None]).max()),
        segment_errors=(np.abs(ends - solved[:, 1:]) / size[:, None]).max(axis=0),
    )


class _Segments:
    """Runs over the intervals of a solution, each from given states at its left end; `size` (nx,) scales errors."""

    def __init__(self, equations: Equations, size: Vector) -> None:
        from scipy.integrate import DOP853

        self.equations, self.size = equations, size
        self.method = DOP853
        self.places = np.concatenate([DOP853.C, [1.0]])
        system = equations.phase.system
        self.nu = len(system.controls)
        self.names = [v.name for v in (*system.controls, *system.algebraic)]
        bounds = [equations.found.bounds[name] for name in self.names]
        self.low, self.high = np.array(bounds, float).reshape(-1, 2).T
        self.rates = explicit_rates(equations)
        self.step = self._step()
        self.courses = self._courses()

    def _courses(self) -> NDArray[np.float64]:
        """Controls and algebraic variables on every interval (intervals, n, nu + nz): coefficients of Legendre
        polynomials over the interval."""
        from numpy.polynomial.legendre import legvander

        mesh, values = self.equations.found.mesh, self.equations.found.values
        longest = max(len(scheme.collocated) for scheme in mesh.schemes)
        found = np.zeros((len(mesh), longest, len(self.names)))
        for scheme, some in mesh.groups:
            count = len(scheme.collocated)
            inverse = np.linalg.inv(legvander(2.0 * scheme.collocated - 1.0, count - 1))
            slots = mesh.bases[some, None] + np.arange(scheme.steps + 1)[-count:]
            for i, name in enumerate(self.names):
                found[some, :count, i] = values[name][slots] @ inverse.T
        return found

    def _step(self) -> Any:
        """One step of many runs: (x, controls and algebraic variables at the stages, p, data and times at the stages,
        h) -> end, and two estimates of its error."""
        import casadi as ca

        system, method = self.equations.phase.system, self.method
        stages, nx, nv, nq = len(self.places), len(system.states), len(self.names), len(system.data)
        x, h, p = ca.MX.sym("x", nx), ca.MX.sym("h"), ca.MX.sym("p", len(system.parameters))
        v, q, t = ca.MX.sym("v", nv * stages), ca.MX.sym("q", nq * stages), ca.MX.sym("t", stages)
        slopes: list[Any] = []
        at, end = x, x
        for i in range(stages):
            if slopes:
                row = method.A[i, :i] if i < len(method.B) else method.B
                at = x + h * ca.mtimes(ca.horzcat(*slopes), ca.DM(row))
            if i == stages - 1:
                end = at
            v_i, q_i = v[i * nv : (i + 1) * nv], q[i * nq : (i + 1) * nq]
            slopes.append(self.rates(at, v_i[: self.nu], v_i[self.nu :], p, q_i, t[i]))
        K = ca.horzcat(*slopes)
        errors = [ca.mtimes(K, ca.DM(weights)) for weights in (method.E5, method.E3)]
        return ca.Function("step", [x, v, p, q, t, h], [end, *errors])

    def others(self, segments: Indices, tau: Matrix) -> NDArray[np.float64]:
        """Controls and algebraic variables (k, n, nu + nz) at places (k, n) of segments (k,), within their bounds."""
        from numpy.polynomial.legendre import legvander

        courses = self.courses[segments]
        found = np.matmul(legvander(2.0 * tau - 1.0, courses.shape[1] - 1), courses)
        return np.asarray(np.clip(found, self.low, self.high))

    def run(self, x: Matrix, segments: Indices) -> Matrix:
        """States (nx, k) at the right ends of `segments` (k,) from those at their left ends; infinite where lost."""
        equations, mesh = self.equations, self.equations.found.mesh
        ends = np.full_like(x, math.inf)
        x = x.copy()
        tau, width = np.zeros(len(segments)), np.ones(len(segments))
        active = np.arange(len(segments))
        for _ in range(MOST_STEPS):
            k = segments[active]
            delta = np.minimum(width[active], 1.0 - tau[active])
            places = tau[active, None] + delta[:, None] * self.places
            fractions = mesh.nodes[k, None] + mesh.widths[k, None] * places
            values = self.others(k, places)
            data = equations.data(fractions.ravel()).reshape(len(k), -1)
            t = equations.found.t0 + fractions * equations.duration
            h = equations.duration * mesh.widths[k] * delta
            given = (x[:, active], values.reshape(len(k), -1).T, np.tile(equations.p[:, None], len(k)), data.T, t.T, h)
            new, five, three = (np.asarray(e, float) for e in self.step(*given[:-1], h[None, :]))
            norm = _norm(np.abs(h), five / self.size[:, None], three / self.size[:, None])
            good = norm <= 1.0
            with np.errstate(divide="ignore"):
                width[active] = delta * np.clip(0.9 * norm ** (-1.0 / 8.0), 0.2, np.where(good, 10.0, 1.0))
            reached = active[good]
            x[:, reached] = new[:, good]
            tau[reached] += delta[good]
            arrived = tau >= 1.0 - 1e-12
            lost = (np.abs(x) > FARTHEST * self.size[:, None]).any(axis=0)
            ends[:, arrived & ~lost] = x[:, arrived & ~lost]
            active = np.flatnonzero(~arrived & ~lost)
            if not len(active):
                return ends
        for i in active:
            ends[:, i] = self._stiff(x[:, i], segments[i], float(tau[i]))
        return ends

    def _stiff(self, x: Vector, segment: int, tau: float) -> Vector:
        """The end of one segment from states `x` at the place `tau` of it, by an implicit method."""
        from scipy.integrate import solve_ivp

        equations, mesh = self.equations, self.equations.found.mesh
        which, h = np.array([segment]), equations.duration * mesh.widths[segment]

        def rhs(place: float, state: Vector) -> Vector:
            values = self.others(which, np.array([[place]]))[0, 0]
            fraction = np.array([mesh.nodes[segment] + mesh.widths[segment] * place])
            t = equations.found.t0 + fraction * equations.duration
            rates = self.rates(state, values[: self.nu], values[self.nu :], equations.p, equations.data(fraction)[0], t)
            return h * np.asarray(rates, float).ravel()

        with np.errstate(all="ignore"):
            run = solve_ivp(rhs, (tau, 1.0), x, "Radau", rtol=TOLERANCE, atol=TOLERANCE * self.size)
        return np.asarray(run.y[:, -1] if run.success else np.full(len(x), math.inf))


def _norm(h: Vector, five: Matrix, three: Matrix) -> Vector:
    """The error (k,) of steps of length h as a share of the tolerance, from both embedded estimates (nx, k)."""
    with np.errstate(all="ignore"):
        a, b = (five**2).sum(axis=0), (three**2).sum(axis=0)
        found = h * a / np.sqrt(len(five) * (a + 0.01 * b)) / TOLERANCE
    # both are zero where nothing moves, and what is not finite went too far
    return np.where(np.isfinite(found), found, np.where((a == 0.0) & (b == 0.0), 0.0, math.inf))


def explicit_rates(equations: Equations) -> Callable[..., Any]:
    """The CasADi function (x, u, z, p, q, t) -> rates; algebraic variables are solved for, beginning at z."""
    import casadi as ca

    system = equations.phase.system
    if system.algebraic_residual is None:
        return system.rhs
    x, u, z, p, q, t = (ca.MX.sym(n, system.rhs.size1_in(i)) for i, n in enumerate(("x", "u", "z", "p", "q", "t")))
    residual = system.algebraic_residual
    unknown, given = ca.MX.sym("z", z.numel()), ca.vertcat(x, u, p, q, t)
    symbol = ca.MX.sym("given", given.numel())
    parts = ca.vertsplit(symbol, np.cumsum([0, *(s.numel() for s in (x, u, p, q, t))]).tolist())
    rows = residual(parts[0], parts[1], unknown, *parts[2:])
    root = ca.rootfinder("root", "newton", {"x": unknown, "p": symbol, "g": rows}, {"abstol": 1e-12, "error_on_fail": False})
    return ca.Function("explicit_rates", [x, u, z, p, q, t], [system.rhs(x, u, root(z, given), p, q, t)])
