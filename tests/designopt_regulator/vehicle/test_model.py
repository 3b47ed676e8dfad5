"""The model tracked_carrier_10t: what it answers, and what it refuses (specification, section 10)."""

import math
import re

import numpy as np
import pytest
from designopt_regulator.vehicle.declarations import ARRAYS, Conditions, Disturbance, FixedController
from designopt_regulator.vehicle.equations import Vehicle
from designopt_regulator.vehicle.model import TrackedVehicle
from designopt_regulator.vehicle.refinements import RefinedConditions
from designopt_regulator.vehicle.simulation import Schedule
from designopt_regulator.vehicle.terrains import TERRAINS
from scipy.linalg import expm
from vehicle_cases import COURSE, A, B, course_runs, random_designs

from designopt.plugin import Diverged, InvalidDesign
from designopt.problem import Problem
from designopt.study.language.errors import StudyError
from designopt.study.load import study_from_text
from designopt.testing import check_model

PUSH = Disturbance(moment=6000.0)
NONE: frozenset[str] = frozenset()
SCENES = [{"terrain": terrain, "speed": float(speed)} for terrain, speed in COURSE]
SPEED_PI = {"kp": 0.6, "ti": 6.0, "b": 0.7, "tt": 3.0}
BOTH = {**A, **{f"{name}_v": value for name, value in SPEED_PI.items()}}
SHORT = {"horizon": 2.5, "disturbance": Disturbance(moment=6000.0, at=2.0)}

#: Specification 9.6: ms of design A and its spectral radius, ms of B; in the order of COURSE.
ROBUSTNESS = (
    (1.56471, 0.991386, 1.23914), (1.19756, 0.990815, 1.08647), (1.10713, 0.994422, 1.04742),
    (1.62702, 0.991595, 1.26405), (1.19516, 0.990903, 1.08544), (2.78512, 0.992536, 1.67195),
    (1.32124, 0.986672, 1.13895), (1.17507, 0.991656, 1.07682),
)  # fmt: skip


def figures(design, scenario, **settings):
    return TrackedVehicle(**settings).evaluate(design, scenario, NONE)[0]


def test_it_answers_with_what_the_simulation_gives():
    model = TrackedVehicle(disturbance=PUSH)
    answers = [outputs for outputs, _ in model.batch([A] * 8, SCENES, NONE)]
    runs = course_runs([A] * 8, substeps=5)
    for name in ("iae", "tv", "overshoot", "settling", "load_peak", "effort"):
        assert [a[name] for a in answers] == getattr(runs.quality["course"], name).tolist()
    assert [a["energy"] for a in answers] == runs.energy.tolist()


def test_the_robustness_of_the_fixed_designs():
    expected = np.array(ROBUSTNESS)
    answers = TrackedVehicle(**SHORT).batch([A] * 8 + [B] * 8, SCENES * 2, NONE)
    ms, radius = np.array([[a["ms"], a["spectral_radius"]] for a, _ in answers]).T
    assert ms == pytest.approx(expected[:, [0, 2]].T.ravel(), abs=1e-4)
    assert radius[:8] == pytest.approx(expected[:, 1], abs=1e-6)


@pytest.mark.parametrize(
    ("design", "printed"),
    [
        ((1.029, 12.9, 0.598, 0.0506, 0.133), 1.78845),
        ((1.0417, 99.85, 0.529, 0.0502, 0.917), 1.79987),
        ((0.670, 16.9, 0.705, 0.0504, 0.238), 1.45607),
    ],
)
def test_the_robustness_of_designs_near_the_front(design, printed):
    """The figures of specification 9.7 are the largest of 400 frequencies; the peaks are up to 3e-4 higher."""
    named = dict(zip(("kp", "ti", "td", "tf", "b"), design, strict=True))
    answers = TrackedVehicle(**SHORT).batch([named] * 8, SCENES, NONE)
    coarse = np.geomspace(0.01, np.pi / 0.05, 400)
    assert _sensitivity(named, 0.30, 5.0, coarse).max() == pytest.approx(printed, abs=6e-6)
    peak = _sensitivity(named, 0.30, 5.0, np.linspace(1.5, 2.5, 10_001)).max()
    assert max(a["ms"] for a, _ in answers) == pytest.approx(peak, abs=1e-7)


