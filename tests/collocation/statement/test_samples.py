"""Costs and constraints at sample times, wherever the mesh has its points."""

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, make_smoothing_spline

from designopt.collocation import (
    Constraint,
    Integral,
    Mesh,
    Options,
    Phase,
    ProblemError,
    Program,
    Samples,
    Signal,
    Status,
    TrajectoryProblem,
    explain,
    radau,
    sensitivities,
    solve,
)
from designopt.collocation.transcription.boxes import boxes
from designopt.dynamics.system import System, Variable

TIMES = np.array([0.0, 0.21, 0.4, 0.55, 0.83, 1.0])
VALUES = np.array([0.1, 0.6, 0.3, 0.9, 0.2, 0.4])


def curve() -> System:
    """x'' = u."""
    x, v, u = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("u")
    return System.from_expressions(
        "curve",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u)],
        controls=[(Variable("u", "m/s^2"), u)],
    )


def bending() -> dict[str, Integral]:
    return {"bending": Integral(lambda s: s["u"] ** 2)}


def through(values: NDArray[np.float64] = VALUES) -> TrajectoryProblem:
    """The curve of least bending through points: a natural cubic spline (Schoenberg, PNAS 52 (1964) 947)."""
    gates = Constraint(lambda s: s["x"] - s["y"], 0.0, 0.0, "m", at=Samples(TIMES, {"y": values}))
    return TrajectoryProblem(
        [Phase(curve(), tf=1.0, integrals=bending(), samples={"gates": gates})], lambda e: e.integral["bending"]
    )


def near(weight: float) -> TrajectoryProblem:
    """Sum of squared distances to points plus a penalty on bending: a smoothing spline (Reinsch 1967)."""
    fit = Integral(lambda s: (s["x"] - s["y"]) ** 2, unit="m^2", at=Samples(TIMES, {"y": VALUES}))
    phase = Phase(curve(), tf=1.0, integrals={**bending(), "fit": fit})
    return TrajectoryProblem(
        [phase],
        lambda e: e.integral["fit"] + weight * e.integral["bending"],
        figures={"fit": lambda e: e.integral["fit"]},
    )


def test_the_least_bent_curve_through_points_is_a_natural_spline() -> None:
    solution = solve(through(), meshes=[Mesh.at(radau(3), TIMES)])
    assert solution.status is Status.SOLVED
    spline = CubicSpline(TIMES, VALUES, bc_type="natural")
    fine = np.linspace(0.0, 1.0, 101)
    assert solution.interpolate(fine)["x"] == pytest.approx(spline(fine), abs=1e-7)


def test_samples_need_no_nodes() -> None:
    """Between nodes the polynomials of degree 5 follow the bend of the spline to the order of the mesh."""
    spline = CubicSpline(TIMES, VALUES, bc_type="natural")
    fine = np.linspace(0.0, 1.0, 101)
    errors = []
    for intervals in (11, 41):
        solution = solve(through(), Options(intervals=intervals))
        assert solution.interpolate(TIMES)["x"] == pytest.approx(VALUES, abs=1e-8)  # met wherever the points are
        errors.append(np.abs(solution.interpolate(fine)["x"] - spline(fine)).max())
    assert errors[1] < 0.1 * errors[0]
    assert errors[1] < 2e-3


def test_a_sum_over_samples_makes_a_smoothing_spline() -> None:
    weight = 1e-4
    solution = solve(near(weight), meshes=[Mesh.at(radau(3), TIMES)])
    spline = make_smoothing_spline(TIMES, VALUES, lam=weight)
    assert solution.interpolate(TIMES)["x"] == pytest.approx(spline(TIMES), abs=1e-7)
    assert solution.figures["fit"] == pytest.approx(((spline(TIMES) - VALUES) ** 2).sum(), rel=1e-6)
    assert solution.objective == pytest.approx(
        solution.figures["fit"] + weight * solution.phase.integrals["bending"], rel=1e-9
    )


def test_a_sum_may_be_limited_and_stand_in_any_function_of_the_ends() -> None:
    """Least bending with a sum of at most s: the smoothing spline whose penalty on bending leaves that sum."""
    spline = make_smoothing_spline(TIMES, VALUES, lam=1e-4)
    left = float(((spline(TIMES) - VALUES) ** 2).sum())
    base = near(1.0)
    (phase,) = base.phases
    limited = replace(phase, integrals={**phase.integrals, "fit": replace(phase.integrals["fit"], high=left)})
    problems = [
        replace(base, phases=[limited], cost=lambda e: e.integral["bending"]),
        replace(
            base,
            cost=lambda e: e.integral["bending"],
            constraints={"root": Constraint(lambda e: ca.sqrt(e.integral["fit"]), high=math.sqrt(left))},
        ),
    ]
    for problem in problems:
        solution = solve(problem, meshes=[Mesh.at(radau(3), TIMES)])
        assert solution.success
        assert solution.phase.values["x"][solution.phase.mesh.bases] == pytest.approx(spline(TIMES), abs=1e-5)


