"""A file of the user's own as mean and band beside the curves of a study."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from designopt_laboratory.curves.reference import ReferenceFile
from designopt_laboratory.report.curves import laboratory_curves

import designopt
from designopt.cli import main
from designopt.plugin import InputFile

STUDIES = Path(__file__).parents[2] / "studies" / "laboratory"
HEAD = "quantity,variable,unit,percent,mean,sd\n"
NORM = HEAD + "# norm\nangle,knee_angle,deg,0,-5,4\nangle,knee_angle,deg,50,-35,8\n\nangle,knee_angle,deg,100,-5,4\n"


def reference(text, name="children"):
    return ReferenceFile(InputFile("norm.csv", text.encode()), name)


def test_means_and_deviations_are_those_of_the_file_at_every_percent():
    one_sided = NORM + "moment,ankle_angle_r,N m/kg,0,0,\nmoment,ankle_angle_r,N m/kg,100,1,\n"
    (knee,) = reference(one_sided).curve("angle", "knee_angle", "deg")
    assert (knee.side, knee.mean.shape, knee.mean[25], knee.deviation[50]) == ("", (101,), -20.0, 8.0)
    (ankle,) = reference(one_sided).curve("moment", "ankle_angle", "N m/kg")
    assert ankle.side == "right"
    assert np.isnan(ankle.deviation).all()
    assert reference(NORM).curve("angle", "knee_angle", "m") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "norm.csv is empty"),
        (HEAD, "norm.csv has no row"),
        (NORM.replace("sd", "SD", 1), "line 1: there is no column 'sd'"),
        (NORM.replace(",", ";"), "line 1: there is no column 'quantity'.*separated by commas"),
        (NORM.replace("-35", "n/a"), "line 4: mean is 'n/a', not a number"),
        (NORM.replace("-35", "nan"), "line 4: a mean is a finite number"),
        (NORM.replace("50,-35,8", "50,-35,-8"), "line 4: .*not negative"),
        (NORM.replace("50,-35", "0,-35"), "line 4: the percents of 'knee_angle' must increase; 0 comes after 0"),
        (NORM.replace("100,-5", "120,-5"), "line 6: 120 percent lies outside"),
        (NORM.replace("100,-5", "90,-5"), "line 3: 'knee_angle' runs from 0 to 90 percent"),
        (NORM.replace("angle,knee", "angel,knee"), "line 3: 'angel' is not a quantity; did you mean 'angle'"),
        (NORM.replace("deg", "rad"), "line 3: the curves of the quantity 'angle' are in 'deg' or 'm', not in 'rad'"),
        (NORM.replace("deg", "m", 1), "line 4: 'knee_angle' is in 'deg', but in 'm' in line 3"),
        (NORM.replace("-35,8", "-35"), "line 4: 5 cells below a header of 6"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        reference(text)


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(STUDIES, tmp_path / "laboratory", ignore=shutil.ignore_patterns("results"))
    study = yaml.safe_load((tmp_path / "laboratory" / "laboratory.yaml").read_text())
    study["model"]["until"] = "angles"
    study["execution"] = {"executor": "serial", "arrays": ["time", "curves", "curve_kinds", "curve_names",
        "curve_units", "cycle_sides", "labels"]}  # fmt: skip
    study["report"] = {"plots": [{"use": "laboratory_curves", "reference": {"file": "norm.csv", "name": "children"}}]}
    (tmp_path / "laboratory" / "study.yaml").write_text(yaml.safe_dump(study))
    return tmp_path / "laboratory"


def test_a_study_shows_the_band_beside_normal_walking_and_names_what_it_does_not_show(folder):
    text = NORM + "moment,knee_angle,N m/kg,0,1,\nmoment,knee_angle,N m/kg,100,1,\n"
    (folder / "norm.csv").write_text(text)
    result = designopt.load(folder / "study.yaml").run(folder / "study.study")
    section = laboratory_curves(result, reference=reference(text))
    assert "not shown, because the study has no such curve: moment knee_angle" in " ".join(section.notes)
    angles = next(figure for figure in section.figures if figure.title == "Angle")
    assert "children" in str(angles)
    assert "children" not in str(laboratory_curves(result).figures)
    outcome = CliRunner().invoke(main, ["report", str(folder / "study.study")])
    assert outcome.exit_code == 0, outcome.output
    assert "children" in (folder / "study.study" / "report.html").read_text()


def test_a_wrong_file_is_reported_at_its_line_of_the_study(folder):
    for text, message in ((NORM.replace("-35", "x"), "norm.csv, line 4: mean is 'x'"), (None, "norm.csv")):
        (folder / "norm.csv").unlink(missing_ok=True)
        if text is not None:
            (folder / "norm.csv").write_text(text)
        outcome = CliRunner().invoke(main, ["validate", str(folder / "study.yaml")])
        assert outcome.exit_code == 2
        assert message in outcome.output
        assert "study.yaml:" in outcome.output
