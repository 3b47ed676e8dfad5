"""One walk integrated: all cycles in one go, or cycle by cycle until the response has settled."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from designopt.dynamics import SimulationStatus, Simulator, System, Trajectory
from designopt.dynamics.simulator import Method
from designopt.plugin import Diverged
from designopt_knee import figures
from designopt_knee.equations import FOLD_MARGIN

Vector = NDArray[np.float64]

#: A run that broke down with this little left of the linkage was at its end, whatever the integrator says of it.
_NEAR_FOLD = 1e-2

#: Rates may err more than angles: contact is decided within 1e-6 m of depth, and rates are of the order of 5 rad/s.
#: Measured: the same figures for a fifth less time than with equal shares. The model's default tolerances, 3e-6 and
#: 1e-7, are the loosest found that give the period of a run at 1e-8 at 32 designs around the critical stiffnesses (rho
#: within 3e-4); at 1e-5 two of them differ, although period-T designs agree to 1e-5 in rho.
_ATOL_SHARES = np.array([1.0, 1.0, 100.0, 100.0])


def simulator(
    system: System, method: Method, tolerances: tuple[float, float], max_steps: int, compiled: Literal["auto"] | bool
) -> Simulator:
    """The integrator of the knee's equations with relative and absolute `tolerances`, the latter of angles."""
    relative, absolute = tolerances
    return Simulator(system, method, relative, absolute * _ATOL_SHARES, max_steps, compiled)


def simulate(
    simulator: Simulator, start: Vector, times: Vector, p: Vector, q: Vector, samples: int, window: int
) -> tuple[Vector, Vector, Vector]:
    """Times (n,), states (n, 4) and outputs (n, 6) at all `times`; raises `Diverged`."""
    run = simulator.run(start, times, p=p, q=q)
    _check(simulator, run, p, q)
    return run.t, run.x, run.y


def simulate_until_periodic(
    simulator: Simulator, start: Vector, times: Vector, p: Vector, q: Vector, samples: int, window: int
) -> tuple[Vector, Vector, Vector]:
    """As `simulate`, but ends `window` cycles after two successive cycles of the knee angle have repeated.

    The cycles after that must repeat as well, or the run goes on.
    """
    cycles = (len(times) - 1) // samples
    t, x, y = [times[:1]], [start[None, :]], []
    first_step = None
    settled = 0
    for k in range(cycles):
        run = simulator.run(x[-1][-1], times[k * samples : (k + 1) * samples + 1], p=p, q=q, first_step=first_step)
        _check(simulator, run, p, q)
        first_step = run.last_step
        t.append(run.t[1:])
        x.append(run.x[1:])
        y.append(run.y if k == 0 else run.y[1:])
        knee = np.degrees(np.concatenate(y)[:, 0])
        settled = figures.settled_cycles(figures.whole_cycles(knee, samples))
        # `settled` counts the cycles before the first of those that repeat: two differences make three cycles.
        if k + 1 >= settled + 3 + window:
            break
    return np.concatenate(t), np.concatenate(x), np.concatenate(y)


def _check(simulator: Simulator, run: Trajectory, p: Vector, q: Vector) -> None:
    """Raise `Diverged` with the reason unless the run reached its end."""
    if run.status is SimulationStatus.DONE:
        return
    guard = simulator.system.guard
    assert guard is not None
    left = float(guard(run.x[-1], [], [], p, q, run.t[-1])) + FOLD_MARGIN
    if run.guard == "linkage_limit" or not left > _NEAR_FOLD:
        raise Diverged(
            f"the stop of the straight knee was driven through at {run.t[-1]:.3f} s: AD and CD fold over",
            reason="linkage_limit",
        )
    reason = "nonfinite" if run.status is SimulationStatus.NONFINITE else "step_limit"
    raise Diverged(run.message, reason=reason)