def _sensitivity(design, turning, speed, frequencies):
    """|1/(1+L)| of the course loop with four samples of delay, rewritten from the specification."""
    c = turning * 10_000.0 * 9.80665 * 2.67 * 2.16 / (4.0 * (0.15 * speed + 0.02))
    M = np.zeros((4, 4))
    M[0, 1], M[1, 1], M[1, 2] = 1.0, -c / 32_000.0, 2.16 * 30_000.0 / 32_000.0
    M[2, 2], M[2, 3] = -1.0 / 0.35, 1.0 / 0.35
    hold = expm(0.05 * M)
    z = np.exp(0.05j * frequencies)
    plant = np.linalg.solve(z[:, None, None] * np.eye(3) - hold[:3, :3], hold[:3, 3:])[:, 0, 0] / z**4
    a = design["tf"] / (design["tf"] + 0.05)
    derivative = design["td"] * (1.0 - a) / 0.05 * (1.0 - 1.0 / z) / (1.0 - a / z)
    controller = design["kp"] * (1.0 + 0.05 / design["ti"] / (z - 1.0) + derivative)
    return np.abs(1.0 / (1.0 + plant * controller))


def test_an_unstable_loop_has_no_margins():
    """Specification 5, rule 2: the formula alone would give ms = 1.0262."""
    outputs = figures({"kp": 20.0, "ti": 10.0, "td": 0.2, "tf": 0.1}, SCENES[0], **SHORT)
    assert outputs["spectral_radius"] == pytest.approx(1.0661, abs=1e-4)
    assert outputs["stab_degree"] == pytest.approx(-math.log(outputs["spectral_radius"]) / 0.05)
    assert outputs["ms"] == outputs["mt"] == outputs["noise_gain"] == math.inf
    assert outputs["gm"] == outputs["pm"] == outputs["delay_margin"] == -math.inf


def test_it_keeps_the_rules_of_models():
    check_model(
        TrackedVehicle, {"loop": "both", "horizon": 4.5, "disturbance": Disturbance(moment=6000.0, at=4.0)},
        designs=[BOTH, {**BOTH, "kp": 2.0, "ti": 5.0}],
        scenarios=[{"terrain": "paved", "speed": 4.0, "grade": 0.05}],
        refused=[{**BOTH, "ti": 0.0}, {"kp": 1.0}],
    )  # fmt: skip


@pytest.mark.parametrize("loop", ["course", "speed"])
def test_answers_do_not_depend_on_how_rows_are_divided(loop):
    names = A if loop == "course" else SPEED_PI
    designs = [{name: d[name] for name in names} for d in random_designs(11)]
    scenes = [{"terrain": s["terrain"], "speed": 2.0 + 0.1 * i} for i, s in enumerate(SCENES)]
    scenes = [scenes[i % 8] for i in range(11)]
    model = TrackedVehicle(loop=loop, **SHORT)
    together = model.batch(designs, scenes, NONE)
    for size in (1, 4):
        apart = [a for i in range(0, 11, size) for a in model.batch(designs[i : i + size], scenes[i : i + size], NONE)]
        assert apart == together


