"""The page on the whole body: its blocks run, its tables list what there is."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from command import designopt
from designopt_recordings.files.read import read_table
from designopt_recordings.files.text import input_file
from designopt_recordings.files.write import motion_text, trc_text
from designopt_recordings.loads.frames import load_at
from designopt_recordings.loads.tables import reaction_table
from designopt_recordings.recording import Recording
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.dynamics.balance import moment_balance
from designopt_wholebody.kinematics.angles import joint_angles
from designopt_wholebody.model.library import bundled_names, content_of
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.subject import make_subject
from designopt_wholebody.synthetic.walk import walk
from designopt_wholebody.trial.marker_set import bundled_marker_sets, read_marker_set

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "whole_body.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_python_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    snippets = blocks("python")
    assert len(snippets) == 3
    for block in snippets:
        exec(compile(block, "whole_body.md", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.startswith("252 214 208\n")
    assert float(printed.splitlines()[-1]) < 1e-9


def test_the_study_of_an_own_recording_writes_joint_moments_as_csv(tmp_path: Path) -> None:
    """On files of the bundled walk: markers as TRC, called as landmarks, and ground reactions as MOT."""
    trial = walk(cycles=1, rate=50.0, skin=0.0, noise=0.0)
    subject, time = trial.subject, trial.recording.time
    (tmp_path / "walk.trc").write_text(trc_text(trial.recording))
    marks = np.stack([subject.landmarks[name] for name in subject.model.landmarks])[None]
    static = Recording(50.0, np.zeros(1), tuple(subject.model.landmarks), marks)
    (tmp_path / "static.trc").write_text(trc_text(static))
    plates = trial.recording.plates
    (tmp_path / "walk.mot").write_text(motion_text(reaction_table(time, [load_at(plate, time) for plate in plates])))
    study = yaml.safe_load(blocks("yaml study")[0])
    assert study["scenarios"][0].keys() == {"name", "recording", "static", "mass"}
    files = {"recording": "walk.trc", "static": "static.trc", "reactions": "walk.mot"}
    study["scenarios"] = [{"name": "walk", **files, "mass": subject.mass}]
    study["model"]["markers"] = "own_names"
    study["solver"]["designs"] = [{"name": "usual", "body": "wholebody21", "preparation": "consistent"}]
    (tmp_path / "my_walk.yaml").write_text(yaml.safe_dump(study))
    process = designopt(tmp_path, "run", "my_walk.yaml", "-o", "my.study", "--executor", "serial")
    assert process.returncode == 0, process.stderr
    table = read_table(input_file(tmp_path / "my.study" / "design0.walk.moments.csv"))
    truth = moment_balance(subject, trial.motion, trial.loads)
    assert table.names == truth.rows
    inner = slice(10, -10)
    assert np.abs(table.values - truth.moments)[inner].max() < 0.01 * np.abs(truth.moments).max()
    angles = read_table(input_file(tmp_path / "my.study" / "design0.walk.angles.csv"))
    expected = joint_angles(subject, trial.motion.q)
    assert np.abs(angles.column("knee_R.flexion") - expected.angle("knee_R.flexion")).max() < 1e-3
    status = read_table(input_file(tmp_path / "my.study" / "design0.walk.csv")).column("status")
    assert set(status[inner]) == {0.0}
    # of ten frames all are close to an end: there is nothing to sum up, which is no residual of zero
    lines = (tmp_path / "walk.trc").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("1\t"))
    (tmp_path / "walk.trc").write_text("\n".join(lines[: first + 10]) + "\n")
    process = designopt(tmp_path, "run", "my_walk.yaml", "-o", "short.study", "--executor", "serial")
    assert process.returncode == 1, process.stderr
    assert "of 10 frames, none with joint loads is at least 5 frames from both ends" in process.stdout + process.stderr


def test_the_model_and_the_marker_set_are_read() -> None:
    model = read_model(blocks("yaml")[0].encode(), "page.yaml", content_of)
    assert list(model.segments) == ["pelvis", "thigh_R", "shank_R", "foot_R"]
    braced = read_model(blocks("yaml")[1].encode(), "page.yaml", content_of)
    assert {"strap_R", "strap_L"} == set(braced.springs)
    assert braced.joints["knee_L"].spring == braced.joints["knee_R"].spring  # w points to the right on both sides
    make_subject(braced)
    read_marker_set(blocks("yaml marker set")[1].encode(), "page.yaml")
    markers = read_marker_set(blocks("yaml marker set")[0].encode(), "page.yaml")
    assert set(markers.landmarks) == {"CIAS_R", "PMCP", "MT1_R", "CAQ_R"}


def test_the_tables_list_models_studies_and_statuses() -> None:
    heads = re.findall(r"^\| `([\w.]+)` \|", PAGE, flags=re.MULTILINE)
    assert set(bundled_names()) < set(heads)
    assert set(bundled_marker_sets()) - {"own_names"} < set(heads)
    for study in (name for name in heads if name.endswith(".yaml")):
        assert (ROOT / "studies" / study).is_file()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*?) \|$", PAGE, flags=re.MULTILINE)
    assert rows == [(s.name, str(int(s)), s.sentence) for s in ConsistencyStatus if s]
