"""Phases, their links, and all kinds of limits, on problems whose optimum is known in closed form."""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest
from scipy.optimize import minimize

from designopt.collocation import (
    Constraint,
    Integral,
    Mesh,
    Options,
    Phase,
    ProblemError,
    Program,
    Rate,
    Signal,
    TrajectoryProblem,
    linked,
    periodic,
    with_rates,
)
from designopt.collocation.statement.mesh import hermite_simpson, radau
from designopt.dynamics.system import System, Variable

EFFORT = {"effort": Integral(lambda v: v["u"] ** 2)}
REST = {"x": 0.0, "v": 0.0}


def solved(problem, **options):
    solution = Program(problem, Options(**options)).solve()
    assert solution.success, solution.message
    return solution


def effort(e):
    return sum(phase.integral["effort"] for phase in e.phase.values())


def halves(tf):
    """The block of Kelly 2017 in two phases that meet half way: as in one phase 12, and the meeting is at 0.5 s."""
    mass = problems.point_mass()
    start = Phase(mass, name="start", tf=tf, initial=REST, final={"x": 0.5}, integrals=EFFORT)
    stop = Phase(mass, name="stop", t0=None, tf=1.0, final={"x": 1.0, "v": 0.0}, integrals=EFFORT)
    return TrajectoryProblem([start, stop], effort, {"joined": linked(start, stop)})


def test_phases_that_cannot_be_linked_are_refused_by_name():
    start, stop = halves(0.5).phases
    with pytest.raises(ProblemError, match=r"linked: start, stop: 'y' is not a state of 'start', which has x, v"):
        linked(start, stop, ["x", "y"])
    apart = replace(stop, system=problems.system("other", {"z": lambda s: s["u"]}, ["u"]))
    with pytest.raises(ProblemError, match="the phases have no state in common"):
        linked(start, apart)


@pytest.mark.parametrize("scheme", ["hermite_simpson", "radau"])
@pytest.mark.parametrize("tf", [0.5, (0.2, 0.9)])
def test_a_motion_cut_in_two_is_the_same_motion(scheme, tf):
    solution = solved(halves(tf), scheme=scheme, intervals=10)

    start, stop = solution.phases["start"], solution.phases["stop"]
    assert solution.objective == pytest.approx(12.0, rel=1e-8)
    assert start.tf == stop.t0 == pytest.approx(0.5, abs=1e-5)
    assert start.values["v"][-1] == pytest.approx(1.5, abs=1e-5)
    assert stop.values["v"][0] == pytest.approx(start.values["v"][-1], abs=1e-9)


def test_phases_have_meshes_and_schemes_of_their_own():
    meshes = [Mesh.uniform(hermite_simpson(), 4), Mesh.at(radau(4), [0.0, 0.2, 1.0])]

    solution = Program(halves((0.2, 0.9)), meshes=meshes).solve()

    assert solution.success
    assert solution.objective == pytest.approx(12.0, rel=1e-8)
    assert [len(phase.mesh) for phase in solution.phases.values()] == [4, 2]


def least_effort(distance, v0, vf, duration):
    """The least int u^2 of x'' = u between given ends, u being linear in time; a `vf` of None is free."""
    a = distance - v0 * duration
    if vf is None:
        return 3.0 * a**2 / duration**3
    b = vf - v0
    return (12.0 * a**2 - 12.0 * a * b * duration + 4.0 * b**2 * duration**2) / duration**3


def test_a_puck_bounces_at_the_best_time_and_speed():
    # from 1 at rest to a wall at 0, back from it with 0.7 of the speed, to 2 after 3 s: the time and the speed of the
    # impact minimise the sum of two closed forms
    restitution = 0.7
    mass = problems.point_mass()
    problem = TrajectoryProblem(
        [
            Phase(mass, name="in", tf=(0.5, 2.5), initial={"x": 1.0, "v": 0.0}, final={"x": 0.0}, integrals=EFFORT),
            Phase(mass, name="out", t0=None, tf=3.0, initial={"x": 0.0}, final={"x": 2.0}, integrals=EFFORT),
        ],
        effort,
        {"impact": Constraint(lambda e: e.phase["out"].initial["v"] + 0.7 * e.phase["in"].final["v"], 0.0, 0.0)},
    )

    solution = solved(problem, intervals=8)

    best = minimize(
        lambda y: least_effort(-1.0, 0.0, y[1], y[0]) + least_effort(2.0, -restitution * y[1], None, 3.0 - y[0]),
        [1.5, -1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14},
    )
    assert solution.objective == pytest.approx(best.fun, rel=1e-8)
    assert solution.phases["in"].tf == pytest.approx(best.x[0], abs=1e-5)
    assert solution.phases["in"].values["v"][-1] == pytest.approx(best.x[1], abs=1e-5)


