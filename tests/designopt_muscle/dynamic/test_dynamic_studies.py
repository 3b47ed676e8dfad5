"""Studies of dynamic sharing: a device chosen with the motion, a calibration over two trials, EMG from files."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from designopt_mechanics.sharing.statement.criteria import Tracking
from designopt_muscle.curves import OPENSIM
from designopt_muscle.dynamic_sharing.information import identifiability
from designopt_muscle.dynamic_sharing.share import share_dynamic, share_trials
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel, ScaledMuscles, TrackedFibres
from designopt_muscle.models.emg import MeasuredActivity
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.report.calibration import muscle_calibration
from designopt_muscle.report.excitations import muscle_excitations
from scipy.optimize import minimize

import designopt
from designopt.plugin import InputFile, InvalidDesign, InvalidSetting, Unusable
from designopt.study.language.errors import StudyError

STUDIES = Path(__file__).parents[3] / "studies"
TRIALS = STUDIES / "calibration_trials"
#: The factors with which the envelopes of the trials were made, as their files say.
TRUTH = {"slack_soleus": 1.03, "slack_gastrocnemius": 0.98, "fibre_vasti": 1.1, "force_hamstrings": 0.8}


def file(name):
    return InputFile(name, (TRIALS / name).read_bytes())


def emg(text, name="emg.csv"):
    return InputFile(name, text.encode())


QUICK = {"window": (0.7, 1.0), "mesh": 0.05, "sharpness": 1.0}


def envelopes(value=0.3, end=2.0):
    rows = [f"{t:.3f},{value},{value / 2}" for t in np.arange(0.0, end, 0.01)]
    return emg("time,SOL,GAS\n" + "\n".join(rows) + "\n")


# ------------------------------------------------------------------------------------------------------- device


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    coarse = ("model.mesh=0.05", "stages.together.solver.intervals=26", "report.tolerances.neighbours=1")
    study = designopt.load(STUDIES / "device_with_motion.yaml", overrides=coarse)
    return study.run(tmp_path_factory.mktemp("device") / "device.study")


def test_one_program_and_the_nested_search_choose_the_same_spring(device):
    """Both minimise one function of two numbers; the program finds its minimum without evaluating it."""
    (choice,) = device.programs()
    program = choice.optimum
    tried = np.abs(device.outcomes.X[:, 0] - program["stiffness"]) > 1e-6  # by the nested search alone
    stiffness, rest = device.outcomes.X[tried][device.outcomes.objectives[tried, 0].argmin()]
    assert stiffness == pytest.approx(program["stiffness"], rel=5e-3)
    assert rest == pytest.approx(program["rest"], abs=0.2)  # degrees
    best = float(device.outcomes.objectives[tried, 0].min())
    assert choice.figures["program(objective)"] == pytest.approx(best, rel=1e-5)
    assert tried.sum() >= 5


def test_static_sharing_would_choose_a_similar_spring(device):
    """Frame by frame with rigid tendons 71.4 N m/rad and 9.2 degrees are best: near, and not the same."""
    stiffness, rest = best_static_spring()
    assert stiffness == pytest.approx(71.4, abs=0.2)
    assert np.degrees(rest) == pytest.approx(9.2, abs=0.1)
    assert device.programs()[0].optimum["stiffness"] == pytest.approx(stiffness, rel=0.1)
    assert device.programs()[0].optimum["rest"] == pytest.approx(np.degrees(rest), abs=5.0)


def test_the_spring_spares_the_muscles(device):
    bare, _ = DynamicSharingModel(assisted="hip_flexion", sharpness=1.0, mesh=0.05).evaluate({}, {})
    assert device.programs()[0].figures["program(objective)"] < 0.9 * bare["objective"]


@cache
def best_static_spring():
    """The spring at the hip with the least mean squared activation, frame by frame with rigid tendons."""
    model = StaticSharing(assisted="hip_flexion", reserve=10.0, reserve_weight=10.0)

    def cost(x):
        design = {"stiffness": 100.0 * x[0], "rest": x[1]}
        slopes = model.gradient(design, {})["mean_cost"]
        return model.evaluate(design, {})[0]["mean_cost"], np.array([100.0 * slopes["stiffness"], slopes["rest"]])

    minimum = minimize(cost, [0.7, 0.2], jac=True, method="L-BFGS-B", bounds=[(0.0, 2.0), (-1.5, 1.5)])
    return 100.0 * minimum.x[0], minimum.x[1]


# -------------------------------------------------------------------------------------------------- calibration


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    study = designopt.load(STUDIES / "calibration.yaml", overrides=("stages.calibrated.solver.starts=1",))
    return study.run(tmp_path_factory.mktemp("calibration") / "calibration.study")


def test_calibration_recovers_what_the_trials_determine(calibration):
    """Tendons to 0.3 %; fibre and strength, of which trials tell little and which effort shifts, to their widths."""
    names = calibration.problem.space.names
    values = dict(zip(names, calibration.outcomes.X[0], strict=True))
    informations = [calibration.arrays(0, s)["information"] for s in (0, 1)]
    objective = float(calibration.outcomes.figures["objective"][0].sum())
    identified = identifiability(list(TRUTH), informations, 0.01 * objective)
    widths = dict(zip(TRUTH, identified.widths, strict=True))
    for name in ("slack_soleus", "slack_gastrocnemius"):
        assert values[name] == pytest.approx(TRUTH[name], rel=3e-3)
        assert widths[name] < 0.01
    for name in ("fibre_vasti", "force_hamstrings"):
        assert abs(values[name] - TRUTH[name]) < 1.5 * widths[name]
        assert widths[name] > 0.03


def test_the_report_of_a_calibration_tells_values_and_widths(calibration):
    section = muscle_calibration(calibration)
    (table,) = section.tables
    assert [row[0] for row in table.rows] == list(TRUTH)
    assert all(row[2] <= row[1] <= row[3] for row in table.rows)
    assert all(row[4] >= row[5] > 0 for row in table.rows)  # following others widen
    assert [sum(row[6:]) for row in table.rows] == pytest.approx([1.0] * 4)
    assert any("determine the combination" in text and "fibre_vasti" in text for text in section.findings)


def test_the_envelopes_of_the_trials_are_those_of_the_factors_that_their_files_name():
    """Without noise and with the factors of the truth the program tracks them to the noise of 0.01 that was added."""
    study = designopt.load(STUDIES / "calibration.yaml").definition
    model = study.model.build()
    scenario = {"motion": file("first.csv"), "emg": file("first_emg.csv")}
    right, arrays = model.evaluate(TRUTH, scenario, frozenset({"signals", "excitations"}))
    error = arrays["excitations"] - arrays["signals"]
    assert np.sqrt(np.nanmean(error**2)) < 0.01
    wrong, _ = model.evaluate({**TRUTH, "slack_soleus": 1.0}, scenario)
    assert wrong["tracking_error"] > 2.0 * right["tracking_error"]


@pytest.mark.slow
def test_without_noise_calibration_finds_the_factors_to_a_thousandth():
    """EMG of all muscles, made by the model itself: nothing but the tolerances is left."""
    factors = {name: ScaledMuscles(name.split("_")[0], [name.split("_")[1]]) for name in TRUTH}
    trials = []
    for name in ("first", "second"):
        model = DynamicSharingModel(sharpness=1.0, reserve_weight=1e5, factors=factors)
        trial, _ = model._trial({"motion": file(f"{name}.csv")})
        truth = share_dynamic(trial, TRUTH)
        terms = replace(trial.terms, effort=0.0, rates=1e-8, tracking=Tracking(truth.excitations))
        trials.append(replace(trial, terms=terms, reserves=replace(trial.reserves, weight=1e3)))
    first, second = share_trials(trials, dict.fromkeys(TRUTH, (0.7, 1.4)))
    assert first.converged
    assert first.parameters == second.parameters
    assert [first.parameters[name] for name in TRUTH] == pytest.approx(list(TRUTH.values()), abs=1e-3)


# ------------------------------------------------------------------------------------------------------------ EMG


def tracking(**more):
    return MeasuredActivity({"soleus": "SOL", "gastrocnemius": "GAS"}, **more)


def test_excitations_follow_the_emg_of_a_file():
    bare, plain = DynamicSharingModel(**QUICK).evaluate({}, {}, frozenset({"excitations", "muscles"}))
    model = DynamicSharingModel(**QUICK, emg=tracking(weight=100.0))
    model.check()
    outputs, arrays = model.evaluate({}, {"emg": envelopes()}, frozenset({"excitations", "signals"}))
    j = list(plain["muscles"]).index("soleus")
    assert arrays["signals"][:, j] == pytest.approx(0.3)
    assert np.isfinite(arrays["signals"]).any(axis=0).sum() == 2
    assert np.abs(arrays["excitations"][:, j] - 0.3).mean() < 0.5 * np.abs(plain["excitations"][:, j] - 0.3).mean()
    assert outputs["objective"] > bare["objective"]
    assert outputs["tracking_error"] > 0.0


def test_emg_acts_after_its_delay():
    """A ramp of 0.2 per second delayed by 0.05 s is 0.01 lower."""
    rows = "\n".join(f"{t:.2f},{0.2 * t:.6f}" for t in np.arange(0.0, 2.0, 0.01))
    ramp = emg(f"time,SOL\n{rows}\n")
    signals = []
    for delay in (0.0, 0.05):
        model = DynamicSharingModel(**QUICK, emg=MeasuredActivity({"soleus": "SOL"}, delay=delay))
        trial, _ = model._trial({"emg": ramp})
        signals.append(trial.terms.tracking.signals[:, trial.muscles.names.index("soleus")])
    assert signals[0] - signals[1] == pytest.approx(np.full(len(signals[0]), 0.01), abs=1e-6)


def test_synergies_factored_from_the_emg_command_the_measured_muscles():
    model = DynamicSharingModel(**QUICK, emg=tracking(), synergies_of_emg=1)
    model.check()
    _, arrays = model.evaluate({}, {"emg": envelopes()}, frozenset({"excitations", "muscles"}))
    excitations = dict(zip(arrays["muscles"], arrays["excitations"].T, strict=True))
    assert excitations["gastrocnemius"] == pytest.approx(0.5 * excitations["soleus"], abs=1e-6)  # as in the file


def test_given_synergies_command_their_muscles():
    model = DynamicSharingModel(**QUICK, synergies={"calf": {"soleus": 1.0, "gastrocnemius": 0.8}})
    model.check()
    _, arrays = model.evaluate({}, {}, frozenset({"excitations", "muscles"}))
    excitations = dict(zip(arrays["muscles"], arrays["excitations"].T, strict=True))
    assert excitations["gastrocnemius"] == pytest.approx(0.8 * excitations["soleus"], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("time,SOL\n0,0.1\n0.5,0.1\n1.0,0.1\n", {}, "GAS"),
        ("time,SOL,GAS\n" + "\n".join(f"{0.1 * i:.1f},300,10" for i in range(20)) + "\n", {}, "signal: raw"),
        ("time,SOL,GAS\n" + "\n".join(f"{5 + 0.1 * i:.1f},0.3,0.1" for i in range(20)) + "\n", {},
         "no sample within the motion"),
        ("time,SOL,GAS\n" + "\n".join(f"{0.1 * i:.1f},,0.1" for i in range(20)) + "\n", {},
         "signal of 'soleus' has no sample"),
        ("time,SOL,GAS\n" + "\n".join(f"{0.1 * i:.1f},1.4,0.1" for i in range(20)) + "\n", {"band": (-0.1, 0.1)},
         "leaves none of the excitations"),
    ],
)  # fmt: skip
def test_emg_that_cannot_be_used_is_reported(text, more, message):
    model = DynamicSharingModel(**QUICK, emg=tracking(**more))
    with pytest.raises(Unusable, match=message):
        model.evaluate({}, {"emg": emg(text)})


def test_emg_with_gaps_is_tracked_where_it_is():
    rows = [f"{t:.2f},{'' if 0.8 < t < 0.9 else 0.3},0.1" for t in np.arange(0.0, 2.0, 0.01)]
    model = DynamicSharingModel(**QUICK, emg=tracking())
    trial, _ = model._trial({"emg": emg("time,SOL,GAS\n" + "\n".join(rows) + "\n")})
    signal = trial.terms.tracking.signals[:, trial.muscles.names.index("soleus")]
    gap = (trial.balance.time > 0.8) & (trial.balance.time < 0.9)
    assert np.isnan(signal[gap]).all()
    assert signal[~gap] == pytest.approx(0.3)
    outputs, _ = model.evaluate({}, {"emg": emg("time,SOL,GAS\n" + "\n".join(rows) + "\n")})
    assert np.isfinite(outputs["objective"])


def test_fibres_follow_the_measured_lengths_of_a_file():
    _, plain = DynamicSharingModel(**QUICK).evaluate({}, {}, frozenset({"time", "fibre_lengths", "muscles"}))
    j = list(plain["muscles"]).index("soleus")
    optimal = DynamicSharingModel(**QUICK)._trial({})[0].muscles.optimal[j]
    shorter = 0.97 * plain["fibre_lengths"][:, j] * optimal
    table = "\n".join(f"{t:.4f},{v:.6f}" for t, v in zip(plain["time"], shorter, strict=True))
    model = DynamicSharingModel(**QUICK, fibres=TrackedFibres({"soleus": "SOL"}, weight=1000.0))
    model.check()
    outputs, arrays = model.evaluate({}, {"fibres": emg(f"time,SOL\n{table}\n")}, frozenset({"fibre_lengths"}))
    before = np.abs(plain["fibre_lengths"][:, j] * optimal - shorter).mean()
    assert np.abs(arrays["fibre_lengths"][:, j] * optimal - shorter).mean() < 0.9 * before
    assert outputs["fibre_error"] > 0.0
    with pytest.raises(Unusable, match="in metres"):
        model.evaluate({}, {"fibres": emg("time,SOL\n0,45\n2,46\n")})
    with pytest.raises(Unusable, match="no length within the motion"):
        model.evaluate({}, {"fibres": emg("time,SOL\n5,0.04\n6,0.04\n")})
    with pytest.raises(InvalidDesign, match="'fibres' belong together"):
        model.evaluate({}, {})


def test_a_file_and_a_setting_of_emg_belong_together():
    with pytest.raises(InvalidDesign, match="belong together"):
        DynamicSharingModel(**QUICK).evaluate({}, {"emg": envelopes()})
    with pytest.raises(InvalidDesign, match="belong together"):
        DynamicSharingModel(**QUICK, emg=tracking()).evaluate({}, {})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"emg": MeasuredActivity({"solus": "SOL"})}, "'solus' is not a muscle"),
        ({"synergies": {"calf": {"soleus": 0.0}}}, "'calf' moves no muscle"),
        ({"synergies_of_emg": 2}, "needs 'emg'"),
        ({"emg": MeasuredActivity({"soleus": "SOL"}), "synergies_of_emg": 2}, "more of them than measured muscles"),
        ({"factors": {"f": ScaledMuscles("slack", ["psoas"])}}, "'psoas' is not a muscle"),
        ({"factors": {"rest": ScaledMuscles("slack", ["soleus"])}}, "already an input of the model"),
        ({"factors": {"reserve_x": ScaledMuscles("slack", ["soleus"])}}, "a variable of the program"),
        ({"assisted": "hip"}, "'hip' is not a free coordinate"),
    ],
)
def test_settings_that_do_not_fit_the_model_are_refused(more, message):
    with pytest.raises(InvalidSetting, match=message):
        DynamicSharingModel(**more).check()


def test_a_negative_delay_is_refused_when_the_study_is_read(tmp_path):
    (tmp_path / "emg.csv").write_text(envelopes().content.decode())
    (tmp_path / "late.yaml").write_text(
        "study: late\nmodel:\n  use: dynamic_sharing\n  emg: {track: {soleus: SOL}, delay: -0.05 s}\n"
        "scenarios:\n  - {name: walk, emg: emg.csv}\nsolver: {use: evaluate}\n"
    )
    with pytest.raises(StudyError, match="delay"):
        designopt.load(tmp_path / "late.yaml")


# ----------------------------------------------------------------------------------------------- window and report


def test_a_margin_around_the_window_is_solved_and_left_out():
    """The free beginning no longer weighs: the outputs of the window change, and its integrals are its own."""
    with_margin = DynamicSharingModel(**QUICK)
    without = DynamicSharingModel(**QUICK, margin=0)
    one, arrays = with_margin.evaluate({}, {}, frozenset({"time", "excitations", "fibre_lengths"}))
    without_margin, bare = without.evaluate({}, {}, frozenset({"time", "excitations"}))
    assert arrays["time"] == pytest.approx(bare["time"])
    assert len(arrays["fibre_lengths"]) == len(bare["time"])
    assert one["effort"] == pytest.approx(without_margin["effort"], rel=0.5)
    assert one["effort"] != pytest.approx(without_margin["effort"], rel=1e-6)
    with pytest.raises(InvalidSetting, match="margin: 0"):
        with_margin.trajectory_problem({})
    assert with_margin.gradient({"strength": 1.0}, {}) == {}
    assert without.gradient({"strength": 1.0}, {})["objective"]["strength"] < 0.0


def test_a_motion_with_a_gap_is_refused():
    rows = (TRIALS / "first.csv").read_text().splitlines()
    start = next(i for i, row in enumerate(rows) if row.startswith("time"))
    numbers = rows[start + 10].split(",")
    rows[start + 10] = ",".join([numbers[0], "", *numbers[2:]])
    with pytest.raises(Unusable, match="without gaps"):
        DynamicSharingModel().evaluate({}, {"motion": emg("\n".join(rows), "gap.csv")})


def test_a_window_beyond_the_motion_is_refused():
    with pytest.raises(Unusable, match=r"the motion runs from 0\.6 to .* s, not from 0\.7 to 9 s"):
        DynamicSharingModel(window=(0.7, 9.0)).evaluate({}, {})


def test_the_report_draws_signals_and_fibres_on_their_curves(calibration):
    section = muscle_excitations(calibration)
    titles = [figure.title for figure in section.figures]
    assert {"Excitation and activation", "Forces along the tendons", "Balance about hip_flexion", "Reserves",
            "Force over fibre length", "Force over fibre speed"} <= set(titles)  # fmt: skip
    assert "measured signals" in section.figures[0].note
    markers = [trace for trace in section.figures[0].plot["data"] if trace["mode"] == "markers"]
    assert len(markers) == 7  # muscles with an envelope
    active = section.figures[titles.index("Force over fibre length")].plot["data"][0]
    assert active["y"] == pytest.approx(OPENSIM.active_length(active["x"]), abs=1e-4)


# ----------------------------------------------------------------------------------------------- the page

PAGE = Path(__file__).parents[3] / "docs" / "dynamic_sharing.md"


def block(language):
    text = PAGE.read_text(encoding="utf-8")
    (content,) = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return content


def test_the_lines_for_python_of_the_page_run_as_printed(capsys):
    names: dict = {}
    exec(compile(block("python"), str(PAGE), "exec"), names)
    assert names["sharing"].converged
    assert "Solved to the tolerance." in capsys.readouterr().out


def test_the_study_of_the_page_runs_as_printed(tmp_path):
    (tmp_path / "study.yaml").write_text(block("yaml"))
    (tmp_path / "emg.csv").write_text(envelopes().content.decode())
    result = designopt.load(tmp_path / "study.yaml").run(tmp_path / "store", executor="serial")
    assert result.outcomes.figures["tracking_error"][0, 0] > 0.0


def test_the_table_of_the_page_names_all_settings():
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    settings = {name for name in DynamicSharingModel.__dataclass_fields__ if not name.startswith("_")}
    assert named == settings - {"model", "cutoff"}  # as for static sharing
