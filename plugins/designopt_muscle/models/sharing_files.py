"""The files of a scenario of static sharing, and their valid combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.sharing.statement.criteria import JointReaction
from designopt_recordings.plausibility import force_notes
from designopt_recordings.signals.even_steps import gap_notes

from designopt.arrays import Floats
from designopt.plugin import InputFile, InvalidDesign, InvalidSetting
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.models.dynamics import read_body_loads
from designopt_muscle.models.errors import TrialError
from designopt_muscle.models.plausibility import point_notes, weight_of
from designopt_muscle.models.trial import Trial, bundled_file, read_trial_table, recorded_poses
from designopt_muscle.osim.model import OsimModel

Files = Mapping[str, InputFile | None]

_NAMES = ("motion", "moments", "emg", "external_loads", "external_forces")


@dataclass(frozen=True, eq=False)
class SharingData:
    """A `trial`, `signals` (n, k) of EMG or None, reactions of the joints in the settings."""

    trial: Trial
    signals: Floats | None
    reactions: tuple[JointReaction, ...]

    def reaction_forces(self, forces: Floats) -> Floats:
        """(n, joints, 3) N for muscle forces (n, k); NaN where they are."""
        reactions = [r.offset + np.einsum("nck,nk->nc", r.gain, forces) for r in self.reactions]
        return np.stack(reactions, axis=1) if reactions else np.zeros((len(forces), 0, 3))


def files_of(scenario: Mapping[str, Any]) -> dict[str, InputFile | None]:
    """The files of a scenario by name; the bundled walking leg where no motion is named."""
    files = {name: scenario.get(name) for name in _NAMES}
    return {**files, "motion": files["motion"] or bundled_file("walking_leg.csv")}


@contextmanager
def as_mistakes(files: Files) -> Iterator[None]:
    """Errors of a trial become an `InvalidSetting` at the condition whose file they name, else at the motion."""
    try:
        yield
    except (TrialError, ModelError, InvalidDesign) as error:
        text = str(error)
        name = next((n for n, file in files.items() if file is not None and text.startswith(file.name)), "motion")
        raise InvalidSetting(name, text) from None


def load_notes(model: OsimModel, motion: InputFile, loads: InputFile | None, forces: InputFile | None) -> list[str]:
    """Notes on external loads in a motion. Raises `TrialError` for files that do not fit each other or the model."""
    if loads is None or forces is None:
        return []
    table = read_trial_table(forces)
    default_pose = kinematics(model, {c.name: np.array([c.default]) for c in model.coordinates})
    n = len(table.time)
    of_bodies = read_body_loads(loads, table, default_pose.take(np.zeros(n, dtype=np.int64)), table.time)
    vertical = sum((load.force[:, 1] for load in of_bodies), np.zeros(n))
    notes = [*table.notes, *gap_notes(table.time), *force_notes(vertical, weight_of(model))]
    time, poses = recorded_poses(model, motion)
    notes += point_notes(read_body_loads(loads, table, poses, time), poses.origin, weight_of(model))
    return [f"{forces.name}: {note}" for note in notes]


def refuse(files: Files, *, computes_moments: bool, reactions: bool, has_emg: bool) -> None:
    """Raise `InvalidDesign` for files without effect, and for settings whose files are missing.

    `computes_moments`: the net moments are not read. `reactions` of joints are requested or not; `has_emg`: measured
    activity is used.
    """
    if (files["external_loads"] is None) != (files["external_forces"] is None):
        raise InvalidDesign("external_loads and external_forces belong together: give both or none")
    if files["external_loads"] is not None and not (computes_moments or reactions):
        raise InvalidDesign("external loads are used only with 'inverse_dynamics: compute' or 'joint_reactions'")
    if reactions and not computes_moments and files["external_loads"] is None:
        raise InvalidDesign(
            "joint reactions need external_loads and external_forces; if there are none, set 'inverse_dynamics:"
            " compute'"
        )
    if computes_moments and files["moments"] is not None:
        raise InvalidDesign("net moments are computed and a table of them is not used: leave 'moments' out")
    if has_emg != (files["emg"] is not None):
        raise InvalidDesign("the condition 'emg' (a file) and the setting 'emg' belong together: give both or none")