def test_the_rocket_burns_and_coasts_in_two_phases_as_high_as_in_one():
    system = problems.rocket()
    # one number, the start, is all that is fixed
    burn = Phase(system, name="burn", tf=(0.02, 0.15), initial={"h": 1.0, "v": 0.0, "m": 1.0}, final={"m": 0.6})
    coast = Phase(system, name="coast", t0=None, tf=(0.1, 0.5), bounds={"thrust": (0.0, 0.0)})
    problem = TrajectoryProblem(
        [burn, coast], lambda e: -e.phase["coast"].final["h"], {"joined": linked(burn, coast, ("h", "v", "m"))}
    )

    solution = solved(problem, intervals=60)

    assert solution.objective == pytest.approx(-1.012838, rel=1e-6)  # COPS 3.0: 1.01283
    assert solution.phases["coast"].tf == pytest.approx(0.1989, abs=1e-4)
    assert solution.phases["coast"].t0 == solution.phases["burn"].tf
    np.testing.assert_array_equal(solution.phases["coast"].values["thrust"], 0.0)


def test_phases_share_parameters():
    # x'' = -x - c x' from (1, 0) and from (0, 1): int x^2 = c / 2 + 1 / (2 c) and 1 / (2 c) (Lyapunov's equation)
    spring = problems.damped_start().phases[0]
    problem = TrajectoryProblem(
        [replace(spring, name="released"), replace(spring, name="pushed", initial={"x": 0.0, "v": 1.0})],
        lambda e: sum(phase.integral["square"] for phase in e.phase.values()),
    )

    solution = solved(problem, scheme="radau", degree=5, intervals=50)

    assert solution.parameters["c"] == pytest.approx(math.sqrt(2.0), rel=1e-6)
    assert solution.objective == pytest.approx(math.sqrt(2.0), rel=1e-7)


def test_a_periodic_motion_that_advances_is_steady():
    # x'' = u - 0.5 x', once round in 1 s: at constant speed, which costs 0.25
    sledge = problems.system("sledge", {"x": lambda s: s["v"], "v": lambda s: s["u"] - 0.5 * s["v"]}, ["u"])
    problem = TrajectoryProblem(
        [Phase(sledge, tf=1.0, initial={"x": 0.0}, integrals=EFFORT)],
        lambda e: e.integral["effort"],
        {"periodic": periodic(["x", "v"], offsets={"x": 1.0})},
    )

    solution = solved(problem, intervals=10)

    assert solution.objective == pytest.approx(0.25, rel=1e-8)
    np.testing.assert_allclose(solution.phase.values["v"], 1.0, atol=1e-8)


def test_a_mirrored_step_exchanges_sides_and_signs():
    # left and right exchange within 1 s, the trunk changes its sign: straight lines of length 1, 1 and 2 * 0.5
    walker = problems.system("walker", {n: (lambda s, n=n: s[f"u_{n}"]) for n in "lrt"}, ["u_l", "u_r", "u_t"])
    cost = Integral(lambda v: v["u_l"] ** 2 + v["u_r"] ** 2 + v["u_t"] ** 2)
    problem = TrajectoryProblem(
        [Phase(walker, tf=1.0, initial={"t": 0.5}, integrals={"effort": cost})],
        lambda e: e.integral["effort"],
        {
            "periodic": periodic(["l", "r", "t"], mirror={"l": "r", "r": "l"}, signs={"t": -1.0}),
            "stride": Constraint(lambda e: e.initial["l"] - e.initial["r"], 1.0, 1.0),
        },
    )

    solution = solved(problem, intervals=5)

    motion = solution.phase.values
    assert solution.objective == pytest.approx(3.0, rel=1e-8)
    assert motion["l"][-1] == pytest.approx(motion["r"][0], abs=1e-8)
    assert motion["r"][-1] == pytest.approx(motion["l"][0], abs=1e-8)
    assert motion["t"][-1] == pytest.approx(-0.5, abs=1e-8)