def test_arrays_are_the_samples_of_a_run():
    model = TrackedVehicle(disturbance=PUSH)
    outputs, arrays = model.evaluate(A, SCENES[5], frozenset(ARRAYS))
    assert set(arrays) == set(ARRAYS)
    assert {len(values) for values in arrays.values()} == {601}
    assert arrays["time"][[0, -1]].tolist() == [0.0, pytest.approx(30.0)]
    assert np.degrees(arrays["course_reference"][[0, 19, 20, -1]]).tolist() == pytest.approx([0.0, 0.0, 20.0, 20.0])
    assert outputs["tv"] == pytest.approx(np.abs(np.diff(arrays["course_command"])).sum(), abs=1e-12)
    assert list(model.evaluate(A, SCENES[5], frozenset({"speed"}))[1]) == ["speed"]


def test_the_speed_loop_is_measured_at_the_speed_after_the_step():
    outputs = figures(SPEED_PI, {"terrain": "snow_road", "speed": 2.0, "grade": 0.05, "mass_factor": 0.9}, loop="speed")
    assert 2.0 * outputs["iae"] == pytest.approx(4.76889, abs=5e-5)
    slower = figures(SPEED_PI, {"terrain": "paved", "speed": 2.0}, loop="speed", speed_step=-1.0, **SHORT)
    faster = figures(SPEED_PI, {"terrain": "paved", "speed": 3.0}, loop="speed", speed_step=-2.0, **SHORT)
    assert slower["ms"] == faster["ms"]
    assert slower["iae"] != faster["iae"]


def test_both_loops_are_tuned_at_once():
    calm = {**SHORT, "disturbance": Disturbance(at=2.0)}
    outputs = figures(BOTH, {"terrain": "paved", "speed": 2.0}, loop="both", step=1e-3, **calm)
    alone = figures(SPEED_PI, {"terrain": "paved", "speed": 2.0}, loop="speed", **SHORT)
    assert outputs["speed_ms"] == alone["ms"]
    assert outputs["speed_iae"] == pytest.approx(alone["iae"], rel=1e-3), "a small turn disturbs it little"
    assert outputs["speed_iae"] != alone["iae"]
    fixed = FixedController(**SPEED_PI)
    assert "speed_iae" not in figures(A, {"terrain": "paved", "speed": 2.0}, speed_regulator=fixed, **SHORT)


def test_a_gain_schedule_enters_time_and_robustness():
    at = {"terrain": "paved", "speed": 4.0}
    scheduled = figures({"kp": 3.0, "ti": 8.0, "td": 0.6}, at, gain_schedule=Schedule(2.0), **SHORT)
    plain = figures({"kp": 1.5, "ti": 8.0, "td": 0.6}, at, **SHORT)
    assert scheduled["ms"] == pytest.approx(plain["ms"], rel=1e-12)
    assert scheduled["iae"] == pytest.approx(plain["iae"], rel=1e-2), "speed falls a little in the turn"


def test_conditions_change_the_vehicle():
    base = {"terrain": "turf", "speed": 3.0}

    def ms(**conditions):
        return figures(A, {**base, **conditions}, **SHORT)["ms"]

    nominal = ms()
    assert ms(delay=0.2) == ms(delay_samples=4) == nominal
    assert ms(turning=0.9) == nominal
    assert ms(turning_at=0.5) == pytest.approx(nominal, rel=1e-9), "0.9 is in the middle of 0.8 to 1.0"
    assert ms(turning_at=0.0) == ms(turning=0.8) != nominal
    assert ms(mass_factor=1.2, yaw_inertia_factor=1.0) != nominal
    for name, value in (("yaw_inertia_factor", 1.25), ("force_factor", 1.1), ("lag", 0.6), ("delay_samples", 8)):
        assert ms(**{name: value}) != nominal
    fast = {"terrain": "turf", "speed": 5.0}
    peaks = {
        (f["iae"], f["energy"])
        for conditions in (
            {},
            {"power_factor": 0.9},
            {"rotating_mass_factor": 1.35},
            {"rolling_at": 1.0},
            {"adhesion": 0.2},
        )
        for f in [figures({**A, "kp": 3.0}, {**fast, **conditions}, **SHORT)]
    }
    assert len(peaks) == 5


