"""One half of a symmetric gait cycle: ranges, scales, and the mirror that continues it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from designopt_mechanics.tree import Tree
from designopt_muscle.osim.model import OsimModel
from designopt_muscle.osim.tree import tree_of

from designopt.collocation import Constraint, Ends, Options, PhaseGuess, Solution, TrajectoryProblem, periodic
from designopt.collocation.solution.verification.resimulate import segment_errors
from designopt.collocation.solve.refine import with_errors
from designopt.evaluation_progress import step
from designopt.lazy import casadi as ca
from designopt.plugin import Quantity as Q
from designopt_walking.system import side_of
from designopt_walking.walker import Ranges, Walker

#: Distance (m) from the ground within which a foot of first trajectories must come.
NEAR = 0.005
#: The coordinate that advances, and those with ranges of speeds of their own.
FORWARD = "pelvis_tx"
#: Steps (N) in which walks are taken to a larger pull.
PULL_STEP = 30.0
#: Ranges of the coordinates (rad; m for the position of the pelvis), by name or by name without its side.
RANGES: Ranges = {
    "pelvis_tilt": (np.radians(-20.0), np.radians(-10.0)),
    "pelvis_tx": (0.0, 1.0),
    "pelvis_ty": (0.75, 1.25),
    "hip_flexion": (np.radians(-10.0), np.radians(60.0)),
    "knee_angle": (np.radians(-50.0), 0.0),
    "ankle_angle": (np.radians(-15.0), np.radians(25.0)),
    "lumbar": (0.0, np.radians(20.0)),
}
#: Ranges of speeds, rad/s or m/s; of other coordinates +-12 rad/s.
SPEEDS: Ranges = {
    "pelvis_tilt": (-5.0, 5.0),
    "pelvis_tx": (0.0, 3.0),
    "pelvis_ty": (-1.5, 1.5),
    "lumbar": (-5.0, 5.0),
}
JOINT_SPEED = 12.0
#: Sizes of speeds and accelerations in the program, and of drives.
SPEED_SIZE, ACCELERATION_SIZE, DRIVE_SIZE = 3.0, 50.0, 1.0
#: Sizes of forces of compliant tendons and of their rates in the program.
FORCE_SIZE, FORCE_RATE_SIZE = 1.0, 10.0
#: A setting of models.
StatedRanges = Annotated[
    dict[str, tuple[float, float]],
    Q("", "of coordinates in rad or m, by name with or without the side, where the usual ones do not suit"),
]
_SIDE = re.compile(r"_([rl])(?=$|_speed$|_acceleration$)")


class GaitError(ValueError):
    """A gait that no program states: `field` says what of it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def mirror_name(name: str) -> str:
    """The name of the same quantity of the other side; names without a side are their own."""
    return _SIDE.sub(lambda match: "_l" if match.group(1) == "r" else "_r", name)


def plain(name: str) -> str:
    """The name without its side."""
    return re.sub(r"_[rl]$", "", name)


@dataclass(frozen=True)
class GaitRanges:
    """Limits of the coordinates: `ranges` and `speeds` by name, with or without a side, and `duration` (s) of the half
    cycle; `drive` is the largest control of the drives (N m at an optimal force of 1), None that of the model.
    """

    duration: tuple[float, float] = (0.4, 0.6)
    ranges: Ranges = field(default_factory=dict)
    speeds: Ranges = field(default_factory=dict)
    drive: float | None = 5.0

    def range_of(self, coordinate: str, table: Ranges = RANGES) -> tuple[float, float] | None:
        """The range of a coordinate, stated or usual; None where there is none."""
        for entries in (self.ranges, table):
            for name in (coordinate, plain(coordinate)):
                if name in entries:
                    return entries[name]
        return None

    def speed_range(self, coordinate: str) -> tuple[float, float]:
        """The range of a coordinate's speed."""
        for entries in (self.speeds, SPEEDS):
            for name in (coordinate, plain(coordinate)):
                if name in entries:
                    return entries[name]
        return -JOINT_SPEED, JOINT_SPEED


def ranged_tree(model: OsimModel, gait: GaitRanges, usual: Ranges = RANGES) -> Tree:
    """The tree of a model whose coordinates have the ranges of a gait, the `usual` ones or those of the model; locked
    ones are fixed.

    Raises `GaitError` for ranges of unknown coordinates and empty ones.
    """
    tree = tree_of(model, fixed=[c.name for c in model.coordinates if c.locked])
    names = {*tree.names, *map(plain, tree.names)}
    for field_name, table in (("ranges", gait.ranges), ("speeds", gait.speeds)):
        for name, (low, high) in table.items():
            if name not in names:
                raise GaitError(f"{field_name}.{name}", f"is no coordinate; the model has {', '.join(tree.names)}")
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise GaitError(f"{field_name}.{name}", f"from {low:g} to {high:g} is not a range")
    coordinates = []
    for c in tree.coordinates:
        low, high = gait.range_of(c.name, usual) or (c.low, c.high)
        coordinates.append(replace(c, low=low, high=high, reference=min(max(c.reference, low), high)))
    return Tree(tuple(coordinates), tree.frames)


