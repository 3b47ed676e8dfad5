"""From a folder of files to report and exports: `designopt new laboratory`, the study that it writes, what it wrote."""

import contextlib
import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
import walking_laboratory as laboratory
import yaml
from click.testing import CliRunner
from designopt_laboratory.folder.contents import in_same_folder
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.read import read_recording, read_table

import designopt
from designopt.cli import main
from designopt.exports import export
from designopt.plugin import InputFile, find
from designopt.report.section import Section

MARKERS = ("time", "markers", "measured_markers")
STUDIES = Path(__file__).parents[2] / "studies" / "laboratory"


def command(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


def laboratory_folder(parent, *left_out):
    folder = parent / "laboratory"
    shutil.copytree(STUDIES, folder, ignore=shutil.ignore_patterns("results", "*.yaml", *left_out))
    return folder


def test_files_of_a_trial_are_in_its_folder_or_above_it():
    above, in_folder = ["functional.trc", "S1/functional.trc"], "S10/functional.trc"
    assert in_same_folder("S10/walk.trc", above) == ["functional.trc"]
    assert in_same_folder("S10/walk.trc", [*above, in_folder]) == [in_folder]
    assert in_same_folder("S1/second day/walk.trc", above) == above


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """The bundled laboratory, with the study that the command writes for its folder."""
    folder = tmp_path_factory.mktemp("laboratory") / "laboratory"
    shutil.copytree(STUDIES, folder, ignore=shutil.ignore_patterns("laboratory.yaml", "results"))
    with contextlib.chdir(folder.parent):
        outcome = command("new", "laboratory", str(folder))
    assert outcome.exit_code == 0, outcome.output
    file = folder / "laboratory.yaml"
    text = file.read_text().replace("  cycles: auto", "  metabolics: bhargava")
    file.write_text(text.replace("execution:", "execution:\n  executor: serial"))
    return designopt.load(file).run(folder / "results" / "laboratory.study")


def test_the_bundled_files_and_study_are_those_that_the_programs_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    laboratory.write(tmp_path / "laboratory")
    names = sorted(path.name for path in (tmp_path / "laboratory").iterdir())
    assert names == sorted(path.name for path in STUDIES.iterdir() if path.suffix not in (".yaml", ""))
    for name in names:
        assert (tmp_path / "laboratory" / name).read_bytes() == (STUDIES / name).read_bytes(), name
    outcome = command("new", "laboratory", str(tmp_path / "laboratory"))
    assert outcome.exit_code == 0, outcome.output
    content = (tmp_path / "laboratory" / "laboratory.yaml").read_text()
    location = str(tmp_path / "laboratory" / "laboratory.yaml")
    assert content.replace(location, "laboratory.yaml") == (STUDIES / "laboratory.yaml").read_text()


def test_each_subject_of_a_folder_has_the_mass_of_its_scaling_set_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    setup = "<OpenSimDocument><ScaleTool><mass>{}</mass><ModelScaler><scaling_order>measurements</scaling_order>"
    for name, mass in (("anna", 60), ("bert", 78)):
        shutil.copytree(laboratory_folder(tmp_path / name / "copy"), tmp_path / "two" / name)
        text = setup.format(mass) + "</ModelScaler></ScaleTool></OpenSimDocument>"
        (tmp_path / "two" / name / "scale.xml").write_text(text)
    outcome = command("new", "laboratory", "two")
    assert outcome.exit_code == 0, outcome.output
    study = yaml.safe_load((tmp_path / "two" / "two.yaml").read_text())
    masses = {(s["subject"], s.get("mass")) for s in study["scenarios"]}
    assert masses == {("anna", None), ("bert", "78 kg")}
    assert "mass of 78 kg, as bert/scale.xml says" in " ".join(outcome.output.split())


def test_the_study_of_a_folder_runs_and_its_report_has_every_part(result):
    figures = result.outcomes.figures
    assert (figures["marker_rms"][0] < 2e-3).all()
    assert (figures["cycles"][0] >= 2).all()
    assert (figures["metabolic_rate"][0] > 0.5).all()
    assert (figures["metabolic_rate"][0] < 20.0).all()  # W/kg
    sections = {}
    for part in ("laboratory_curves", "laboratory_differences", "laboratory_markers", "laboratory_subject",
                 "muscle_sharing"):  # fmt: skip
        sections[part] = find("report", part).build({})(result)
        assert isinstance(sections[part], Section)
    titles = [figure.title for figure in sections["laboratory_curves"].figures]
    assert titles[0] == "Joints over the cycle"
    assert {"Angle", "Moment", "Power", "Activation", "Joint force", "Metabolic rate"} <= set(titles)
    bodies, static = sections["laboratory_subject"].tables
    assert [row[1:3] for row in bodies.rows[:2]] == [
        ("walk_fast and 1 more", "pelvis"),
        ("walk_fast and 1 more", "femur_r"),
    ]
    assert bodies.rows[-1][-1] == pytest.approx(figures["mass"][0, 0])
    assert max(row[-1] for row in static.rows) == pytest.approx(1e3 * figures["static_max"][0, 0])
    errors = sections["laboratory_markers"].tables[0]
    assert errors.columns[-3:-1] == ("RMS [mm]", "maximum [mm]")
    assert max(row[-2] for row in errors.rows) == pytest.approx(1e3 * figures["marker_max"][0].max())
    in_cm = result.with_changes(["constraints=[{name: near, of: marker_max, max: 2 cm}]"])
    errors = find("report", "laboratory_markers").build({})(in_cm).tables[0]
    assert errors.columns[-3:-1] == ("RMS [cm]", "maximum [cm]")
    assert max(row[-2] for row in errors.rows) == pytest.approx(1e2 * figures["marker_max"][0].max())
    tests = sections["laboratory_differences"].tables[0]
    assert {"right", "left"} == {row[2] for row in tests.rows} | {row[3] for row in tests.rows}


def test_exports_are_a_tidy_table_tables_for_opensim_and_the_scaled_model(result, tmp_path):
    files = {file.name: file for file in export(result, tmp_path, ["cycles", "osim", "sto", "mot", "subjects"])}
    with files["subjects.csv"].open() as stream:
        subjects = {
            (row["trial"], row["quantity"], row["variable"]): float(row["value"]) for row in csv.DictReader(stream)
        }
    assert subjects["walk_slow", "mass", "all_bodies"] == pytest.approx(result.outcomes.figures["mass"][0, 0])
    assert 0.9 < subjects["walk_fast", "scale factor", "femur_r_y"] < 1.1
    assert subjects["walk_fast", "static marker error", "RASI"] < 0.02  # m
    with files["cycles.csv"].open() as stream:
        rows = [
            row for row in csv.DictReader(stream) if row["variable"] == "knee_angle_r" and row["quantity"] == "angle"
        ]
    assert {row["trial"] for row in rows} == {"walk_slow", "walk_fast"}
    assert [float(row["percent"]) for row in rows[:101]] == list(range(101))
    assert -80.0 < min(float(row["value"]) for row in rows) < -40.0  # deg
    angles = read_table(InputFile("a.sto", files["design0.walk_slow.angles.sto"].read_bytes()))
    assert "knee_angle_r" in angles.names
    assert np.abs(angles.column("knee_angle_r")).max() < 2.0  # rad
    (model,) = [file for name, file in files.items() if name.endswith(".osim")]
    assert len(read_model(model.read_bytes()).muscles) == 20


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ((), "has no OpenSim model"),
        (("walk_slow.trc",), "has no OpenSim model"),
        (("walker.osim",), "has no trial"),
        (("walker.osim", "static.trc"), "has no trial"),
    ],
)
def test_a_folder_without_what_a_study_needs_is_refused(tmp_path, names, text):
    for name in names:
        shutil.copy(STUDIES / name, tmp_path)
    outcome = command("new", "laboratory", str(tmp_path))
    assert outcome.exit_code != 0
    assert text in outcome.output
    assert not (tmp_path / "laboratory.yaml").exists()


