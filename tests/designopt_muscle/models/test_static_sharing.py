"""The model ``muscle_sharing`` and its studies."""

from pathlib import Path

import numpy as np
import pytest
from designopt_mechanics.sharing.status import SharingStatus
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import TrialFrames, bundled_file, read_trial
from designopt_muscle.report.sharing import muscle_sharing
from opensim_cases import case, table
from small_models import hinge

import designopt
from designopt.plugin import InputFile, InvalidDesign, InvalidSetting, Unusable
from designopt.report import summary_table
from designopt.study.language.errors import StudyError
from designopt.testing.models import check_model

STUDIES = Path(__file__).parents[3] / "studies"


def file(folder: Path, name: str) -> InputFile:
    return InputFile(name, (folder / name).read_bytes())


def test_the_model_keeps_the_rules_and_its_derivatives_are_its_slopes():
    check_model(
        StaticSharing,
        settings={"assisted": "ankle_angle", "reserve": 5.0},
        designs=[
            {},
            {"strength": 1.3, "exponent": 3.0},
            {"strength": 0.9, "stiffness": 80.0, "rest": 0.05, "assistance": 0.2},
            {"strength": 0.05, "criterion": "minmax"},
        ],
        scenarios=[{}],
        refused=[],
    )


def test_a_trial_of_92_muscles_is_shared_as_opensim_does_from_model_motion_and_moments(opensim):
    """Geometry, strengths and sharing of our own against the reference minimiser of OpenSim's tables, p = 2."""
    problem = case(opensim, "gait2392")
    model = StaticSharing(
        model=file(opensim, "models/gait2392_subject01.osim"),
        coordinates=list(problem.balance.rows),
        window=(0.6, 1.6),
        reserve=1.0,
    )
    model.check()
    scenario = {
        "motion": file(opensim, "motion/gait2392_kinematics.sto"),
        "moments": file(opensim, "reference/gait2392_inverse_dynamics.csv"),
    }
    outputs, arrays = model.evaluate({}, scenario, frozenset({"activations", "muscles", "coordinates", "status"}))
    reference = problem.solution(2)
    expected = np.column_stack([reference[str(name)] for name in arrays["muscles"]])
    assert arrays["activations"].shape == expected.shape
    assert np.abs(arrays["activations"] - expected).max() <= 1e-6
    assert set(arrays["coordinates"]) == set(problem.balance.rows)
    assert outputs["infeasible_frames"] == 0.0
    assert outputs["mean_cost"] == pytest.approx(1.9247636, rel=1e-5)


def test_moments_of_driven_coordinates_are_added_to_their_drivers(opensim):
    """Without it the walking reference problem is infeasible (specs/muscle_force_sharing.md section 1.2)."""
    names, values = table(opensim / "reference" / "walk_scaled_80musc_inverse_dynamics.csv")
    trial = read_trial(
        file(opensim, "models/walk_scaled_80musc.osim"),
        file(opensim, "motion/walk_scaled_80musc_kinematics.sto"),
        file(opensim, "reference/walk_scaled_80musc_inverse_dynamics.csv"),
        frames=TrialFrames((values[0, 0], values[-1, 0])),
    )
    assert not [row for row in trial.balance.rows if row.endswith("_beta")]
    columns = dict(zip(names, values.T, strict=True))
    knee = trial.balance.moments[:, trial.balance.rows.index("knee_angle_r")]
    assert knee == pytest.approx(
        columns["knee_angle_r_moment"] + columns["knee_angle_r_beta_force"], abs=1e-9
    )  # slope 1


def test_the_bundled_leg_walks_and_its_moment_arms_are_those_of_a_leg():
    """Moment arms of muscles in walking, within what anatomical studies report (about 2 to 8 cm)."""
    trial = read_trial(bundled_file("planar_leg.osim"), bundled_file("walking_leg.csv"))
    assert len(trial.balance.columns) == 9
    crossing = np.abs(trial.balance.arms).max(axis=0) > 1e-6
    assert crossing.sum(axis=0).tolist() == [1, 1, 2, 2, 1, 1, 2, 1, 1]
    sizes = np.abs(trial.balance.arms)[:, crossing]
    assert sizes.min() > 0.015
    assert sizes.max() < 0.085
    assert not trial.fibres.outside()
    outputs, _ = StaticSharing().evaluate({}, {})
    assert outputs["infeasible_frames"] == 0.0
    assert outputs["peak_activation"] < 0.9