def test_an_integral_is_limited():
    # with int u^2 <= 3 a block goes at most int (1 - t) u dt = sqrt(3 / 3) within 1 s (Cauchy and Schwarz)
    phase = Phase(
        problems.point_mass(), tf=1.0, initial=REST, integrals={"effort": Integral(lambda v: v["u"] ** 2, high=3.0)}
    )
    problem = TrajectoryProblem([phase], lambda e: -e.final["x"])

    solution = solved(problem, intervals=10)

    assert solution.objective == pytest.approx(-1.0, rel=1e-7)
    assert solution.phase.integrals["effort"] == pytest.approx(3.0, rel=1e-7)
    np.testing.assert_allclose(solution.phase.values["u"], 3.0 * (1.0 - solution.phase.times), atol=1e-5)


def test_an_integral_is_prescribed():
    # the least int u^2 of x' = u from 0 that encloses an area int x dt of 1 within 1 s: x = 3 (t - t^2 / 2), 3
    line = problems.system("line", {"x": lambda s: s["u"]}, ["u"])
    area = Integral(lambda v: v["x"], 1.0, 1.0)
    problem = TrajectoryProblem(
        [Phase(line, tf=1.0, initial={"x": 0.0}, integrals={**EFFORT, "area": area})], lambda e: e.integral["effort"]
    )

    solution = solved(problem, intervals=10)

    assert solution.objective == pytest.approx(3.0, rel=1e-8)


@pytest.mark.parametrize("unit", [1.0, 1e3])
@pytest.mark.parametrize("stated", ["bounds", "path", "square"])
def test_a_limit_of_speed_binds(stated, unit):
    # with v <= 1.2 the block speeds up for t1 = 1.5 (1 - 1 / 1.2) = 0.25 s, and u falls to 0: 8 v^2 / (3 t1) = 15.36
    limits = {
        "bounds": {"bounds": {"v": (-5.0, 1.2)}},
        "path": {"path": {"speed": Constraint(lambda v: v["v"] * unit, high=1.2 * unit)}},
        "square": {"path": {"speed": Constraint(lambda v: (v["v"] * unit) ** 2, high=(1.2 * unit) ** 2)}},
    }
    problem = problems.block_move()
    limited = replace(problem, phases=[replace(problem.phases[0], **limits[stated])])

    solution = solved(limited, intervals=40)

    assert solution.objective == pytest.approx(15.36, rel=1e-6)
    assert solution.phase.values["v"].max() == pytest.approx(1.2, abs=1e-6)


def test_a_limit_of_position_binds():
    # Bryson and Ho, Applied Optimal Control, 1975, section 3.11: from 0 with speed 1 back within 1 s, x <= 1/9:
    # int u^2 / 2 = 4 / (9 / 9) = 4, along the limit from 1/3 to 2/3
    phase = Phase(
        problems.point_mass(),
        tf=1.0,
        initial={"x": 0.0, "v": 1.0},
        final={"x": 0.0, "v": -1.0},
        path={"wall": Constraint(lambda v: v["x"], high=1.0 / 9.0)},
        integrals={"effort": Integral(lambda v: 0.5 * v["u"] ** 2)},
    )
    problem = TrajectoryProblem([phase], lambda e: e.integral["effort"])

    solution = solved(problem, intervals=60)

    motion = solution.phase
    along = (motion.times > 0.35) & (motion.times < 0.65)
    assert solution.objective == pytest.approx(4.0, rel=1e-5)
    np.testing.assert_allclose(motion.values["x"][along], 1.0 / 9.0, atol=1e-5)


def test_the_ends_have_boxes_of_their_own():
    # the shortest way between the boxes: from 0.3 to 0.8, 12 * 0.5^2
    problem = problems.block_move()
    phase = replace(problem.phases[0], initial={"x": (0.0, 0.3), "v": 0.0}, final={"x": (0.8, 1.0), "v": 0.0})

    solution = solved(replace(problem, phases=[phase]), intervals=10)

    assert solution.objective == pytest.approx(3.0, rel=1e-6)
    assert solution.phase.values["x"][0] == pytest.approx(0.3, abs=1e-6)
    assert solution.phase.values["x"][-1] == pytest.approx(0.8, abs=1e-6)