def check_mirror(walker: Walker) -> None:
    """Raise `GaitError` where the mirror image of a walker is another walker: names without a partner, muscles, bodies
    or spheres that differ from their partner's, a device on one side."""
    model, hint = walker.model, "a half cycle needs a symmetric model; use a full cycle"
    muscles = {m.name: m for m in model.muscles}
    strains = {m.name: m.tendon_strain * (m.name in walker.muscles.compliant) for m in model.muscles}
    groups: list[tuple[str, Mapping[str, tuple[float, ...]]]] = [
        ("coordinate", dict.fromkeys(walker.coordinates, ())),
        ("muscle", {n: (m.force, m.fibre, m.slack, m.pennation, m.fastest, strains[n]) for n, m in muscles.items()}),
        ("body", {b.name: (b.mass, *b.centre[:2].tolist(), float(b.inertia[2, 2])) for b in model.bodies}),
        ("sphere", {c.name: (c.radius, *map(float, c.centre.position[:2])) for c in model.contacts}),
    ]
    for kind, entries in groups:
        for name, numbers in entries.items():
            partner = mirror_name(name)
            if partner not in entries:
                raise GaitError(kind, f"'{name}' has no partner '{partner}' on the other side: {hint}")
            if not np.allclose(numbers, entries[partner], rtol=1e-6, atol=1e-9):
                raise GaitError(kind, f"'{name}' and '{partner}' have different numbers: {hint}")
    for device in walker.devices:
        for name in device.moments:
            if mirror_name(name) not in device.moments:
                raise GaitError("device", f"acts on '{name}' and not on '{mirror_name(name)}': {hint}")


def check_contact(walker: Walker) -> None:
    """Raise `GaitError` for a model without contact spheres, or with one foot only."""
    if not walker.ground_forces:
        raise GaitError("model", "has no contact sphere (SmoothSphereHalfSpaceForce), so that nothing carries it")
    for side, word in (("r", "right"), ("l", "left")):
        if side not in map(side_of, walker.ground_forces):
            raise GaitError("model", f"has no contact sphere (SmoothSphereHalfSpaceForce) on its {word} foot")


def check_stance(walker: Walker, guess: PhaseGuess) -> None:
    """Raise `GaitError` for first trajectories in which no foot, mirrored or not, comes near the ground."""
    state = walker.state
    depth = ca.Function("depth", [state.z], [ca.vertcat(*walker.indentation.values())])
    values = guess.at(np.linspace(0.0, 1.0, 51))
    depths = np.array(depth.map(51)(np.stack([values[name] for name in walker.coordinates])))
    deepest = float(depths.max())
    if not deepest >= -NEAR:
        lowest = list(walker.indentation)[int(depths.max(axis=1).argmax())]
        raise GaitError(
            "guess",
            f"no foot comes nearer to the ground than {-1e3 * deepest:.0f} mm ('{lowest}'); at most"
            f" {1e3 * NEAR:.0f} mm lead to a walk: shift pelvis_ty",
        )


def outside_ranges(walker: Walker, guess: PhaseGuess) -> list[str]:
    """A sentence for each coordinate whose first trajectory leaves its range, where the search moves it."""
    values = guess.at(np.linspace(0.0, 1.0, 51))
    sentences = []
    for c in walker.state.tree.coordinates:
        low, high = float(values[c.name].min()), float(values[c.name].max())
        if low < c.low or high > c.high:
            sentences.append(
                f"guess: {c.name} goes from {low:.4g} to {high:.4g} {c.unit}, its range is {c.low:.4g} to"
                f" {c.high:.4g}; it starts within it"
            )
    return sentences


def bounds_and_scales(walker: Walker, gait: GaitRanges) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """The bounds of speeds and drives and the scales of speeds, accelerations and drives, for the phase of a walker."""
    bounds = {f"{c}_speed": gait.speed_range(c) for c in walker.coordinates}
    scales = motion_scales(walker)
    if gait.drive is not None:
        bounds |= dict.fromkeys(walker.drives, (-gait.drive, gait.drive))
        scales |= dict.fromkeys(walker.drives, DRIVE_SIZE)
    return bounds, scales


