"""The closed loops in time against the numbers of the specification (9.6, 9.7), SciPy, and the order of the method."""

import numpy as np
import pytest
from designopt_regulator.vehicle.simulation import Manoeuvre, Schedule, simulate, whole_number
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from vehicle_cases import COURSE, HOLDS_SPEED, SPEED, TURN, A, B, T, course_runs, random_designs, rows, turn, vehicles

#: Specification 9.6: iae, tv, overshoot of A and psi(30 s) in deg; iae, tv, psi(30 s) of B; in the order of COURSE.
TABLE = (
    (3.818454, 1.59477, 0.183090, 20.551416, 6.366864, 0.54852, 23.498105),
    (4.802195, 1.21299, 0.164106, 20.650827, 8.040111, 0.55092, 24.782835),
    (6.210581, 1.22894, 0.201995, 21.011339, 9.340769, 0.54078, 25.440674),
    (3.725200, 1.87259, 0.295365, 20.542264, 6.178480, 0.54835, 23.379337),
    (4.324432, 1.33066, 0.141832, 20.640484, 7.829031, 0.55090, 24.686168),
    (4.192698, 4.20223, 0.582816, 20.546603, 5.764741, 0.82654, 22.937750),
    (4.625889, 1.21091, 0.168689, 20.589825, 7.201436, 0.55003, 24.129666),
    (4.605390, 1.27467, 0.151702, 20.676032, 8.098676, 0.55049, 24.860269),
)

#: Specification 9.7: design and its worst iae, tv, overshoot in the course study.
REGRESSION = (
    ((1.029, 12.9, 0.598, 0.0506, 0.133), (11.739788, 0.308450, 0.0)),
    ((1.0417, 99.85, 0.529, 0.0502, 0.917), (7.368100, 1.336918, 0.231025)),
    ((0.670, 16.9, 0.705, 0.0504, 0.238), (13.115854, 0.235349, 0.0)),
)


@pytest.fixture(scope="module")
def fine():
    """Designs A and B in all scenarios with 20 steps a sample."""
    return course_runs([A] * 8 + [B] * 8, COURSE * 2)


def test_the_table_of_fixed_designs(fine):
    expected = np.array(TABLE).T
    q = fine.quality["course"]
    final = np.degrees(fine.final[2])
    for part, (iae, tv, course) in ((slice(0, 8), expected[[0, 1, 3]]), (slice(8, 16), expected[4:])):
        assert q.iae[part] == pytest.approx(iae, abs=1e-6)
        assert q.tv[part] == pytest.approx(tv, abs=5.1e-6), "printed with five decimals"
        assert final[part] == pytest.approx(course, abs=1.5e-6)
    assert q.overshoot[:8] == pytest.approx(expected[2], abs=1.5e-6)


def test_five_steps_a_sample_are_within_a_share_of_1e_5_of_the_iae(fine):
    coarse = course_runs([A] * 8 + [B] * 8, COURSE * 2, substeps=5)
    assert coarse.quality["course"].iae == pytest.approx(np.array(TABLE)[:, [0, 4]].T.ravel(), rel=1e-5)


def test_the_speed_study():
    terrains, grades, masses = zip(*SPEED, strict=True)
    n, one = len(SPEED), np.ones(len(SPEED))
    manoeuvre = Manoeuvre(2.0 * one, 4.0 * one, 0.0 * one, 0.0 * one, np.array(grades), 1.0, 15.0, 30.0)
    holds = rows(n, {"kp": 0.6, "ti": 6.0, "b": 0.7, "tt": 3.0})
    runs = simulate(vehicles(terrains, masses), holds, rows(n, A), manoeuvre, np.full(n, 80), substeps=20)
    iae = [5.10658, 5.10371, 4.90313, 4.71536, 4.63689, 4.76889]
    assert 2.0 * runs.quality["speed"].iae == pytest.approx(iae, abs=1e-5)
    speed = [3.986138, 3.986140, 3.985403, 3.990314, 3.990350, 3.986259]
    assert runs.final[0] == pytest.approx(speed, abs=1e-5)