def test_all_ranges_of_uncertainty_are_declared_for_samples():
    plugin = TrackedVehicle.__designopt__
    ranges = {n: f.quantity.sampled for n, f in plugin.conditions.items() if f.quantity and f.quantity.sampled}
    assert ranges == {
        "mass_factor": (0.9, 1.2), "yaw_inertia_factor": (0.85, 1.25), "rotating_mass_factor": (1.05, 1.35),
        "force_factor": (0.9, 1.1), "power_factor": (0.9, 1.1), "lag": (0.2, 0.6), "delay_samples": (1, 8),
        "rolling_at": (0, 1), "turning_at": (0, 1), "adhesion_at": (0, 1),
    }  # fmt: skip
    assert set(plugin.conditions) == set(RefinedConditions.__annotations__) >= set(Conditions.__annotations__)
    for terrain in TERRAINS.values():
        for name in ("rolling", "turning", "adhesion"):
            low, high = getattr(terrain, f"{name}_range")
            assert low <= getattr(terrain, name) <= high


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ({**A, "ti": 0.0}, "ti: 0 must be above 0"),
        ({**A, "tt": -1.0}, "tt: -1 must be above 0"),
        ({**A, "tf": 0.0}, "tf: 0 must be above 0"),
        ({**A, "td": -0.1}, "td: -0.1 must be at least 0"),
        ({**A, "b": 1.6}, "b: 1.6 must be between 0 and 1.5"),
        ({**A, "kp": math.nan}, "kp: nan must be above 0"),
        ({**A, "kp": math.inf}, "kp: inf must be above 0"),
        ({"kp": 1.0, "td": 0.1}, "ti: is missing; PID controllers need it"),
        ({**A, "kp_v": 1.0}, "kp_v: belongs to no controller that is tuned with loop: course"),
    ],
)
def test_a_design_that_makes_no_controller_is_refused_by_name(design, message):
    with pytest.raises(InvalidDesign, match=re.escape(message)):
        figures(design, SCENES[0])


def test_a_variable_that_the_kind_does_not_have_is_refused():
    with pytest.raises(InvalidDesign, match=r"td: PI controllers do not have it \(they have kp, ti, b, tt\)"):
        figures(A, SCENES[0], course_kind="PI")


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"delay": 0.213}, "delay: 0.213 s is not a whole number of integration steps of 0.01 s; the "
        "nearest is 0.21 s"),
        ({"delay": -0.1}, "delay: -0.1 s is not a whole number of integration steps of 0.01 s; the nearest is 0 s"),
        ({"delay": 0.2, "delay_samples": 4}, "delay: give it or delay_samples, not both"),
        ({"turning": 0.0}, "turning: 0 must be above 0"),
        ({"adhesion": -0.1}, "adhesion: -0.1 must be above 0"),
        ({"adhesion": 0.5, "adhesion_at": 0.5}, "adhesion: give it or adhesion_at, not both"),
        ({"speed": 0.0}, "speed: 0 m/s must be above 0"),
        (
            {"adhesion": 0.05, "grade": 0.1},
            "speed: 5 m/s cannot be held on paved with grade 0.1: 8.88 kN of traction are missing",
        ),
        ({"lag": math.nan}, "lag: nan must be above 0"),
    ],
)  # fmt: skip
def test_a_scenario_that_cannot_be_is_refused_with_the_reason(conditions, message):
    with pytest.raises(InvalidDesign, match=re.escape(message)):
        figures(A, {**SCENES[0], **conditions})


def test_a_run_that_diverges_is_reported_and_leaves_the_others_alone():
    model = TrackedVehicle(vehicle=Vehicle(power=1e9), **SHORT)
    diverged, regular = model.batch([A, A], [{**SCENES[0], "force_factor": 1e4, "adhesion": 1e4}, SCENES[0]], NONE)
    assert isinstance(diverged, Diverged)
    assert diverged.reason == "bounds"
    assert regular == model.evaluate(A, SCENES[0], NONE)