def test_a_range_of_one_side_is_no_range_on_the_other():
    # the block may pass the goal, but not by the left: it starts at 1 and is asked to be at -1 or below
    problem = problems.block_move()
    phase = replace(problem.phases[0], initial={"x": 1.0, "v": 0.0}, final={"x": (-math.inf, -1.0), "v": 0.0})

    solution = solved(replace(problem, phases=[phase]), intervals=10)

    assert solution.objective == pytest.approx(48.0, rel=1e-6)
    assert solution.phase.values["x"][-1] == pytest.approx(-1.0, abs=1e-6)


def tracking(signal, tf):
    """x' = u follows the reference r as well as it can, and takes 2 s if it may choose."""
    x, u, r = (ca.SX.sym(n) for n in "xur")
    follower = System.from_expressions(
        "follower",
        states=[(Variable("x", "m"), x, u)],
        controls=[(Variable("u", "m/s"), u)],
        data=[(Variable("r", "m"), r)],
    )
    phase = Phase(follower, tf=tf, data={"r": signal}, integrals={"miss": Integral(lambda v: (v["x"] - v["r"]) ** 2)})
    return TrajectoryProblem([phase], lambda e: e.integral["miss"] + (e.tf - 2.0) ** 2)


def trajectory(t):
    return 1.0 + 2.0 * t - 3.0 * t**2 + 0.5 * t**3


@pytest.mark.parametrize("scheme", ["hermite_simpson", "radau", "trapezoidal"])
def test_a_signal_over_time_is_followed(scheme):
    # a cubic, which the spline between the samples repeats; a quarter of a second of them is not used
    at = np.linspace(-0.25, 2.0, 12)

    solution = solved(tracking(Signal(at, trajectory(at)), 2.0), scheme=scheme, intervals=10)

    motion = solution.phase
    assert solution.objective == pytest.approx(0.0, abs=1e-10)
    some = slice(None) if scheme != "radau" else slice(1, None)  # radau does not look at the left end
    # the square of a miss of 1e-5 is nothing to the solver
    np.testing.assert_allclose(motion.values["x"][some], trajectory(motion.times[some]), atol=1e-5)


def test_a_signal_over_the_duration_is_followed_by_a_phase_with_a_free_end():
    share = np.linspace(0.0, 1.0, 12)

    # the square of a miss of 1e-5 is nothing to the solver with its default tolerance
    problem = tracking(Signal(share, trajectory(share), of_duration=True), (0.5, 5.0))
    solution = solved(problem, intervals=10, tolerance=1e-12)

    motion = solution.phase
    assert motion.tf == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(motion.values["x"], trajectory(motion.times / motion.tf), atol=1e-5)


def test_algebraic_variables_follow_their_equations():
    # x'' = z with z + z^3 = u: the least int (z + z^3 - z^3)^2 is that of the block
    x, v, u, z = (ca.SX.sym(n) for n in "xvuz")
    driven = System.from_expressions(
        "driven",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, z)],
        controls=[(Variable("u", "N"), u)],
        algebraic=[(Variable("z", "m/s^2"), z, z + z**3 - u)],
    )
    least = Integral(lambda s: (s["u"] - s["z"] ** 3) ** 2)
    phase = Phase(driven, tf=1.0, initial=REST, final={"x": 1.0, "v": 0.0}, integrals={"least": least})

    solution = solved(TrajectoryProblem([phase], lambda e: e.integral["least"]), scheme="radau", intervals=10)

    z, u = (solution.phase.values[n] for n in "zu")
    assert solution.objective == pytest.approx(12.0, rel=1e-8)
    np.testing.assert_allclose((z + z**3)[1:], u[1:], atol=1e-7)


def test_a_table_of_the_model_is_a_spline_with_exact_derivatives():
    grid = np.linspace(-1.0, 3.0, 81)
    table = ca.interpolant("pull", "bspline", [grid.tolist()], np.sin(grid).tolist())

    def pulled(force):
        mass = problems.system("pulled", {"x": lambda s: s["v"], "v": lambda s: s["u"] - force(s["x"])}, ["u"])
        phase = Phase(mass, tf=1.0, initial=REST, final={"x": 1.0, "v": 0.0}, integrals=EFFORT)
        return solved(TrajectoryProblem([phase], effort), intervals=20)

    smooth, tabulated = pulled(ca.sin), pulled(table)

    assert tabulated.iterations <= smooth.iterations + 1  # a Hessian without the table would need many more
    assert tabulated.objective == pytest.approx(smooth.objective, rel=1e-7)  # the error of a cubic spline, (h / 2)^4


