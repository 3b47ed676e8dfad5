"""A walk that follows a recorded one, with its ground forces, by muscles and contact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from designopt.collocation import (
    Constraint,
    Ends,
    Guess,
    Integral,
    Phase,
    Signal,
    Symbols,
    TrajectoryProblem,
    sampled,
)
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt_walking.programs.gait import (
    GaitRanges,
    bounds_and_scales,
    check_contact,
    check_mirror,
    excitations,
    mirror_constraints,
    power_sum,
)
from designopt_walking.programs.recording import RecordedWalk
from designopt_walking.system import FASTEST, walking_system
from designopt_walking.walker import Walker

#: Activation in the guess.
ACTIVATION = 0.5


@dataclass(frozen=True)
class TrackingWeights:
    """The weights of squared excitations and drives, squared distances of coordinates and speeds (rad, m, s), and
    squared distances of ground forces (N) by body weight."""

    effort: float = 10.0
    states: float = 1.0
    forces: float = 1.0


@dataclass(frozen=True, eq=False)
class FollowedRecording:
    """The data of a program that follows a recorded `walk` with a `walker`: data of the system, integrals, and the cost

    J = w_e int sum u^2 + w_s int sum w (x - x_ref)^2 + w_f int sum |F - F_ref|^2 / (m g), with the `weights` w_e, w_s,
    w_f, and `state_weights` w of single coordinates and ``<coordinate>_speed`` (1 for others).
    """

    walker: Walker
    walk: RecordedWalk
    weights: TrackingWeights
    state_weights: Mapping[str, float] = field(default_factory=dict)

    def system(self, axes: str = "xy") -> System:
        """The equations of the walker with the recording as data, and ground forces along `axes`."""
        units = {**dict.fromkeys(self.walk.motion, ""), **dict.fromkeys(self.walk.forces, "N")}
        references = [(Variable(f"recorded_{n}", units[n]), ca.SX.sym(f"recorded_{n}")) for n in units]
        return walking_system(self.walker, data=references, axes=axes)

    @property
    def data(self) -> dict[str, Signal]:
        """The recording, for a phase."""
        return {f"recorded_{name}": Signal(self.walk.time, values) for name, values in self.walk.values.items()}

    @property
    def integrals(self) -> dict[str, Integral]:
        """The terms of the cost without their weights, for a phase."""
        controls, weight = [*excitations(self.walker), *self.walker.drives], self.walker.weight
        return {
            "effort": Integral(lambda v: power_sum([v[n] for n in controls], 2)),
            "states": Integral(lambda v: self._squares(v, self.walk.motion)),
            "contact": Integral(lambda v: self._squares(v, self.walk.forces) / weight),
        }

    def problem(self, phase: Phase, constraints: Mapping[str, Constraint]) -> TrajectoryProblem:
        """The problem with the cost of a phase that has these data and integrals. Figures: `objective` and its terms
        `effort`, `states`, `contact`."""
        w = self.weights
        parts: dict[str, Callable[[Ends], Any]] = {
            "effort": lambda e: w.effort * e.integral["effort"],
            "states": lambda e: w.states * e.integral["states"],
            "contact": lambda e: w.forces * e.integral["contact"],
        }

        def cost(e: Ends) -> Any:
            return sum(part(e) for part in parts.values())

        return TrajectoryProblem([phase], cost=cost, constraints=constraints, figures={"objective": cost, **parts})

    def _squares(self, v: Symbols, names: Iterable[str]) -> Any:
        return sum((self.state_weights.get(n, 1.0) * (v[n] - v[f"recorded_{n}"]) ** 2 for n in names), ca.SX(0))


def tracked_walk(
    walker: Walker, gait: GaitRanges, walk: RecordedWalk, weights: TrackingWeights | None = None
) -> TrajectoryProblem:
    """The half cycle nearest to a recorded one, of the same duration, with the least effort: see `FollowedRecording`.

    Raises `GaitError` for a walker without contact or symmetry.
    """
    check_contact(walker)
    check_mirror(walker)
    tracking = FollowedRecording(walker, walk, weights or TrackingWeights())
    bounds, scales = bounds_and_scales(walker, replace(gait, drive=None))
    speeds = {f"{c}_speed": gait.speeds.get(c, (-FASTEST, FASTEST)) for c in walker.coordinates}
    phase = Phase(
        tracking.system(),
        tf=walk.duration,
        bounds={**bounds, **speeds},
        scales=scales,
        integrals=tracking.integrals,
        data=tracking.data,
    )
    return tracking.problem(phase, mirror_constraints(walker))


def recorded_guess(walker: Walker, walk: RecordedWalk) -> Guess:
    """The recorded motion, with all muscles half active."""
    values = dict(walk.motion)
    half = np.full(len(walk.time), ACTIVATION)
    for name in walker.muscles.names:
        values[f"activation_{name}"] = values[f"excitation_{name}"] = half
    return Guess({"motion": sampled(walk.time, values)})
