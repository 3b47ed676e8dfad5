"""A system stated by one function: simulated and linearised by name, and refused in a sentence with its line."""

import math
import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from designopt.dynamics import Signal, System, Variable, build_system, check_units, linearise, simulate

PAGE = (Path(__file__).parents[2] / "docs" / "dynamics.md").read_text(encoding="utf-8")


def oscillator(rate=lambda v: (v.push - v.stiffness * v.place - v.damping * v.speed) / v.mass, **tables):
    defaults = {
        "states": {"place": "m", "speed": "m/s"},
        "parameters": {"stiffness": "N/m", "damping": "N s/m"},
        "controls": {"push": "N"},
        "data": {"mass": "kg"},
        "outputs": {"force": "N"},
    }

    def equations(v):
        return {"place": v.speed, "speed": rate(v), "force": v.stiffness * v.place}

    return build_system("oscillator", equations, **{**defaults, **tables})


DESIGN, WORLD = {"stiffness": 400.0, "damping": 4.0}, {"mass": 2.0}


def test_a_motion_is_read_by_name_and_is_the_exact_one():
    motion = simulate(oscillator(), [0.1, 0.0], 3.0, p=DESIGN, q=WORLD, u={"push": 0.0}, rtol=1e-9)
    decay, frequency = 1.0, math.sqrt(200.0 - 1.0)
    t = motion.t
    exact = 0.1 * np.exp(-decay * t) * (np.cos(frequency * t) + decay / frequency * np.sin(frequency * t))
    np.testing.assert_allclose(motion["place"], exact, atol=1e-8)
    np.testing.assert_allclose(motion["force"], 400.0 * exact, atol=1e-5)
    assert (len(t), t[0], t[-1]) == (301, 0.0, 3.0)
    assert motion.names == ("place", "speed", "force")
    assert motion.units == {"place": "m", "speed": "m/s", "force": "N"}
    with pytest.raises(KeyError, match="no state and no output 'plaec'; known: place, speed, force"):
        motion["plaec"]


def test_a_control_may_follow_a_signal():
    times = np.linspace(0.0, 2.0, 201)
    free = oscillator(rate=lambda v: v.push / v.mass)
    motion = simulate(free, [0.0, 0.0], times, p=DESIGN, q=WORLD, u={"push": Signal(times, 6.0 * times)})
    np.testing.assert_allclose(motion["place"], 0.5 * times**3, atol=1e-6)  # twice the integral of 3 t


def test_a_linearisation_has_names_modes_and_a_verdict():
    about = linearise(oscillator(), [0.0, 0.0], p=DESIGN, q=WORLD, u=[0.0])
    np.testing.assert_allclose(about.A, [[0.0, 1.0], [-200.0, -2.0]])
    np.testing.assert_allclose(about.B, [[0.0], [0.5]])
    np.testing.assert_allclose(about.C, [[400.0, 0.0]])
    assert (about.states, about.controls, about.outputs) == (("place", "speed"), ("push",), ("force",))
    assert (about.parameters, about.data) == (("stiffness", "damping"), ("mass",))
    (mode,) = about.modes  # one for the conjugate pair
    assert mode.frequency == pytest.approx(math.sqrt(200.0) / (2.0 * math.pi))
    assert mode.damping_ratio == pytest.approx(1.0 / math.sqrt(200.0))
    assert about.stable
    assert str(about).splitlines()[1].startswith("-1 +- 14.107i")
    falling = oscillator(rate=lambda v: v.stiffness * v.place / v.mass)
    growing = linearise(falling, [0.0, 0.0], p=DESIGN, q=WORLD, u=[0.0])
    assert not growing.stable
    assert [mode.damping_ratio for mode in growing.modes] == pytest.approx([1.0, -1.0])


