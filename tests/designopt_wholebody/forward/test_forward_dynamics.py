"""Forward dynamics: the table of the double pendulum, orders of convergence, springs, redundant constraints."""

from typing import Literal

import numpy as np
import pytest
from designopt_wholebody.forward.forces import Forces
from designopt_wholebody.forward.formulations import Accelerations, Formulation, independent_rows
from designopt_wholebody.forward.integrators import Integrator
from designopt_wholebody.forward.simulation import SimulationMethod, measures, simulate
from designopt_wholebody.model.library import load_model
from designopt_wholebody.model.schema import PointSpring
from designopt_wholebody.subject import Subject, make_subject
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

Array = NDArray[np.float64]

#: Spec 13.8: formulation, integrator, then norms of phi and its rate, energy drift J, largest error of q, m.
TABLE: list[tuple[Formulation, Integrator, float, float, float, float]] = [
    ("LC", "trapezoidal", 1.4e-4, 4.6e-4, 3.3e-4, 6.6e-5),
    ("LE", "trapezoidal", 6.2e-5, 7.1e-4, 1.1e-3, 1.3e-4),
    ("LP", "trapezoidal", 6.2e-5, 7.1e-4, 1.1e-3, 1.3e-4),
    ("LA", "trapezoidal", 6.2e-5, 7.1e-4, 1.1e-3, 1.3e-4),
    ("LC", "adams", 1.0e-7, 1.2e-6, 1.1e-6, 5.4e-8),
    ("LE", "adams", 7.7e-8, 1.5e-6, 1.5e-6, 1.0e-7),
    ("LA", "adams", 7.7e-8, 1.5e-6, 1.5e-6, 1.0e-7),
    ("LP", "adams", 8.7e-8, 1.5e-6, 1.9e-6, 3.8e-7),
    ("LAP", "trapezoidal", 1.1e-11, 3.1e-11, 8.0e-4, 1.9e-4),
]


@pytest.fixture(scope="module")
def rods() -> Subject:
    return make_subject(load_model("two_rods"))


def pendulum(times: Array) -> Array:
    """Coordinates (k, 12) of the two rods by minimal coordinates and DOP853 at 1e-13."""

    def rate(t: float, y: Array) -> Array:
        a, b, da, db = y
        c, s = 0.5 * np.cos(a - b), 0.5 * np.sin(a - b)
        M = np.array([[4.0 / 3.0, c], [c, 1.0 / 3.0]])
        Q = [-s * db**2 - 1.5 * 9.81 * np.sin(a), s * da**2 - 0.5 * 9.81 * np.sin(b)]
        return np.concatenate([[da, db], np.linalg.solve(M, Q)])

    start = [1.2, 0.4, 0.0, 0.0]
    a, b = solve_ivp(rate, (0, times[-1]), start, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times).y[:2]
    zero = np.zeros_like(a)
    middle = np.stack([np.sin(a), -np.cos(a), zero], axis=1)
    end = middle + np.stack([np.sin(b), -np.cos(b), zero], axis=1)
    return np.concatenate([0.0 * middle, middle, middle, end], axis=1)


@pytest.mark.parametrize(("formulation", "integrator", "phi", "rate", "drift", "error"), TABLE)
def test_the_double_pendulum_has_the_published_errors(
    rods: Subject,
    formulation: Formulation,
    integrator: Integrator,
    phi: float,
    rate: float,
    drift: float,
    error: float,
) -> None:
    forces = Forces(rods)
    rest = np.zeros(rods.n)
    trajectory = simulate(
        forces, rods.q0, rest, 1.5, 0.002, SimulationMethod(formulation=formulation, integrator=integrator)
    )
    errors = measures(forces, trajectory)
    change = np.abs(errors.energy - errors.energy[0]).max()
    away = np.abs(trajectory.q - pendulum(trajectory.time)).max()
    for value, printed in zip(
        (errors.position.max(), errors.velocity.max(), change, away), (phi, rate, drift, error), strict=True
    ):
        assert printed / 1.5 < value < 1.5 * printed  # asked for: a factor of 2