def test_numbers_change_without_a_new_program():
    at = np.linspace(0.0, 1.0, 12)
    first = tracking(Signal(at, trajectory(at), of_duration=True), (0.5, 5.0))
    program = Program(first, Options(intervals=10))
    changed = replace(first.phases[0], tf=(2.5, 4.0), data={"r": Signal(at, 0.5 * trajectory(at), of_duration=True)})

    repeated = program.solve(replace(first, phases=[changed]))

    fresh = solved(replace(first, phases=[changed]), intervals=10)
    assert repeated.objective == pytest.approx(fresh.objective, rel=1e-7)
    assert repeated.phase.tf == pytest.approx(2.5, abs=1e-6)
    np.testing.assert_allclose(
        repeated.phase.values["x"], 0.5 * trajectory(repeated.phase.times / repeated.phase.tf), atol=1e-5
    )


def test_fixed_times_change_without_a_new_program():
    block = problems.block_move()
    program = Program(block, Options(intervals=10))

    slow = program.solve(replace(block, phases=[replace(block.phases[0], t0=1.0, tf=3.0)]))

    assert slow.objective == pytest.approx(12.0 / 2.0**3, rel=1e-8)
    assert (slow.phase.t0, slow.phase.tf) == (1.0, 3.0)


def trials(forces, **changes):
    """The same movement several times, each trial a phase of its own with its measured force."""
    x, v, u, push = (ca.SX.sym(n) for n in ("x", "v", "u", "push"))
    system = System.from_expressions(
        "pushed",
        states=[(Variable("x", "m", -5.0, 5.0), x, v), (Variable("v", "m/s", -20.0, 20.0), v, u + push)],
        controls=[(Variable("u", "N", -50.0, 50.0), u)],
        data=[(Variable("push", "N"), push)],
    )
    phases = [
        Phase(system, name=f"trial_{i}", tf=1.0, initial=REST, final={"x": 1.0, "v": 0.0}, data={"push": force},
              integrals={"effort": Integral(lambda v: v["u"] ** 2)}, **changes.get(f"trial_{i}", {}))
        for i, force in enumerate(forces)
    ]  # fmt: skip
    return TrajectoryProblem(phases, effort)


def test_equal_phases_share_one_set_of_functions_and_others_have_their_own():
    from designopt.collocation.transcription.functions.functions import state

    alike = state(trials([0.1, -0.3, 0.7]))
    assert len({id(functions) for functions in alike.functions}) == 1
    changes = {"trial_1": {"path": {"slow": Constraint(lambda v: v["v"] ** 2, high=9.0)}}}
    one_differs = state(trials([0.1, -0.3, 0.7], **changes)).functions
    assert one_differs[0] is one_differs[2]
    assert one_differs[0] is not one_differs[1]
    times = np.linspace(0.0, 1.0, 5)
    sampled = Signal(times, np.sin(times))
    first, *measured = state(trials([0.1, sampled, sampled])).functions
    assert measured[0] is measured[1]
    assert first is not measured[0]


def test_phases_that_share_functions_have_the_solutions_that_they_have_alone():
    forces = [0.0, 2.0, -1.0]
    together = solved(trials(forces), scheme="radau", degree=3, intervals=8)
    for i, force in enumerate(forces):
        alone = solved(trials([force]), scheme="radau", degree=3, intervals=8)
        np.testing.assert_allclose(
            together.phases[f"trial_{i}"].values["u"], alone.phase.values["u"], rtol=1e-7, atol=1e-7
        )
    # a constant push c makes u = 6 - 12 t - c, which costs 12 + c^2
    assert together.objective == pytest.approx(sum(12.0 + c**2 for c in forces), rel=1e-8)


def test_a_phase_whose_states_begin_anywhere_is_warned_of():
    start, stop = halves(0.5).phases
    (warning,) = Program(TrajectoryProblem([start, stop], effort), Options(intervals=4)).warnings
    assert warning.startswith("unlinked: x, v of stop may begin anywhere, not where start ends: add the constraint")
    for problem in (
        halves(0.5),
        TrajectoryProblem([start, replace(stop, initial={"x": 1.0, "v": (0.0, 2.0)})], effort),
        TrajectoryProblem([start, replace(stop, t0=0.0)], effort),
        with_rates(halves(0.5), {"u": Rate(-100.0, 100.0)}),  # the control may jump between the phases
    ):
        assert Program(problem, Options(intervals=4)).warnings == ()
