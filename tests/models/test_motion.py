"""Models with equations of motion that are declared once."""

import math
from dataclasses import replace

import numpy as np
import pytest

from designopt import templates
from designopt.collocation import Options, solve
from designopt.models import (
    Condition,
    Event,
    Final,
    Guard,
    Integral,
    Parameter,
    Peak,
    Series,
    Setting,
    State,
    Unknown,
    motion,
)
from designopt.plugin import Diverged, InvalidDesign, PluginError, find
from designopt.testing import check_model

DURATION = Setting("s", "of the motion", 2.0, gt=0)


@motion("test_oscillator", version=1, cost="cost", samples=401)
class Oscillator:
    """A mass on a spring and damper is let go: the solution is known."""

    frequency = Parameter("rad/s", "undamped", gt=0)
    decay = Parameter("1/s", "of the amplitude", gt=0)
    start = Condition("m", "where it is let go", 0.3, sampled=(0.1, 0.5))
    weight = Setting("m/s", "of the end in the cost", 4.0)
    duration = DURATION
    rtol = Setting("", "relative tolerance", 1e-11, gt=0, le=1e-3)
    position = State("m", "of the mass", "start", low=-1.0, high=1.0)
    speed = State("m/s", "of the mass", low=-9.0, high=9.0)
    potential = Series("m^2/s^2", "energy of the spring, per mass")
    action = Integral("m^2 s", "integral of the squared position")
    cost = Final("m^2 s", "action and the end")
    fastest = Peak("m/s", "largest speed")
    lowest = Peak("m", "smallest position", extremum="smallest")
    highest = Peak("m/s^2", "largest acceleration", extremum="largest")
    passing = Event("s", "at which it first passes zero")
    far = Event("s", "at which it is a metre away", never="duration")

    def equations(self, v):
        acceleration = -(v.frequency**2) * v.position - 2 * v.decay * v.speed
        return {
            "position": v.speed,
            "speed": acceleration,
            "potential": (v.frequency * v.position) ** 2 / 2,
            "action": v.position**2,
            "cost": v.action + v.weight * v.position**2 * v.time,
            "fastest": v.speed,
            "lowest": v.position,
            "highest": acceleration,
            "passing": v.position,
            "far": 1.0 - v.position,
        }


DESIGN = {"frequency": 4.0, "decay": 0.8}


def test_designs_side_by_side_have_the_bits_that_they_have_alone():
    model = Oscillator()
    designs = [{"frequency": 1.0 + i, "decay": 0.1 * i} for i in range(1, 8)] + [{"frequency": 0.5, "decay": 0.1}]
    answers = model.batch(designs, [{}] * 8, {"position"})
    assert isinstance(answers[-1], Diverged)  # it does not pass zero in time
    for design, (figures, arrays) in zip(designs, answers[:-1], strict=False):
        alone, alone_arrays = model.evaluate(design, {}, {"position"})
        assert figures == alone
        assert arrays["position"].tobytes() == alone_arrays["position"].tobytes()


def position(t, start=0.3, frequency=4.0, decay=0.8):
    damped = math.sqrt(frequency**2 - decay**2)
    return start * np.exp(-decay * t) * (np.cos(damped * t) + decay / damped * np.sin(damped * t))