def largest_error(rods: Subject, duration: float, step: float, method: SimulationMethod) -> float:
    """m, largest distance from the pendulum over a simulation from rest."""
    trajectory = simulate(Forces(rods), rods.q0, np.zeros(rods.n), duration, step, method)
    return float(np.abs(trajectory.q - pendulum(trajectory.time)).max())


def test_bdf_follows_the_pendulum(rods: Subject) -> None:
    assert largest_error(rods, 1.5, 0.01, SimulationMethod("LE", integrator="bdf")) < 1e-5


@pytest.mark.parametrize(
    ("formulation", "integrator", "low", "high"),
    [("LC", "trapezoidal", 1.8, 2.2), ("LAP", "trapezoidal", 1.8, 2.2), ("LE", "adams", 2.8, 4.6)],
)
def test_errors_fall_with_the_order_of_the_integrator(
    rods: Subject, formulation: Formulation, integrator: Integrator, low: float, high: float
) -> None:
    method = SimulationMethod(formulation=formulation, integrator=integrator)
    errors = [largest_error(rods, 1.0, step, method) for step in (0.004, 0.002)]
    assert low < np.log2(errors[0] / errors[1]) < high


def test_a_small_penalty_errs_more(rods: Subject) -> None:
    # spec: LP with alpha = 1e4 errs 4 times more than with 1e7
    stiff, soft = (SimulationMethod("LP", penalty=penalty, integrator="trapezoidal") for penalty in (1e7, 1e4))
    assert 2.0 < largest_error(rods, 1.5, 0.002, soft) / largest_error(rods, 1.5, 0.002, stiff) < 8.0


def test_multipliers_are_forces_of_the_joints(rods: Subject) -> None:
    """At rest, hanging: the hinge carries both rods, the knuckle the lower one."""
    hanging = np.array([0.0, 0, 0, 0, -1, 0, 0, -1, 0, 0, -2, 0])
    for formulation in ("LC", "LE", "LP", "LA"):
        f = Accelerations(Forces(rods), formulation)
        assert np.abs(f(0.0, hanging, np.zeros(12))).max() < 1e-5
        rows = {name.owner: k for k, name in reversed(list(enumerate(rods.constraints.names)))}
        assert np.abs(f.multipliers[rows["hinge"] + 1]) == pytest.approx(19.62, rel=1e-5)
        assert np.abs(f.multipliers[rows["knuckle"] + 1]) == pytest.approx(9.81, rel=1e-5)


def test_redundant_rows_are_left_out(full: Subject) -> None:
    rows = independent_rows(full)
    assert len(rows) == 208
    J = full.constraints.dense(full.constraints.entries(full.q0[None]))[0]
    assert np.linalg.matrix_rank(J[rows]) == 208


def test_all_formulations_give_the_full_body_the_same_accelerations(full: Subject) -> None:
    rng = np.random.default_rng(1)
    Q = rng.normal(size=full.n)
    forces = Forces(full, external=lambda t: Q)
    start = Accelerations(forces, "LC")(0.0, full.q0, np.zeros(full.n))
    for formulation, near in (("LE", 1e-8), ("LP", 1e-3), ("LA", 1e-5)):
        accelerations = Accelerations(forces, formulation)(0.0, full.q0, np.zeros(full.n))
        assert np.abs(accelerations - start).max() < near * np.abs(start).max()


def test_a_closed_four_bar_turns_and_keeps_its_energy() -> None:
    subject = make_subject(load_model("four_bar"))
    forces = Forces(subject)
    trajectory = simulate(forces, subject.q0, np.zeros(subject.n), 1.0, 0.002)
    errors = measures(forces, trajectory)
    assert errors.position.max() < 1e-9
    assert np.abs(trajectory.q - trajectory.q[0]).max() > 0.1
    assert np.abs(errors.energy - errors.energy[0]).max() < 1e-2
    reference = simulate(
        forces, subject.q0, np.zeros(subject.n), 1.0, 0.002, SimulationMethod(formulation="LE", integrator="adams")
    )
    assert np.abs(trajectory.q - reference.q).max() < 1e-3


