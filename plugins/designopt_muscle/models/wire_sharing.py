"""The model ``wire_sharing``: wires with virtual links, a criterion and a motion in, tensions out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from functools import cached_property
from typing import Annotated, Any, TypedDict

import numpy as np
from designopt_mechanics.anatomy.companion import Anatomy, read_companion
from designopt_mechanics.anatomy.vrml import read_vrml
from designopt_mechanics.sharing.statement.criteria import CriterionName, criterion_of
from designopt_mechanics.sharing.statement.formulation import Terms
from designopt_recordings.errors import RecordingError
from designopt_recordings.files.read import read_table
from designopt_recordings.plausibility import noise_notes
from designopt_recordings.signals.derivatives import derivatives
from designopt_recordings.signals.even_steps import check_steps, for_filter, step_notes
from designopt_recordings.signals.filters import lowpass
from designopt_recordings.table import TimeTable
from numpy.typing import NDArray

from designopt.plugin import Array, Diverged, InputFile, InvalidDesign, InvalidSetting, Unusable, filled, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_muscle.models.trial import bundled_file
from designopt_muscle.wires.share import JointMotion, WireSharing, drawing_arrays, share_wires

#: Order of the zero-phase low-pass filter of coordinates.
_ORDER = 3


class WireDesign(TypedDict, total=False):
    """Values of a design."""

    strength: Annotated[float, Q("", "factor on the maximum tensions of all muscles", gt=0, default=1.0)]
    criterion: Annotated[CriterionName, Q("", "what is minimised", default="power")]
    exponent: Annotated[float, Q("", "of the criterion 'power'", ge=1, le=50, default=2.0)]


class WireScenario(TypedDict, total=False):
    """The motion; the bundled one where none is named."""

    motion: Annotated[InputFile, Q("", "table of the joints' coordinates (MOT, STO or CSV)")]


class WireOutputs(TypedDict):
    """Figures over all frames with an answer."""

    mean_cost: Annotated[float, Q("", "of the criterion, mean over the frames")]
    mean_activation: Annotated[float, Q("", "tension by maximum tension, over muscles and frames")]
    peak_activation: Annotated[float, Q("", "of any muscle")]
    peak_tension: Annotated[float, Q("N", "of any wire")]
    contact_force: Annotated[float, Q("N", "largest in a joint")]
    link_travel: Annotated[
        float, Q("m", "largest displacement of a virtual link from the reference posture; 0 without")
    ]
    infeasible_frames: Annotated[float, Q("", "frames proved to be beyond the wires")]
    unanswered_frames: Annotated[float, Q("", "frames with bad input, or without equilibrium")]
    peak_shortfall: Annotated[float, Q("", "largest missing generalised force of a row, in N m or N")]
    peak_reserve: Annotated[float, Q("", "largest generalised force of a reserve, in N m or N")]


ARRAYS = {
    "time": Array(("time",), "s", "of the frames"),
    "muscles": Array(("muscle",), "", "names", dtype="str"),
    "coordinates": Array(("row",), "", "names of the joints' coordinates", dtype="str"),
    "wires": Array(("wire",), "", "names of all wires", dtype="str"),
    "activations": Array(("time", "muscle"), "", "tension by maximum tension; NaN in frames without a solution"),
    "muscle_moments": Array(("time", "row", "muscle"), "", "change with the tension, links following, in N m or N"),
    "net_moments": Array(("time", "row"), "", "that the muscles balance beside tendons and ligaments, in N m or N"),
    "tensions": Array(("time", "wire"), "N", "of all wires"),
    "pose": Array(("time", "place"), "m", "of the virtual links, or rad"),
    "contacts": Array(("time", "bone", "axis"), "N", "force in the joint of each bone, axes of the ground"),
    "reserves": Array(("time", "row"), "", "in N m or N"),
    "shortfall": Array(("time", "row"), "", "what is missing in infeasible frames, in N m or N"),
    "status": Array(("time",), "", "0 to 20 balanced, 100 infeasible, above that no solution"),
    "strength_factor": Array(("time",), "", "on the strength, that makes a frame feasible, links in place"),
    "skeleton": Array(("time", "vertex", "axis"), "m", "drawing of the bones; lines end where a place is not a number"),
    "paths": Array(("time", "wire", "vertex", "axis"), "m", "drawing of the wires"),
}


@model("wire_sharing", version=2, arrays=ARRAYS)
class WireSharingModel:
    """Shares the moments of a motion among the wires of a musculoskeletal model with virtual links.

    Muscles branch in virtual links (Nakamura et al., JP 2002-154853), which have no mass and find their pose with the
    tensions: it is an unknown of every frame. Criteria and statuses are those of ``muscle_sharing``. The model is a
    VRML file with its companion, or the bundled arm of five joints, eighteen muscles and a forked biceps.

    The default motion is one second of a synthetic motion of the arm.
    """

    geometry: Annotated[InputFile | None, Q("", "wires and virtual links (VRML); the bundled arm if none")] = None
    companion: Annotated[InputFile | None, Q("", "joints, masses and laws of the wires (YAML)")] = None
    window: Annotated[tuple[float, float] | None, Q("s", "first and last time; the whole motion if not given")] = None
    cutoff: Annotated[float | None, Q("Hz", "of a low-pass filter for the coordinates; none if not given", gt=0)] = None
    linear: Annotated[float, Q("", "linear part of the criterion 'quadratic_linear'", ge=0)] = 0.1
    tie_break: Annotated[float, Q("", "share of the squares in the criterion 'minmax'", gt=0, lt=1)] = 1e-4
    reserve: Annotated[float, Q("N m", "generalised force of a reserve at control 1 (N for translations)", ge=0)] = 0.0

    _motions: dict[str, JointMotion] = field(init=False, repr=False, compare=False, default_factory=dict)

    def check(self) -> None:
        """Read the files before the run. Raises `InvalidSetting` for only one of geometry and companion."""
        if (self.geometry is None) != (self.companion is None):
            raise InvalidSetting("geometry", "geometry and companion belong together: give both or none")
        _ = self._anatomy

    def check_scenario(self, conditions: Mapping[str, Any]) -> None:
        """Read the motion of a scenario. Raises `InvalidSetting` for an unusable file."""
        try:
            self._motion(_file(conditions))
        except Unusable as error:
            raise InvalidSetting("motion", str(error)) from None

    def remarks(self, conditions: Mapping[str, Any]) -> list[str]:
        """Sentences on what the reader of the motion left out or assumed."""
        file = _file(conditions)
        table, joints = self._table(file), self._anatomy.joints
        other_columns = [name for name in table.names if not any(part in joints for part in name.split("/"))]
        notes = [*table.notes, *([f"of no use to the model: {', '.join(other_columns)}"] if other_columns else [])]
        if self.cutoff is None:
            turning = {c.name for c in self._anatomy.tree.coordinates if c.unit == "rad"}
            curves = {name: table.column(name) for name in joints}
            notes += step_notes(table.time)
            notes += noise_notes(curves, table.time, turning, "Set a cutoff (Hz)")
        return [f"{file.name}: {note}" for note in notes]

    def evaluate(
        self, design: WireDesign, scenario: WireScenario, arrays: Set[str] = frozenset()
    ) -> tuple[WireOutputs, dict[str, NDArray[Any]]]:
        """Share the moments of the motion. Raises `InvalidDesign` for values that sharing rejects."""
        motion = self._motion(_file(scenario))
        values = filled(WireDesign, design)
        terms = Terms(criterion_of(values, self.linear, self.tie_break))
        try:
            wire_solution = share_wires(self._anatomy, motion, terms, reserve=self.reserve, strength=values["strength"])
        except ValueError as error:
            raise InvalidDesign(str(error)) from None
        sharing = wire_solution.sharing
        all_arrays: dict[str, NDArray[Any]] = {
            "time": motion.time,
            "muscles": np.array(sharing.balance.columns),
            "coordinates": np.array(sharing.balance.rows),
            "wires": np.array([wire.name for wire in self._anatomy.wires]),
            "activations": sharing.activations,
            "muscle_moments": sharing.moments,
            "net_moments": sharing.balance.moments,
            "tensions": wire_solution.tensions,
            "pose": wire_solution.pose,
            "contacts": np.stack(list(wire_solution.contact.values()), axis=1),
            "reserves": sharing.reserves,
            "shortfall": sharing.shortfall,
            "status": sharing.status,
            "strength_factor": sharing.strength_factor,
        }
        if arrays & {"skeleton", "paths"}:
            all_arrays |= drawing_arrays(self._anatomy, motion.q, wire_solution)
        return self._figures(wire_solution), {name: all_arrays[name] for name in arrays}

    def _figures(self, wire_solution: WireSharing) -> WireOutputs:
        sharing = wire_solution.sharing
        has_solution = np.isfinite(sharing.activations).all(axis=1)
        if not has_solution.any():
            raise Diverged(f"no frame of the motion has a solution: {sharing.summary()}", reason="no_frames")
        reference = self._anatomy.tree.reference[len(self._anatomy.joints) :]
        contacts = np.linalg.norm(np.stack(list(wire_solution.contact.values()), axis=1)[has_solution], axis=2)
        return WireOutputs(
            mean_cost=float(sharing.cost[has_solution].mean()),
            mean_activation=float(sharing.activations[has_solution].mean()),
            peak_activation=float(sharing.activations[has_solution].max()),
            peak_tension=float(wire_solution.tensions[has_solution].max()),
            contact_force=float(contacts.max()),
            link_travel=float(np.abs(wire_solution.pose[has_solution] - reference).max(initial=0.0)),
            infeasible_frames=float((sharing.status == 100).sum()),
            unanswered_frames=float((~has_solution).sum()),
            peak_shortfall=float(np.abs(sharing.shortfall[has_solution]).max()),
            peak_reserve=float(np.abs(sharing.reserves[has_solution]).max()),
        )

    @cached_property
    def _anatomy(self) -> Anatomy:
        geometry = self.geometry or bundled_file("wire_arm.wrl")
        companion = self.companion or bundled_file("wire_arm.yaml")
        try:
            vrml = read_vrml(geometry.content, geometry.name)
        except StudyError as error:
            raise InvalidSetting("geometry", error.in_short) from None
        try:
            return read_companion(companion.content, companion.name, vrml)
        except StudyError as error:
            raise InvalidSetting("companion", error.in_short) from None

    def _table(self, file: InputFile) -> TimeTable:
        """The motion in rad and m, at even times if it is to be filtered. Raises `RecordingError`."""
        turning = {c.name for c in self._anatomy.tree.coordinates if c.unit == "rad"}
        table = read_table(file).radians([name for name in self._anatomy.joints if name in turning])
        return table if self.cutoff is None else for_filter(table, self.cutoff)

    def _motion(self, file: InputFile) -> JointMotion:
        """The motion of a file, read once in a process. Raises `Diverged`."""
        if file.digest not in self._motions:
            joints = self._anatomy.joints
            try:
                table = self._table(file)
                q = np.column_stack([table.column(name) for name in joints])
                if self.cutoff is not None:
                    q = lowpass(q, 1.0 / float(np.median(np.diff(table.time))), self.cutoff, _ORDER)
                check_steps(table.time)
                dq, ddq = derivatives(table.time, q)
            except RecordingError as error:
                raise Unusable(str(error) if error.file else f"{file.name}: {error}", reason="unreadable") from None
            low, high = self.window or (-np.inf, np.inf)
            in_window = (table.time >= low - 1e-9) & (table.time <= high + 1e-9)
            if not in_window.any():
                raise Unusable(f"{file.name}: no frame lies between {low:g} and {high:g} s", reason="unreadable")
            if not np.isfinite(np.concatenate([q, ddq], axis=1)[in_window]).all(axis=1).any():
                raise Unusable(f"{file.name}: no frame has all the numbers that are needed", reason="unreadable")
            self._motions[file.digest] = JointMotion(*(v[in_window] for v in (table.time, q, dq, ddq)))
        return self._motions[file.digest]


def _file(scenario: Mapping[str, Any]) -> InputFile:
    return scenario.get("motion") or bundled_file("wire_arm.csv")
