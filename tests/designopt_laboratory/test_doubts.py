"""What a folder gets wrong is named with its cause: time and place of the forces, masses, segments without markers."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import walking_laboratory as laboratory
from click.testing import CliRunner
from designopt_laboratory.model import LaboratoryTrial
from designopt_laboratory.trial.poses import TrialStatus, lost_segments

from designopt.cli import main
from designopt.plugin import Diverged, InputFile

WALK = laboratory.walk(cycles=2.4)
NAMES = ("doubts", "notes", "pose_status", "moments")
PAGE = (Path(__file__).parents[2] / "docs" / "laboratory.md").read_text(encoding="utf-8")
PIPELINE = "opensim/pipeline_gait2392"


def trial(walk=WALK, **conditions):
    files = {"recording": InputFile("walk.trc", walk.trc()), "reactions": InputFile("forces.mot", walk.mot(8))}
    return {**files, **conditions}


def later(seconds):
    return replace(WALK, plates=tuple(replace(plate, start=plate.start + seconds) for plate in WALK.plates))


def table(walk):
    """The plates as a table whose times begin where the plates do."""
    moved = replace(walk.recording, time=walk.recording.time + walk.plates[0].start)
    return InputFile("forces.mot", replace(walk, recording=moved).mot(8))


def text(arrays):
    return "\n".join(arrays["doubts"])


@pytest.mark.parametrize("lag", [0.03, 0.1, -0.06])
def test_forces_that_lag_behind_the_motion_are_named_with_the_setting_that_shifts_them(analysed, lag):
    late = {**trial(), "reactions": table(later(lag))}
    _, arrays = analysed(late, *NAMES, until="moments")
    match = re.search(r"(lag behind|are ahead of) the motion walk by about .* time_offset: (-?\d\.\d+) s", text(arrays))
    assert match is not None, text(arrays)
    assert match[1] == ("lag behind" if lag > 0 else "are ahead of")
    assert float(match[2]) == pytest.approx(-lag, abs=0.006)
    assert "stands beside the plates" not in text(arrays)
    _, half = analysed({**late, "time_offset": -0.5 * lag - 0.01}, *NAMES, until="moments")
    if match := re.search(r"time_offset: (-?\d\.\d+) s", text(half)):  # the sum, not what is left
        assert float(match[1]) == pytest.approx(-lag, abs=0.006)
    _, shifted = analysed({**late, "time_offset": -lag}, *NAMES, until="moments")
    _, reference = analysed(trial(), *NAMES, until="moments")
    assert "time_offset" not in text(shifted)
    assert shifted["moments"] == pytest.approx(reference["moments"], abs=1e-6, nan_ok=True)


def test_forces_of_another_trial_and_without_values_are_named(analysed):
    faster_walk = laboratory.walk(speed=1.6, cycles=3.0)
    _, arrays = analysed({**trial(), "reactions": InputFile("forces.mot", faster_walk.mot(8))}, *NAMES, until="moments")
    assert re.search(
        r"at no time_offset do the forces fit the motion walk .* do they belong to this trial", text(arrays)
    )
    lost = np.array(WALK.plates[0].force)
    lost[40:60] = np.nan
    gap = replace(WALK, plates=(replace(WALK.plates[0], force=lost), WALK.plates[1]))
    _, arrays = analysed(trial(gap), *NAMES, until="moments")
    assert re.search(
        "forces.mot: plate 1: the force has no value in 20 of 132 rows: frames there have no moments", text(arrays)
    )


def test_a_trial_without_a_result_is_called_unusable_and_no_divergence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walker.osim").write_bytes(laboratory.model_text())
    (tmp_path / "walk.trc").write_bytes(WALK.trc())
    (tmp_path / "forces.mot").write_bytes(table(later(0.55)).content)
    study = (
        "study: lab\nmodel: {use: laboratory_trial, model: walker.osim, until: moments}\n"
        "scenarios: [{name: walk, recording: walk.trc, reactions: forces.mot}]\nsolver: {use: evaluate}\n"
        "execution: {executor: serial, on_failure: {unusable: infeasible}}\n"
    )
    (tmp_path / "lab.yaml").write_text(study)
    outcome = CliRunner().invoke(main, ["run", "lab.yaml", "-o", "lab.study"])
    assert "unusable (trial), 1 of 1, the first: walk: no frame has moments." in outcome.output
    assert "diverged" not in outcome.output + (tmp_path / "lab.study" / "report.html").read_text(encoding="utf-8")


def test_forces_that_are_a_step_late_are_refused_with_the_lag_as_the_cause():
    model = LaboratoryTrial(model=InputFile("walker.osim", laboratory.model_text()), until="moments")
    files = {**trial(), "reactions": table(later(0.55))}
    with pytest.raises(Diverged, match=r"no frame has moments\. .* lag behind the motion walk by about 0\.55"):
        model.evaluate({}, files, frozenset(), model.prepare_scenario(files))


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        ({"time": 0.05}, r"forces of the ground lag behind the motion subject01_walk1_ik by about 0\.05"),
        ({"px": 0.1}, r"calcn_r: the points of application seem to be off by \+0\.1\d m along X"),
        ({}, None),
    ],
)
def test_the_forces_of_the_public_walk_are_named_where_they_are_late_or_displaced(analysed, shared, change, sentences):
    content = shared("opensim/motion/subject01_walk_grf.mot").content
    head, _, rows = content.decode().partition("endheader")
    names, *lines = rows.splitlines()[1:]
    values = np.array([line.split() for line in lines if line.strip()], dtype=float)
    for ending, amount in change.items():
        values[:, [i for i, name in enumerate(names.split()) if name.endswith(ending)]] += amount
    body = "\n".join([names, *("\t".join(f"{v:.8g}" for v in row) for row in values)])
    files = {
        "motion": shared(f"{PIPELINE}/reference/subject01_walk1_ik.mot"),
        "subject_model": shared(f"{PIPELINE}/reference/subject01_simbody.osim"),
        "reactions": InputFile("forces.mot", f"{head}endheader\n{body}\n".encode()),
        "external_loads": shared(f"{PIPELINE}/subject01_walk1_grf.xml"),
    }
    model = shared(f"{PIPELINE}/gait2392_generic.osim")
    _, arrays = analysed(files, *NAMES, model=model, until="moments")
    assert bool(re.search(r"lag behind|are ahead|points of application", text(arrays))) == (sentences is not None)
    assert re.search(sentences or "guideline of Hicks", text(arrays)), text(arrays)


def test_exchanged_columns_of_measured_coordinates_are_named(analysed, shared):
    head, _, rows = shared(f"{PIPELINE}/reference/subject01_walk1_ik.mot").content.decode().partition("endheader")
    names, *lines = rows.splitlines()[1:]
    exchanged = names.replace("knee_angle_r", "other").replace("ankle_angle_r", "knee_angle_r")
    exchanged = exchanged.replace("other", "ankle_angle_r")
    files = {
        "motion": InputFile("ik.mot", "\n".join([f"{head}endheader", exchanged, *lines, ""]).encode()),
        "subject_model": shared(f"{PIPELINE}/reference/subject01_simbody.osim"),
        "reactions": shared("opensim/motion/subject01_walk_grf.mot"),
        "external_loads": shared(f"{PIPELINE}/subject01_walk1_grf.xml"),
    }
    _, arrays = analysed(files, *NAMES, model=shared(f"{PIPELINE}/gait2392_generic.osim"), until="moments")
    assert re.search(
        r"slide by 0\.\d+ m/s .* and by 0\.0\d+ m/s with knee_angle_r and ankle_angle_r exchanged", text(arrays)
    )


@pytest.mark.parametrize(
    ("factor", "conditions", "cause"),
    [
        (10.0, {}, "those of 674 kg, the subject has 67.4 kg: .* check the unit and the gain of the forces"),
        (1.0, {"mass": 6.74}, r"those of 67.\d kg, the subject has 6.74 kg: .* correct the mass of the subject"),
    ],
)
def test_forces_and_masses_in_another_unit_are_told_apart(factor, conditions, cause):
    plates = tuple(replace(plate, force=factor * plate.force, moment=factor * plate.moment) for plate in WALK.plates)
    model = LaboratoryTrial(model=InputFile("walker.osim", laboratory.model_text()), until="moments")
    files = trial(replace(WALK, plates=plates), **conditions)
    with pytest.raises(Diverged, match=cause) as error:
        model.evaluate({}, files, frozenset(), model.prepare_scenario(files))
    assert "beside the plates" not in str(error.value)


def without(walk, names, first, last):
    """The walk with gaps of some markers between two times (s)."""
    recording = walk.recording
    markers = np.array(recording.markers)
    frames = (recording.time >= first) & (recording.time <= last)
    columns = [recording.marker_names.index(name) for name in names]
    markers[np.ix_(np.flatnonzero(frames), columns)] = np.nan
    return replace(walk, recording=replace(recording, markers=markers)), frames


@pytest.mark.parametrize(
    ("names", "segment"),
    [(("RASI", "LASI", "RPSI", "LPSI"), "pelvis"), (("RHEE", "RTOE", "RMT5"), "calcn_r")],
)
def test_frames_in_which_a_segment_has_no_marker_have_no_result_and_name_the_segment(analysed, names, segment):
    walk, gap = without(WALK, names, 1.0, 1.5)
    _, arrays = analysed(trial(walk), *NAMES, until="moments")
    lost = arrays["pose_status"] == TrialStatus.SEGMENT_LOST
    assert lost.tolist() == gap.tolist()
    assert np.isnan(arrays["moments"][gap]).all()
    assert f"no marker of {segment} is there in {gap.sum()} of" in text(arrays)
    _, reference = analysed(trial(), *NAMES, until="moments")
    far = np.abs(WALK.recording.time - 1.25) > 0.6
    assert arrays["moments"][far] == pytest.approx(
        reference["moments"][far], abs=0.5, nan_ok=True
    )  # N m, of the filter


def test_a_segment_with_a_marker_left_or_with_none_at_all_loses_no_frame(analysed):
    walk, _ = without(WALK, ("RHEE", "RTOE"), 1.0, 1.5)
    figures, _ = analysed(trial(walk), *NAMES, until="moments")
    assert figures["usable"] > 0.97
    errors = np.array([[0.0, np.nan], [0.0, np.nan]])
    assert lost_segments(errors, ["pelvis", "toes"]) == (pytest.approx(np.zeros(2)), [])


@pytest.mark.parametrize("pair", [("RASI", "LASI"), ("RHEE", "RTOE"), ("RTOE", "LTOE"), ("RTIB", "LTIB")])
def test_exchanged_markers_are_named(analysed, pair):
    names = {pair[0]: pair[1], pair[1]: pair[0]}
    recorded = tuple(names.get(name, name) for name in WALK.recording.marker_names)
    swapped = trial(replace(WALK, recording=replace(WALK.recording, marker_names=recorded)))
    _, arrays = analysed(swapped, *NAMES, until="moments")
    found_pairs = re.findall(r"the markers '(\w+)' and '(\w+)' are probably swapped", text(arrays))
    assert [set(named) for named in found_pairs] == [set(pair)]
    assert "beside the plates" not in text(arrays)


@pytest.mark.parametrize(("size", "named"), [(1.1, True), (1.02, False)])
def test_a_static_pose_of_another_subject_is_named(analysed, size, named):
    standing = laboratory.standing()
    pose = replace(standing, recording=replace(standing.recording, markers=size * standing.recording.markers))
    files = trial(static=InputFile("static.trc", pose.trc()))
    _, arrays = analysed(files, *NAMES, until="angles", scale_to_static=True)
    assert ("static.trc: markers of a body are 1.1 times as far apart as in the trial" in text(arrays)) == named


def test_the_end_of_a_run_and_show_print_the_doubts_of_trials_that_are_alike_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walker.osim").write_bytes(laboratory.model_text())
    (tmp_path / "walk.trc").write_bytes(WALK.trc())
    for name, lag in (("late.mot", 0.1), ("good.mot", 0.0)):
        (tmp_path / name).write_bytes(table(later(lag)).content)
    trials = "\n".join(
        f"  - {{name: walk_{name}, recording: walk.trc, reactions: {file}}}"
        for name, file in zip("1234", ("late.mot", "late.mot", "late.mot", "good.mot"), strict=True)
    )
    study = (
        "study: lab\nmodel: {use: laboratory_trial, model: walker.osim, until: moments}\n"
        f"scenarios:\n{trials}\nsolver: {{use: evaluate}}\nexecution: {{executor: serial, arrays: [doubts]}}\n"
    )
    (tmp_path / "lab.yaml").write_text(study)
    outcome = CliRunner().invoke(main, ["run", "lab.yaml", "-o", "lab.study"])
    assert outcome.exit_code == 0, outcome.output
    (block,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)  # the output that the page shows
    for line in block.splitlines():
        assert line.partition(" ...")[0] in outcome.output
    output = CliRunner().invoke(main, ["show", "lab.study"]).output
    assert "  walk_1, walk_2 and walk_3: late.mot: the forces of the ground lag" in output
    design = CliRunner().invoke(main, ["show", "lab.study/0"]).output
    assert re.search(r"^walk_2: late.mot: the forces of the ground lag behind", design, re.M)