def test_designs_near_the_front():
    designs = [dict(zip(("kp", "ti", "td", "tf", "b"), x, strict=True)) | {"tt": 3.0} for x, _ in REGRESSION]
    runs = course_runs([d for d in designs for _ in COURSE], COURSE * 3)
    q = runs.quality["course"]
    worst = [v.reshape(3, 8).max(axis=1) for v in (q.iae, q.tv, q.overshoot)]
    np.testing.assert_allclose(np.array(worst).T, [y for _, y in REGRESSION], rtol=0.0, atol=1e-6)


def test_for_small_steps_it_is_the_sampled_linear_loop():
    """The course over the step leaves that of the linear loop, which is exact, in proportion to the step."""
    cases = {"paved": (7.5e-7, 7.5e-5, 0.26), "snow_road": (1.33e-6, 1.33e-4, 0.30)}
    sizes = np.array([1e-6, 1e-4, TURN] * 2)
    manoeuvre = turn([5.0] * 6, angle=sizes, moment=0.0)
    scenarios = [(terrain, 5.0) for terrain in cases for _ in range(3)]
    trace = course_runs([A] * 6, scenarios, substeps=10, manoeuvre=manoeuvre, quality_loops=(), trace=True).trace
    exact = np.stack([_linear_course(terrain) for terrain, _ in scenarios], axis=1)
    away = np.abs(trace.course / sizes - exact).max(axis=0)
    assert away == pytest.approx(np.concatenate(list(cases.values())), rel=0.02)


def _linear_course(terrain):
    """Course of design A at the samples after a unit step at 1 s: zero-order hold, four samples of delay, no clips."""
    mu = {"paved": 0.60, "snow_road": 0.30}[terrain]
    c = mu * 10_000.0 * 9.80665 * 2.67 * 2.16 / (4.0 * (0.15 * 5.0 + 0.02))
    M = np.zeros((4, 4))
    M[0, 1], M[1, 1], M[1, 2] = 1.0, -c / 32_000.0, 2.16 * 30_000.0 / 32_000.0
    M[2, 2], M[2, 3] = -1.0 / 0.35, 1.0 / 0.35
    hold = expm(M * T)
    x, D, integral, before, late, course = np.zeros(3), 0.0, 0.0, 0.0, [0.0] * 4, []
    a = 0.1 / 0.15
    for k in range(601):
        r, y = float(k >= 20), x[0]
        course.append(y)
        D = a * D - 1.5 * 0.6 * (1.0 - a) / T * (y - before)
        before = y
        late.append(1.5 * (r - y) + integral + D)
        integral += T * 1.5 / 8.0 * (r - y)
        x = hold[:3, :3] @ x + hold[:3, 3] * late.pop(0)
    return np.array(course)