STUDY = """\
study: bad
model: {use: tracked_carrier_10t, disturbance: {moment: 6 kN m, at: 15 s}}
scenarios:
  - {name: one, terrain: paved, speed: 5 m/s}
space:
  kp: {low: 0.1, high: 10, scale: log}
  ti: {low: 1, high: 100, unit: s, scale: log}
  td: {low: 0, high: 1.5, unit: s}
  tf: {low: 0.05, high: 0.5, unit: s}
  b: {low: 0, high: 1}
  tt: 3 s
objectives:
  - {name: iae, minimize: iae}
  - {name: tv, minimize: tv}
solver: {use: nsga2, population: 20}
budget: {evaluations: 100}
"""


def problems(text):
    """The messages for a study file."""
    try:
        study_from_text(text, "bad.yaml", problem_of=Problem.from_study)
    except StudyError as error:
        return str(error)
    return ""


def test_the_study_of_these_tests_is_valid():
    assert problems(STUDY) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {mass: 0 kg}", "model.vehicle.mass"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {yaw_inertia: -1}", "model.vehicle.yaw_inertia"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {track_distance: 0}", "model.vehicle.track_distance"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {contact_length: 0}", "model.vehicle.contact_length"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, sample_time: 0 s", "model.sample_time"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, horizon: 0 s", "model.horizon"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {delay: -0.1 s}", "model.vehicle.delay"),
        ("moment: 6 kN m, at: 15 s}", "at: 15 s}, vehicle: {delay: 0.213 s}", "the nearest is 0.21 s"),
        ("at: 15 s}", "at: 1 s}", "model.disturbance"),
        ("at: 15 s}", "at: 30 s}", "model.horizon: 30 s must be after the disturbance at 30 s"),
        ("at: 15 s}", "at: 15.01 s}", "the nearest is 15 s"),
        ("at: 15 s}", "at: 15 s}, step: .nan", "model.step"),
        ("at: 15 s}", "at: 15 s}, speed_step: 1 m/s", "model.speed_step: has no effect with loop: course"),
        ("at: 15 s}", "at: 15 s}, speed_kind: PI", "model.speed_kind: has no effect with loop: course"),
        ("at: 15 s}", "at: 15 s}, course_regulator: {kp: 1}", "model.course_regulator: the design gives this"),
        ("at: 15 s}", "at: 15 s}, horizn: 20 s", "did you mean 'horizon'"),
        ("paved", "paaved", "scenarios.0.terrain"),
        ("paved", "paaved", "paved"),
        ("terrain: paved", "terrain: paved, adhesion: 0", "scenarios.0.adhesion"),
        ("terrain: paved", "terrain: paved, turning: -0.1", "scenarios.0.turning"),
        ("terrain: paved", "terrain: paved, grade: .nan", "scenarios.0.grade"),
        ("terrain: paved", "terrain: paved, grade: 0.2", "scenarios.0.grade"),
        ("terrain: paved, ", "", "scenarios.0"),
        ("ti: {low: 1,", "ti: {low: -1,", "space.ti"),
        ("td: {low: 0,", "td: {low: -1,", "space.td"),
        ("tf: {low: 0.05,", "tf: {low: 0,", "space.tf"),
        ("b: {low: 0, high: 1}", "b: {low: 0, high: 1.6}", "space.b"),
        ("tt: 3 s", "tt: 0 s", "space.tt"),
        ("tt: 3 s", "t_t: 3 s", "space.t_t"),
        ("kp: {low: 0.1, high: 10,", "kp: {low: 10, high: 0.1,", "space.kp"),
        ("kp: {low: 0.1,", "kp: {low: 0,", "space.kp"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_any_simulation(old, new, message):
    assert old in STUDY
    assert message in problems(STUDY.replace(old, new))