def test_a_device_that_gives_all_leaves_nothing_to_the_muscles():
    model = StaticSharing(assisted="ankle_angle", coordinates=["ankle_angle"])
    outputs, arrays = model.evaluate(
        {"assistance": 1.0}, {}, frozenset({"activations", "device_moment", "net_moments"})
    )
    assert np.abs(arrays["net_moments"]).max() == pytest.approx(0.0, abs=1e-12)
    assert outputs["peak_device"] == np.abs(arrays["device_moment"]).max()
    assert 100.0 < outputs["peak_device"] < 150.0  # N m: what an ankle gives when it pushes off
    free, _ = model.evaluate({}, {})
    assert free["peak_activation"] > 3 * outputs["peak_activation"]
    assert free["device_work"] == 0.0


def test_the_work_of_a_device_is_that_of_its_drive_and_a_spring_alone_has_none():
    """The drive takes the share a of the moment and leaves 1 - a: its power is a / (1 - a) net moment times rate."""
    model = StaticSharing(assisted="hip_flexion")
    spring = {"stiffness": 80.0, "rest": -0.2}
    names = frozenset({"time", "coordinates", "net_moments", "device_moment"})
    passive, at_spring = model.evaluate(spring, {}, names)
    assert passive["device_work"] == 0.0
    assert passive["peak_device"] > 10.0
    angle = -0.2 - at_spring["device_moment"] / 80.0
    rate = np.gradient(angle, at_spring["time"])
    for device in ({"stiffness": 0.0}, spring):
        outputs, arrays = model.evaluate({**device, "assistance": 0.4}, {}, names)
        net = arrays["net_moments"][:, arrays["coordinates"].tolist().index("hip_flexion")]
        work = np.trapezoid(np.abs(0.4 / 0.6 * net * rate), arrays["time"])
        assert outputs["device_work"] == pytest.approx(work, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"assisted": "elbow"}, "'elbow' is not a free coordinate"),
        ({"coordinates": ["hip_flexion", "toe"]}, "'toe' is not a free coordinate"),
        ({"model": InputFile("bad.osim", b"<a></b>")}, "bad.osim: line 1"),
        ({"reserve_exponent": 1.5}, "it must be 1 or at least 2"),
        ({"reserve": {"knee": 1.0}}, "'knee' is not a free coordinate"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        StaticSharing(**settings).check()


@pytest.mark.parametrize(
    ("scenario", "design", "message"),
    [
        ({"motion": InputFile("t.csv", b"time,flexion\n0,1\n1,2\n")}, {}, "no column contains a net moment"),
        ({"motion": InputFile("t.csv", b"time,knee\n0,1\n1,2\n")}, {}, "none of its columns is a coordinate"),
        ({"motion": InputFile("t.csv", b"time,flexion\n0,1\n0,2\n")}, {}, "t.csv"),
        ({"motion": InputFile("t.sto", b"nonsense")}, {}, "t.sto"),
        (
            {"motion": InputFile("t.csv", b"time,flexion,flexion_moment\n0,1,1\n1,2,1\n")},
            {"stiffness": 5.0},
            "a device needs a coordinate",
        ),
    ],
)
def test_trials_that_cannot_be_used_are_refused_in_a_sentence(scenario, design, message):
    with pytest.raises(InvalidDesign if design else Unusable, match=message):
        StaticSharing(model=InputFile("hinge.osim", hinge())).evaluate(design, scenario)


def test_frames_with_gaps_stay_in_the_trial_with_a_status():
    rows = [f"{0.01 * i:.2f},{0.1 * i if i != 7 else ''},{10.0 if i != 9 else ''}" for i in range(20)]
    motion = InputFile("t.csv", ("time,flexion,flexion_moment\n" + "\n".join(rows) + "\n").encode())
    model = StaticSharing(model=InputFile("hinge.osim", hinge()), reserve=20.0)
    outputs, arrays = model.evaluate({}, {"motion": motion}, frozenset({"status"}))
    assert outputs["unanswered_frames"] == 2.0
    assert arrays["status"].tolist()[7] == 120
    assert arrays["status"].tolist()[9] == 120
    assert (arrays["status"][[5, 6, 8, 10]] < 100).all()


def test_a_window_beside_the_trial_is_refused():
    with pytest.raises(TrialError, match="no frame lies between 5 and 6 s"):
        read_trial(bundled_file("planar_leg.osim"), bundled_file("walking_leg.csv"), frames=TrialFrames((5.0, 6.0)))


def test_the_elbow_study_compares_the_criteria_it_states(tmp_path):
    result = designopt.load(STUDIES / "elbow_criteria.yaml").run(tmp_path / "elbow.study")
    figures = result.outcomes.figures
    names = ["linear", "squares", "cubes", "tenth_power", "smallest_maximum", "soft_saturation"]
    peaks = dict(zip(names, figures["peak_activation"][:, 0], strict=True))
    mean = dict(zip(names, figures["mean_activation"][:, 0], strict=True))
    squared = dict(zip(names, figures["mean_squared_activation"][:, 0], strict=True))
    assert min(peaks, key=peaks.get) == "smallest_maximum"
    assert min(mean, key=mean.get) == "linear"
    assert min(squared, key=squared.get) == "squares"
    assert peaks["linear"] > peaks["squares"] > peaks["cubes"] > peaks["tenth_power"] > peaks["smallest_maximum"]
    section = muscle_sharing(result)
    assert section is not None
    assert len(section.figures) == 4  # activations, the balance, margins, fibres


def test_the_strength_study_finds_that_assistance_lowers_the_strength_needed(tmp_path):
    smaller = ("stages.0.solver.population=12", "stages.0.budget.evaluations=48", "report.tolerances.neighbours=0")
    study = designopt.load(STUDIES / "strength_margin.yaml", overrides=smaller)
    result = study.run(tmp_path / "margin.study")
    strength = result.outcomes.objectives[:, 0]
    alone, _ = StaticSharing(assisted="hip_flexion").evaluate({"strength": 0.1}, {})
    assert (strength > 0.1).all()
    assert (strength < 0.1 * alone["strength_needed"] - 0.02).any()


def test_the_gait_study_is_refused_without_its_data_and_runs_with_them(opensim, tmp_path):
    with pytest.raises(StudyError, match="opensim"):
        designopt.load(STUDIES / "gait_sharing.yaml")
    result = designopt.load(STUDIES / "gait_sharing.yaml", data={"opensim": opensim}).run(tmp_path / "gait.study")
    assert result.outcomes.figures["mean_cost"][0, 0] == pytest.approx(1.9247636, rel=1e-5)
    assert result.outcomes.figures["infeasible_frames"].max() == 0.0


def test_the_end_of_a_run_says_how_many_frames_have_a_number_missing(tmp_path):
    lines = (STUDIES / "elbow_flexion.csv").read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("time"))
    for i in range(begin + 20, begin + 26):
        lines[i] = ",".join([lines[i].split(",")[0], "NaN", lines[i].split(",")[2]])
    (tmp_path / "elbow_flexion.csv").write_text("\n".join(lines))
    for name in ("elbow_criteria.yaml", "elbow.osim"):
        (tmp_path / name).write_bytes((STUDIES / name).read_bytes())
    result = designopt.load(tmp_path / "elbow_criteria.yaml").run(tmp_path / "elbow.study")
    last = summary_table(result).splitlines()[-1]
    assert last.startswith("note: bad_input_frames is up to 6 in 6 of 6 evaluations: ")
    assert last.endswith("frames in which a needed number is missing or not finite")
    assert (result.outcomes.figures["unanswered_frames"] == 6).all()