def test_figures_and_arrays_are_those_of_the_known_solution():
    outputs, arrays = Oscillator().evaluate(DESIGN, {}, frozenset({"time", "position", "potential"}))
    t = arrays["time"]
    assert t[[0, -1]].tolist() == [0.0, 2.0]
    np.testing.assert_allclose(arrays["position"], position(t), atol=1e-7)
    np.testing.assert_allclose(arrays["potential"], 8.0 * position(t) ** 2, atol=1e-6)
    fine = np.linspace(0.0, 2.0, 200_001)
    action = np.trapezoid(position(fine) ** 2, fine)
    assert outputs["action"] == pytest.approx(action, rel=1e-8)
    assert outputs["cost"] == pytest.approx(action + 8.0 * position(2.0) ** 2, rel=1e-8)
    assert outputs["fastest"] == pytest.approx(np.abs(np.gradient(position(fine), fine)).max(), rel=1e-3)
    assert outputs["lowest"] == pytest.approx(position(fine).min(), rel=1e-3)
    damped = math.sqrt(4.0**2 - 0.8**2)
    assert outputs["passing"] == pytest.approx((math.pi - math.atan2(damped, 0.8)) / damped, rel=1e-9)
    assert outputs["far"] == 2.0
    assert Oscillator().evaluate(DESIGN, {"start": 0.1})[0]["action"] == pytest.approx(action / 9.0, rel=1e-7)


def test_it_keeps_the_rules_for_models_and_its_gradient_is_that_of_differences():
    check_model(Oscillator, designs=[DESIGN], scenarios=[{}, {"start": 0.2}])


@motion("test_chase", version=1, cost="meeting")
class Chase:
    """A runner follows another one, who is ahead and runs at half a metre a second."""

    speed = Parameter("m/s", "of the follower", gt=0)
    ahead = Condition("m", "of the other", 1.0)
    duration = DURATION
    rtol = Setting("", "relative tolerance", 1e-10, gt=0, le=1e-3)
    position = State("m", "of the follower")
    meeting = Event("s", "at which they meet", never="duration")

    def equations(self, v):
        return {"position": v.speed, "meeting": v.ahead + 0.5 * v.time - v.position}


def test_the_gradient_of_an_event_that_time_itself_brings_nearer():
    """They meet at a / (v - 1/2)."""
    assert Chase().evaluate({"speed": 1.5}, {})[0]["meeting"] == pytest.approx(1.0, rel=1e-9)
    assert Chase().gradient({"speed": 1.5}, {})["meeting"]["speed"] == pytest.approx(-1.0, rel=1e-8)


def test_the_gradient_of_an_event_and_of_what_never_happens():
    gradients = Oscillator().gradient(DESIGN, {})
    damped = math.sqrt(4.0**2 - 0.8**2)

    def passing(frequency):
        w = math.sqrt(frequency**2 - 0.8**2)
        return (math.pi - math.atan2(w, 0.8)) / w

    assert damped == pytest.approx(3.919, abs=1e-3)
    assert gradients["passing"]["frequency"] == pytest.approx((passing(4.001) - passing(3.999)) / 0.002, rel=1e-6)
    assert gradients["far"] == {"frequency": 0.0, "decay": 0.0}


def test_the_trajectory_problem_has_the_figures_of_the_simulation():
    problem = replace(Oscillator().trajectory_problem({"start": 0.2}), parameters=DESIGN)
    solution = solve(problem, Options(scheme="radau", degree=5, intervals=30, check=False))
    outputs, _ = Oscillator().evaluate(DESIGN, {"start": 0.2})
    assert solution.success
    assert solution.figures == {name: pytest.approx(outputs[name], rel=1e-7) for name in ("action", "cost")}


def test_the_linearisation_is_of_the_states_and_signals():
    linearisation = Oscillator().linearise(DESIGN, {}, {"position": 0.1, "speed": 0.0})
    np.testing.assert_allclose(linearisation.A, [[0.0, 1.0], [-16.0, -1.6]], atol=1e-12)
    np.testing.assert_allclose(linearisation.C, [[1.6, 0.0]], atol=1e-12)
    np.testing.assert_allclose(linearisation.P, [[0.0, 0.0], [-0.8, 0.0]], atol=1e-12)