def line_of(text):
    return 1 + Path(__file__).read_text().splitlines().index(text)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (lambda v: v.push - v.stiffness * v.place, "'(push-(stiffness*place))' is in 'N', not 'm/s^2'"),
        (lambda v: (v.push + v.speed) / v.mass, "'push' in 'N' is combined with 'speed' in 'm/s'"),
        (lambda v: v.push * ca.sin(v.place) / v.mass, "the argument of sin, 'place', is in 'm'"),
        (lambda v: v.push / v.mass * 2.0**v.place, "the exponent 'place' is in 'm'"),
        (lambda v: v.push / v.mass * v.place**v.place, "the exponent 'place' is in 'm'"),
        (lambda v: (v.push / v.mass) ** (v.time * v.speed / v.place), "has an exponent that is not a constant"),
        (lambda v: ca.if_else(v.place > v.speed, 1, 0) * v.push / v.mass, "is combined with"),
        (lambda v: ca.sqrt(v.push / v.mass), "is in 'N^0.5/kg^0.5', not 'm/s^2'"),
    ],
)
def test_units_that_do_not_match_are_reported(rate, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        oscillator(rate)
    line = line_of('        return {"place": v.speed, "speed": rate(v), "force": v.stiffness * v.place}')
    assert f"test_by_hand.py:{line}: system 'oscillator': incompatible units in the rate of" in str(caught.value)


@pytest.mark.parametrize(
    "rate",
    [
        lambda v: v.push / v.mass - 9.81,  # a number may have any unit
        lambda v: v.push / v.mass * (1.0 + 0.3 * ca.tanh(100.0 * v.speed)),
        lambda v: ca.sqrt(v.push**2 + 1e-6) / v.mass,
        lambda v: ca.if_else(v.place > 0.0, v.push, -v.push) / v.mass,
    ],
)
def test_matching_input_is_accepted(rate):
    oscillator(rate)


def test_sizes_of_units_count_too():
    with pytest.raises(ValueError, match=r"'force' in 'kN' is combined with 'push' in 'N'"):
        build_system(
            "pull",
            lambda v: {"speed": (v.force - v.push) / v.mass},
            states={"speed": "m/s"},
            parameters={"force": "kN"},
            controls={"push": "N"},
            data={"mass": "kg"},
        )


def test_a_system_in_which_nothing_has_a_unit_is_not_compared():
    build_system("van_der_pol", lambda v: {"x": v.y, "y": (1 - v.x**2) * v.y - v.x}, states={"x": "", "y": ""})


def test_a_unit_that_does_not_exist_is_named_with_its_variable():
    with pytest.raises(ValueError, match="variable 'place': unknown unit 'metres_per'"):
        Variable("place", "metres_per")


def test_units_of_a_system_of_expressions_are_compared_on_request():
    x, v, a = (ca.SX.sym(n) for n in "xva")
    system = System.from_expressions(
        "fall",
        states=[(Variable("x", "m"), x, v), (Variable("v", "m/s"), v, a)],
        unknowns=[(Variable("a", "m/s^2"), a, a + 9.81)],
        outputs=[(Variable("height", "mm"), x)],
    )
    with pytest.raises(
        ValueError, match=r"^system 'fall': incompatible units in output 'height': 'x' is in 'm', not 'mm'$"
    ):
        check_units(system)


ELSEWHERE = ca.MX.sym("elsewhere")


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (lambda v: v.stifness, "system 'oscillator' has no 'stifness'; did you mean 'stiffness'?"),
        (lambda v: v.push + ELSEWHERE, "they contain an MX symbol: make symbols with casadi.SX.sym"),
        (lambda v: ca.sin(ELSEWHERE), "is made of the MX symbols 'elsewhere'; make them with casadi.SX.sym"),
        (lambda v: v.push + ca.SX.sym("other"), "the rate of 'speed' contains 'other', not declared as a state"),
        (lambda v: v.push if v.place > 0 else 0.0, "neither true nor false: write casadi.if_else"),
        (lambda v: ca.sin("place"), "casadi.sin does not accept these arguments"),
        (lambda v: math.sin(v.place), "evaluates to NaN: a function of math"),
        (lambda v: v["place"], "symbols are attributes: write v.place, not v['place']"),
        (lambda v: 1 / 0, "its equations fail: ZeroDivisionError: division by zero"),
        (lambda v: ca.vertcat(v.push, v.push), "is 2 x 1, not one scalar"),
    ],
)
def test_equations_that_fail_are_reported_in_a_sentence_with_their_line(rate, message):
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        oscillator(rate)
    assert re.match(r"\S*test_by_hand\.py:\d+: ", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"outputs": {}}, "equations name 'force', which is not declared"),
        ({"outputs": {"force": "N", "power": "W"}}, "there is no equation for 'power'"),
        ({"data": {"mass": "kg", "push": "N"}}, "'push' is named twice: every variable needs its own name"),
        ({"outputs": {"force": "N", "place": ""}}, "'place' is named twice: every variable needs its own name"),
        ({"data": {"mass": "kg", "time": "s"}}, "'time' is named twice: time is always there; do not name it"),
        ({"states": ["place", "speed"]}, "system 'oscillator': 'place' has no unit: give names with units"),
        ({"states": None}, "system 'oscillator': None has no unit: give names with units"),
        ({"states": {"place": 1, "speed": "m/s"}}, "variable 'place': its unit must be text"),
        ({"states": {1: "m"}}, "'1' is not a valid name for a variable"),
    ],
)
def test_tables_that_do_not_match_are_reported(tables, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        oscillator(**tables)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x0": {"place": "a", "speed": 0.0}}, "oscillator: states: place is 'a', not a number"),
        ({"x0": {"place": [1.0, 2.0], "speed": 0.0}}, "oscillator: states: place is [1.0, 2.0], not a number"),
        (
            {"x0": "place"},
            "oscillator: states: 'place' is neither a row of numbers nor a mapping of names: place, speed",
        ),
        ({"p": {**DESIGN, "damping": Signal([0.0, 9.0], [1.0, 1.0])}}, "oscillator: parameters: damping is Signal("),
        ({"u": {"push": math.sin}}, "oscillator: controls: push is <built-in function sin>, not a number"),
        ({"times": -1.0}, "the end of a motion that begins at 0 s must be a positive number of seconds, not -1.0"),
        ({"times": math.inf}, "the end of a motion that begins at 0 s must be a positive number of seconds, not inf"),
        ({"times": "1 s"}, "times must be the end (s) or increasing times, not '1 s'"),
        ({"times": [0.0, 2.0, 1.0]}, "each larger than the one before"),
    ],
)
def test_values_that_are_no_numbers_are_named(arguments, message):
    usual = {"x0": [0.1, 0.0], "times": 1.0, "p": DESIGN, "q": WORLD, "u": [0.0]}
    with pytest.raises(ValueError, match=re.escape(message)):
        simulate(oscillator(), **{**usual, **arguments})


@pytest.mark.parametrize("t", [math.nan, "now", [0.0, 1.0]])
def test_a_linearisation_is_at_one_time(t):
    with pytest.raises(ValueError, match=r"oscillator: t is .*, not a time in s"):
        linearise(oscillator(), [0.1, 0.0], p=DESIGN, q=WORLD, u=[0.0], t=t)


def test_equations_return_a_mapping():
    with pytest.raises(ValueError, match="system 'x': equations return list, not a mapping of names"):
        build_system("x", lambda v: [v.x], states={"x": "m"})


def test_the_page_runs_as_it_stands(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(block, names)
    np.testing.assert_allclose(names["motion"]["place"][-1], 0.1 * math.cos(40.0), atol=1e-6)
    np.testing.assert_allclose(names["about"].A, [[0.0, 1.0], [9.81 / 0.5, -0.02 / 0.25]], atol=1e-12)
    assert "'(-(stiffness*place))' is in 'N', not 'm/s^2'" in capsys.readouterr().out
