"""Figures of transients whose course is known in closed form (specification, section 5)."""

import numpy as np
import pytest
from designopt_regulator.vehicle.quality import Times, quality

T, SUBSTEPS = 0.05, 5
TIMES = Times(step_at=1.0, load_at=11.0, sample_time=T, substeps=SUBSTEPS)
SAMPLES = 420  # 21 s


def watched(y, *, before=0.0, after=2.0, commands=None, trim=0.1, angle=False):
    """Quality of measurements y(t), a function of time (s) that gives (len(t), n)."""
    measured = y(np.arange(SAMPLES * SUBSTEPS + 1) * (T / SUBSTEPS)).T
    n = len(measured)
    commands = np.full((SAMPLES, n), trim) if commands is None else commands
    return quality(
        measured, np.full(n, before), np.full(n, after), np.clip(commands, -1.0, 1.0).T, commands.T, np.full(n, trim),
        TIMES, angle=angle,
    )  # fmt: skip


def lag(rate, bump=0.0):
    """y = 2 (1 - exp(-rate (t - 1))) after the step, and -bump s exp(-s) on top, s = t - 11, after the disturbance."""

    def y(t):
        since = np.clip(t - 11.0, 0.0, None)
        return (2.0 * (1.0 - np.exp(-rate * np.clip(t - 1.0, 0.0, None))) - bump * since * np.exp(-since))[:, None]

    return y


def test_integrals_of_an_exponential():
    """Trapezoidal error h^2/12 of the slope's change; the error is exp(-t) over the step of 2."""
    q = watched(lag(1.0, bump=0.4))
    h, late = T / SUBSTEPS, np.exp(-10.0)
    assert q.iae_step[0] == pytest.approx(1.0 - late, abs=h**2 / 6)
    assert q.iae_load[0] == pytest.approx(0.2 * (1.0 - 11.0 * late) + late, abs=h**2 / 6)
    assert q.iae[0] == q.iae_step[0] + q.iae_load[0]
    assert q.ise[0] == pytest.approx(0.5 + 0.2**2 / 4.0, abs=1e-4)
    itae = 1.0 - 11.0 * late + 0.2 * (2.0 - 122.0 * late)  # of t exp(-t) and of 0.2 t^2 exp(-t), up to 10 s
    assert q.itae[0] == pytest.approx(itae, abs=1e-3)
    assert q.load_peak[0] == pytest.approx(0.2 * np.exp(-1.0) + np.exp(-11.0), abs=1e-12)


def test_rise_and_settling_of_an_exponential():
    q = watched(lag(1.0))
    assert q.rise[0] == pytest.approx(np.log(9.0), abs=1e-5)
    assert q.settling[0] == pytest.approx(np.log(50.0), abs=T / SUBSTEPS)
    assert q.settling[0] <= np.log(50.0)
    assert q.not_settled[0] == 0.0
    assert q.overshoot[0] == 0.0


def test_a_transient_that_settles_too_late_is_reported():
    q = watched(lag(0.1))
    assert q.not_settled[0] == 1.0
    assert q.settling[0] == pytest.approx(10.0)
    assert np.isinf(q.rise[0]), "90 % comes after 23 s"


def test_overshoot_of_what_still_rises_is_that_of_the_end_of_the_turn():
    """y = 0.22 (t - 1) passes the reference 2 and is at 2.2 when the disturbance comes; a node less reads h/10 low."""
    q = watched(lambda t: np.clip(0.22 * (t - 1.0), 0.0, 2.2)[:, None])
    assert q.overshoot[0] == pytest.approx(0.1, abs=1e-12)
    assert q.residual_error[0] == pytest.approx(0.1, abs=1e-12)
    assert q.not_settled[0] == 1.0


def test_overshoot_counts_between_step_and_disturbance_only():
    def y(t):
        since = np.clip(t - 1.0, 0.0, None)
        return (2.0 - 2.0 * np.exp(-0.5 * since) * np.cos(np.pi * since) + 3.0 * (t > 11.05))[:, None]

    q = watched(y)
    peak = np.linspace(0.9, 1.1, 100_001)
    assert q.overshoot[0] == pytest.approx(-(np.exp(-0.5 * peak) * np.cos(np.pi * peak)).min(), abs=2e-4)
    assert q.load_peak[0] > 1.4


def test_a_step_down_is_the_mirror_of_a_step_up():
    up, down = watched(lag(1.0, 0.4)), watched(lambda t: -lag(1.0, 0.4)(t), after=-2.0)
    for name, values in vars(up).items():
        assert getattr(down, name) == pytest.approx(values, rel=1e-12), name


def test_without_a_step_errors_count_as_they_are():
    q = watched(lambda t: np.full((len(t), 1), 0.5), before=0.0, after=0.0)
    assert q.iae[0] == pytest.approx(0.5 * 21.0)
    assert q.load_peak[0] == 0.5


def test_an_angle_is_wrapped():
    once_round = watched(lambda t: lag(1.0)(t) + 2.0 * np.pi, angle=True)
    plain = watched(lag(1.0), angle=True)
    assert once_round.iae_load == pytest.approx(plain.iae_load, abs=1e-10)
    assert once_round.iae_step == pytest.approx(plain.iae_step, abs=1e-10)


def test_figures_of_the_command():
    rng = np.random.default_rng(2)
    commands = 0.1 + 0.8 * rng.normal(size=(SAMPLES, 3))
    q = watched(lambda t: np.zeros((len(t), 3)), commands=commands)
    clipped = np.clip(commands, -1.0, 1.0)
    changes = np.abs(np.diff(np.vstack([np.full(3, 0.1), clipped]), axis=0))
    assert q.tv == pytest.approx(changes.sum(axis=0))
    assert q.effort == pytest.approx(T * ((clipped - 0.1) ** 2).sum(axis=0))
    assert q.sat_fraction == pytest.approx((np.abs(commands) > 1.0).mean(axis=0))
    assert (q.sat_fraction > 0.05).all()
