"""What must not change the result: the direction of time, its beginning, units; and what a change of a number costs."""

import math
from dataclasses import replace

import benchmark_problems as problems
import casadi as ca
import numpy as np
import pytest

from designopt.collocation import Integral, Options, Phase, Program, TrajectoryProblem
from designopt.dynamics.system import System, Variable

SCHEMES = {
    "trapezoidal": {"scheme": "trapezoidal", "intervals": 80},
    "hermite_simpson": {"scheme": "hermite_simpson", "intervals": 50},
    "hermite_simpson linear": {"scheme": "hermite_simpson", "intervals": 50, "midpoint_control": "linear"},
    "radau": {"scheme": "radau", "degree": 5, "intervals": 40},
}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


def remade(system, rate=lambda x, rates: rates, units=None, time=lambda t: t):
    """An explicit system made of `system`: other rates, other units (so many new ones in an old one), other times."""
    units = units or {}
    tables = {
        n: getattr(system, t)
        for n, t in zip("xuzpq", ("states", "controls", "algebraic", "parameters", "data"), strict=True)
    }
    symbols = {n: ca.SX.sym(n, len(table)) for n, table in tables.items()}
    factors = {n: ca.SX([1.0 / units.get(v.name, 1.0) for v in table]) for n, table in tables.items()}
    t = ca.SX.sym("t")
    old = [symbols[n] * factors[n] if tables[n] else symbols[n] for n in "xuzpq"]
    rates = rate(symbols["x"], system.rhs(*old, time(t))) / factors["x"]
    scaled = {n: tuple(in_units(v, units.get(v.name, 1.0)) for v in table) for n, table in tables.items()}
    return System(
        system.name, scaled["x"], scaled["p"],
        ca.Function("rhs", [*symbols.values(), t], [rates], list("xuzpqt"), ["f"]), controls=scaled["u"],
    )  # fmt: skip


def in_units(v, factor):
    return replace(v, low=v.low * factor, high=v.high * factor)


@every_scheme
@pytest.mark.parametrize("problem", [problems.cart_pole, problems.van_der_pol])
def test_a_reversed_motion_has_the_same_cost(scheme, problem):
    forwards = problem()
    phase = forwards.phases[0]
    system = remade(phase.system, rate=lambda x, rates: -rates, time=lambda t: phase.tf - t)
    backwards = replace(phase, system=system, initial=phase.final, final=phase.initial)
    options = Options(form="explicit", **SCHEMES[scheme])

    forth = Program(forwards, options).solve()
    back = Program(replace(forwards, phases=[backwards]), options).solve()

    # symmetric schemes are the same equations in another order; radau is within the error of its mesh, which is that of
    # the benchmark where a bound of a state begins to bind within an interval
    tolerance = 3e-4 if scheme == "radau" and problem is problems.van_der_pol else 1e-8
    assert forth.success
    assert back.success
    assert back.objective == pytest.approx(forth.objective, rel=tolerance)
    if scheme != "radau":
        for name, values in forth.phase.values.items():
            np.testing.assert_allclose(back.phase.values[name][::-1], values, atol=2e-4)


@every_scheme
def test_a_shift_of_time_changes_nothing(scheme):
    problem = problems.cart_pole()
    later = replace(problem, phases=[replace(problem.phases[0], t0=100.0, tf=102.0)])

    early, then = (Program(p, Options(**SCHEMES[scheme])).solve() for p in (problem, later))

    assert then.iterations == early.iterations
    assert then.objective == pytest.approx(early.objective, rel=1e-10)


UNITS = {
    "mm": {"x": 1e3, "v": 1e3},
    "degrees": {"angle": 180.0 / math.pi, "omega": 180.0 / math.pi},
    "mm and kN": {"x": 1e3, "v": 1e3, "u": 1e-3},
    "km, degrees and mN": {"x": 1e-3, "v": 1e-3, "angle": 57.3, "omega": 57.3, "u": 1e3},
}
#: The cart-pole bounds its position and force only; a variable without a range is of size 1 in any unit.
RANGES = {"angle": (-6.0, 6.0), "v": (-10.0, 10.0), "omega": (-20.0, 20.0)}