def motion_scales(walker: Walker) -> dict[str, float]:
    """Scales of speeds, accelerations and tendons."""
    scales = {f"{c}_speed": SPEED_SIZE for c in walker.coordinates}
    scales |= {f"{c}_acceleration": ACCELERATION_SIZE for c in walker.coordinates}
    return scales | tendon_scales(walker)


def tendon_scales(walker: Walker) -> dict[str, float]:
    """Scales of the forces of compliant tendons and of their rates."""
    names = walker.muscles.compliant
    sizes = (("tendon_force", FORCE_SIZE), ("force_rate", FORCE_RATE_SIZE))
    return {f"{kind}_{name}": size for kind, size in sizes for name in names}


def excitations(walker: Walker) -> list[str]:
    """Names of the excitations."""
    return [f"excitation_{name}" for name in walker.muscles.names]


def periodic_names(walker: Walker) -> list[str]:
    """Names of what is the same after a cycle: coordinates but the forward one, speeds, activations, tendon forces,
    controls of drives."""
    coordinates, muscles = walker.coordinates, walker.muscles
    names = [c for c in coordinates if c != FORWARD]
    names += [f"{c}_speed" for c in coordinates] + [f"activation_{m}" for m in muscles.names]
    return [*names, *(f"tendon_force_{m}" for m in muscles.compliant), *walker.drives]


def mirror_constraints(walker: Walker) -> dict[str, Constraint]:
    """The second half of the cycle is the mirror image of the first."""
    names = periodic_names(walker)
    return {"cycle": periodic(names, mirror={name: mirror_name(name) for name in names})}


def distance(e: Ends) -> Any:
    """The way of the pelvis (m)."""
    return e.final[FORWARD] - e.initial[FORWARD]


def power_sum(values: Sequence[Any], exponent: int) -> Any:
    """The sum of the sizes of `values` to a power."""
    if exponent % 2 == 0:
        return sum((value**exponent for value in values), ca.SX(0))
    return sum((ca.sqrt(value**2 + 1e-12) ** exponent for value in values), ca.SX(0))


def program_options(intervals: int, tolerance: float, **options: Any) -> Options:
    """Separated Hermite-Simpson with linear controls, unless the `options` name another scheme."""
    settings: dict[str, Any] = {"persistent": False, "check": False, "max_iterations": 500, **options}
    settings = {"scheme": "hermite_simpson", **settings}
    if settings["scheme"] == "hermite_simpson":
        settings["midpoint_control"] = "linear"
    return Options(
        intervals=intervals,
        tolerance=tolerance,
        acceptable_tolerance=max(1e-6, 10.0 * tolerance),
        **settings,
    )


def with_interval_errors(problem: TrajectoryProblem, solution: Solution) -> Solution:
    """`solution` with both errors of its intervals: the estimate, and that of a simulation with its controls.

    `designopt.collocation.checked` also simulates the whole cycle, which takes most of its time: a walk is unstable, so
    that this run leaves it and says nothing.
    """
    estimate = with_errors(problem, solution)
    (phase,) = problem.phases
    errors = segment_errors(phase, estimate.phase, solution.parameters)
    return replace(estimate, phases={phase.name: replace(estimate.phase, segment_errors=errors)})


def forward_range(walker: Walker) -> tuple[float, float]:
    """The range (m) of the forward coordinate."""
    forward = next(c for c in walker.state.tree.coordinates if c.name == FORWARD)
    return forward.low, forward.high


def check_speed(speed: float, gait: GaitRanges, forward: tuple[float, float]) -> None:
    """Raise `GaitError` for a speed (m/s) whose half cycle is longer than the range of the forward coordinate."""
    shortest, longest = gait.duration
    if not 0.0 < speed < np.inf:
        raise GaitError("speed", f"{speed:g} m/s is not positive")
    if not 0.0 < shortest <= longest:
        raise GaitError("duration", f"from {shortest:g} to {longest:g} s is not a range of durations")
    room = forward[1] - forward[0]
    if speed * shortest > room:
        raise GaitError(
            "speed",
            f"{speed:g} m/s needs {shortest:g} s x {speed:g} = {speed * shortest:.3g} m .. {speed * longest:.3g} m; "
            f"{FORWARD} allows {room:g} m",
        )


def nearer_zero(value: float, step: float) -> float:
    """The multiple of `step` before `value`, seen from zero."""
    steps = math.ceil(round(abs(value) / step, 6))
    return round(max(steps - 1, 0) * math.copysign(step, value), 6) or 0.0  # no negative zero


def walk_step(speed: float, intervals: int) -> AbstractContextManager[None]:
    """The solve of a walk at `speed` (m/s) as a step of the evaluation's progress."""
    return step(f"walk at {speed:g} m/s, {intervals} intervals")