def test_the_computed_moments_of_the_loaded_elbow_are_those_of_its_table():
    """elbow_hand.csv and elbow_flexion.csv are formulas of the same lift; the inertias are 0.05975 and 0.06 kg m^2."""
    files = {name: InputFile(name, (STUDIES / name).read_bytes()) for name in
             ("elbow.osim", "elbow_flexion.csv", "elbow_hand.xml", "elbow_hand.csv")}  # fmt: skip
    computed = StaticSharing(model=files["elbow.osim"], inverse_dynamics="compute")
    motion = {"motion": files["elbow_flexion.csv"]}
    loads = {"external_loads": files["elbow_hand.xml"], "external_forces": files["elbow_hand.csv"]}
    _, arrays = computed.evaluate({}, {**motion, **loads}, frozenset({"net_moments"}))
    _, read = StaticSharing(model=files["elbow.osim"]).evaluate({}, motion, frozenset({"net_moments"}))
    assert np.abs(arrays["net_moments"] - read["net_moments"]).max() <= 0.02
    assert np.abs(read["net_moments"]).max() > 10.0


def test_frames_that_need_a_large_reserve_are_counted():
    strong, _ = StaticSharing(reserve=4.0).evaluate({}, {}, frozenset())
    weak, arrays = StaticSharing(reserve=4.0).evaluate({"strength": 0.3}, {}, frozenset({"status"}))
    assert strong["reserve_frames"] == 0.0
    assert weak["reserve_frames"] == (np.asarray(arrays["status"]) == SharingStatus.RESERVE_ACTIVE).sum() > 0


def test_reserves_by_coordinate_act_there_alone():
    every = StaticSharing(reserve=4.0).evaluate({"strength": 0.3}, {}, frozenset({"reserves"}))[1]["reserves"]
    model = StaticSharing(reserve={"knee_angle": 4.0})
    model.check()
    _, arrays = model.evaluate({"strength": 0.3}, {}, frozenset({"reserves", "coordinates"}))
    knee = list(arrays["coordinates"]).index("knee_angle")
    remaining = np.arange(3) != knee
    assert np.nanmax(np.abs(every[:, remaining])) > 0.0
    assert np.nanmax(np.abs(arrays["reserves"][:, knee])) > 0.0
    assert not np.nan_to_num(arrays["reserves"][:, remaining]).any()