def test_a_study_elsewhere_names_a_data_root_and_markers_without_a_place_are_announced(tmp_path):
    folder = tmp_path / "a folder"
    shutil.copytree(STUDIES, folder, ignore=shutil.ignore_patterns("results", "*.yaml"))
    outcome = command("new", "laboratory", str(folder), "-o", str(tmp_path / "studies.yaml"))
    assert outcome.exit_code == 0, outcome.output
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "study.yaml"
    outcome = command("new", "laboratory", str(folder), "-o", str(target))
    assert f"designopt run {target} --data 'laboratory={folder}'" in outcome.output
    for arguments in ([str(tmp_path / "studies.yaml")], [str(target), "--data", f"laboratory={folder}"]):
        assert command("validate", *arguments).exit_code == 0
    text = (folder / "walk_slow.trc").read_text()
    (folder / "walk_slow.trc").write_text(text.replace("\tR", "\tQ").replace("\tL", "\tP"))
    outcome = command("new", "laboratory", str(folder), "-o", str(tmp_path / "again.yaml"))
    assert "needed: walker.osim has no places for the markers of walk_slow.trc (QASI, QPSI," in outcome.output


def test_missing_and_ambiguous_files_of_a_folder_are_reported(tmp_path):
    (tmp_path / "ana").mkdir()
    for name, subfolder in (("walker.osim", ""), ("walk_slow.trc", "ana"), ("static.trc", "ana")):
        shutil.copy(STUDIES / name, tmp_path / subfolder / name)
    shutil.copy(STUDIES / "walker.osim", tmp_path / "another.osim")
    (tmp_path / "broken.trc").write_text("nothing")
    (tmp_path / "setup.xml").write_text("<OpenSimDocument><CMCTool/></OpenSimDocument>")
    outcome = command("new", "laboratory", str(tmp_path), "-o", str(tmp_path / "study.yaml"))
    assert outcome.exit_code == 0, outcome.output
    for text in (
        "the folder also has", "and the last step is the joint angles", "static pose ana/static.trc",
        "not used: broken.trc:", "not used: setup.xml:",
    ):  # fmt: skip
        assert text in outcome.output
    text = (tmp_path / "study.yaml").read_text()
    assert "subject: ana" in text
    repeated = command("new", "laboratory", str(tmp_path), "-o", str(tmp_path / "study.yaml"))
    assert "already exists" in repeated.output
    missing = command("new", "laboratory")
    assert "designopt new laboratory FOLDER" in missing.output