def cart_pole_in(units):
    problem = problems.cart_pole()
    phase = problem.phases[0]

    def in_these(numbers):
        return {n: value * units.get(n, 1.0) for n, value in numbers.items()}

    phase = replace(
        phase,
        system=remade(phase.system, units=units),
        initial=in_these(phase.initial),
        final=in_these(phase.final),
        integrals={"effort": Integral(lambda v: (v["u"] / units.get("u", 1.0)) ** 2)},
    )
    return replace(problem, phases=[phase])


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@every_scheme
def test_units_change_neither_the_iterations_nor_the_result(scheme, units):
    def ranged(units):
        problem = cart_pole_in(units)
        bounds = {n: (a * units.get(n, 1.0), b * units.get(n, 1.0)) for n, (a, b) in RANGES.items()}
        return replace(problem, phases=[replace(problem.phases[0], bounds=bounds)])

    plain, rescaled = (Program(ranged(u), Options(**SCHEMES[scheme])).solve() for u in ({}, units))

    assert abs(rescaled.iterations - plain.iterations) <= 2
    assert rescaled.objective == pytest.approx(plain.objective, rel=1e-9)
    for name, values in plain.phase.values.items():
        np.testing.assert_allclose(rescaled.phase.values[name] / units.get(name, 1.0), values, atol=1e-5)


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_given_scales_do_the_same_for_variables_without_a_range(units):
    scales = {"angle": 3.0, "v": 5.0, "omega": 10.0}
    plain = Program(cart_pole_in({}), Options(scales=scales)).solve()

    scaled = {name: scale * units.get(name, 1.0) for name, scale in scales.items()}
    rescaled = Program(cart_pole_in(units), Options(scales=scaled)).solve()

    assert abs(rescaled.iterations - plain.iterations) <= 2
    assert rescaled.objective == pytest.approx(plain.objective, rel=1e-9)


def test_units_of_parameters_change_nothing():
    problem = problems.quarter_car()
    phase, units = problem.phases[0], {"k": 1e-3, "c": 1e-3}  # N/mm and N s/mm
    cost = phase.integrals["cost"].value

    def plain(v):  # the cost is stated in the old units
        return Plain({**v, **{n: v[n] / f for n, f in units.items()}}, v.time)

    converted = replace(
        phase,
        system=remade(phase.system, units=units),
        integrals={"cost": Integral(lambda v: cost(plain(v)))},
    )
    options = Options(scheme="radau", degree=5, intervals=60)

    first = Program(problem, options).solve()
    second = Program(
        replace(problem, phases=[converted], guess={n: value * units[n] for n, value in problem.guess.items()}), options
    ).solve()

    assert abs(second.iterations - first.iterations) <= 2
    assert second.objective == pytest.approx(first.objective, rel=1e-9)
    assert second.parameters["c"] / units["c"] == pytest.approx(first.parameters["c"], rel=1e-5)


class Plain(dict):
    def __init__(self, named, time):
        super().__init__(named)
        self.time = time


# ---- gradients of the optimum by what is fixed, against differences of optima that are solved again


def difference(optimum, at, step):
    return (optimum(at + step) - optimum(at - step)) / (2.0 * step)


def push(size):
    """A block moves by 1 m in 1 s, rest to rest, with a force of 0.5 to 5 N forward and one of as much backward; what
    is paid is `size` times the integral of their squares."""
    x, v, forward, backward = (ca.SX.sym(n) for n in ("x", "v", "forward", "backward"))
    block = System.from_expressions(
        "block",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, forward - backward)],
        controls=[(Variable("forward", "N", 0.5, 5.0), forward), (Variable("backward", "N", 0.5, 5.0), backward)],
    )
    phase = Phase(
        block,
        tf=1.0,
        initial={"x": 0.0, "v": 0.0},
        final={"x": 1.0, "v": 0.0},
        integrals={"effort": Integral(lambda s: size * (s["forward"] ** 2 + s["backward"] ** 2))},
    )
    return TrajectoryProblem([phase], cost=lambda e: e.integral["effort"])