def _scipy_run(terrain, speed, g):
    """iae and final course of controller `g`, rewritten from sections 2.3 to 4 of the specification for one vehicle.

    An adaptive method that is begun again at every change of a command.
    """
    f, mu, grip = {"snow_road": (0.06, 0.30, 0.25), "turf": (0.09, 0.90, 0.80)}[terrain]
    weight = 10_000.0 * 9.80665

    def rhs(t, z, left, right, moment):
        v, r, psi, force_l, force_r, _ = z
        bound = 75e3 / max(abs(v), 0.5)
        held_l, held_r = (min(max(c, -bound), bound) for c in (left, right))
        a_l, a_r = (min(max(F, -0.5 * grip * weight), 0.5 * grip * weight) for F in (force_l, force_r))
        resistance = weight * f * np.tanh(v / 0.05) + 2.2 * v * abs(v)
        turning = mu * weight * 2.67 * 2.16 * r / (4.0 * (0.925 * 2.16 * abs(r) + 0.15 * abs(v) + 0.02))
        return [
            (a_l + a_r - resistance) / (1.15 * 10_000.0),
            ((a_r - a_l) * 1.08 - turning + moment) / 32_000.0,
            r,
            (held_l - force_l) / 0.35,
            (held_r - force_r) / 0.35,
            abs((TURN if t >= 1.0 else 0.0) - psi),
        ]

    trim = (weight * f * np.tanh(speed / 0.05) + 2.2 * speed**2) / 60e3
    z = np.array([speed, 0.0, 0.0, 30e3 * trim, 30e3 * trim, 0.0])
    waiting = [(30e3 * trim, 30e3 * trim)] * 4
    total, last, D, course_i, speed_i = 0.0, 0.0, 0.0, 0.0, trim
    a = g["tf"] / (g["tf"] + T)
    for k in range(600):
        v, psi = z[0], z[2]
        raw_v = 0.55 * (0.6 * (speed - speed) - (v - speed)) + speed_i
        u_v = min(1.0, max(-1.0, raw_v))
        speed_i += T * (0.55 / 4.0 * (speed - v) + (u_v - raw_v) / 2.0)
        r = TURN if k >= 20 else 0.0
        D = a * D - g["kp"] * g["td"] * (1.0 - a) / T * (psi - last)
        last = psi
        raw = g["kp"] * (g["b"] * r - psi) + course_i + D
        u = min(1.0, max(-1.0, raw))
        course_i += T * (g["kp"] / g["ti"] * (r - psi) + (u - raw) / g["tt"])
        waiting.append(tuple(30e3 * min(1.0, max(-1.0, c)) for c in (u_v - u, u_v + u)))
        left, right = waiting.pop(0)
        arguments = left, right, 6000.0 if k >= 300 else 0.0
        span = (k * T + 1e-12, (k + 1) * T)
        solution = solve_ivp(rhs, span, z, "RK45", args=arguments, rtol=1e-9, atol=1e-11)
        total, z = total + solution.y[5, -1] - z[5], solution.y[:, -1]
    return total / TURN, z[2]


@pytest.mark.parametrize(("terrain", "speed", "design"), [("snow_road", 5.0, A), ("turf", 2.0, B)])
def test_an_independent_simulation_with_scipy_agrees(terrain, speed, design):
    iae, course = _scipy_run(terrain, speed, design)
    runs = course_runs([design], [(terrain, speed)])
    assert runs.quality["course"].iae[0] == pytest.approx(iae, abs=2e-6)
    assert runs.final[2, 0] == pytest.approx(course, abs=1e-7)


def test_the_method_is_of_fourth_order_where_the_motion_is_smooth():
    """Small commands, no clips: the error falls by 16 when the step is halved."""
    courses = {}
    for substeps in (1, 2, 4, 16):
        manoeuvre = turn([4.0], angle=0.02, moment=0.0, horizon=6.0, load_at=5.0)
        runs = course_runs([B], [("paved", 4.0)], substeps=substeps, manoeuvre=manoeuvre, trace=True)
        # as long as the turn has not come back through zero yaw rate, where Nikitin's law is not smooth
        courses[substeps] = runs.trace.course[26:40, 0]
    errors = [np.abs(courses[s] - courses[16]).max() for s in (1, 2, 4)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.3)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(4.0, abs=0.3)


@pytest.mark.parametrize(
    ("size", "machine_code"),
    [(1, True), (2, True), (3, True), (5, True), (7, True), (16, True), (5, False), (16, False)],
)
def test_a_row_has_the_same_bits_in_any_company(size, machine_code):
    designs = random_designs(37)
    scenarios = [COURSE[i % 8] for i in range(37)]
    together = _bits(designs, scenarios, machine_code)
    apart = [_bits(designs[i : i + size], scenarios[i : i + size], machine_code) for i in range(0, 37, size)]
    assert np.concatenate(apart, axis=1).tobytes() == together.tobytes()


def _bits(designs, scenarios, machine_code):
    """All figures (figures, n), after a short run with 5 steps a sample."""
    manoeuvre = turn([speed for _, speed in scenarios], step_at=0.1, horizon=1.5, load_at=1.2)
    runs = course_runs(designs, scenarios, substeps=5, manoeuvre=manoeuvre, machine_code=machine_code)
    figures = [v for q in runs.quality.values() for v in vars(q).values()]
    return np.array([*figures, runs.energy, runs.sharp, *runs.final])