SPRINGS = (
    PointSpring(("ground", "middle"), ("lower", "tip"), stiffness=40.0, damping=3.0, rest=0.7, push=2.0),
    PointSpring(("upper", "middle"), ("ground", "tip"), stiffness=5.0, damping=1.0, rest=0.2),
)


def test_stiffness_and_damping_of_springs_are_derivatives_of_their_force(rods: Subject) -> None:
    """Nunes 2017, 2.42-2.45 corrected: against central differences of Q."""
    rng = np.random.default_rng(2)
    forces = Forces(rods, SPRINGS)
    q, qdot = rods.q0 + 0.1 * rng.normal(size=12), rng.normal(size=12)
    K, C = forces.derivatives(q, qdot)
    h = 1e-6
    for k in range(12):
        e = h * np.eye(12)[k]
        slope = (forces.value(0.0, q + e, qdot) - forces.value(0.0, q - e, qdot)) / (2 * h)
        assert np.abs(slope + K[:, k]).max() < 1e-6
        slope = (forces.value(0.0, q, qdot + e) - forces.value(0.0, q, qdot - e)) / (2 * h)
        assert np.abs(slope + C[:, k]).max() < 1e-7


def test_springs_without_dampers_keep_the_energy(rods: Subject) -> None:
    forces = Forces(rods, (PointSpring(("ground", "middle"), ("lower", "tip"), stiffness=40.0, rest=0.1, push=1.0),))
    trajectory = simulate(
        forces, rods.q0, np.zeros(12), 1.0, 0.001, SimulationMethod(formulation="LE", integrator="adams")
    )
    energy = measures(forces, trajectory).energy
    assert np.abs(energy - energy[0]).max() < 1e-6
    assert np.abs(np.diff(trajectory.q[:, -2])).max() > 1e-4


def test_dampers_take_energy(rods: Subject) -> None:
    forces = Forces(rods, SPRINGS)
    energy = measures(forces, simulate(forces, rods.q0, np.zeros(12), 0.5, 0.001)).energy
    assert energy[-1] < energy[0] - 0.1


def test_a_trajectory_that_diverges_ends_in_a_sentence(rods: Subject) -> None:
    forces = Forces(rods, (PointSpring(("ground", "middle"), ("lower", "tip"), stiffness=1e9),))
    trajectory = simulate(
        forces, rods.q0, np.zeros(12), 5.0, 0.05, SimulationMethod(formulation="LC", integrator="adams")
    )
    assert "shorter step" in trajectory.message
    assert len(trajectory.time) == len(trajectory.q) < 101


def test_incompatible_settings_are_refused(rods: Subject) -> None:
    rest = np.zeros(12)
    with pytest.raises(ValueError, match="LAP uses the trapezoidal rule"):
        simulate(Forces(rods), rods.q0, rest, 1.0, 0.1, SimulationMethod(integrator="adams"))
    with pytest.raises(ValueError, match="bdf works only with LC and LE"):
        simulate(Forces(rods), rods.q0, rest, 1.0, 0.1, SimulationMethod(formulation="LP", integrator="bdf"))
    with pytest.raises(ValueError, match="shorter than a step of 2 s"):
        simulate(Forces(rods), rods.q0, rest, 1.0, 2.0)
    with pytest.raises(ValueError, match="order must be 2, 3 or 4"):
        simulate(Forces(rods), rods.q0, rest, 1.0, 0.1, SimulationMethod(formulation="LE", integrator="adams", order=7))
    unknown: Literal["euler"] = "euler"
    with pytest.raises(ValueError, match="there is no integrator 'euler'"):
        simulate(Forces(rods), rods.q0, rest, 1.0, 0.1, SimulationMethod(formulation="LE", integrator=unknown))  # type: ignore[arg-type]
