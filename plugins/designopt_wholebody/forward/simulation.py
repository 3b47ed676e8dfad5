"""One entry for all formulations and integrators, the outputs of a simulation, and a known motion simulated again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from designopt.arrays import Floats
from designopt_wholebody.consistency.rates import Motion
from designopt_wholebody.dynamics.loads import GRAVITY, Loads, generalised_forces
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.formulations import Accelerations, Formulation
from designopt_wholebody.forward.index_three import index_three
from designopt_wholebody.forward.integrators import IntegratedMotion, Integrator, adams, bdf, trapezoidal
from designopt_wholebody.subject import Subject


@dataclass(frozen=True, eq=False)
class Measures:
    """Measures of a trajectory with k instants: norms of φ, φ̇ and φ̈ (k,), and the total energy (k,) J."""

    position: Floats
    velocity: Floats
    acceleration: Floats
    energy: Floats


@dataclass(frozen=True)
class SimulationMethod:
    """A formulation of the equations of motion and an integrator.

    `penalty` is α of LP, LA and LAP; `tolerance` m ends the iterations of a trapezoidal step; `order` is that of the
    Adams corrector. LAP has the trapezoidal rule built in.
    """

    formulation: Formulation = "LAP"
    integrator: Integrator = "trapezoidal"
    penalty: float = 1e7
    tolerance: float = 1e-10
    order: int = 4


#: Augmented Lagrangian with projections, at index three.
USUAL = SimulationMethod()


def simulate(
    forces: Forces, q: Floats, qdot: Floats, duration: float, step: float, method: SimulationMethod = USUAL
) -> IntegratedMotion:
    """A trajectory of `duration` s from q, q̇ (n,) in steps of `step` s. Raises `ValueError` for an invalid `method`."""
    formulation, integrator, penalty, tolerance = (
        method.formulation, method.integrator, method.penalty, method.tolerance
    )  # fmt: skip
    if not (step > 0.0 and duration >= step):
        raise ValueError(f"a duration of {duration:g} s is shorter than a step of {step:g} s")
    steps = round(duration / step)
    if formulation == "LAP" and integrator != "trapezoidal":
        raise ValueError(f"LAP uses the trapezoidal rule; it has no integrator '{integrator}'")
    if integrator == "bdf" and formulation not in ("LC", "LE"):
        raise ValueError(
            f"bdf works only with LC and LE: round-off times the penalty of {formulation} stops its step control"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that diverges says so
        if formulation == "LAP":
            return index_three(forces, q, qdot, step, steps, penalty=penalty, tolerance=tolerance)
        f = Accelerations(forces, formulation, penalty)
        if integrator == "trapezoidal":
            trajectory = trapezoidal(f, q, qdot, step, steps, tolerance=tolerance)
        elif integrator == "adams":
            trajectory = adams(f, q, qdot, step, steps, order=method.order, tolerance=tolerance)
        elif integrator == "bdf":
            trajectory = bdf(f, q, qdot, step, steps)
        else:
            raise ValueError(f"there is no integrator '{integrator}'; known: trapezoidal, adams, bdf")
    return replace(trajectory, systems=f.systems)


def measures(forces: Forces, trajectory: IntegratedMotion) -> Measures:
    """Violations and energy of a trajectory."""
    constraints, M = forces.subject.constraints, forces.subject.mass_matrix()
    entries = constraints.entries(trajectory.q)
    kinetic = 0.5 * np.einsum("kn,nm,km->k", trajectory.qdot, M, trajectory.qdot)
    acceleration = constraints.product(entries, trajectory.qddot) + constraints.bias(trajectory.q, trajectory.qdot)
    return Measures(
        position=np.linalg.norm(constraints.values(trajectory.q), axis=1),
        velocity=np.linalg.norm(constraints.product(entries, trajectory.qdot), axis=1),
        acceleration=np.linalg.norm(acceleration, axis=1),
        energy=kinetic + forces.potential_energy(trajectory.q),
    )


#: s: steps are not longer.
_STEP = 0.01


def replay(subject: Subject, motion: Motion) -> Floats:
    """(n, N) coordinates of a simulation from the first known frame of `motion`, NaN before it and beyond a gap.

    The generalised forces M q̈ are those of weight, ground and joints together; between frames they follow a cubic
    spline. The simulation departs from the motion as errors of its accelerations are integrated twice.
    """
    from scipy.interpolate import CubicSpline

    q = np.full_like(motion.q, np.nan)
    complete = np.flatnonzero(motion.complete_frames)
    if len(complete) < 4:
        return q
    gaps = np.flatnonzero(np.diff(complete) > 1)
    run = complete[: gaps[0] + 1] if len(gaps) else complete
    if len(run) < 4:
        return q
    time = motion.time[run] - motion.time[run[0]]
    weight = generalised_forces(subject, motion.q[run[:1]], Loads.zero(1), GRAVITY)[0]
    forces = CubicSpline(time, motion.qddot[run] @ subject.mass_matrix() - weight)
    each = max(1, int(np.ceil(time[1] / _STEP - 1e-9)))
    trajectory = simulate(
        Forces(subject, external=lambda t: np.asarray(forces(t))),
        motion.q[run[0]],
        motion.qdot[run[0]],
        float(time[-1]),
        float(time[1]) / each,
        SimulationMethod(formulation="LP", integrator="adams"),
    )
    states = trajectory.q[::each]
    q[run[: len(states)]] = states
    return q
