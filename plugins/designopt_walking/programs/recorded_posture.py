"""Whether a recorded motion walks: the feet of the walker in the recorded posture, and mistakes in its columns that
explain why they do not stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.lazy import casadi as ca
from designopt_walking.system import side_of
from designopt_walking.walker import Walker

Values = Mapping[str, Floats]

#: Postures that are compared, at most.
_ROWS = 100
#: Rise (m) of the standing foot that is absurd, and m/s below which the feet do not walk.
_RISE, _STANDS_STILL = 0.03, 0.1
#: Misfits of a recording that needs a cause and of one that walks, and the share that the right correction leaves. The
#: recordings of examples have 0.13 (planar) and 0.52 (in space).
_DOUBTFUL, _WALKS, _EXPLAINED = 0.8, 0.65, 0.4
#: Speed of the standing foot over the ground, of that of the feet relative to each other, from which the body does not
#: move with it.
_SLIDES = 0.25
#: Range (rad) below which a rotation may be one in radians that was taken for degrees.
_SMALL = 0.05


@dataclass(frozen=True)
class _Standing:
    """The lower foot (n,): its speed forward (m/s) and height (m), by side how much higher each foot is and its speed,
    and the root mean square speed of the feet relative to each other."""

    speed: Floats
    height: Floats
    lift: Mapping[str, Floats]
    speeds: Mapping[str, Floats]
    stepping: float


@dataclass(frozen=True)
class RecordedPosture:
    """A walker at `time` (n,) s in a recorded `motion` (n,) rad or m by coordinate, with recorded `forces` (n,) N of
    the ground, ``ground_y_<side>`` upwards."""

    walker: Walker
    time: Floats
    motion: Values
    forces: Values

    @classmethod
    def sampled(cls, walker: Walker, time: Floats, motion: Values, forces: Values) -> RecordedPosture:
        """At most `_ROWS` postures; coordinates without a record are 0."""
        every = slice(None, None, max(1, len(time) // _ROWS))
        curves = {n: motion[n][every] if n in motion else np.zeros_like(time[every]) for n in walker.coordinates}
        return cls(walker, time[every], curves, {name: force[every] for name, force in forces.items()})

    @property
    def has_feet(self) -> bool:
        """Whether there is a foot on either side."""
        return {side_of(sphere.centre.frame) for sphere in self.walker.model.contacts} == {"r", "l"}

    def cause(self) -> str:
        """The mistake in the columns that explains best why no foot stands, with its remedy; "" without one."""
        misfit_as_recorded = self._misfit(self.motion, self.forces)
        if misfit_as_recorded < _DOUBTFUL:
            return ""
        causes = {
            clause: self._misfit(motion, forces)
            for clause, motion, forces in _corrections(self.walker, self.motion, self.forces)
        }
        clause = min(causes, key=causes.__getitem__)
        if causes[clause] > min(_WALKS, _EXPLAINED * misfit_as_recorded):
            return ""
        return f"in the recorded posture no foot stands still on the ground; {clause}: then one does"

    def notes(self) -> list[str]:
        """A sentence where the standing foot slides over the ground."""
        standing = _standing(self.walker, self.time, self.motion)
        speed = float(standing.speed.mean())
        if abs(speed) <= max(_SLIDES * standing.stepping, _STANDS_STILL):
            return []
        return [
            f"the standing foot moves over the ground at {speed:.2f} m/s on average: is the forward coordinate of the"
            " pelvis reversed, or recorded on a treadmill? Add the way of the belt to it"
        ]

    def _misfit(self, motion: Values, forces: Values) -> float:
        return _misfit(self.walker, _standing(self.walker, self.time, motion), motion, forces)


def _corrections(walker: Walker, motion: Values, forces: Values) -> Iterator[tuple[str, Values, Values]]:
    """Mistakes with their remedies, in a clause, and motion and forces without each."""
    moving = _moving_feet(walker)
    angles = [name for name in walker.angles if name in moving and np.ptp(motion[name]) > 0.0]
    middle = [name for name in walker.angles if side_of(name) == name and name not in angles]
    pairs = [pair for pair in combinations(angles, 2) if pair[0][:-2] == pair[1][:-2]]
    exchanges = [*combinations(angles, 2), *product(angles, middle)]
    translations = [name for name in walker.coordinates if name not in walker.angles]
    for names in [*((name,) for name in angles), *pairs]:
        verb, object_form = ("has", "it") if len(names) == 1 else ("have", "them")
        clause = f"{' and '.join(names)} {verb} the opposite sign; reverse {object_form}"
        yield clause, {**motion, **{name: -motion[name] for name in names}}, forces
    for name in angles:
        if np.ptp(motion[name]) < _SMALL:
            clause = f"{name} is in radians in a table that says degrees; multiply it by 57.3"
            yield clause, {**motion, name: np.degrees(motion[name])}, forces
    for first, second in (*exchanges, *combinations(translations, 2)):
        columns = {first: motion[second], second: motion[first]}
        yield f"{first} and {second} are exchanged; exchange them again", {**motion, **columns}, forces
    if sum(force.sum() for name, force in forces.items() if name.startswith("ground_y")) > 0.0:
        by_side = {name: forces[f"{name[:-1]}{'l' if name.endswith('r') else 'r'}"] for name in forces}
        yield "the ground forces are those of the other foot; exchange the sides of one file", motion, by_side


def _misfit(walker: Walker, standing: _Standing, motion: Values, forces: Values) -> float:
    """How far a recording is from a walk, as a sum of terms that are 1 for what is absurd: the scatter of the standing
    foot's speed and height, lift and speed of the feet that carry the recorded forces, and the share of coordinates
    outside of their ranges."""
    stepping = max(standing.stepping, _STANDS_STILL)
    terms = [standing.speed.std() / stepping, standing.height.std() / _RISE]
    vertical = {side: np.maximum(forces[f"ground_y_{side}"], 0.0) for side in "rl" if f"ground_y_{side}" in forces}
    total = sum(vertical.values(), np.zeros_like(standing.speed)).sum()
    if total > 0.0:
        mean = standing.speed.mean()
        terms += [float((f * standing.lift[side]).sum()) / total / _RISE for side, f in vertical.items()]
        terms += [
            float((f * np.abs(standing.speeds[side] - mean)).sum()) / total / stepping for side, f in vertical.items()
        ]
    for coordinate in walker.model.coordinates:
        if coordinate.name in motion and coordinate.high > coordinate.low:
            margin = max(0.1 * (coordinate.high - coordinate.low), 0.05)
            curve = motion[coordinate.name]
            terms.append(float(np.mean((curve < coordinate.low - margin) | (curve > coordinate.high + margin))))
    return float(sum(terms))


def _standing(walker: Walker, time: Floats, motion: Values) -> _Standing:
    sides = [side_of(sphere.centre.frame) for sphere in walker.model.contacts]
    rows = np.stack([motion[name] for name in walker.coordinates])
    forward, height = np.asarray(_feet(walker, len(time))(rows)).reshape(2, len(sides), -1, order="F")
    forward_speed = np.gradient(forward, time, axis=1)
    heights, speeds = {}, {}
    for side in "rl":
        mask = np.array([foot == side for foot in sides])
        lowest = height[mask].argmin(axis=0)[None]
        heights[side] = np.take_along_axis(height[mask], lowest, 0)[0]
        speeds[side] = np.take_along_axis(forward_speed[mask], lowest, 0)[0]
    lower = np.minimum(heights["r"], heights["l"])
    return _Standing(
        np.where(heights["r"] < heights["l"], speeds["r"], speeds["l"]),
        lower,
        {side: heights[side] - lower for side in "rl"},
        speeds,
        float(np.sqrt(np.mean((speeds["r"] - speeds["l"]) ** 2))),
    )


@lru_cache(maxsize=8)
def _feet(walker: Walker, rows: int) -> Callable[[Floats], Any]:
    """The function of `rows` columns of coordinates that gives `_lowest_points`."""
    function: Callable[[Floats], Any] = ca.Function("feet", [walker.state.z], [_lowest_points(walker)]).map(rows)
    return function


def _lowest_points(walker: Walker) -> Any:
    """(2, k) m, forward position and height of the lowest point of each sphere."""
    columns = []
    for sphere in walker.model.contacts:
        position = walker.state.position(sphere.centre)
        columns.append(ca.vertcat(position[0], position[1] - sphere.radius))
    return ca.horzcat(*columns)


def _moving_feet(walker: Walker) -> set[str]:
    """The coordinates that move the feet."""
    columns = ca.jacobian_sparsity(ca.vec(_lowest_points(walker)), walker.state.z).get_col()
    return {walker.coordinates[column] for column in columns}
