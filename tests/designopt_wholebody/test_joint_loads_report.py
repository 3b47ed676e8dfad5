"""The report part of joint loads: drawn from the arrays of a run, frames that need a look by their sentences."""

from pathlib import Path

import pytest
from designopt_recordings.frames import FrameStatus
from designopt_wholebody.consistency.positions import ConsistencyStatus
from designopt_wholebody.report.joint_loads import NAMES, joint_loads, sentence

from designopt import define
from designopt.report.section import Section
from designopt.store.result import Result


def run(folder: Path, **execution: object) -> Result:
    return define(
        study="push",
        model={"use": "wholebody_trial", "cycles": 1, "rate": 25.0},
        space={"grip": {"values": ["closed", "open"]}, "preparation": {"value": "filtered"}},
        objectives=[{"name": "elbow", "minimize": "elbow_torque"}],
        stages=[{"name": "all", "solver": {"use": "full_factorial"}}],
        execution=execution,
    ).run(folder / "push.study", executor="serial")


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> Section:
    folder = tmp_path_factory.mktemp("push")
    made = joint_loads(run(folder, arrays=dict.fromkeys(NAMES, "all")))
    assert made is not None
    return made


def test_it_draws_the_movement_loads_and_residuals_of_every_design(section: Section) -> None:
    assert [figure.title for figure in section.figures] == [
        "The movement",
        "Torques of the joints",
        "Forces of the joints",
        "What is not explained",
    ]
    for figure in section.figures:
        assert figure.choices[0].options == ("grip open", "grip closed") or len(figure.choices[0].options) == 2
        assert len(figure.variants) == 2
    named = {trace.get("name") for trace in section.figures[1].plot["data"]}
    assert {"elbow", "shoulder", "wrist"} <= named


def test_frames_that_need_a_look_are_counted(section: Section) -> None:
    table = section.tables[0]
    assert table.columns == ("design", "scenario", "frames", "of", "why")
    assert table.rows == ()  # this trial is complete and filtered only
    assert table.note == "There are none."


def test_every_status_has_its_sentence() -> None:
    for member in (*ConsistencyStatus, *FrameStatus):
        if member > 0:
            assert sentence(int(member)) == member.sentence
    assert sentence(777) == "status 777"


def test_without_arrays_it_says_how_to_get_them(tmp_path: Path) -> None:
    made = joint_loads(run(tmp_path))
    assert made is not None
    assert "sticks: all" in made.introduction
