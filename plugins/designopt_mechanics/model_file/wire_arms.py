"""The model ``wire_arms``: where a wire of a mechanism is attached in, its moment arms over a coordinate out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Array, InputFile, InvalidSetting, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_mechanics.dynamics.recursion import inverse_dynamics
from designopt_mechanics.mechanism.mechanism import Mechanism
from designopt_mechanics.mechanism.scene import drawing, drawn_wires
from designopt_mechanics.model_file.reading import bundled, read_numbers
from designopt_mechanics.state import TreeState
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.wires import Wire, lengths, moment_arms

_SAMPLES = 121


class Attachment(TypedDict, total=False):
    """Displacement of the wire's end in the axes of its frame; missing components are 0."""

    shift_x: Annotated[float, Q("m", "of the last point of the wire")]
    shift_y: Annotated[float, Q("m", "of the last point of the wire")]
    shift_z: Annotated[float, Q("m", "of the last point of the wire")]


class Pose(TypedDict, total=False):
    """The part of the range that is evaluated; all of it by default."""

    low: Annotated[float, Q("", "lowest value of the coordinate, in its SI unit")]
    high: Annotated[float, Q("", "highest value of the coordinate, in its SI unit")]


class ArmOutputs(TypedDict):
    """Over the range of the coordinate."""

    peak_arm: Annotated[float, Q("m", "largest magnitude of the moment arm")]
    min_arm: Annotated[float, Q("m", "minimum size of the moment arm")]
    mean_arm: Annotated[float, Q("m", "mean size of the moment arm")]
    excursion: Annotated[float, Q("m", "difference of the longest and the shortest length of the wire")]
    peak_tension: Annotated[
        float, Q("N", "largest tension that holds the weight at rest; 0 where it would have to push")
    ]
    consistency: Annotated[float, Q("m", "largest difference between arm and -dl/dq from differences of the lengths")]
    effort: Annotated[float, Q("N^2", "mean square of the tension that holds the weight at rest")]


ARRAYS = {
    "time": Array(("time",), "", "the coordinate"),
    "arm": Array(("time",), "m", "moment arm of the wire about the coordinate"),
    "length": Array(("time",), "m", "of the wire"),
    "tension": Array(("time",), "N", "that holds the weight at rest"),
    "scene": Array(
        ("time", "vertex", "axis"), "m", "drawing of the mechanism; lines end where a place is not a number"
    ),
}


