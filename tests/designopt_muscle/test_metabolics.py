"""Metabolic rates against hand calculations of the published equations, and their limits."""

import numpy as np
import pytest
from designopt_muscle.metabolics import DENSITY, TENSION, FibreState, metabolic_rates, muscle_masses
from designopt_muscle.osim.model import OsimMuscle
from designopt_muscle.strength import Fibres

MUSCLE = OsimMuscle(
    "m", "degroote", (), (), force=1000.0, fibre=0.1, slack=0.2, pennation=0.0, fastest=10.0, min_control=0.0,
    max_control=1.0, rigid=True, rise=0.015, fall=0.06,
)  # fmt: skip
MASS = 1000.0 / TENSION * DENSITY * 0.1  # 0.424 kg


def rate(model, activation, length=1.0, speed=0.0, force=0.0, slow=0.5):
    one = np.full((1, 1), 1.0)
    state = FibreState(activation * one, force * one, Fibres(("m",), length * one, speed * one, one, 0.0 * one))
    return float(metabolic_rates((MUSCLE,), state, model, slow)[0, 0])


def test_a_muscle_weighs_what_its_strength_and_length_say():
    assert muscle_masses((MUSCLE,)) == pytest.approx(MASS)


def test_isometric_heat_of_bhargava_is_that_of_activation_and_maintenance():
    """a = 1: activation 0.5 (40 + 133), maintenance 0.5 (74 + 111) W/kg at optimal length; half of it at 0.5."""
    assert rate("bhargava", 1.0, force=1000.0) == pytest.approx(MASS * (86.5 + 92.5))
    assert rate("bhargava", 1.0, length=0.5, force=300.0) == pytest.approx(MASS * (86.5 + 0.5 * 92.5))
    u = 0.25 * np.pi
    expected = 0.5 * (114.0 * np.sin(u) + 244.0 * (1.0 - np.cos(u)))
    assert rate("bhargava", 0.5, force=500.0) == pytest.approx(MASS * expected)


def test_shortening_and_lengthening_of_bhargava_have_their_coefficients():
    """1 kN at 0.1 m/s: shortening heat (0.16 + 0.18) F v and work F v; lengthening takes up 1.157 F v."""
    still = rate("bhargava", 1.0, force=1000.0)
    assert rate("bhargava", 1.0, speed=-0.1, force=1000.0) - still == pytest.approx(100.0 * 1.34)
    assert rate("bhargava", 1.0, speed=0.01, force=1000.0) - still == pytest.approx(-10.0 * 1.157)


def test_rates_of_umberger_are_those_of_the_equations():
    """Half slow fibres: 128 * 0.5 + 25 = 89 W/kg at a = 1, times 1.5 (aerobic); shortening adds per speed."""
    assert rate("umberger", 1.0, force=1000.0) == pytest.approx(1.5 * 89.0 * MASS)
    assert rate("umberger", 0.3, force=300.0) == pytest.approx(1.5 * 89.0 * 0.3**0.6 * MASS)
    speed = 1.0  # optimal lengths per second, a tenth of the largest
    heat = 0.5 * 100.0 / 4.0 * speed + 0.5 * 153.0 / 10.0 * speed
    expected = 1.5 * MASS * (89.0 + heat) + 1000.0 * 0.1
    assert rate("umberger", 1.0, speed=-0.1, force=1000.0) == pytest.approx(expected)
    longer = 1.5 * MASS * (89.0 + 0.3 * 100.0 / 4.0 * 0.1)  # lengthening takes up no work
    assert rate("umberger", 1.0, speed=0.01, force=1000.0) == pytest.approx(longer)


@pytest.mark.parametrize("model", ["bhargava", "umberger"])
def test_a_muscle_at_rest_keeps_warm_and_no_muscle_gains_energy(model):
    assert rate(model, 0.0) == pytest.approx(1.0 * MASS)
    assert rate("bhargava", 0.1, speed=0.9, force=1500.0) == 0.0
    assert np.isnan(rate(model, np.nan))
