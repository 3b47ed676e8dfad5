"""The model ``wire_patterns``: how hard muscles pull in a posture in, moments, tensions and joint forces out."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.plugin import Array, Diverged, InputFile, InvalidSetting, filled, model
from designopt.plugin import Quantity as Q
from designopt.study.language.errors import StudyError
from designopt_mechanics import scene
from designopt_mechanics.anatomy.companion import Anatomy, ElasticStrand, Muscle, bundled, read_companion
from designopt_mechanics.anatomy.equilibrium import Equilibrium, NoEquilibrium
from designopt_mechanics.anatomy.vrml import read_vrml
from designopt_mechanics.tree import GROUND, Point
from designopt_mechanics.tree_rows import TreeRows

_SAMPLES = 31
PatternName = Literal["teres_minor", "obturator_internus", "pectoralis", "biceps", "elbow_ligaments"]


class Pull(TypedDict, total=False):
    """Values of a design."""

    activation: Annotated[float, Q("", "of all muscles, between tone and their maximum force", ge=0, le=1, default=0.2)]
    angle: Annotated[
        float, Q("rad", "of the first coordinate at the end of the sweep from 0", ge=-1.6, le=1.6, default=1.0)
    ]


class AnatomyChoice(TypedDict, total=False):
    """Which anatomy."""

    pattern: Annotated[PatternName, Q("", "bundled anatomy; not used with files", default="biceps")]


class PatternOutputs(TypedDict):
    """Over the sweep of the first coordinate."""

    peak_moment: Annotated[float, Q("N m", "largest generalised force of all wires on a joint")]
    mean_moment: Annotated[float, Q("N m", "mean generalised force on the first coordinate")]
    peak_tension: Annotated[float, Q("N", "largest of a wire")]
    contact_force: Annotated[float, Q("N", "largest in a joint, at rest, weight included")]
    stretch: Annotated[float, Q("m", "largest lengthening of a tendon or ligament beyond slack")]
    link_travel: Annotated[
        float, Q("m", "largest displacement of a virtual link from the reference posture; 0 without")
    ]
    resultant: Annotated[float, Q("N", "largest residual on a virtual link")]
    effort: Annotated[float, Q("", "mean square of muscle tensions by their maximum")]


ARRAYS = {
    "time": Array(("time",), "rad", "first coordinate of the sweep"),
    "tensions": Array(("time", "wire"), "N", "in the order of the file"),
    "moments": Array(("time", "joint"), "N m", "of all wires on the joints"),
    "jacobian": Array(("time", "wire", "coordinate"), "", "J_L = dl/dz, m or 1; joints, then virtual links"),
    "poses": Array(("time", "link_coordinate"), "m", "of the virtual links; turns of rigid ones in rad"),
    "resultants": Array(("time", "link_coordinate"), "N", "of all wires on the virtual links; moments in N m"),
    "joint_forces": Array(
        ("time", "frame", "component"), "N", "at rest, from the frame before: force, then moment (N m) about the origin"
    ),
    "scene": Array(("time", "vertex", "axis"), "m", "drawing of the wires; lines end where a place is not a number"),
}


@model("wire_patterns", version=1, arrays=ARRAYS)
class WirePatterns:
    """Wires with virtual links (Nakamura et al., JP 2002-154853): five branching patterns, or the user's files.

    The pose of the virtual links minimises the potential of all wires: the resultant on each link is zero. The
    first coordinate goes from 0 to `angle`, the others stay at 0.
    """

    geometry: InputFile | None = None
    companion: InputFile | None = None

    def check(self) -> None:
        """Read the files, if any. Raises `InvalidSetting` for only one of geometry and companion."""
        if (self.geometry is None) != (self.companion is None):
            raise InvalidSetting("geometry", "geometry and companion belong together: give both or none")
        _ = self._model_files

    def evaluate(
        self, design: Pull, scenario: AnatomyChoice, arrays: Set[str] = frozenset()
    ) -> tuple[PatternOutputs, dict[str, Floats]]:
        """Find the equilibria along the sweep. Raises `Diverged` if there is none."""
        anatomy, balance = self._equilibrium(scenario)
        pull_values = filled(Pull, design)
        muscles = [law for law in anatomy.laws.values() if isinstance(law, Muscle)]
        pull = np.array(
            [law.min_tension + pull_values["activation"] * (law.max_tension - law.min_tension) for law in muscles]
        )
        angles = np.linspace(0.0, pull_values["angle"], _SAMPLES)
        balances, pose = [], None
        for angle in angles:
            q = np.zeros(len(anatomy.joints))
            q[0] = angle
            try:
                balances.append(balance.at(q, pull, pose))
            except NoEquilibrium as error:
                raise Diverged(str(error), reason="no_equilibrium") from None
            pose = balances[-1].pose
        tensions, moments = np.array([b.tensions for b in balances]), np.array([b.tau for b in balances])
        travel = np.array([b.pose for b in balances]) - anatomy.tree.reference[len(anatomy.joints) :]
        slack = [(i, law.slack) for i, law in enumerate(anatomy.laws.values()) if isinstance(law, ElasticStrand)]
        contacts = [np.linalg.norm(part[:3]) for b in balances for part in b.contact.values()]
        outputs = PatternOutputs(
            peak_moment=float(np.abs(moments).max()),
            mean_moment=float(moments[:, 0].mean()),
            peak_tension=float(tensions.max()),
            contact_force=float(max(contacts)),
            stretch=float(max((b.lengths[i] - s for b in balances for i, s in slack), default=0.0)),
            link_travel=float(np.abs(travel).max(initial=0.0)),
            resultant=float(max(np.abs(b.resultant).max(initial=0.0) for b in balances)),
            effort=float(np.mean((pull / [law.max_tension for law in muscles]) ** 2)) if len(muscles) else 0.0,
        )
        all_arrays = {"time": angles, "tensions": tensions, "moments": moments}
        z = np.zeros((_SAMPLES, len(anatomy.tree.names)))
        z[:, 0] = angles
        z[:, len(anatomy.joints) :] = all_arrays["poses"] = np.array([b.pose for b in balances])
        all_arrays["resultants"] = np.array([b.resultant for b in balances])
        all_arrays["joint_forces"] = np.array([list(b.contact.values()) for b in balances])
        rows = TreeRows(anatomy.tree, wires=anatomy.wires, compiled=False)
        if "jacobian" in arrays:
            all_arrays["jacobian"] = -rows.moment_arms(z).transpose(0, 2, 1)
        if "scene" in arrays:
            lines = [[Point(GROUND), *(Point(f.name) for f in anatomy.tree.frames if f.body is not None)]]
            lines += [list(wire.points) for wire in anatomy.wires]
            all_arrays["scene"] = scene.drawing(rows, lines, z)
        return outputs, {name: all_arrays[name] for name in arrays}

    @cached_property
    def _model_files(self) -> Anatomy | None:
        if self.geometry is None or self.companion is None:
            return None
        try:
            geometry = read_vrml(self.geometry.content, self.geometry.name)
        except StudyError as error:
            raise InvalidSetting("geometry", error.in_short) from None
        try:
            return read_companion(self.companion.content, self.companion.name, geometry)
        except StudyError as error:
            raise InvalidSetting("companion", error.in_short) from None

    def _equilibrium(self, scenario: Mapping[str, Any]) -> tuple[Anatomy, Equilibrium]:
        if self._model_files is not None:
            return self._model_files, Equilibrium(self._model_files)
        return _pattern(filled(AnatomyChoice, scenario)["pattern"])


@lru_cache(maxsize=5)
def _pattern(name: str) -> tuple[Anatomy, Equilibrium]:
    anatomy = bundled(name)
    return anatomy, Equilibrium(anatomy)
