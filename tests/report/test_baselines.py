"""Baselines beside the front: they neither squeeze it nor have a section of their own."""

import designopt
from designopt.report.parts.answer.best import best
from designopt.report.parts.designs.analysis import analysis
from designopt.report.parts.designs.front import far_baselines, front


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
    assert front(near).figures[0].plot["layout"]["xaxis"]["range"][1] > 1.5


def test_a_study_that_names_baselines_alone_has_no_section_of_analysis(tmp_path):
    assert analysis(curve_result(tmp_path, x=0.5, y=1.0)) is None


def test_a_baseline_is_compared_with_the_designs_that_dominate_it(tmp_path):
    """The 11 designs with y = 0 are better in both objectives than a baseline with y = 1."""
    behind = best(curve_result(tmp_path / "behind", x=0.5, y=1.0)).findings
    assert "old (baseline) is dominated by 11 evaluated designs: x 0.5 and y 1 give low 1.5 and high 1.5." in behind
    among = best(curve_result(tmp_path / "among", x=0.5, y=0.0)).findings
    assert "old (baseline) is on the front: x 0.5 and y 0 give low 0.5 and high 0.5." in among