def rich() -> TrajectoryProblem:
    """Everything that samples may depend on: states, controls, parameters, data, signals, times; all of it curved."""
    x, u, p, q, w = (ca.SX.sym(n) for n in ("x", "u", "p", "q", "w"))
    system = System.from_expressions(
        "rich",
        states=[(Variable("x", ""), x, u - p * x)],
        controls=[(Variable("u", ""), u)],
        parameters=[(Variable("p", "", 0.1, 3.0), p)],
        data=[(Variable("q", ""), q), (Variable("w", ""), w)],
    )
    at = Samples(np.array([0.0, 0.13, 0.5, 0.77, 1.0]), {"y": np.linspace(0.0, 1.0, 5)}, of_duration=True)

    def value(s):
        return (s["x"] * s["u"] - s["y"] * s["q"] + ca.sin(s["w"]) * s["p"] + s.time) ** 2

    phase = Phase(
        system,
        tf=(0.5, 2.0),
        initial={"x": 1.0},
        integrals={
            "free": Integral(value, at=at),
            "kept": Integral(value, high=50.0, at=at),
            "effort": Integral(lambda s: s["u"] ** 2),
        },
        samples={"tube": Constraint(lambda s: ca.vertcat(s["x"] ** 2 * s["p"], s["u"] * s["x"]), -4.0, 4.0, at=at)},
        data={"q": 0.7, "w": Signal(np.linspace(0.0, 1.0, 7), np.linspace(0.0, 1.0, 7) ** 2, of_duration=True)},
    )
    return TrajectoryProblem([phase], lambda e: e.integral["free"] + e.integral["effort"] + e.tf)


@pytest.mark.parametrize("degrees", [(3, 3, 3), (2, 4, 3)])
def test_the_derivatives_of_samples_are_those_of_the_whole_program(degrees: tuple[int, ...]) -> None:
    program = Program(rich(), meshes=[Mesh(np.array([0.0, 0.3, 0.5, 1.0]), tuple(radau(d) for d in degrees))])
    transcription = program.transcription
    n, m = transcription.layout.size, len(transcription.row_scale)
    parameters = boxes(transcription.problem_functions, rich(), transcription.layout, transcription.blocks).parameters
    rng = np.random.default_rng(3)
    x, lam = rng.uniform(0.2, 1.0, n), rng.standard_normal(m)
    X, P, L = ca.MX.sym("x", n), ca.MX.sym("p", transcription.parameter_size), ca.MX.sym("l", m)
    f, g = transcription.objective(X, P), transcription.constraints(X, P)
    derivatives = ca.Function(
        "whole", [X, P, L], [ca.gradient(f, X), ca.jacobian(g, X), ca.hessian(0.7 * f + ca.dot(L, g), X)[0]]
    )
    gradient, jacobian, hessian = (np.asarray(a, float) for a in derivatives(x, parameters, lam))
    assert np.asarray(transcription.gradient(x, parameters)[1]).ravel() == pytest.approx(
        gradient.ravel(), rel=1e-10, abs=1e-12
    )
    assert np.asarray(transcription.jacobian(x, parameters)[1]) == pytest.approx(jacobian, rel=1e-10, abs=1e-12)
    upper = np.asarray(transcription.hessian(x, parameters, 0.7, lam))
    assert upper + np.triu(upper, 1).T == pytest.approx(hessian, rel=1e-9, abs=1e-11)


def test_samples_equal_the_interpolated_solution() -> None:
    solution = solve(rich(), Options(intervals=7))
    assert solution.success
    at = rich().phases[0].integrals["free"].at
    assert at is not None
    values = solution.interpolate(solution.phase.tf * at.times)
    y, w = at.data["y"], at.times**2
    terms = values["x"] * values["u"] - y * 0.7 + np.sin(w) * solution.parameters["p"] + solution.phase.tf * at.times
    assert solution.phase.integrals["free"] == pytest.approx((terms**2).sum(), rel=1e-9)
    assert solution.phase.integrals["kept"] == pytest.approx((terms**2).sum(), rel=1e-9)


