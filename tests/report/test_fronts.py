"""Ends of a front that the designs around them show to be improvable, objectives that vary less over the front than the
tolerances, and baselines beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_results import GivenResult, beam_result, minimize

import designopt
from designopt.report import summary_table
from designopt.report.parts.answer.best import best
from designopt.report.parts.answer.front_ends import improvable_ends
from designopt.report.parts.answer.overview import overview
from designopt.report.parts.designs.analysis import analysis
from designopt.report.parts.designs.front import far_baselines, front
from designopt.study.study import Tolerance, Tolerances


def plate(design: dict[str, float]) -> dict[str, float]:
    """Mass and deflection, linear in both numbers."""
    x, y = design["x"], design["y"]
    return {"mass": 1.0 + 2.0 * x + y, "deflection": 4.0 - x - 2.0 * y, "total": x + y}


def ripple(design: dict[str, float]) -> dict[str, float]:
    """The same with waves, shorter than the distance of designs."""
    wave = float(np.sin(60.0 * design["x"]) * np.sin(50.0 * design["y"]))
    return {name: value + wave for name, value in plate(design).items()}


def front_of(folder: Path, model: Any = plate, **more: Any) -> Any:
    common = {"study": "ends", "model": model, "space": {"x": [0, 1], "y": [0, 1]}, "execution": {"executor": "serial"}}
    common |= {"objectives": [{"minimize": "mass"}, {"minimize": "deflection"}]}
    common |= {"report": {"tolerances": {"neighbours": 0}}}
    return designopt.define(**(common | more)).run(folder / "s.study")


RANDOM = {"use": "random", "samples": 40}


def test_an_end_beyond_which_the_neighbours_fall_is_named_with_the_stage_that_improves_it(tmp_path: Path) -> None:
    result = front_of(tmp_path, solver=RANDOM)
    (clause,) = improvable_ends(result)
    assert (result.outcomes.objectives.min(axis=0) > 1.05).all()  # at the corners both are 1
    assert "the ends of the front in mass by about" in clause
    assert "deflection by about" in clause
    assert "{use: nelder_mead, objective: mass} and start_from: {stage: random, nondominated: all}" in clause
    assert f"note: {clause}" in summary_table(result)
    assert any(clause[1:] in text for text in overview(result).findings)


def test_the_stage_that_it_names_reaches_the_end(tmp_path: Path) -> None:
    stages: list[dict[str, Any]] = [{"name": "random", "solver": RANDOM}]
    for name in ("mass", "deflection"):
        search = {"use": "nelder_mead", "objective": name, "tolerance": 1e-6}
        stages.append({"name": name, "solver": search, "start_from": {"stage": "random", "nondominated": "all"}})
    result = front_of(tmp_path, stages=stages)
    np.testing.assert_allclose(result.outcomes.objectives.min(axis=0), [1.0, 1.0], atol=1e-4)
    assert improvable_ends(result) == []


@pytest.mark.parametrize(
    "more",
    [
        {"solver": {"use": "full_factorial", "levels": 6}},  # its ends are corners
        {"solver": {"use": "full_factorial", "levels": 6}, "constraints": [{"of": "total", "min": 0.2, "max": 1.8}]},
        {"solver": RANDOM, "model": ripple},
        {"solver": RANDOM, "objectives": [{"minimize": "mass"}]},
        {"solver": {"use": "random", "samples": 5}},
        {
            "solver": {"use": "full_factorial", "levels": 11},
            "space": {"x": [0, 1], "y": [-1, 1]},
            "constraints": [{"of": "total", "equals": 0.2}],
        },
        {"solver": {"use": "full_factorial", "levels": 11}, "relations": ["x + y >= 0.4", "x + y <= 1.6"]},
    ],
    ids=["corners", "limits", "not linear", "one objective", "few designs", "equality", "relations"],
)
def test_without_an_estimate_of_a_gain_nothing_is_said(tmp_path: Path, more: dict[str, Any]) -> None:
    assert improvable_ends(front_of(tmp_path, **more)) == []


X = [(10.0 + i, 0.5) for i in range(4)]
MASS = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture(autouse=True)
def _without_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GivenResult, "tolerated", lambda self: None)


def with_tolerance(sag: list[float], percent: float, *, assumed: bool = False) -> GivenResult:
    result = beam_result(X, {"mass": MASS, "sag": sag}, objectives=(minimize("mass", "kg"), minimize("sag", "mm")))
    tolerance = Tolerance("width", percent / 100.0, relative=True)
    return replace(result, study=replace(result.study, tolerances=Tolerances((tolerance,), assumed=assumed)))


def test_an_objective_that_varies_less_than_the_tolerances_is_named_with_its_range() -> None:
    result = with_tolerance([240.0, 239.5, 239.0, 238.0], percent=2.0)
    clause = (
        "over the front sag (238 to 240 mm) varies less than the tolerances; the front has no trade-off to choose from"
    )
    assert f"note: {clause}" in summary_table(result)
    assert any(clause in finding.lower() for finding in overview(result).findings)


def test_two_narrow_objectives_beside_one_that_varies_leave_no_trade_off() -> None:
    """The ranges of the front of the study `exoskeleton_gait` with its tolerances."""
    figures = {
        "error": [7.7, 7.8, 7.9, 8.0],
        "moment": [239.4, 238.6, 237.9, 237.5],
        "energy": [36.57, 36.35, 36.4, 36.5],
    }
    objectives = (minimize("error", "mm"), minimize("moment", "N m"), minimize("energy", "J"))
    result = beam_result(X, figures, objectives=objectives)
    tolerances = Tolerances((Tolerance("width", 0.02, relative=True),))
    assert (
        "note: over the front moment (237.5 to 239.4 N m) and energy (36.35 to 36.57 J) vary less than the tolerances; "
        "the front has no trade-off to choose from"
    ) in summary_table(replace(result, study=replace(result.study, tolerances=tolerances)))


@pytest.mark.parametrize(
    "result",
    [
        with_tolerance([240.0, 200.0, 150.0, 100.0], percent=2.0),
        with_tolerance([240.0, 239.5, 239.0, 238.0], percent=0.1),
        with_tolerance([240.0, 239.5, 239.0, 238.0], percent=2.0, assumed=True),
    ],
)
def test_a_front_wider_than_the_stated_tolerances_needs_no_note(result: GivenResult) -> None:
    assert "trade-off" not in summary_table(result)


def curve(x, y):
    return {"low": x + y, "high": 1.0 - x + y}


def curve_result(tmp_path, **baseline):
    study = designopt.define(
        study="curve", model=curve, space={"x": [0, 1], "y": [0, 50]}, solver={"use": "full_factorial", "levels": 11},
        objectives=[{"minimize": "low"}, {"minimize": "high"}], baseline=[{"name": "old", **baseline}],
        execution={"executor": "serial"}, report={"tolerances": {"neighbours": 0}},
    )  # fmt: skip
    return study.run(tmp_path / "s.study")


def test_a_baseline_near_the_front_is_in_the_figure_and_one_far_away_is_named_below_it(tmp_path):
    near = curve_result(tmp_path / "near", x=0.5, y=1.0)
    assert far_baselines(near) == []
    far = curve_result(tmp_path / "far", x=0.5, y=40.0)
    assert far_baselines(far) == ["old"]
    section = front(far)
    assert any(note.startswith("old, of the baseline, lies far outside") for note in section.notes)
    ends = section.figures[0].plot["layout"]["xaxis"]["range"]
    assert ends[1] < 5.0
    (beside_answer,) = overview(far).figures
    assert max(max(trace["x"]) for trace in beside_answer.plot["data"]) < 5.0
    assert beside_answer.note == "Far outside of it: old."
    (with_baseline,) = overview(near).figures
    assert max(max(trace["x"]) for trace in with_baseline.plot["data"]) > 1.0
    assert not with_baseline.note
    assert front(near).figures[0].plot["layout"]["xaxis"]["range"][1] > 1.5


def test_a_front_over_decades_has_log_axes_in_both_figures() -> None:
    masses = np.geomspace(1.0, 1e4, 9)
    designs = [(30.0 + k, 0.1) for k in range(9)]
    result = beam_result(designs, {"mass": masses.tolist(), "sag": (10.0 - np.arange(9.0)).tolist()})
    section, answer = front(result), overview(result)
    assert section is not None
    assert answer is not None
    for figure in (section.figures[0], answer.figures[0]):
        axes = figure.plot["layout"]
        assert (axes["xaxis"].get("type"), axes["yaxis"].get("type")) == ("log", None)


def test_a_robust_choice_behind_the_front_is_in_both_figures_under_its_name(tmp_path):
    """Designs at the limit y >= 5 break it within their tolerances; those at y = 10 lie ten ranges behind the front."""
    study = designopt.define(
        study="curve", model=curve, space={"x": [0, 1], "y": {"low": 0, "high": 50, "tolerance": 1}},
        objectives=[{"minimize": "low"}, {"minimize": "high"}], execution={"executor": "serial"},
        constraints=[{"name": "distant", "of": "(low + high - 1)/2", "min": 5}],
        solver={"use": "full_factorial", "levels": 11}, report={"choose": ["robust"]},
    )  # fmt: skip
    result = study.run(tmp_path / "s.study")
    row = result.chosen()["robust"]
    low, high = result.outcomes.objectives[row].tolist()
    assert low + high == pytest.approx(21.0)
    layout = front(result).figures[0].plot["layout"]
    for value, axis in ((low, "xaxis"), (high, "yaxis")):
        assert layout[axis]["range"][0] < value < layout[axis]["range"][1]
    names = {trace["name"] for trace in overview(result).figures[0].plot["data"] if trace.get("showlegend", True)}
    assert names == {"best of an objective", "compromise", "robust (recommended)"}


def test_a_study_that_names_baselines_alone_has_no_section_of_analysis(tmp_path):
    assert analysis(curve_result(tmp_path, x=0.5, y=1.0)) is None


def test_a_baseline_is_compared_with_the_designs_that_dominate_it(tmp_path):
    """The 11 designs with y = 0 are better in both objectives than a baseline with y = 1."""
    behind = best(curve_result(tmp_path / "behind", x=0.5, y=1.0)).findings
    assert "old (baseline) is dominated by 11 evaluated designs: x 0.5 and y 1 give low 1.5 and high 1.5." in behind
    among = best(curve_result(tmp_path / "among", x=0.5, y=0.0)).findings
    assert "old (baseline) is on the front: x 0.5 and y 0 give low 0.5 and high 0.5." in among
