"""Trajectories of OpenSim as guesses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.files.write import storage_text
from designopt_recordings.table import TimeTable
from designopt_walking.bundled import planar_walker
from designopt_walking.models.predict import WalkPredict
from designopt_walking.programs.recording import RecordingReader
from designopt_walking.storage import guess_from_table
from designopt_walking.walker import Walker, walker_of

from designopt.plugin import InputFile, InvalidSetting


@pytest.fixture(scope="module")
def walker() -> Walker:
    return walker_of(read_model(planar_walker().content))


def trajectory(walker: Walker, rows: int = 9) -> Any:
    """Values of all variables at some times, as of a solved phase."""
    rng, names = np.random.default_rng(0), list(walker.coordinates)
    names += [f"{name}_speed" for name in walker.coordinates] + list(walker.drives)
    names += [f"{kind}_{muscle}" for kind in ("activation", "excitation") for muscle in walker.muscles.names]
    return SimpleNamespace(
        times=np.linspace(0.0, 0.4, rows), values={name: rng.uniform(0.0, 1.0, rows) for name in names}
    )


def opensim_storage(walker: Walker, phase: Any) -> str:
    """The trajectory as OpenSim Moco writes it: each variable under its path in the model."""
    joints = {c.name: c.joint for c in walker.model.coordinates}
    paths = {f"{name}{ending}": f"/jointset/{joints[name]}/{name}/{kind}"
             for kind, ending in (("value", ""), ("speed", "_speed")) for name in walker.coordinates}  # fmt: skip
    paths |= {f"activation_{name}": f"/{name}/activation" for name in walker.muscles.names}
    paths |= {f"excitation_{name}": f"/{name}" for name in walker.muscles.names}
    paths |= {name: f"/{name}" for name in walker.drives}
    columns = np.column_stack([phase.values[name] for name in paths])
    return storage_text(TimeTable(phase.times, tuple(paths.values()), columns))


def table(name: str, text: str) -> TimeTable:
    return read_table(InputFile(name, text.encode()))


def test_each_column_of_a_trajectory_is_in_the_guess(walker: Walker) -> None:
    phase = trajectory(walker)
    text = opensim_storage(walker, phase)
    guess = guess_from_table(walker, table("walk.sto", text))
    assert guess.tf == pytest.approx(0.4)
    assert set(guess.values) == set(phase.values)
    for name, values in phase.values.items():
        np.testing.assert_array_equal(guess.values[name], values)


def test_a_solution_of_moco_is_a_guess(walker: Walker, walking_data: Path) -> None:
    file = walking_data / "reference" / "B_track_moco_4.6.sto"
    guess = guess_from_table(walker, read_table(InputFile(file.name, file.read_bytes())))
    assert guess.tf == pytest.approx(0.470089, abs=1e-5)
    assert 0.01 <= guess.values["activation_soleus_r"].min() < guess.values["excitation_soleus_r"].max() <= 1.0


def test_missing_columns_of_a_table_are_guessed_except_coordinates(walker: Walker) -> None:
    text = opensim_storage(walker, trajectory(walker))
    full = table("walk.sto", text)
    few = TimeTable(full.time, walker.coordinates, np.stack([full.column(n) for n in walker.coordinates], axis=1))
    guess = guess_from_table(walker, few)
    assert guess.values["activation_soleus_r"] == pytest.approx(0.1)
    assert guess.values["lumbarAct"] == pytest.approx(0.0)
    with pytest.raises(RecordingError, match="knee_angle_r"):
        guess_from_table(walker, table("walk.sto", text.replace("knee_angle_r", "knee")))
    holes = TimeTable(few.time, few.names, np.where(np.arange(len(few.names)) == 2, np.nan, few.values))
    with pytest.raises(RecordingError, match=r"'pelvis_ty' has missing values"):
        guess_from_table(walker, holes)
    short = TimeTable(few.time[:2], few.names, few.values[:2])
    with pytest.raises(RecordingError, match="2 rows are no trajectory"):
        guess_from_table(walker, short)
    with pytest.raises(InvalidSetting, match=r"guess: .*knee_angle_r"):
        WalkPredict(guess=InputFile("walk.sto", text.replace("knee_angle_r", "knee").encode())).check()


def test_a_guess_in_the_air_is_refused_and_one_beyond_the_ranges_is_noted(walker: Walker) -> None:
    phase = trajectory(walker)
    names = [name for name in walker.coordinates if name not in ("pelvis_ty", "pelvis_tx")]
    for name in names:
        phase.values[name] = np.full(9, -0.2 if "knee" in name else 0.1)
    phase.values["pelvis_ty"] = np.full(9, 0.86)
    model = WalkPredict(guess=InputFile("walk.sto", opensim_storage(walker, phase).encode()))
    model.check()
    assert any(note.startswith("guess: pelvis_tilt goes from 0.1 to 0.1 rad") for note in model.remarks({}))
    phase.values["pelvis_ty"] = np.full(9, 1.2)
    with pytest.raises(InvalidSetting, match=r"guess: no foot comes nearer to the ground than \d+ mm \('contact"):
        WalkPredict(guess=InputFile("walk.sto", opensim_storage(walker, phase).encode())).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"window": (0.2, 0.1)}, "the window from 0.2 to 0.1 s is empty"),
        ({"window": (0.0, 0.9)}, "is recorded from 0 to 0.4 s, not from 0 to 0.9 s"),
        ({"columns": {"r": "force_r_v"}}, "no column of the ground forces is named for the foot 'l'"),
        ({"columns": {"r": "force_r_v", "l": "load_l_v"}}, "load_l_vx"),
        ({"cutoff": 100.0}, "a cut-off of 100 Hz is not possible"),
    ],
)
def test_recordings_that_do_not_suit_are_refused(walker: Walker, change: dict[str, Any], message: str) -> None:
    motion = table("walk.sto", opensim_storage(walker, trajectory(walker)))
    forces = tuple(f"force_{side}_v{axis}" for side in "rl" for axis in "xy")
    ground = TimeTable(motion.time, forces, np.ones((len(motion.time), 4)))
    settings: dict[str, Any] = {"columns": {"r": "force_r_v", "l": "force_l_v"}, **change}
    with pytest.raises(RecordingError, match=message):
        RecordingReader(**settings).walk(walker, motion, ground)