def test_a_plugin_holds_each_declaration_once():
    plugin = find("model", "test_oscillator")
    assert {n: f.quantity.unit for n, f in plugin.inputs.items()} == {"frequency": "rad/s", "decay": "1/s"}
    assert plugin.conditions["start"].quantity.description == "where it is let go"
    assert plugin.conditions["start"].default == 0.3
    assert plugin.conditions["start"].quantity.sampled == (0.1, 0.5)
    assert not plugin.conditions["start"].required
    assert {n: s.default for n, s in plugin.settings.items()} == {"weight": 4.0, "duration": 2.0, "rtol": 1e-11}
    assert list(plugin.outputs) == ["action", "cost", "fastest", "lowest", "highest", "passing", "far"]
    assert list(plugin.arrays) == ["time", "position", "speed", "potential"]
    assert (plugin.has("gradient"), plugin.has("trajectory_problem")) == (True, True)


@motion("test_pendulum", version=1)
class Pendulum:
    """A pendulum on a cart in residual form, its length designed; starts at an angle that is designed too."""

    length = Parameter("m", "of the pendulum", gt=0)
    angle0 = Parameter("rad", "at the start")
    pole = Condition("kg", "at the end of the pendulum", gt=0)
    duration = DURATION
    rtol = Setting("", "relative tolerance", 1e-11, gt=0, le=1e-3)
    cart = State("m", "of the cart")
    angle = State("rad", "of the pendulum, 0 hanging", "angle0")
    cart_speed = State("m/s", "of the cart")
    angle_speed = State("rad/s", "of the pendulum")
    cart_acceleration = Unknown("m/s^2", "of the cart")
    angle_acceleration = Unknown("rad/s^2", "of the pendulum")
    energy = Series("J", "of all")
    last = Final("m/s^2", "acceleration of the cart at the end")
    swing = Integral("rad^2 s", "of the angle")
    upside_down = Guard("rad", "the equations hold to the horizontal")

    def equations(self, v):
        import casadi as ca

        cos, sin = ca.cos(v.angle), ca.sin(v.angle)
        along = v.cart_acceleration + v.length * (v.angle_acceleration * cos - v.angle_speed**2 * sin)
        speed = v.cart_speed**2 + 2 * v.cart_speed * v.length * v.angle_speed * cos + (v.length * v.angle_speed) ** 2
        return {
            "cart": v.cart_speed,
            "angle": v.angle_speed,
            "cart_speed": v.cart_acceleration,
            "angle_speed": v.angle_acceleration,
            "cart_acceleration": v.cart_acceleration + v.pole * along,
            "angle_acceleration": v.cart_acceleration * cos + v.length * v.angle_acceleration + 9.81 * sin,
            "energy": v.cart_speed**2 / 2 + v.pole * (speed / 2 - 9.81 * v.length * cos),
            "last": v.cart_acceleration,
            "swing": v.angle**2,
            "upside_down": 1.6 - v.angle,
        }


def test_unknown_accelerations_are_solved_for_and_differentiated():
    design, scenario = {"length": 0.6, "angle0": 0.9}, {"pole": 0.4}
    _, arrays = Pendulum().evaluate(design, scenario, frozenset({"energy"}))
    assert np.ptp(arrays["energy"]) < 1e-8
    check_model(Pendulum, designs=[design], scenarios=[scenario], gradient_tolerance=1e-4)


def test_a_motion_that_meets_a_guard_has_no_answer():
    with pytest.raises(Diverged, match="Guard: upside_down") as refused:
        Pendulum().evaluate({"length": 0.6, "angle0": 1.7}, {"pole": 0.4})
    assert refused.value.reason == "upside_down"


def test_a_condition_without_a_default_is_required():
    assert find("model", "test_pendulum").conditions["pole"].required


def test_an_event_that_does_not_happen_and_has_no_number_for_it_is_no_answer():
    with pytest.raises(Diverged, match="passing does not occur within 2 s"):
        Oscillator().evaluate({"frequency": 0.1, "decay": 1.0}, {})