def test_the_sensitivity_to_data_counts_what_samples_take_from_them() -> None:
    def problem(q: float) -> TrajectoryProblem:
        (phase,) = rich().phases
        return replace(rich(), phases=[replace(phase, data={**phase.data, "q": q})])

    options = Options(intervals=7, tolerance=1e-11)
    above, below = (solve(problem(0.7 + d), options).objective for d in (1e-4, -1e-4))
    solution = solve(rich(), options)
    expected = (above - below) / 2e-4
    assert solution.dJ_dq["motion.q"] == pytest.approx(expected, rel=1e-5)
    assert sensitivities(rich(), solution, ["q"]).derivatives_of("objective")["q"] == pytest.approx(expected, rel=1e-6)


def test_measured_numbers_change_without_building_the_program_again() -> None:
    program = Program(through(), meshes=[Mesh.at(radau(3), TIMES)])
    program.solve()
    reversed_values = VALUES[::-1].copy()
    solution = program.solve(through(reversed_values))
    assert solution.phase.values["x"][solution.phase.mesh.bases] == pytest.approx(reversed_values, abs=1e-8)


def test_a_missed_sample_is_reported_with_its_time() -> None:
    base = through()
    (phase,) = base.phases
    problem = replace(base, phases=[replace(phase, bounds={"x": (-1.0, 0.5)})])
    solution = solve(problem, Options(intervals=10, persistent=False))
    assert not solution.success
    assert "constraint at samples 'gates'" in str(explain(solution))


# -------------------------------------------------------------------------------------------------- mistakes


def changed(**entries) -> TrajectoryProblem:
    (phase,) = through().phases
    return replace(through(), phases=[replace(phase, **entries)])


X = Constraint(lambda s: s["x"], 0.0)


@pytest.mark.parametrize(
    ("problem", "options", "message"),
    [
        (changed(samples={"gate": X}), {}, "has no samples"),
        (changed(path={"gate": replace(X, at=Samples([0.5]))}), {}, "holds at samples"),
        (
            changed(samples={"gate": replace(X, at=Samples([1.5]))}),
            {},
            "a sample is at 1.5, which is not between 0 and 1",
        ),
        (changed(tf=(0.5, 2.0)), {}, "of_duration=True"),
        (changed(samples={"gate": replace(X, at=Samples([0.5], {"x": 1.0}))}), {}, "is the name of a variable"),
        (through(), {"scheme": "hermite_simpson"}, "use radau"),
    ],
)
def test_invalid_samples_are_refused(problem, options, message) -> None:
    with pytest.raises(ProblemError, match=message):
        solve(problem, Options(intervals=5, **options))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one finite number"),
        (([0.1, math.nan],), "finite"),
        (([0.1, 0.2], {"y": [1.0]}), "y: 2 finite numbers"),
    ],
)
def test_samples_without_numbers_are_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Samples(*arguments)


def test_a_program_keeps_its_times_and_expressions() -> None:
    program = Program(through(), Options(intervals=5))
    (phase,) = through().phases
    gates = phase.samples["gates"]
    later = replace(gates, at=Samples(TIMES * 0.9, {"y": VALUES}))
    for entry, message in (
        (later, "other fractions"),
        (replace(gates, at=Samples(TIMES[1:], {"y": VALUES[1:]})), "other samples"),
        (replace(gates, value=lambda s: s["x"] + s["y"]), "differs from the one"),
    ):
        with pytest.raises(ProblemError, match=message):
            program.solve(replace(through(), phases=[replace(phase, samples={"gates": entry})]))


def test_a_signal_that_moves_moves_at_the_samples_too() -> None:
    def problem(shift: float) -> TrajectoryProblem:
        (phase,) = rich().phases
        signal = phase.data["w"]
        moved = Signal(signal.times, signal.values + shift, of_duration=True)
        return replace(rich(), phases=[replace(phase, data={**phase.data, "w": moved})])

    options = Options(intervals=7, tolerance=1e-11)
    above, below = (solve(problem(d), options).objective for d in (1e-4, -1e-4))
    sensitivity = sensitivities(rich(), solve(rich(), options))
    assert sensitivity.derivatives_of("objective")["w"] == pytest.approx((above - below) / 2e-4, rel=1e-6)
    timed = sensitivities(through(), solve(through(), Options(intervals=11)), None)
    assert "motion.tf" not in timed.names  # the samples would be elsewhere on the mesh
