"""Model `marker_filter`: signal lost and noise left are those of a known motion with known noise."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from designopt_recordings.files.text import input_file
from designopt_recordings.files.write import trc_text
from designopt_recordings.marker_filter import MarkerFilter
from designopt_recordings.recording import Recording
from designopt_recordings.signals.derivatives import derivatives
from designopt_recordings.signals.filters import lowpass

from designopt import Diverged, InputFile, InvalidDesign, load
from designopt.store.provenance import recorded_remarks
from designopt.store.result import Result
from designopt.testing import check_model

STUDIES = Path(__file__).parents[2] / "studies"
TRIAL = input_file(STUDIES / "marker_trials" / "normal.trc")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that made the bundled trials."""
    spec = importlib.util.spec_from_file_location("made_trials", Path(__file__).with_name("made_trials.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def evaluated(cutoff: float, trial: InputFile = TRIAL) -> dict[str, float]:
    model = MarkerFilter()
    outputs, _ = model.evaluate(
        {"cutoff": cutoff}, {"trial": trial}, frozenset(), model.prepare_scenario({"trial": trial})
    )
    return dict(outputs)


def test_the_model_keeps_the_rules() -> None:
    check_model(
        MarkerFilter,
        designs=[{"cutoff": 3.0}, {"cutoff": 12.0}],
        scenarios=[{"trial": TRIAL}],
        refused=[{"cutoff": 50.0}],
    )


def test_the_bundled_trials_are_the_ones_that_the_script_makes(script: ModuleType) -> None:
    for name in script.TRIALS:
        assert (STUDIES / "marker_trials" / f"{name}.trc").read_text() == trc_text(script.trial(name))


@pytest.mark.parametrize("name", ["slow", "normal", "fast"])
def test_known_noise_is_found(script: ModuleType, name: str) -> None:
    noise, _ = script.TRIALS[name]
    outputs = evaluated(6.0, input_file(STUDIES / "marker_trials" / f"{name}.trc"))
    np.testing.assert_allclose(outputs["noise"], noise, rtol=0.08)  # the line of the analysis holds some signal too
    assert outputs["missing"] == 6 / 1600
    assert outputs["bad_frames"] == 0.0


@pytest.mark.parametrize("cutoff", [2.0, 4.0, 6.0])
def test_distortion_is_what_the_filter_does_to_the_true_motion(script: ModuleType, cutoff: float) -> None:
    _, steps = script.TRIALS["normal"]
    truth = script.motion(steps, np.arange(400) / 100.0)
    expected = 1e3 * np.sqrt(np.mean((truth - lowpass(truth, 100.0, cutoff)) ** 2))
    np.testing.assert_allclose(evaluated(cutoff)["distortion"], expected, rtol=0.05)


@pytest.mark.parametrize("cutoff", [4.0, 10.0])
def test_noise_is_what_the_filter_leaves_of_white_noise(cutoff: float) -> None:
    outputs = evaluated(cutoff)
    noise = outputs["noise"] * np.random.default_rng(0).normal(size=(20_000, 4))
    left = lowpass(noise, 100.0, cutoff)
    np.testing.assert_allclose(outputs["position_noise"], left.std(), rtol=0.03)
    _, acceleration = derivatives(np.arange(20_000) / 100.0, left)
    np.testing.assert_allclose(outputs["acceleration_noise"], 1e-3 * acceleration.std(), rtol=0.03)


def test_a_cutoff_beyond_half_the_rate_is_refused() -> None:
    with pytest.raises(InvalidDesign, match="a cut-off of 50 Hz is not possible at 100 Hz"):
        evaluated(50.0)


def test_a_trial_that_cannot_be_used_says_where() -> None:
    cut = InputFile("cut.trc", TRIAL.content[:-200])
    with pytest.raises(Diverged, match=r"cut.trc, line \d+: .* the file ends in the middle of this row"):
        evaluated(6.0, cut)
    still = Recording(100.0, np.arange(200) / 100.0, ("A",), np.ones((200, 1, 3)))
    with pytest.raises(Diverged, match="no marker shows white noise"):
        evaluated(6.0, InputFile("still.trc", trc_text(still).encode()))


def run(folder: Path, *changes: str) -> Result:
    return load(folder / "marker_filter.yaml", overrides=changes).run(folder / "m.study", executor="serial")


def test_the_study_runs_and_bad_trials_are_named_and_cost_nothing_else(tmp_path: Path) -> None:
    shutil.copy(STUDIES / "marker_filter.yaml", tmp_path)
    shutil.copytree(STUDIES / "marker_trials", tmp_path / "marker_trials")
    (tmp_path / "marker_trials" / "truncated.trc").write_bytes(TRIAL.content[:9000])
    (tmp_path / "marker_trials" / "unnumbered.trc").write_bytes(TRIAL.content.replace(b"\t0.5\t", b"\tNaN\t"))
    result = run(tmp_path, "missing={at_most: 50 %}", "solver.levels=5")
    messages = {s.name: result.message(0, s.name) for s in result.problem.scenarios}
    assert {name for name, message in messages.items() if message} == {"truncated", "unnumbered"}
    assert "truncated.trc, line " in messages["truncated"]
    noted = recorded_remarks(result.path)
    assert any("truncated.trc, line " in note and note.endswith(": no result (scenario truncated)") for note in noted)
    assert "unnumbered.trc, line 57: the time 'NaN' is not a number" in messages["unnumbered"]
    cutoffs = result.outcomes.X[:, 0]
    lost, left = result.outcomes.objectives.T
    assert (np.diff(lost[np.argsort(cutoffs)])[:2] < 0.0).all()
    assert (np.diff(left[np.argsort(cutoffs)]) > 0.0).all()
    assert len(result.front()) >= 3


def test_the_figures_of_the_page_are_those_of_the_study() -> None:
    page = (STUDIES.parent / "docs" / "recordings.md").read_text(encoding="utf-8")
    assert "finds 0.41, 0.63 and 0.96 mm" in " ".join(page.split())
    trials = [input_file(STUDIES / "marker_trials" / f"{name}.trc") for name in ("slow", "normal", "fast")]
    at_five, at_eight = ([evaluated(cutoff, trial) for trial in trials] for cutoff in (5.0, 8.0))
    assert [round(outputs["noise"], 2) for outputs in at_five] == [0.41, 0.63, 0.96]
    assert all(4.5 < outputs["suggested"] < 5.6 for outputs in at_five)
    assert [round(outputs["distortion"], 1) for outputs in (at_five[2], at_eight[2])] == [2.9, 0.5]
    assert round(at_eight[2]["acceleration_noise"] / at_five[2]["acceleration_noise"]) == 3
