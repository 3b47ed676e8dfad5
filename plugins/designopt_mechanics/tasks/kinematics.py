"""The task `kinematics`: a grid of postures; workspace, transmission, ratios, manipulability, efforts at rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.dynamics.rows import Rows
from designopt.lazy import casadi as ca
from designopt.plugin import Array, Declaration, Diverged, InvalidSetting
from designopt.plugin import Quantity as Q
from designopt.study.language.findings import nearest_or_all
from designopt_mechanics.mechanism.forces import LoopForces
from designopt_mechanics.mechanism.loops import CannotClose, LoopSolver
from designopt_mechanics.mechanism.measures import measures
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.model_file.nodes import TURN
from designopt_mechanics.tasks.limits import value_notes
from designopt_mechanics.tasks.task import TaskSettings, differences, refuse_structure
from designopt_mechanics.tree import TreeError

#: Postures of a grid beyond which an evaluation takes too long to be waited for.
_MOST = 100_000
#: Inverse condition below which the drives do not determine the posture.
_SINGULAR = 1e-9
#: Step of the differences of the outputs, relative to the parameter.
_SHARE = 1e-3
_UNITS = ("", "m", "m^2", "m^3")


class GridRange(TypedDict, total=False):
    """Values of one coordinate, in its SI unit."""

    low: Annotated[float, Q("", "lowest value, in the SI unit; by default the low end of its range in the file")]
    high: Annotated[float, Q("", "highest value, in the SI unit; by default the high end of its range in the file")]
    points: Annotated[int, Q("", "number of values", ge=1, le=1001, default=11)]


class GridSection(TypedDict, total=False):
    """The postures of the task `kinematics`."""

    over: Annotated[dict[str, GridRange], Q("", "coordinates that span the grid; others stay at their reference")]
    drives: Annotated[list[str], Q("", "coordinates with drives; by default those that span the grid")]


@dataclass(frozen=True, eq=False)
class GridRows:
    """Postures `z` (n, m) of a grid, whether each `counts` and `is_closed` (n,), and the open `gap` (n,)."""

    z: Floats
    counts: NDArray[np.bool_]
    is_closed: NDArray[np.bool_]
    gap: Floats


class KinematicsTask:
    """A grid of postures: each is closed, and counts where ranges and clearances hold.

    The independent coordinates are those of the grid, whatever the file names: a platform may be led over its workspace
    while the drives follow. Manipulability is the product of the singular values of the Jacobian of a point by the
    drives (Yoshikawa 1985), dexterity the ratio of the least to the largest; the reach of a point is the length, area
    or volume that it sweeps. Efforts balance weight, loads, springs and laws at rest.
    """

    def __init__(self, settings: TaskSettings) -> None:
        self.settings = settings
        self.mechanism = settings.mechanism

    def check(self) -> Iterable[InvalidSetting]:
        """Mistakes in `grid`."""
        names = self.mechanism.tree.names
        if structure := list(refuse_structure("grid", self.settings.loops)):
            yield from structure
            return
        over = self.settings.grid.get("over", {})
        if not over:
            yield InvalidSetting("grid", "needs over: {coordinate: {low: .., high: .., points: ..}}")
            return
        for name in (*over, *self.settings.grid.get("drives", ())):
            if name not in names:
                yield InvalidSetting("grid", f"there is no coordinate '{name}'{nearest_or_all(name, names)}")
                return
        for name in over:
            low, high, _ = self._range(name)
            if not (np.isfinite([low, high]).all() and low <= high):
                yield InvalidSetting("grid", f"over.{name}: {low:g} to {high:g} is no range; state low and high")
                return
        count = int(np.prod([self._range(name)[2] for name in over]))
        if count > _MOST:
            yield InvalidSetting("grid", f"has {count} postures; at most {_MOST}")
        try:
            _ = self._forces
        except (TreeError, CannotClose) as error:
            yield InvalidSetting("grid", str(error))

    def notes(self, numbers: Mapping[str, float]) -> Iterator[str]:
        """Notes where an end of the grid is an angle of more than a turn; others may lie beyond the ranges."""
        for key in ("low", "high"):
            ends = {name: entry[key] for name, entry in self.settings.grid["over"].items() if key in entry}
            turns = {name: end for name, end in ends.items() if self._unit(name) == "rad" and abs(end) > TURN}
            yield from value_notes(self.mechanism, f"grid.over.{key}", turns)

    def declares(self) -> Declaration:
        """Outputs over the postures that count, and arrays over all of them."""
        outputs = {
            "workspace": Q(
                "", "share of the postures that close, in the ranges of the file, without negative clearance"
            ),
            "closed_share": Q("", "share of the postures that close"),
            "gap_max": Q("", "largest gap (m or rad) of the postures that do not close"),
            "singularity_min": Q("", "least inverse condition of the motion by the drives; 0 is singular"),
        }
        for name, measure in self._measures.items():
            takes = ("min",) if name.startswith("clearance_") else ("min", "max")
            outputs |= {f"{name}_{take}": Q(measure.unit, f"{take} over the grid") for take in takes}
        size = _UNITS[self._sweep] if self._sweep < len(_UNITS) else ""
        for name in self.mechanism.points if self._sweep < len(_UNITS) else ():
            outputs[f"reach_{name}"] = Q(size, f"length, area or volume that '{name}' sweeps, folds counted twice")
        for name in self.mechanism.points:
            for kind in ("manipulability", "dexterity"):
                outputs |= {f"{kind}_{name}_{take}": Q("", f"{take} of '{name}'") for take in ("min", "mean")}
        for name in self._followers:
            outputs |= {f"ratio_{name}_{take}": Q("", f"{take} rate per rate of the drive") for take in ("min", "max")}
        for name in self._forces.driven:
            unit = "N" if self._unit(name) == "m" else "N m"
            outputs |= {f"effort_{name}_{take}": Q(unit, f"{take} size at rest") for take in ("max", "mean", "rms")}
        if self._one_unit:
            outputs["effort_max"] = Q("N" if self._one_unit == {"m"} else "N m", "largest of all drives at rest")
        arrays = {
            "time": Array(("time",), "", "number of the posture"),
            "counts": Array(("time",), "", "1 where the posture counts, else 0"),
            "postures": Array(("time", "coordinate"), "", "coordinates in the order of the file, in SI units"),
            "efforts": Array(("time", "drive"), "", "of the drives at rest, N m or N"),
            "scene": Array(("time", "vertex", "axis"), "m", "drawing; lines end where a place is not a number"),
        }
        arrays |= {name: Array(("time",), m.unit, "of the posture") for name, m in self._measures.items()}
        return Declaration(outputs=outputs, arrays=arrays)

    def evaluate(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], arrays: Set[str]
    ) -> tuple[dict[str, float], dict[str, Floats]]:
        """Go through the grid. Raises `Diverged` where no posture counts."""
        p = np.array(self.mechanism.column(numbers))
        grid = self._grid(p, self._branch(scenario))
        values = dict(zip(self._measures, self._measure_values(grid.z, p), strict=True))
        outputs = {
            "workspace": float(grid.counts.mean()),
            "closed_share": float(grid.is_closed.mean()),
            "gap_max": float(grid.gap.max(initial=0.0, where=~grid.is_closed)),
        }
        grid_outputs, regular, efforts = self._grid_outputs(grid.z[grid.counts], p)
        outputs |= grid_outputs
        all_arrays: dict[str, Floats] = {
            "time": np.arange(len(grid.z), dtype=np.float64),
            "counts": grid.counts.astype(np.float64),
            "postures": grid.z,
            **values,
        }
        if "efforts" in arrays:
            all_arrays["efforts"] = np.full((len(grid.z), len(self._forces.driven)), np.nan)
            all_arrays["efforts"][np.flatnonzero(grid.counts)[regular]] = efforts
        if "scene" in arrays:
            all_arrays["scene"] = scene_of(self.mechanism, grid.z, p)
        return outputs, {name: all_arrays[name] for name in arrays}

    def gradient(
        self, numbers: Mapping[str, float], scenario: Mapping[str, Any], names: Sequence[str]
    ) -> dict[str, dict[str, float]]:
        """Derivatives by the parameters `names`, by differences of fourth order with the same postures; the shares of
        postures and the gap have steps, and no derivatives."""
        p = self.mechanism.column(numbers)
        grid = self._grid(np.array(p), self._branch(scenario))
        _, regular, _ = self._grid_outputs(grid.z[grid.counts], np.array(p))

        def figures(q: Floats) -> dict[str, float]:
            start = self._loops.start(q, "", grid.z[grid.counts][0])
            z = self._loops.follow(start, grid.z[grid.counts][:, self._loops.independent], q)
            if not z.is_closed.all():
                raise CannotClose("at the end of the workspace", float(z.gap.max()))
            return self._grid_outputs(z.z, q, regular)[0]

        columns = [q.name for q in self.mechanism.parameters]
        try:
            slopes = {name: differences(figures, p, columns.index(name), _SHARE) for name in names}
        except CannotClose:
            return {}
        return {output: {n: slopes[n][output] for n in names} for output in (slopes[names[0]] if names else ())}

    def _grid_outputs(
        self, z: Floats, p: Floats, regular: NDArray[np.bool_] | None = None
    ) -> tuple[dict[str, float], NDArray[np.bool_], Floats]:
        """Outputs over the postures `z` that count, those that the drives determine, and their efforts. Raises
        `Diverged` where there are none."""
        tangent = self._forces.tangent(z, p)
        driven = tangent[:, self._columns(self._forces.driven), :]
        sizes = np.linalg.svd(driven, compute_uv=False)
        inverse_condition = sizes[:, -1] / np.where(sizes[:, 0] > 0.0, sizes[:, 0], 1.0)
        if regular is None:
            regular = inverse_condition > _SINGULAR
        outputs = {"singularity_min": float(inverse_condition.min())}
        for name, part in zip(self._measures, self._measure_values(z, p), strict=True):
            outputs |= {f"{name}_min": float(part.min())}
            if not name.startswith("clearance_"):
                outputs |= {f"{name}_max": float(part.max())}
        if not regular.any():
            raise Diverged("the drives determine none of the postures that count", reason="singular")
        by_drives = tangent[regular] @ np.linalg.inv(driven[regular])
        outputs |= self._transfer(z, tangent, regular, by_drives, p)
        efforts = self._efforts(z[regular], driven[regular], tangent[regular], p)
        for i, name in enumerate(self._forces.driven):
            size = np.abs(efforts[:, i])
            takes = {"max": size.max(), "mean": size.mean(), "rms": np.sqrt((size**2).mean())}
            outputs |= {f"effort_{name}_{take}": float(value) for take, value in takes.items()}
        if self._one_unit:
            outputs["effort_max"] = float(np.abs(efforts).max())
        return outputs, regular, efforts

    # ------------------------------------------------------------------------------------------------------- postures

    @cached_property
    def _loops(self) -> LoopSolver:
        """Loops that are led by the coordinates of the grid where these are as many as the freedoms."""
        loops, over = self.settings.loops, tuple(self.settings.grid["over"])
        names = self.mechanism.tree.names
        if len(over) != len(loops.independent) or set(over) == {names[i] for i in loops.independent}:
            return loops
        return LoopSolver(replace(self.mechanism, independent=over))

    @cached_property
    def _forces(self) -> LoopForces:
        return LoopForces(self._loops, self.settings.grid.get("drives") or None)

    def _branch(self, scenario: Mapping[str, Any]) -> str:
        return str(scenario.get("branch", self.settings.branch))

    def _grid(self, p: Floats, branch: str) -> GridRows:
        """The postures; one with a negative clearance does not count. Raises `Diverged` if none counts."""
        grid = self._grid_rows(p, branch)
        for name, column in zip(self._measures, self._measure_values(grid.z, p), strict=True):
            if name.startswith("clearance_"):
                grid.counts[:] &= column >= 0.0
        if not grid.counts.any():
            raise Diverged(
                f"none of the {len(grid.z)} postures counts: {int(grid.is_closed.sum())} close (largest gap "
                f"{grid.gap.max():.3g}), none of them within the ranges of the coordinates and clearances",
                reason="no_workspace",
            )
        return grid

    def _grid_rows(self, p: Floats, branch: str) -> GridRows:
        """Every posture of the grid, each from its neighbour: every second row runs back."""
        loops = self._loops
        try:
            start = loops.start(p, branch)
        except CannotClose as error:
            raise Diverged(str(error), reason="cannot_close") from None
        rows = np.tile(start[loops.independent], (self._count, 1))
        names = [self.mechanism.tree.names[i] for i in loops.independent]
        for column, name in zip(_serpentine([np.linspace(*self._range(n)) for n in self.settings.grid["over"]]).T,
                                self.settings.grid["over"], strict=True):  # fmt: skip
            rows[:, names.index(name)] = column
        postures = loops.follow(start, rows, p)
        low, high = (np.array([getattr(c, end) for c in self.mechanism.tree.coordinates]) for end in ("low", "high"))
        within = ((postures.z >= low - 1e-9) & (postures.z <= high + 1e-9)).all(axis=1)
        return GridRows(postures.z, postures.is_closed & within, postures.is_closed, postures.gap)

    def _range(self, name: str) -> tuple[float, float, int]:
        entry = self.settings.grid["over"][name]
        coordinate = self.mechanism.tree.coordinates[self.mechanism.tree.names.index(name)]
        return entry.get("low", coordinate.low), entry.get("high", coordinate.high), entry.get("points", 11)

    @property
    def _count(self) -> int:
        return int(np.prod([self._range(name)[2] for name in self.settings.grid["over"]]))

    def _columns(self, names: Iterable[str]) -> list[int]:
        return [self.mechanism.tree.names.index(name) for name in names]

    @property
    def _one_unit(self) -> set[str]:
        """The unit of all driven coordinates; empty where they differ."""
        units = {self._unit(name) for name in self._forces.driven}
        return units if len(units) == 1 else set()

    def _unit(self, name: str) -> str:
        return self.mechanism.tree.coordinates[self.mechanism.tree.names.index(name)].unit

    # --------------------------------------------------------------------------------------------------------- figures

    @cached_property
    def _sweep(self) -> int:
        """Dimensions of the grid."""
        return sum(1 for name in self.settings.grid["over"] if self._range(name)[2] > 1)

    @cached_property
    def _followers(self) -> tuple[str, ...]:
        """Coordinates whose ratio to the only drive is a number."""
        if len(self._forces.driven) != 1:
            return ()
        return tuple(n for n in self.mechanism.tree.names if n not in self._forces.driven)

    def _transfer(
        self, z: Floats, tangent: Floats, regular: NDArray[np.bool_], by_drives: Floats, p: Floats
    ) -> dict[str, float]:
        """Ratios, and of every point reach, manipulability and dexterity."""
        outputs: dict[str, float] = {}
        for name in self._followers:
            ratios = by_drives[:, self._columns([name])[0], 0]
            outputs |= {f"ratio_{name}_min": float(ratios.min()), f"ratio_{name}_max": float(ratios.max())}
        if not self.mechanism.points:
            return outputs
        slopes = self._slopes(z, p)[0].reshape(len(z), -1, z.shape[1])
        names = [self.mechanism.tree.names[i] for i in self._loops.independent]
        swept = [names.index(n) for n in self.settings.grid["over"] if self._range(n)[2] > 1]
        for i, name in enumerate(self.mechanism.points):
            part = slopes[:, 3 * i : 3 * i + 3]
            if self._sweep < len(_UNITS):
                across = part @ tangent[:, :, swept]
                outputs[f"reach_{name}"] = float(_content(across).sum() * self._cell())
            sizes = np.linalg.svd(part[regular] @ by_drives, compute_uv=False)
            nonsingular = sizes.max(axis=0) > _SINGULAR * max(float(sizes.max()), 1e-300)
            sizes = sizes[:, nonsingular] if nonsingular.any() else sizes[:, :1]
            product, ratio = sizes.prod(axis=1), sizes[:, -1] / np.maximum(sizes[:, 0], 1e-300)
            for measure, values in (("manipulability", product), ("dexterity", ratio)):
                outputs |= {
                    f"{measure}_{name}_min": float(values.min()),
                    f"{measure}_{name}_mean": float(values.mean()),
                }
        return outputs

    def _cell(self) -> float:
        """The content of one posture's share of the grid."""
        spans = [self._range(n) for n in self.settings.grid["over"]]
        return float(np.prod([(high - low) / points for low, high, points in spans if points > 1]))

    def _efforts(self, z: Floats, driven: Floats, tangent: Floats, p: Floats) -> Floats:
        zeros = np.zeros_like(z)
        (generalised_forces,) = self._generalised_forces(z, zeros, zeros, p)
        right = np.einsum("nmf,nm->nf", tangent, generalised_forces.reshape(len(z), -1))
        return np.asarray(np.linalg.solve(np.swapaxes(driven, 1, 2), right[..., None])[..., 0])

    @cached_property
    def _measures(self) -> dict[str, Any]:
        return measures(self.mechanism, self._loops.state)

    @cached_property
    def _measured_rows(self) -> Rows:
        expressions = ca.vertcat(ca.SX(0, 1), *(m.expression for m in self._measures.values()))
        function = ca.Function("measures", [self._loops.state.z, self._loops.p], [ca.densify(expressions)])
        return Rows(function, compiled=False)

    def _measure_values(self, z: Floats, p: Floats) -> Floats:
        """(measures, n)."""
        if not self._measures:
            return np.zeros((0, len(z)))
        return self._measured_rows(z, p)[0].reshape(len(z), -1).T

    @cached_property
    def _slopes(self) -> Rows:
        state = self._loops.state
        positions = ca.vertcat(*(state.position(point) for point in self.mechanism.points.values()))
        function = ca.Function("point_slopes", [state.z, self._loops.p], [ca.densify(ca.jacobian(positions, state.z))])
        return Rows(function, compiled=False)

    @cached_property
    def _generalised_forces(self) -> Rows:
        forces = self._forces
        expression = ca.substitute(ca.densify(forces.generalised_forces), forces.time, 0.0)
        arguments = [forces.state.z, forces.state.dz, forces.state.ddz, forces.p]
        return Rows(ca.Function("needed_at_rest", arguments, [ca.cse(expression)]), compiled=False)


def _serpentine(axes: list[Floats]) -> Floats:
    """(n, k) all combinations, each next to the one before it."""
    rows = np.zeros((1, 0))
    for axis in axes:
        turns = [axis if i % 2 == 0 else axis[::-1] for i in range(len(rows))]
        rows = np.column_stack([np.repeat(rows, len(axis), axis=0), np.concatenate(turns)])
    return rows


def _content(slopes: Floats) -> Floats:
    """(n,) length, area or volume per unit of the grid, from (n, 3, k) slopes."""
    gram = np.swapaxes(slopes, 1, 2) @ slopes
    return np.asarray(np.sqrt(np.maximum(np.linalg.det(gram), 0.0)))
