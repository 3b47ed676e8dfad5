"""The muscle's curves and its activation against tabulated values and against what they mean."""

import csv

import casadi as ca
import numpy as np
import pytest
from designopt_muscle.curves import OPENSIM, PUBLICATION, activation_rate


def test_the_curves_are_those_of_opensim_to_the_last_digits(opensim):
    """Samples of OpenSim 4.6; tolerance of specs/muscle_force_sharing.md section 7."""
    curves = {
        "active_force_length": OPENSIM.active_length,
        "force_velocity": OPENSIM.velocity,
        "passive_force_length_e0_0.6": OPENSIM.passive,
        "tendon_force_length_strain_0.049": OPENSIM.tendon_force,
    }
    with (opensim / "reference" / "dgf2016_curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["curve"] for row in rows} == set(curves)
    for row in rows:
        assert curves[row["curve"]](float(row["x"])) == pytest.approx(float(row["value"]), abs=1e-13, rel=1e-13)


@pytest.mark.parametrize(
    ("curve", "x", "value"),
    [
        (OPENSIM.active_length, [0.5, 0.8, 1.0, 1.2, 1.5], [0.0541121530, 0.8364395661, 1, 0.7936897181, 0.2261486279]),
        (OPENSIM.velocity, [-1.0, -0.5, 0.0, 0.5, 1.0], [0.0, 0.2340363935, 1.0, 1.5884234012, 1.7943429636]),
        (OPENSIM.passive, [0.2, 1.0, 1.2, 1.5, 1.6], [0.0, 0.0182288238, 0.0694011612, 0.5133740882, 1.0]),
        (OPENSIM.tendon_force, [1.0, 1.02, 1.049, 1.06], [0.0, 0.2155686246, 1.0, 1.5941892963]),
    ],
)
def test_the_curves_have_the_values_of_the_specification(curve, x, value):
    """specs/muscle_force_sharing.md section 3.1, ten digits; of arrays, numbers and CasADi expressions alike."""
    assert curve(np.array(x)) == pytest.approx(np.array(value), abs=2e-10)
    symbol = ca.SX.sym("x")
    function = ca.Function("curve", [symbol], [curve(symbol)])
    assert [float(function(v)) for v in x] == pytest.approx([curve(v) for v in x], abs=1e-15)


def test_inverses_undo_their_curves():
    force = np.linspace(0, 5, 9)
    assert OPENSIM.tendon_force(OPENSIM.tendon_length(force, strain=0.1), strain=0.1) == pytest.approx(force)
    h = 1e-6
    slope = (OPENSIM.tendon_length(force + h * 3.0) - OPENSIM.tendon_length(force - h * 3.0)) / (2 * h)
    assert OPENSIM.tendon_speed(force, 3.0) == pytest.approx(slope, rel=1e-8)


def test_a_wider_curve_has_the_same_peak():
    assert OPENSIM.active_length(1.0, width=1.5) == pytest.approx(1.0)
    assert OPENSIM.active_length(1.3, width=1.5) == pytest.approx(OPENSIM.active_length(1.2))


def test_the_published_constants_are_close_to_those_of_opensim():
    assert PUBLICATION.stiffness() == pytest.approx(35.0)
    x = np.linspace(0.5, 1.5, 50)
    assert np.abs(PUBLICATION.active_length(x) - OPENSIM.active_length(x)).max() < 5e-3
    v = np.linspace(-1, 1, 50)
    assert np.abs(PUBLICATION.velocity(v) - OPENSIM.velocity(v)).max() < 0.02
    assert PUBLICATION.passive(1.0) == 0.0
    assert PUBLICATION.passive(1.6) == pytest.approx(1.0)


def test_activation_rises_within_15_ms_and_falls_within_60_ms():
    """At half activation, where 0.5 + 1.5 a = 1.25, and far from equal excitation, the rates are those of one side."""
    assert activation_rate(1.0, 0.5) == pytest.approx(0.5 / (0.015 * 1.25), rel=1e-3)
    assert activation_rate(0.0, 0.5) == pytest.approx(-0.5 * 1.25 / 0.060, rel=1e-3)
    assert activation_rate(0.3, 0.3) == 0.0


def test_the_published_switch_makes_both_rates_nearly_equal():
    rise, fall = (activation_rate(e, 0.5, sharpness=0.1) for e in (0.6, 0.4))
    assert -rise / fall == pytest.approx(1.0, abs=0.02)
    rise, fall = (activation_rate(e, 0.5) for e in (0.8, 0.2))
    assert -rise / fall == pytest.approx(0.060 / (0.015 * 1.25**2), rel=0.02)


@pytest.mark.parametrize(("sharpness", "pays"), [(10.0, True), (0.1, False)])
def test_pulses_hold_an_activation_at_less_effort_where_it_rises_faster_than_it_falls(sharpness, pays):
    """Why movements have many local optima: quick pulses of 0.3 hold 0.1 at less than its square."""
    level, least = 0.1, 0.01
    up, down = (activation_rate(e, level, sharpness=sharpness) for e in (0.3, least))
    share = -down / (up - down)  # of the time, for a mean rate of zero
    effort = share * 0.3**2 + (1.0 - share) * least**2
    assert bool(effort < 0.9 * level**2) is pays
    assert activation_rate(level, level, sharpness=sharpness) == 0.0  # what the steady one costs is 0.1^2