def test_sampled_uncertain_inputs_give_bands_and_markers_are_written_as_trc(tmp_path):
    study = yaml.safe_load((STUDIES / "uncertainty.yaml").read_text())
    study["model"]["until"] = "forces"
    study["space"] = {name: study["space"][name] for name in ("strength", "fibre_factor")}
    study["solver"] = {"use": "sobol_indices", "base": 2, "outputs": ["mean_cost", "metabolic_rate"]}
    study["execution"] = {"executor": "serial", "arrays": study["execution"]["arrays"] | dict.fromkeys(MARKERS, "all")}
    shutil.copytree(STUDIES, tmp_path / "laboratory", ignore=shutil.ignore_patterns("results"))
    (tmp_path / "laboratory" / "few.yaml").write_text(yaml.safe_dump(study))
    samples = designopt.load(tmp_path / "laboratory" / "few.yaml").run(tmp_path / "few.study")
    section = find("report", "laboratory_spread").build({})(samples)
    rows = {(row[1], row[2], row[4]): row[5] for row in section.tables[0].rows}
    assert rows["angle", "knee_angle", "right"] == pytest.approx(0.0, abs=1e-9)  # no muscle changes it
    assert max(width for (kind, *_), width in rows.items() if kind == "activation") > 0.01
    assert set(section.figures[0].choices[0].options)
    (first, *_) = export(samples, tmp_path, ["trc"])
    recording = read_recording(InputFile("m.trc", first.read_bytes()))
    original = read_recording(InputFile("m.trc", (STUDIES / "walk_slow.trc").read_bytes()))
    assert recording.marker("RHEE") == pytest.approx(original.marker("RHEE"), abs=1e-12)


