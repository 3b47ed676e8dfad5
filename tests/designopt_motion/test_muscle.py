"""The muscle's curves and its activation against tabulated values and against what they mean."""

from __future__ import annotations

import pytest
from designopt_motion.muscle import activation_rate, force_of_length, force_of_speed


@pytest.mark.parametrize(
    ("length", "force"),
    [(0.5, 0.0541121530), (0.8, 0.8364395661), (1.0, 1.0), (1.2, 0.7936897181), (1.5, 0.2261486279)],
)
def test_force_over_length_is_the_published_curve(length: float, force: float) -> None:
    """De Groote et al. (2016) with the constants of OpenSim's DeGrooteFregly2016Muscle, tabulated from it."""
    assert float(force_of_length(length)) == pytest.approx(force, abs=1e-10)


@pytest.mark.parametrize(
    ("speed", "factor"),
    [(-1.0, 0.0), (-0.5, 0.2340363935), (0.0, 1.0), (0.5, 1.5884234012), (1.0, 1.7943429636)],
)
def test_force_over_speed_is_the_published_curve(speed: float, factor: float) -> None:
    assert float(force_of_speed(speed)) == pytest.approx(factor, abs=1e-10)


def test_activation_rises_within_15_ms_and_falls_within_60_ms() -> None:
    """At half activation, where 0.5 + 1.5 a = 1.25, and far from equal excitation, the rates are those of one side."""
    assert float(activation_rate(1.0, 0.5)) == pytest.approx(0.5 / (0.015 * 1.25), rel=1e-3)
    assert float(activation_rate(0.0, 0.5)) == pytest.approx(-0.5 * 1.25 / 0.060, rel=1e-3)
    assert float(activation_rate(0.3, 0.3)) == 0.0


def test_the_published_switch_makes_both_rates_nearly_equal() -> None:
    rise, fall = (float(activation_rate(e, 0.5, sharpness=0.1)) for e in (0.6, 0.4))
    assert -rise / fall == pytest.approx(1.0, abs=0.02)
    rise, fall = (float(activation_rate(e, 0.5)) for e in (0.8, 0.2))
    assert -rise / fall == pytest.approx(0.060 / (0.015 * 1.25**2), rel=0.02)


@pytest.mark.parametrize(("sharpness", "pays"), [(10.0, True), (0.1, False)])
def test_pulses_hold_an_activation_at_less_effort_where_it_rises_faster_than_it_falls(
    sharpness: float, pays: bool
) -> None:
    """Why movements have many local optima: quick pulses of 0.3 hold 0.1 at less than its square."""
    level, least = 0.1, 0.01
    up, down = (float(activation_rate(e, level, sharpness=sharpness)) for e in (0.3, least))
    share = -down / (up - down)  # of the time, for a mean rate of zero
    effort = share * 0.3**2 + (1.0 - share) * least**2
    assert (effort < 0.9 * level**2) is pays
    assert float(activation_rate(level, level, sharpness=sharpness)) == 0.0  # what the steady one costs is 0.1^2
