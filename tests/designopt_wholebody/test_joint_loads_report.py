"""The report part of joint loads: drawn from the arrays of a run, frames that need a look by their sentences."""

import re
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.frames import FrameStatus
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.report.joint_loads import CYCLES, MOMENTS, NAMES, VIOLATIONS, joint_loads, sentence, statuses
from designopt_wholebody.report.load_ranking import load_ranking

from designopt import define
from designopt.report.section import Section
from designopt.store.result import Result


def run(folder: Path, body: list[str] | None = None, **execution: object) -> Result:
    """Both grips, or two models of the body."""
    compared = {"grip": {"values": ["closed", "open"]}} if body is None else {"body": {"values": body}}
    return define(
        study="push",
        model={"use": "wholebody_trial", "cycles": 1, "rate": 25.0},
        space={**compared, "preparation": {"value": "filtered"}},
        objectives=[{"name": "elbow", "minimize": "elbow_torque"}],
        stages=[{"name": "all", "solver": {"use": "full_factorial"}}],
        execution=execution,
    ).run(folder / "push.study", executor="serial")


FURTHER = (*CYCLES, *MOMENTS, *VIOLATIONS, "raw_sticks", "surfaces", "ground_forces", "differences")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("push"), arrays=dict.fromkeys((*NAMES, *FURTHER), "all"))


@pytest.fixture(scope="module")
def section(result: Result) -> Section:
    section = joint_loads(result)
    assert section is not None
    return section


def test_it_draws_the_movement_loads_and_residuals_of_every_design(section: Section) -> None:
    assert [figure.title for figure in section.figures] == [
        "The movement",
        "Torques of the joints",
        "Forces of the joints",
        "Angles over a cycle",
        "Torques over a cycle",
        "Moments over a cycle",
        "Residuals",
        "Violation of the constraints",
        "Agreement of landmarks",
    ]
    for figure in section.figures:
        assert len(figure.choices[0].options) == 2
        assert len(figure.variants) == 2
    named = {trace.get("name") for trace in section.figures[1].plot["data"]}
    assert {"elbow", "shoulder", "wrist"} <= named


def test_the_scene_moves_and_lays_measured_over_used_lines(section: Section) -> None:
    plot = section.figures[0].plot
    assert [trace["name"] for trace in plot["data"]] == ["used", "measured", "surfaces", "ground"]
    assert len(plot["frames"]) > 20
    assert plot["layout"]["scene"]["camera"]["up"] == {"x": 0, "y": 1, "z": 0}


def test_the_coverage_of_the_ellipsoid_is_reported(section: Section) -> None:
    table = section.tables[1]
    for row in table.rows:
        values = dict(zip(table.columns, row, strict=True))
        assert 0.85 < values["in the 95 % ellipsoid"] < 1.0
        assert 0.6 < values["in that of 1.96 σ per axis"] < 0.9


def test_frames_that_need_a_look_are_counted(section: Section) -> None:
    table = section.tables[0]
    assert table.columns == ("design", "scenario", "frames", "of", "why")
    assert table.rows == ()  # this trial is complete and filtered only
    assert table.note.startswith("There are none.")


def test_statuses_of_frames_are_reported_the_worst_first() -> None:
    status = np.array([FrameStatus.EDGE, FrameStatus.BESIDE, FrameStatus.BESIDE, FrameStatus.REBUILT, 0, 0])
    table = statuses({("a", "first"): {"status": status.astype(float)}})
    assert table.rows == (
        ("a", "first", 1, 6, FrameStatus.REBUILT.sentence),
        ("a", "first", 2, 6, FrameStatus.BESIDE.sentence),
    )


def test_every_status_has_its_sentence() -> None:
    for member in (*ConsistencyStatus, *FrameStatus):
        if member > 0:
            assert sentence(int(member)) == member.sentence
    assert sentence(777) == "status 777"


def test_designs_are_ranked_by_the_loads_of_each_joint(result: Result) -> None:
    section = load_ranking(result)
    assert section is not None
    findings = {finding.split(":")[0]: finding for finding in section.findings}
    assert re.search(r"torque \(0\.\d+ to 0\.\d+\)[^;]* least with grip open", findings["elbow"])
    assert re.search(r"torque \(0\.\d+ to 0\.\d+\) least with grip closed", findings["shoulder"])
    figures = result.outcomes.figures
    for row in section.tables[0].rows:
        values = dict(zip(section.tables[0].columns, row, strict=True))
        output = figures[f"{values['joint']}_{values['load'].replace(' ', '_')}"][:, 0]
        assert [values["grip closed"], values["grip open"]] == output.tolist()
        assert values["least with"] == ("grip closed" if output[0] < output[1] else "grip open")
        assert values["most by least"] == pytest.approx(output.max() / output.min())
    torques = section.figures[0].plot["data"]
    assert [trace["name"] for trace in torques] == ["grip closed", "grip open"]


def test_a_joint_that_a_model_lacks_is_no_load_of_nothing(tmp_path: Path) -> None:
    section = load_ranking(run(tmp_path, body=["wholebody17", "wholebody21"]))
    assert section is not None
    rows = [row for row in section.tables[0].rows if row[:2] == ("sternoclavicular", "force")]
    assert np.isnan(rows[0][3])
    assert rows[0][5] == "body wholebody21"
    assert not any(finding.startswith("sternoclavicular") and "wholebody17" in finding for finding in section.findings)


def test_without_arrays_it_says_how_to_get_them(tmp_path: Path) -> None:
    section = joint_loads(run(tmp_path))
    assert section is not None
    assert "sticks: all" in section.introduction