@pytest.mark.parametrize("size", [1e-2, 1e-3, 1e-5])
def test_the_unit_of_the_cost_does_not_change_the_motion(size):
    """The tolerance of an interior-point solver is absolute: on 100 intervals bounds cost 1e-6 beside a true cost of
    1e-4 unless the cost is scaled up, and the more the finer the mesh is."""
    options = Options(scheme="radau", intervals=100)
    large, small = Program(push(1.0), options).solve(), Program(push(size), options).solve()
    assert small.success, small.message
    assert small.objective / size == pytest.approx(large.objective, rel=1e-6)


@every_scheme
@pytest.mark.parametrize("damping", [0.6, 1.0, 1.8])
def test_the_multiplier_of_a_held_parameter_is_the_gradient_of_the_optimum(scheme, damping):
    program = Program(problems.damped_start(), Options(**{**SCHEMES[scheme], "intervals": 80}))

    def fixed(c):
        return program.solve(replace(program.problem, parameters={"c": c}))

    gradient = fixed(damping).parameter_multipliers["c"]

    assert gradient == pytest.approx(difference(lambda c: fixed(c).objective, damping, 1e-4), abs=1e-6)
    assert gradient == pytest.approx(0.5 - 0.5 / damping**2, abs=0.1)  # of c / 2 + 1 / (2 c); the mesh is coarse


def test_multipliers_of_two_held_parameters_are_gradients_in_their_units():
    program = Program(problems.quarter_car(), Options(scheme="radau", degree=5, intervals=60))

    def fixed(k, c):
        return program.solve(replace(program.problem, parameters={"k": k, "c": c}))

    gradient = fixed(5000.0, 800.0).parameter_multipliers

    assert gradient["k"] == pytest.approx(difference(lambda k: fixed(k, 800.0).objective, 5000.0, 5.0), rel=1e-5)
    assert gradient["c"] == pytest.approx(difference(lambda c: fixed(5000.0, c).objective, 800.0, 1.0), rel=1e-5)


def towed(**data):
    """A mass on a slope with drag, steered by least effort: gravity, drag and times are data."""
    x, v, u, slope, drag = (ca.SX.sym(n) for n in ("x", "v", "u", "slope", "drag"))
    mass = System.from_expressions(
        "towed",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, u - slope - drag * v**2)],
        controls=[(Variable("u", "N", -3.0, 3.0), u)],
        data=[(Variable("slope", "m/s^2"), slope), (Variable("drag", "1/m"), drag)],
    )
    numbers = {"slope": 0.7, "drag": 0.3, "t0": 0.0, "tf": 2.0, **data}
    phase = Phase(
        mass,
        t0=numbers.pop("t0"),
        tf=numbers.pop("tf"),
        initial={"x": 0.0, "v": 0.0},
        final={"x": 2.0, "v": 0.0},
        integrals={"effort": Integral(lambda s: s["u"] ** 2)},
        data=numbers,
    )
    return TrajectoryProblem([phase], lambda e: e.integral["effort"] + e.data["drag"] ** 2)


@pytest.mark.parametrize("name", ["slope", "drag", "t0", "tf"])
@every_scheme
def test_the_sensitivity_to_data_is_the_gradient_of_the_optimum(scheme, name):
    options = Options(**{**SCHEMES[scheme], "tolerance": 1e-10})
    program = Program(towed(), options)
    value = {"slope": 0.7, "drag": 0.3, "t0": 0.0, "tf": 2.0}[name]

    sensitivity = program.solve().data_sensitivity[f"motion.{name}"]

    by_difference = difference(lambda q: program.solve(towed(**{name: q})).objective, value, 1e-3)
    assert abs(sensitivity) > 0.1
    assert sensitivity == pytest.approx(by_difference, rel=1e-4)
