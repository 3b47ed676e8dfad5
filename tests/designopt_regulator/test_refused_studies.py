"""Bad input of the specification, section 10: refused before anything runs, at its place in the study file."""

import re
from pathlib import Path

import pytest

from designopt.problem import Problem
from designopt.study.language.errors import Issue, StudyError
from designopt.study.load import study_from_text

COURSE = (Path(__file__).parents[2] / "studies" / "course_pid_2obj.yaml").read_text(encoding="utf-8")
COURSE = re.sub(r', why: "[^"]*"', "", COURSE.replace(", tolerance: 1 %", "").replace(", tolerance: 0.01", ""))
MODEL = "  loop: course "
TURF = "{name: turf_5, terrain: turf, speed: 5 m/s}"
IAE = "- {name: iae, minimize: iae, over: worst}\n"


def issues(find: str, replacement: str) -> list[Issue]:
    """What is wrong with the course study when one piece of it is another."""
    assert COURSE.count(find) == 1
    try:
        study_from_text(COURSE.replace(find, replacement), "course.yaml", problem_of=Problem.from_study)
    except StudyError as error:
        return list(error.issues)
    return []


def test_the_study_itself_is_accepted() -> None:
    assert issues("seed: 1", "seed: 2") == []


#: What is replaced, by what, the path, a piece of the message.
CASES = [
    # numbers that have to be positive
    (MODEL, "  vehicle: {mass: 0 kg}\n" + MODEL, "model.vehicle.mass", "must be above 0 kg, not 0"),
    (MODEL, "  vehicle: {yaw_inertia: -1}\n" + MODEL, "model.vehicle.yaw_inertia", "must be above 0"),
    (MODEL, "  vehicle: {track_distance: 0 m}\n" + MODEL, "model.vehicle.track_distance", "must be above 0"),
    (MODEL, "  vehicle: {contact_length: 0 m}\n" + MODEL, "model.vehicle.contact_length", "must be above 0"),
    (MODEL, "  sample_time: 0 s\n" + MODEL, "model.sample_time", "must be above 0 s, not 0"),
    ("horizon: 30 s", "horizon: 0 s", "model.horizon", "must be above 0 s, not 0"),
    ("{low: 1 s, high: 100 s, unit: s, scale: log}", "{low: 0 s, high: 9 s}", "space.ti.low", "must be above 0 s"),
    ("kp: {low: 0.1, high: 10,", "kp: {low: 0.1, high: 1e40,", "space.kp", "1e+40 is beyond what can be computed"),
    ("tt: 3 s", "tt: 0 s", "space.tt.value", "must be above 0 s, not 0"),
    ("    low: 0.05 s", "    low: 0 s", "space.tf.low", "must be above 0 s"),
    ("td: {low: 0 s", "td: {low: -0.1 s", "space.td.low", "must be at least 0 s"),
    ("b: {low: 0, high: 1}", "b: {low: 0, high: 1.6}", "space.b.high", "must be at most 1.5"),
    # delays
    (MODEL, "  vehicle: {delay: -0.1 s}\n" + MODEL, "model.vehicle.delay", "must be at least 0 s"),
    (MODEL, "  vehicle: {delay: 0.123 s}\n" + MODEL, "model.vehicle", "the nearest is 0.12 s"),
    (TURF, "{name: turf_5, terrain: turf, speed: 5, delay: 0.206}", "scenarios.6.delay", "the nearest is 0.21 s"),
    # times in order
    ("at: 15 s", "at: 1 s", "model.disturbance", "1 s must be after the step at 1 s"),
    ("horizon: 30 s", "horizon: 15 s", "model.horizon", "15 s must be after the disturbance at 15 s"),
    # the ground
    (TURF, "{name: turf_5, terrain: turv, speed: 5}", "scenarios.6.terrain", "did you mean 'turf'?"),
    (TURF, "{name: turf_5, terrain: turf, speed: 5, adhesion: 0}", "scenarios.6.adhesion", "must be above 0, not 0"),
    (TURF, "{name: turf_5, terrain: turf, speed: 5, turning: 0}", "scenarios.6.turning", "must be above 0, not 0"),
    # 98.07 kN of weight: 0.09 of it against a traction of 0.05, and the drag of 2.2 * 5^2 N
    (TURF, "{name: turf_5, terrain: turf, speed: 5, adhesion: 0.05}", "scenarios.6.speed",
     "in scenario 'turf_5': 5 m/s cannot be held on turf with grade 0: 3.98 kN of traction are missing"),
    ("speed: [2 m/s, 5 m/s]", "speed: [2, 60]", "report.validate.scenarios", "kN of traction are missing"),
    # space and controller
    ("b: {low: 0, high: 1}", "b: {low: 1, high: 1}", "space.b", "low (1.0) must be below high (1.0)"),
    ("kp: {low: 0.1,", "kp: {low: 0,", "space.kp.low", "log scale needs low above 0"),
    (MODEL, "  course_kind: PI\n" + MODEL, "space.td", "PI controllers do not have it (they have kp, ti, b, tt)"),
    (MODEL, "  course_kind: I_PD\n" + MODEL, "space.b", "I_PD controllers do not have it"),
    ("  ti: {low: 1 s, high: 100 s, unit: s, scale: log}\n", "", "space", "ti: is missing; PID controllers need it"),
    ("  tt: 3 s\n", "  tt: 3 s\n  kp_v: 1\n", "space.kp_v", "belongs to no controller that is tuned with loop: course"),
    # names, goals, choices
    ("name: turf_5,", "name: turf_2,", "scenarios.6.name", "there is another scenario named 'turf_2'"),
    (IAE, IAE + "  " + IAE, "objectives.1.name", "another objective named 'iae'"),
    ("  tt: 3 s\n", "  tt: 3 s\n  kp: 2\n", "", "'kp' is given twice"),
    ("  - {name: tv, minimize: tv, over: worst}\n", "", "stages.1.solver", "needs two objectives; for one use"),
    ("choose: [knee, topsis, utopia, robust]", "choose: [topsis: {weights: {iae: -1, tv: 1}}]",
     "report.choose.0.topsis.weights.iae", "must be at least 0"),
    ("choose: [knee, topsis, utopia, robust]", "choose: [topsis: {weights: {iae: 0, tv: 0}}]",
     "report.choose.0.topsis.weights", "at least one weight must be above 0"),
    ("choose: [knee, topsis, utopia, robust]", "choose: [topsis: {weights: {iae: 1, ms: 1}}]",
     "report.choose.0.topsis.weights.ms", "there is no objective named 'ms'"),
    # numbers that are none, keys that are none
    ("kp: {low: 0.1, high: 10,", "kp: {low: 0.1, high: .inf,", "space.kp.high", "finite"),
    ("horizon: 30 s", "horizon: .nan", "model.horizon", "finite"),
    ("horizon: 30 s", "horizn: 30 s", "model", "unknown key 'horizn'; did you mean 'horizon'?"),
]  # fmt: skip


@pytest.mark.parametrize(("find", "replacement", "path", "message"), CASES)
def test_bad_input_is_refused_at_its_place(find: str, replacement: str, path: str, message: str) -> None:
    reported = issues(find, replacement)
    assert any(issue.path == path and message in issue.message for issue in reported), [
        (i.path, i.message) for i in reported
    ]
    assert all(issue.line is not None for issue in reported)