def test_a_study_of_a_folder_has_its_name_from_everywhere_or_the_stated_one(tmp_path, monkeypatch):
    laboratory_folder(tmp_path / "ana")
    folder = tmp_path / "ana" / "laboratory"
    for current, argument in ((tmp_path, "ana/laboratory"), (folder, "."), (Path("/"), str(folder))):
        monkeypatch.chdir(current)
        outcome = command("new", "laboratory", argument)
        assert f"wrote  {Path(argument) / 'laboratory.yaml'}\n" in outcome.output
        study = designopt.load(folder / "laboratory.yaml")
        assert (study.name, study.default_store.name) == ("laboratory", "laboratory.study")
        (folder / "laboratory.yaml").unlink()
    outcome = command("new", "laboratory", str(folder), "--name", "ana")
    assert designopt.load(folder / "ana.yaml").default_store.name == "ana.study"


def test_every_file_without_use_is_listed_with_the_reason_and_trials_without_loads_end_at_the_angles(tmp_path):
    folder = laboratory_folder(tmp_path, "*_reactions.mot")
    setup = "<OpenSimDocument><{0}>{1}</{0}></OpenSimDocument>".format
    (folder / "walk_grf.xml").write_text(setup("ExternalLoads", "<objects/><datafile>walk.mot</datafile>"))
    cutoff = "<lowpass_cutoff_frequency_for_coordinates>5</lowpass_cutoff_frequency_for_coordinates>"
    (folder / "id.xml").write_text(setup("InverseDynamicsTool", f"<time_range>0 1</time_range>{cutoff}"))
    (folder / "so.xml").write_text(setup("AnalyzeTool", ""))
    for name in ("notes.txt", *(f"bone{i}.vtp" for i in range(9))):
        (folder / name).write_text("")
    outcome = command("new", "laboratory", str(folder), "-o", str(folder / "study.yaml"))
    for text in (
        "joint loads cannot be computed, and the last step is the joint angles (until: angles)",
        "not used: walk_grf.xml: assigns walk.mot to bodies, which is not in the folder",
        "not used: id.xml: another set-up has the cut-off, or no moments are computed",
        "not used: so.xml: criterion and cut-off are inputs of designs here",
        "not used: notes.txt: files .txt are not read here", "not used: bone0.vtp, bone1.vtp, bone2.vtp and 6 more",
    ):  # fmt: skip
        assert text in outcome.output
    assert yaml.safe_load((folder / "study.yaml").read_text())["model"]["until"] == "angles"
    assert command("validate", str(folder / "study.yaml")).exit_code == 0
    shutil.copy(STUDIES / "walk_slow_reactions.mot", folder)
    outcome = command("new", "laboratory", str(folder), "-o", str(folder / "slow.yaml"))
    assert "not used: walk_fast.trc: has neither force plates nor a table" in outcome.output
    assert "filter of the coordinates at 5 Hz by id.xml; without effect here: time_range" in outcome.output
    study = yaml.safe_load((folder / "slow.yaml").read_text())
    assert [scenario["name"] for scenario in study["scenarios"]] == ["walk_slow"]
    assert study["solver"]["designs"] == [{"name": "usual", "cutoff": "5 Hz"}]
    assert command("validate", str(folder / "slow.yaml")).exit_code == 0


def test_tasks_that_follow_a_table_have_the_coordinates_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = laboratory_folder(tmp_path, "walk_fast*")
    task = "<IKCoordinateTask name='knee_angle_r'><value_type>from_file</value_type></IKCoordinateTask>"
    text = f"<OpenSimDocument><IKTaskSet><objects>{task}</objects></IKTaskSet></OpenSimDocument>"
    (folder / "tasks.xml").write_text(text)
    outcome = command("new", "laboratory", str(folder), "-o", str(folder / "without.yaml"))
    assert "needed: tasks of tasks.xml follow a table of coordinates; walk_slow.trc has none" in outcome.output
    count = read_recording(InputFile("w.trc", (folder / "walk_slow.trc").read_bytes())).time
    rows = "".join(f"{t!r},0.03,-0.4,-0.4\n" for t in count.tolist())
    (folder / "walk_slow_sensors.csv").write_text(f"time,pelvis_tilt,knee_angle_r,knee_angle_l\n{rows}")
    outcome = command("new", "laboratory", str(folder))
    assert "walk_slow.trc: tasks of tasks.xml follow the coordinates in walk_slow_sensors.csv" in outcome.output
    assert "targets: walk_slow_sensors.csv" in (folder / "laboratory.yaml").read_text()
    assert command("validate", str(folder / "laboratory.yaml")).exit_code == 0
