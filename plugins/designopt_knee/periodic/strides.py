"""One gait cycle of the leg as a map of the state at phase 0, and the derivative of that map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics import SimulationStatus, Simulator, System, Trajectory
from designopt.dynamics.simulation.side_by_side import NextRun, OverRuns
from designopt.dynamics.simulation.simulator import Method, RunArguments
from designopt.plugin import Diverged
from designopt_knee.equations import FOLD_MARGIN

#: A run that failed this close to the limit of the linkage has reached it, whatever error the integrator reports.
_NEAR_FOLD = 1e-2

#: Rates may err more than angles: contact is decided within 1e-6 m of depth, and rates are of the order of 5 rad/s.
#: Measured: the same figures for a fifth less time than with equal shares. The model's default tolerances, 3e-6 and
#: 1e-7, are the loosest found that give the period of a run at 1e-8 at 32 designs around the critical stiffnesses (rho
#: within 3e-4); at 1e-5 two of them differ, although period-T designs agree to 1e-5 in rho.
_ATOL_SHARES = np.array([1.0, 1.0, 100.0, 100.0])

#: The derivative of a cycle is taken at tolerances this much smaller, and near the limit of stability at the second:
#: friction and contact turn it within microseconds. Measured at eight motions against runs at 1e-10: the largest
#: multiplier within 0.05 with the first, 0.003 with the second.
DERIVATIVE_TOLERANCES = (0.1, 1.0 / 300.0)


@dataclass(frozen=True, eq=False)
class Stride:
    """One gait cycle: states `x` (samples + 1, 4) and outputs `y` (samples + 1, 6), both ends included.

    `monodromy` (4, 4) is the derivative of the last state with respect to the first, if requested.
    """

    x: Floats
    y: Floats
    monodromy: Floats | None = None

    @property
    def gap(self) -> Floats:
        """Residual of periodicity: last state minus first."""
        return np.asarray(self.x[-1] - self.x[0])


def angles(difference: Floats) -> Floats:
    """The angles (deg) of differences of states (..., 4).

    Angles distinguish states better than rates: at heel strike, where cycles begin, the ground changes rates within
    microseconds.
    """
    return np.degrees(difference[..., :2])


def distance(difference: Floats) -> float:
    """The larger angle (deg) of a `difference` of two states (4,)."""
    return float(np.abs(angles(difference)).max())


class Integrators:
    """Integrators of the knee's equations: for cycles without and with the derivative.

    `tolerances` are the relative and the absolute tolerance, the latter of angles.
    """

    def __init__(
        self,
        system: System,
        method: Method,
        tolerances: tuple[float, float],
        max_steps: int,
        compiled: Literal["auto"] | bool,
    ) -> None:
        def simulator_of(share: float) -> Simulator:
            relative, absolute = tolerances
            return Simulator(
                system, method, share * relative, share * absolute * _ATOL_SHARES, max_steps, compiled=compiled
            )

        self.system, self.max_steps = system, max_steps
        self.plain = simulator_of(1.0)
        self.exact = tuple(simulator_of(share) for share in DERIVATIVE_TOLERANCES)
        self.plain.prepare_several()  # one library for all: the tolerances are numbers


class Strides:
    """The cycles of one leg: parameters `p` and data `q` of the equations, `samples` points in each `period` (s).

    The equations depend on time by the phase alone, so every cycle begins at time 0. `steps` counts those of the
    integrator over all cycles; beyond its limit a walk ends.
    """

    def __init__(self, integrators: Integrators, p: Floats, q: Floats, period: float, samples: int) -> None:
        self._integrators, self._p, self._q, self._period = integrators, p, q, period
        self._times = np.arange(samples + 1) * (period / samples)
        self._next_step: float | None = None
        self.steps = 0

    @property
    def names(self) -> list[str]:
        """The outputs of a cycle."""
        return [v.name for v in self._integrators.system.outputs]

    def sampled(self, samples: int) -> Strides:
        """The cycles of the same leg with this number of `samples`."""
        return Strides(self._integrators, self._p, self._q, self._period, samples)

    def __call__(self, state: Floats) -> OverRuns[Stride]:
        """The cycle that begins with `state` (4,) at phase 0; raises `Diverged`."""
        run = yield from self._checked(self._integrators.plain, state, False)
        self._next_step = run.last_step
        return Stride(run.x, run.y)

    def with_monodromy(self, state: Floats, *, fine: bool = False) -> OverRuns[Stride]:
        """The same with its derivative, by the variational equation; raises `Diverged`."""
        run = yield from self._checked(self._integrators.exact[fine], state, True)
        return Stride(run.x, run.y, run.transition)

    def _checked(self, simulator: Simulator, state: Floats, transition: bool) -> OverRuns[Trajectory]:
        arguments: RunArguments = {
            "x0": state, "times": self._times, "p": self._p, "q": self._q,
            "first_step": None if transition else self._next_step, "transition": transition,
        }  # fmt: skip
        run = yield NextRun(simulator, arguments)
        self.steps += run.steps + run.rejected
        if run.status is not SimulationStatus.DONE:
            raise self._ended(simulator.system, run)
        if self.steps > self._integrators.max_steps:
            raise Diverged(f"the integrator exceeded {self._integrators.max_steps} steps", reason="step_limit")
        return run

    def _ended(self, system: System, run: Trajectory) -> Diverged:
        assert system.guard is not None
        left = float(system.guard(run.x[-1], [], [], self._p, self._q, run.t[-1])) + FOLD_MARGIN
        if run.guard == "linkage_limit" or not left > _NEAR_FOLD:
            return Diverged(
                f"the stop of the straight knee was driven through {run.t[-1]:.3f} s after heel strike: AD and CD fold"
                " over",
                reason="linkage_limit",
            )
        reason = "nonfinite" if run.status is SimulationStatus.NONFINITE else "step_limit"
        return Diverged(run.message, reason=reason)
