"""The record of a pendulum: what a study of it finds is what the record was made with."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from designopt_motion.pendulum_record import PendulumRecord

import designopt
from designopt.files import InputFile
from designopt.plugin import InvalidSetting
from designopt.report import summary_table
from designopt.report.parts.motion.estimation import estimation
from designopt.study.language.errors import StudyError

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "pendulum_record.yaml"
#: What the file says that it was made with.
TRUTH = {"length": 0.842, "friction": 0.045, "drag": 0.08}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return designopt.load(STUDY).run(tmp_path_factory.mktemp("pendulum") / "s")


def test_the_intervals_hold_the_truth(result: Any) -> None:
    (record,) = result.programs()
    for name, truth in TRUTH.items():
        low, high = record.figures[f"low(optimum({name}))"], record.figures[f"high(optimum({name}))"]
        assert low < truth < high
        assert low < record.figures[f"optimum({name})"] < high
        width = 2.0 * 1.959964 * record.figures[f"standard_error(optimum({name}))"]
        assert high - low == pytest.approx(width, rel=1e-6)
    assert record.figures["fit(rank)"] == record.figures["fit(dimension)"] == 5
    assert record.figures["fit(degrees_of_freedom)"] == 95 - 5  # six rows of 101 are empty
    assert 0.01 < record.figures["fit(p_value)"] < 0.99
    assert record.figures["fit(chi_squared)"] == pytest.approx(result.outcomes.objectives[0, 0], rel=1e-6)


def test_the_whole_estimate_is_in_the_store(result: Any) -> None:
    (record,) = result.programs()
    estimate = record.estimate
    assert estimate is not None
    assert set(estimate.unknowns) == {*TRUTH, "swing.initial.angle", "swing.initial.speed"}
    assert (
        estimate.unknowns["swing.initial.angle"].low < np.deg2rad(65.0) < estimate.unknowns["swing.initial.angle"].high
    )
    fit = estimate.fits["swing"]
    assert (fit.residuals["angle"][np.isfinite(fit.residuals["angle"])] ** 2).sum() == pytest.approx(
        estimate.chi_squared
    )
    assert fit.bands["angle"].shape == record.solution.phase.times.shape
    assert estimate.correlation[estimate.names.index("friction"), estimate.names.index("drag")] < -0.95


def test_the_report_has_the_intervals_the_fit_and_what_is_determined_least(result: Any) -> None:
    section = estimation(result)
    assert section is not None
    assert [figure.title for figure in section.figures] == ["Fit", "Residuals"]
    unknowns, correlations = section.tables
    assert unknowns.columns[4] == "95 % from"
    assert [row[1] for row in unknowns.rows][:3] == list(TRUTH)
    assert len(correlations.rows) == 5
    assert any("drag and friction" in finding for finding in section.findings)
    assert any(finding.startswith("Least determined combination: friction") for finding in section.findings)
    points = section.figures[0].plot["data"][-1]
    assert np.isnan(points["y"]).sum() == 6
    assert "estimation" in designopt.report.page.page.part_names(result)


def test_the_page_on_estimation_shows_this_study_and_its_numbers(result: Any) -> None:
    page = (ROOT / "docs" / "estimation.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    example, bundled = yaml.safe_load(block), yaml.safe_load(STUDY.read_text(encoding="utf-8"))
    assert example["solver"].pop("confidence") == 0.95  # the default, written out
    assert all(bundled[key] == value for key, value in example.items())
    (record,) = result.programs()
    for name, digits in (("length", 4), ("friction", 3), ("drag", 3)):
        low, high = (f"{record.figures[f'{end}(optimum({name}))']:.{digits}f}" for end in ("low", "high"))
        assert f"{low} to {high}" in " ".join(page.split())


# -------------------------------------------------------------------------------------------------- the model

RECORD = "time [ms],encoder [deg],sigma encoder [deg]\n0,60,1\n400,-10,1\n800,,1\n1200,20,2\n2000,-30,1\n"


def test_a_pendulum_is_evaluated_by_fitting_where_it_begins() -> None:
    model = PendulumRecord(file=InputFile("r.csv", RECORD.encode()), column="encoder")
    design = {"length": 0.8, "friction": 0.1, "drag": 0.05}
    outputs, arrays = model.evaluate(design, {}, frozenset({"sample", "measured", "angle", "time"}))
    assert arrays["measured"][[0, 3]] == pytest.approx(np.deg2rad([60.0, 20.0]))
    fitted = np.interp(arrays["sample"], arrays["time"], arrays["angle"])
    residuals = (fitted - arrays["measured"]) / np.deg2rad([1.0, 1.0, 1.0, 2.0, 1.0])
    assert outputs["chi_squared"] == pytest.approx(np.nansum(residuals**2), rel=1e-3)
    assert outputs["worst_residual"] == pytest.approx(np.nanmax(np.abs(residuals)), rel=1e-3)


def test_one_deviation_for_all_replaces_those_of_the_table() -> None:
    file = InputFile("r.csv", RECORD.encode())
    design = {"length": 0.8, "friction": 0.1, "drag": 0.05}
    of_fine, of_coarse = (
        PendulumRecord(file=file, column="encoder", sigma=sigma).evaluate(design, {})[0]["chi_squared"]
        for sigma in (0.01, 0.02)
    )
    assert of_fine == pytest.approx(4.0 * of_coarse, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("time,angle\n0,1\n", "there is no column 'encoder'"),
        ("time,encoder [m],sigma encoder\n0,1,1\n1,2,1\n", "angle: "),
        ("time,encoder [deg]\n0,1\n1,2\n", "has no standard deviation"),
        ("time,encoder [deg],sigma encoder\n-1,1,1\n1,2,1\n", "times must begin at 0"),
        ("time,encoder [deg],sigma encoder\n0,x,1\n1,2,1\n", "line 2: 'x' is not a number"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        PendulumRecord(file=InputFile("r.csv", text.encode()), column="encoder").check()


def test_a_record_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"r\.csv: is not UTF-8 text"):
        PendulumRecord(file=InputFile("r.csv", "time,encoder [°]\n".encode("latin-1")), column="encoder").check()


def test_a_deviation_of_the_study_counts_instead_of_those_of_the_table() -> None:
    table = b"time,encoder [deg],sigma encoder [deg]\n0,1,\n1,2,0\n"
    with pytest.raises(InvalidSetting, match="positive and finite"):
        PendulumRecord(file=InputFile("r.csv", table), column="encoder").check()
    PendulumRecord(file=InputFile("r.csv", table), column="encoder", sigma=0.02).check()


def test_a_study_with_a_bad_record_is_refused_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "pendulum_record.csv").write_text("time,angle\n0,1\n")
    (tmp_path / "s.yaml").write_text(STUDY.read_text())
    with pytest.raises(
        StudyError, match=r"model\.column: .*there is no column 'encoder' for 'angle'; known: time, angle"
    ):
        designopt.load(tmp_path / "s.yaml")


def test_a_record_that_leaves_unknowns_open_is_reported_in_the_first_line_of_the_result(tmp_path: Path) -> None:
    (tmp_path / "pendulum_record.csv").write_text("time,encoder [deg]\n0,60\n1,20\n")
    (tmp_path / "s.yaml").write_text(STUDY.read_text())
    result = designopt.load(tmp_path / "s.yaml", overrides=["solver.intervals=20"]).run(tmp_path / "s.study")
    first = summary_table(result).splitlines()[0]
    assert first.startswith("note: the measurements determine 2 of 5 unknowns, but not: ")
    assert "length" in first


@pytest.mark.parametrize(
    ("head", "angle", "remark"),
    [
        ("encoder [deg]", 65.0, ""),
        ("encoder [rad]", 65.0, "more than half a turn; is it in degrees?"),
        ("encoder [deg]", 1.1, "stays below 1.1 deg; is it in radians?"),
        ("encoder", 1.1, "column 'encoder' has no unit and is taken in rad"),
    ],
)
def test_an_angle_in_another_unit_than_it_says_is_remarked(head: str, angle: float, remark: str) -> None:
    table = f"time [s],{head}\n" + "".join(f"{k / 10},{angle * (-1) ** k}\n" for k in range(8))
    model = PendulumRecord(file=InputFile("r.csv", table.encode()), column="encoder", sigma=0.01)
    notes = model.remarks({})
    assert (remark in notes[0]) if remark else notes == []
