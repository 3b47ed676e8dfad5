"""The vehicle and its ground: specification, sections 2.1 to 2.5."""

import numpy as np
import pytest
from designopt_regulator.vehicle.equations import (
    VehicleDynamics,
    course_loop,
    missing_force,
    speed_loop,
    trim,
    yaw_damping,
)
from designopt_regulator.vehicle.terrains import TERRAINS
from vehicle_cases import vehicles

W = 10_000.0 * 9.80665


def rates(p, x, command, load=(0.0, 0.0)):
    """Time derivatives (5, n) of states (5, n)."""
    x, command, load = (tuple(np.asarray(part, float)) for part in (x, command, load))
    return np.array(np.broadcast_arrays(*VehicleDynamics.of_vehicle(p).rates(np, x, command, load)))


def test_a_turn_needs_nikitins_moment_but_for_the_creep_that_keeps_it_finite():
    """On paved ground the coefficient is 0.60 / (0.925 + 0.15 R / B) = 0.259304 at R = 20 m: 16973.9 N m."""
    p = vehicles(["paved"])
    speed, radius = 5.0, 20.0
    x = [[speed], [speed / radius], [0.3], [0.0], [0.0]]
    moment = -rates(p, x, (0.0, 0.0))[1, 0] * 32_000.0
    creep = 0.02 / (0.925 * 2.16 * speed / radius + 0.15 * speed)
    assert moment * (1.0 + creep) == pytest.approx(16973.9, abs=0.05)


@pytest.mark.parametrize(
    ("terrain", "speed", "constant", "gain"), [("turf", 2.0, 0.0805, 0.163), ("snow_road", 5.0, 0.581, 1.176)]
)
def test_small_yaw_rates_are_damped_in_proportion(terrain, speed, constant, gain):
    p = vehicles([terrain])
    c = yaw_damping(p, np.array([speed]))
    assert p.yaw_inertia / c == pytest.approx(constant, abs=5e-4)
    assert p.track_distance * p.max_force / c == pytest.approx(gain, abs=5e-4)


def test_the_gain_of_the_course_varies_seven_times():
    p = vehicles(["turf", "snow_road"])
    slow, fast = 1.0 / yaw_damping(p, np.array([2.0, 5.0]))
    assert fast / slow == pytest.approx(7.2, abs=0.05)


def test_a_vehicle_in_trim_keeps_its_speed():
    names = list(TERRAINS)
    p, v = vehicles(names), np.linspace(0.5, 5.0, len(names))
    force = trim(p, v) * p.max_force
    x = np.stack([v, 0 * v, 0 * v, force, force])
    assert np.abs(rates(p, x, np.stack([force, force]))).max() < 1e-12


@pytest.mark.parametrize("loop", ["speed", "course"])
def test_linear_loops_are_the_slopes_of_the_equations(loop):
    names, v = ["paved", "sand", "snow_road"], np.array([5.0, 2.0, 3.0])
    p = vehicles(names)
    force = trim(p, v) * p.max_force
    x = np.stack([v, 0 * v, 0 * v, force, force])
    command = np.stack([force, force])

    def slope(dx, dc, h):
        ends = [rates(p, x + s * h * dx, command + s * h * dc) for s in (1.0, -1.0)]
        return (ends[0] - ends[1]) / (2.0 * h)

    F, zero, one = p.max_force, 0.0 * v, 1.0 + 0.0 * v
    if loop == "speed":  # states: speed, mean force as a share of the maximum; input: common command
        A, B, C = speed_loop(p, v)
        directions = [(one, zero, zero, zero, zero), (zero, zero, zero, F, F)]
        push = np.stack([F, F])
    else:  # states: course, yaw rate, difference of forces as a share; input: difference command
        A, B, C = course_loop(p, v)
        directions = [(zero, zero, one, zero, zero), (zero, one, zero, zero, zero), (zero, zero, zero, -F, F)]
        push = np.stack([-F, F])

    def read(d):
        if loop == "speed":
            return np.stack([d[0], (d[3] + d[4]) / (2.0 * F)], axis=1)
        return np.stack([d[2], d[1], (d[4] - d[3]) / (2.0 * F)], axis=1)

    still = np.zeros((2, 3))
    for j, direction in enumerate(directions):
        # the slope of Nikitin's law has a kink at r = 0: differences over a step h are off by a share of 6.3 h
        np.testing.assert_allclose(read(slope(np.stack(direction), still, 1e-5)), A[:, :, j], rtol=7e-5, atol=1e-9)
    np.testing.assert_allclose(read(slope(np.zeros((5, 3)), push, 1e-5)), B, rtol=1e-8, atol=1e-9)
    assert (C[:, 0] == 1.0).all()
    assert not C[:, 1:].any()


def test_forces_are_limited_by_adhesion_and_power():
    p = vehicles(["snow_road"])
    grip = 0.25 * W / 2.0
    v = 6.0
    drag = 0.06 * W + 2.2 * v**2
    derivatives = rates(p, [[v], [0.0], [0.0], [30e3], [30e3]], (30e3, -30e3))
    assert derivatives[0, 0] == pytest.approx((2.0 * grip - drag) / 11_500.0, rel=1e-12)
    assert derivatives[3:, 0] == pytest.approx([(12_500.0 - 30e3) / 0.35, (-12_500.0 - 30e3) / 0.35], rel=1e-12)
    crawling = rates(p, [[0.1], [0.0], [0.0], [0.0], [0.0]], (30e3, 1e6))
    assert crawling[3:, 0] == pytest.approx([30e3 / 0.35, 150e3 / 0.35], rel=1e-12), "power counts from 0.5 m/s on"


def test_loads_from_outside_act_on_speed_and_yaw():
    p = vehicles(["paved"])
    x = [[3.0], [0.0], [0.0], [0.0], [0.0]]
    change = rates(p, x, (0.0, 0.0), load=(-0.05 * W, 6000.0)) - rates(p, x, (0.0, 0.0))
    assert change[:, 0] == pytest.approx([-0.05 * W / 11_500.0, 6000.0 / 32_000.0, 0.0, 0.0, 0.0], rel=1e-12)


def test_the_force_that_is_missing_on_a_slope():
    p = vehicles(["snow_road", "snow_road"])
    forces = missing_force(p, np.array([5.0, 5.0]), np.array([0.10, 0.25]))
    assert forces == pytest.approx([(0.06 + 0.10 - 0.25) * W + 55.0, (0.06 + 0.25 - 0.25) * W + 55.0], abs=1e-9)
    limited = missing_force(vehicles(["paved"]), np.array([10.0]), np.array([0.15]))
    assert limited == pytest.approx([0.19 * W + 220.0 - 15_000.0], abs=1e-9)