@model("wire_arms", version=2, arrays=ARRAYS)
class WireArms:
    """Moment arm of a wire (a muscle, a cable) of a mechanism over one coordinate, the others in the reference posture.

    The mechanism is a YAML file or bundled: knee_patella (tibia and patella slide with the knee angle) or lumbo_pelvic.
    Its springs and contacts act beside the weight. The last point of the wire can be moved.
    """

    mechanism: Annotated[str, Q("", "bundled model file; not used with `file`")] = "knee_patella"
    file: InputFile | None = None
    wire: Annotated[str, Q("", "name of the wire")] = "quadriceps"
    coordinate: Annotated[str, Q("", "name of the coordinate")] = "knee"

    @property
    def unit(self) -> str:
        """The unit of the coordinate."""
        tree = self._mechanism.tree
        return tree.coordinates[tree.names.index(self.coordinate)].unit

    def check(self) -> None:
        """Read the mechanism. Raises `InvalidSetting` for an unknown wire or coordinate, or a missing range."""
        mechanism = self._mechanism
        if mechanism.meets or mechanism.relations:
            raise InvalidSetting("file", "has loops, which wire_arms does not close; use the model mechanism")
        try:
            mechanism.wire(self.wire)
        except ValueError as error:
            raise InvalidSetting("wire", str(error)) from None
        if self.coordinate not in mechanism.tree.names:
            raise InvalidSetting(
                "coordinate", f"there is no coordinate '{self.coordinate}'; known: {', '.join(mechanism.tree.names)}"
            )
        low, high = self._range({})
        if not np.isfinite([low, high]).all():
            raise InvalidSetting("coordinate", f"'{self.coordinate}' has no range in the file; give range: [low, high]")

    def evaluate(
        self, design: Attachment, scenario: Pose, arrays: Set[str] = frozenset()
    ) -> tuple[ArmOutputs, dict[str, Floats]]:
        """Go through the range."""
        mechanism = self._mechanism
        design_values = cast(Mapping[str, float], design)
        shift = [float(design_values.get(name, 0.0)) for name in Attachment.__annotations__]
        k = mechanism.tree.names.index(self.coordinate)
        low, high = self._range(scenario)
        z = np.tile(mechanism.tree.reference, (_SAMPLES, 1))
        z[:, k] = np.linspace(low, high, _SAMPLES)
        arm, length, holding = self._rows(z, shift)
        tension = np.maximum(holding / np.where(arm == 0.0, np.nan, arm), 0.0)
        all_arrays = {"time": z[:, k], "arm": arm, "length": length, "tension": tension}
        size = np.abs(arm)
        outputs = ArmOutputs(
            peak_arm=float(size.max()),
            min_arm=float(size.min()),
            mean_arm=float(size.mean()),
            excursion=float(np.ptp(length)),
            peak_tension=float(tension.max()),
            consistency=float(np.abs(arm[1:-1] + self._differences(z[1:-1], shift, k)).max()),
            effort=float((tension**2).mean()),
        )
        if "scene" in arrays:
            state = TreeState.symbols(mechanism.tree)
            lines = [[state.position(point) for point in line] for line in self._lines()]
            all_arrays["scene"] = drawing(state, [*lines, *drawn_wires(state, [self._wire_at(shift)])], z)
        return outputs, {name: all_arrays[name] for name in arrays}

    @cached_property
    def _mechanism(self) -> Mechanism:
        if self.file is None:
            try:
                return bundled(self.mechanism)
            except FileNotFoundError:
                raise InvalidSetting("mechanism", f"there is no bundled mechanism '{self.mechanism}'") from None
        try:
            return read_numbers(self.file.content, self.file.name)
        except StudyError as error:
            messages = [f"{i.file}:{i.line}:{i.column}: {i.path}: {i.message}" for i in error.issues[:5]]
            raise InvalidSetting("file", "; ".join(messages)) from None

    @cached_property
    def _rows(self) -> Rows:
        """(z, shift) -> moment arm about the coordinate, length, and the moment that holds the weight."""
        mechanism = self._mechanism
        k, zeros = mechanism.tree.names.index(self.coordinate), ca.SX.zeros(len(mechanism.tree.names))
        state = TreeState(mechanism.tree, ca.SX.sym("z", zeros.numel()), zeros, zeros)
        shift = ca.SX.sym("shift", 3)
        wire = self._wire_at(shift)
        holding = inverse_dynamics(state, mechanism.gravity, mechanism.forces_on(state))[k]
        results = [moment_arms(state, [wire])[k], lengths(state, [wire]), holding]
        return Rows(ca.Function("wire", [state.z, shift], [ca.densify(r) for r in results]), compiled=False)

    def _wire_at(self, shift: Any) -> Wire:
        """The wire with its last point moved by `shift` (3), numbers or symbols."""
        wire = self._mechanism.wire(self.wire)
        end = wire.points[-1]
        location: Any = (
            tuple(np.add(end.position, shift)) if isinstance(shift, list) else shift + ca.SX(list(end.position))
        )
        return replace(wire, points=(*wire.points[:-1], Point(end.frame, location)))

    def _range(self, scenario: Mapping[str, Any]) -> tuple[float, float]:
        tree = self._mechanism.tree
        coordinate = tree.coordinates[tree.names.index(self.coordinate)]
        return float(scenario.get("low", coordinate.low)), float(scenario.get("high", coordinate.high))

    def _lines(self) -> list[list[Point]]:
        tree = self._mechanism.tree
        bones = [[Point(f.parent), Point(f.name)] for f in tree.frames if f.motions]
        masses = [
            [Point(f.name), Point(f.name, tuple(2.0 * np.asarray(f.body.centre)))]
            for f in tree.frames
            if f.body is not None
        ]
        return [[Point(GROUND), Point(GROUND)], *bones, *masses]

    def _differences(self, z: Floats, shift: list[float], k: int) -> Floats:
        """dl/dq of the wire by differences of fourth order."""
        h = 1e-4
        step = h * np.eye(z.shape[1])[k]
        l1, l2, l3, l4 = (self._rows(z + n * step, shift)[1] for n in (-2, -1, 1, 2))
        return np.asarray((l1 - 8.0 * l2 + 8.0 * l3 - l4) / (12.0 * h))
