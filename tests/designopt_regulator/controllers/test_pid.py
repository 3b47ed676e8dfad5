"""The sampled PID against its difference equations, written out for one number at a time."""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import (
    PARAMETERS,
    RunningPID,
    absent_parameters,
    pid,
    tracking_time,
    wrap_angle,
)

T = 0.05


def outputs(settings, references, measurements, *, rest=0.0, angle=False, scale=None):
    """Commands and unclipped commands of n controllers over time."""
    running = RunningPID(settings, np.asarray(measurements[0], float), np.full(len(settings.kp), rest), angle=angle)
    commands = []
    for k, (r, y) in enumerate(zip(references, measurements, strict=True)):
        u = running.sample(np.asarray(r, float), np.asarray(y, float), scale=1.0 if scale is None else scale[k])
        commands.append((u.copy(), running.raw.copy()))
    return np.array(commands)


def by_hand(kp, ti, td, tf, b, tt, r, y, rest=0.0):
    """Specification, section 3, line by line; references and measurements relative to the start."""
    a = tf / (tf + T)
    D, integral, before, commands = 0.0, rest, y[0], []
    for r_k, y_k in zip(r, y, strict=True):
        D = a * D - kp * td * (1.0 - a) / T * (y_k - before)
        before = y_k
        raw = kp * (b * (r_k - y[0]) - (y_k - y[0])) + integral + D
        u = min(1.0, max(-1.0, raw))
        integral += T * (kp / ti * (r_k - y_k) + (u - raw) / tt)
        commands.append((u, raw))
    return np.array(commands)


def test_many_controllers_follow_the_difference_equations_side_by_side():
    rng = np.random.default_rng(3)
    n, k = 20, 100
    parameters = {
        "kp": 10.0 ** rng.uniform(-1.0, 1.0, n), "ti": 10.0 ** rng.uniform(0.0, 2.0, n), "td": rng.uniform(0, 1.5, n),
        "tf": rng.uniform(0.05, 0.5, n), "b": rng.uniform(0, 1.5, n), "tt": rng.uniform(0.5, 5.0, n),
    }  # fmt: skip
    y = np.cumsum(0.05 * rng.normal(size=(k, n)), axis=0)
    r = np.where(np.arange(k) < 20, 0.0, 0.35)[:, None] + y[0]
    rest = 0.2
    commands = outputs(pid(**parameters, sample_time=T), r, y, rest=rest)
    assert (np.abs(commands[:, 1]) > 1.0).any(), "some commands saturate, so that anti-windup is at work"
    for i in range(n):
        row = {name: values[i] for name, values in parameters.items()}
        assert commands[:, :, i] == pytest.approx(by_hand(**row, r=r[:, i], y=y[:, i], rest=rest), abs=1e-12)


def test_at_rest_the_command_stays_at_trim_without_bump():
    settings = pid(kp=0.55, ti=4.0, td=0.3, tf=0.1, b=0.6, tt=2.0, sample_time=T)
    commands = outputs(settings, [[5.0]] * 40, [[5.0]] * 40, rest=0.07)
    assert (commands[:, 0] == 0.07).all()


def test_without_i_the_integral_state_stays_constant_in_saturation_too():
    settings = pid(kp=3.0, sample_time=T)
    commands = outputs(settings, [[2.0]] * 30 + [[0.0]], [[0.0]] * 31, rest=0.25)
    assert (commands[:30, 0] == 1.0).all()
    assert commands[30, 0] == 0.25


def test_an_error_of_angle_takes_the_short_way_round():
    settings = pid(kp=0.1, sample_time=T)
    r, y = np.radians(170.0), np.radians(-170.0)
    running = RunningPID(settings, np.zeros(1), np.zeros(1), angle=True)
    assert running.sample(np.array([r]), np.array([y]))[0] == pytest.approx(0.1 * np.radians(-20.0), abs=1e-15)
    angles = wrap_angle(np, np.array([np.pi, -np.pi, 3.0, 7.0, -20.0]))
    assert angles == pytest.approx([np.pi, np.pi, 3.0, 7.0 - 2 * np.pi, -20.0 + 6 * np.pi], abs=1e-14)
    assert ((angles > -np.pi) & (angles <= np.pi)).all()


def test_a_gain_schedule_is_a_controller_with_another_gain():
    rng = np.random.default_rng(4)
    y = np.cumsum(0.05 * rng.normal(size=(50, 1)), axis=0)
    r = np.full((50, 1), 0.3)
    parameters = {"ti": 5.0, "td": 0.4, "tf": 0.1, "b": 0.7, "tt": 2.0, "sample_time": T}
    scaled = outputs(pid(kp=0.8, **parameters), r, y, scale=np.full((50, 1), 1.5))
    assert scaled == pytest.approx(outputs(pid(kp=1.2, **parameters), r, y), abs=1e-13)


def test_the_tracking_time_follows_from_the_others_unless_it_is_given():
    assert tracking_time(8.0, 0.5) == pytest.approx(2.0)
    assert tracking_time(8.0, 0.0) == pytest.approx(8.0)
    assert tracking_time(np.inf, 0.5) == np.inf
    assert pid(kp=1.0, ti=[8.0, 8.0, np.inf], td=[0.5, 0.0, 1.0]).tt.tolist() == [2.0, 8.0, np.inf]
    assert pid(kp=1.0, ti=8.0, tt=3.0).tt.tolist() == [3.0]


@pytest.mark.parametrize("kind", PARAMETERS)
def test_a_kind_has_its_own_parameters(kind):
    for name in {"kp", "ti", "td", "tf", "b", "tt"} - set(PARAMETERS[kind]):
        assert absent_parameters(kind, [name, "kp"]) == [name]
    assert not absent_parameters(kind, PARAMETERS[kind])