@motion("test_pushed", version=1)
class Pushed:
    """A short push that a step from rest would pass over."""

    strength = Parameter("m/s^2", "of the push", gt=0)
    when = Condition("s", "of the push", 1.0)
    duration = DURATION
    speed = State("m/s", "of a mass")
    reached = Final("m/s", "speed")

    def equations(self, v):
        import casadi as ca

        return {"speed": v.strength * ca.exp(-(((v.time - v.when) / 1e-4) ** 2)), "reached": v.speed}

    def breaks(self, v):
        return [v.when - 5e-4, v.when, v.when + 5e-4]

    def refusal(self, v):
        return ("when", "the push comes too late") if v.when > v.duration else None


def test_breaks_keep_a_push_from_being_passed_over_and_what_cannot_be_is_refused():
    outputs, _ = Pushed().evaluate({"strength": 1e4}, {})
    assert outputs["reached"] == pytest.approx(math.sqrt(math.pi), rel=1e-6)
    assert Pushed().gradient({"strength": 1e4}, {})["reached"]["strength"] == pytest.approx(
        math.sqrt(math.pi) / 1e4, rel=1e-6
    )
    with pytest.raises(InvalidDesign, match="the push comes too late"):
        Pushed().evaluate({"strength": 1e4}, {"when": 3.0})


# ------------------------------------------------------------------------------------------------------------ mistakes


def decaying_model(equations=lambda self, v: {"x": -v.k * v.x, "end": v.x}, cost="", **changes):
    body = {
        "k": Parameter("1/s", "rate"), "duration": DURATION, "x": State("m", "position", 1.0), "end": Final("m", "end"),
        "equations": equations, "__doc__": "Decays.", "__module__": __name__, "__annotations__": {}, **changes,
    }  # fmt: skip
    body = {n: d for n, d in body.items() if d is not None}
    return motion("test_mistake", version=1, cost=cost)(type("Decaying", (), body))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration": None}, "declare the duration of the motion: duration = Setting"),
        ({"duration": Parameter("s", "designed")}, "declare the duration of the motion"),
        ({"x": None}, "declare at least one State"),
        ({"end": None}, "declare at least one figure"),
        ({"equations": None}, r"give it a method equations\(self, v\)"),
        ({"cost": "x"}, "the cost 'x' is not a declared figure"),
        (
            {"x": State("m", "position", "kk")},
            "the initial value of 'x' is 'kk', which is not a parameter, condition or",
        ),
        ({"time": Setting("s", "of day", 0.0)}, "time is always there; do not declare it"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_in_a_sentence(changes, message):
    with pytest.raises(PluginError, match=f"model 'test_mistake': {message}"):
        decaying_model(**changes)


@pytest.mark.parametrize(
    ("equations", "message"),
    [
        (lambda self, v: {"x": -v.k * v.x}, "there is no equation for 'end'"),
        (lambda self, v: {"x": 0, "end": v.x, "y": 1}, "equations name 'y', which is not declared"),
        (lambda self, v: {"x": 0, "end": v.x, "k": 1}, "equations name 'k', which is given and has no equation"),
        (lambda self, v: v.x, "equations return SX, not a mapping of names"),
        (lambda self, v: {"x": None, "end": v.x}, "the equation of 'x' is None, not an expression"),
        (
            lambda self, v: {"x": -v.stiffness, "end": v.x},
            "model 'test_mistake' has no 'stiffness'; known: k, durat",
        ),
    ],
)
def test_equations_that_do_not_fit_the_declaration_are_reported(equations, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        decaying_model(equations)().prepare()


def test_a_rate_that_holds_an_integral_is_reported():
    def equations(self, v):
        return {"x": v.way, "way": v.x, "end": v.x}

    with pytest.raises(ValueError, match="the equation of 'x' contains an integral: declare it as a State"):
        decaying_model(equations, way=Integral("m s", "of the position"))().prepare()


def test_the_template_of_a_drive_takes_at_most_forty_lines(tmp_path):
    files = templates.write("drive", tmp_path / "drive").files
    source = next(f for f in files if f.suffix == ".py").read_text()
    assert len(source.splitlines()) <= 40