def test_every_row_has_its_own_delay():
    delays = np.array([0, 3, 20, 40, 87, 160])
    n = len(delays)
    manoeuvre = turn([3.0] * n, step_at=0.5, horizon=3.0, load_at=2.5)
    setup = rows(n, HOLDS_SPEED), rows(n, B), manoeuvre
    together = simulate(vehicles(["turf"] * n), *setup, delays, substeps=20).final
    for i, delay in enumerate(delays):
        one = rows(1, HOLDS_SPEED), rows(1, B), turn([3.0], step_at=0.5, horizon=3.0, load_at=2.5)
        assert (simulate(vehicles(["turf"]), *one, np.array([delay]), substeps=20).final[:, 0] == together[:, i]).all()


def test_a_command_moves_the_vehicle_only_after_the_delay():
    runs = course_runs([A], [("paved", 5.0)], substeps=5, manoeuvre=turn([5.0], horizon=3.0, load_at=2.5), trace=True)
    course, command = runs.trace.course[:, 0], runs.trace.course_command[:, 0]
    assert not command[:20].any()
    assert command[20] == pytest.approx(1.5 * TURN)
    assert not course[:25].any()
    assert course[25] > 0.0


def test_a_row_that_diverges_is_frozen_and_the_others_go_on():
    """Without drive lag to speak of, the integration itself is unstable."""
    p = vehicles(["paved"] * 3, lag=np.array([0.35, 1e-4, 0.35]), power=1e9)
    setup = rows(3, HOLDS_SPEED), rows(3, A), turn([5.0] * 3, horizon=4.0, load_at=3.0)
    runs = simulate(p, *setup, np.full(3, 20), substeps=5)
    assert runs.failed.tolist() == [False, True, False]
    assert runs.divergence_time[1] < 4.0
    assert np.isfinite(runs.final).all()
    healthy = vehicles(["paved"], power=1e9), rows(1, HOLDS_SPEED), rows(1, A), turn([5.0], horizon=4.0, load_at=3.0)
    alone = simulate(*healthy, np.full(1, 20), substeps=5)
    assert (runs.quality["course"].iae[[0, 2]] == alone.quality["course"].iae).all()


def test_a_gain_schedule_lowers_the_gain_with_speed():
    manoeuvre = turn([4.0], horizon=6.0, load_at=5.0)
    scheduled = course_runs([A], [("paved", 4.0)], manoeuvre=manoeuvre, schedule=Schedule(2.0, 0.5), trace=True)
    half = course_runs([A | {"kp": 0.75}], [("paved", 4.0)], manoeuvre=manoeuvre, trace=True)
    assert scheduled.trace.course_command[20, 0] == half.trace.course_command[20, 0]
    slow = course_runs([A], [("paved", 4.0)], manoeuvre=manoeuvre, schedule=Schedule(2.0, 8.0), trace=True)
    assert slow.trace.course_command[20, 0] == pytest.approx(0.25 * 1.5 * TURN)


def test_turns_about_a_point_between_the_tracks_are_counted():
    """There Nikitin's law is an extrapolation."""
    manoeuvre = turn([0.5, 5.0], angle=np.radians(90.0), horizon=6.0, load_at=5.0)
    runs = course_runs([A | {"kp": 5.0}] * 2, [("paved", 0.5), ("paved", 5.0)], manoeuvre=manoeuvre, trace=True)
    radius_below = 1.08 * np.abs(runs.trace.yaw_rate[:-1]) > np.abs(runs.trace.speed[:-1])
    assert runs.sharp == pytest.approx(radius_below.mean(axis=0))
    assert runs.sharp[0] > 0.1
    assert runs.sharp[1] == 0.0


@pytest.mark.parametrize(("time", "count"), [(0.2, 4), (0.0, 0), (30.0, 600), (0.21, None)])
def test_whole_numbers_of_samples(time, count):
    assert whole_number(time, T) == count
