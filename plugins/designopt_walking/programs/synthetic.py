"""A walk that needs no data: a hand-made motion, tracked with the muscles, from which predictions start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Guess, Integral, Phase, Program, Solution, Symbols, TrajectoryProblem, sampled
from designopt.evaluation_progress import step
from designopt.lazy import casadi as ca
from designopt_walking.programs.gait import (
    GaitRanges,
    bounds_and_scales,
    excitations,
    mirror_constraints,
    power_sum,
    program_options,
)
from designopt_walking.system import walking_system
from designopt_walking.walker import Walker

#: Duration of the half cycle (s), weight of squared distances, tolerance, first activations, size of drives (N m).
DURATION, CLOSENESS, TOLERANCE, ACTIVATION, DRIVE = 0.5, 50.0, 1e-3, 0.1, 10.0
#: Instants of the guess.
_SAMPLES = 41
#: Relative size of random changes of the amplitudes, for further starts.
_CHANGE = 0.25


@dataclass(frozen=True)
class SyntheticWalk:
    """Half a cycle at a `speed` (m/s); `factors` (6) multiply its amplitudes: hip swing, stance and swing flexion of
    the knee, ankle swing, mean hip flexion, height of the pelvis above or below 0.89 m (in 0.1 m)."""

    speed: float
    factors: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 1.0, 0.0)

    @classmethod
    def perturbed(cls, speed: float, rng: np.random.Generator) -> SyntheticWalk:
        """A walk with other amplitudes."""
        change = _CHANGE * rng.uniform(-1.0, 1.0, 6)
        return cls(speed, (*(1.0 + change[:5]).tolist(), float(change[5])))

    def coordinates(self, time: Any) -> dict[str, Any]:
        """Values (rad, m) at `time` (s), an array or an expression."""
        m = np if isinstance(time, np.ndarray) else ca
        swing, stance, flexion, ankle, mean, height = self.factors
        s = time / DURATION
        b = 0.5 * (1.0 - m.cos(np.pi * s))
        constant = 0.0 * s
        return {
            "pelvis_tilt": constant - 0.26,
            "lumbar": constant + 0.17,
            "pelvis_tx": self.speed * time,
            "pelvis_ty": constant + 0.89 + 0.1 * height,
            "hip_flexion_r": 0.32 * mean + 0.60 * swing * (0.5 - b),
            "hip_flexion_l": 0.32 * mean - 0.60 * swing * (0.5 - b),
            "knee_angle_r": constant - 0.15 * stance,
            "knee_angle_l": -0.15 * stance - 0.6 * flexion * m.sin(np.pi * s) ** 2,
            "ankle_angle_r": 0.1 + ankle * (0.1 * s - 0.05),
            "ankle_angle_l": 0.1 - ankle * (0.1 * s - 0.05),
        }


def track_synthetic(walker: Walker, gait: GaitRanges, walk: SyntheticWalk, intervals: int) -> Solution:
    """The walk nearest to a synthetic one that the walker can do: int (sum e^2 + tau^2) + 50 int sum (q - q_ref)^2,
    under half-cycle symmetry. The devices of the walker have their least parameters."""
    system = walking_system(walker)
    names = excitations(walker)

    def distance_from(v: Symbols) -> Any:
        reference = walk.coordinates(v.time)
        return sum((v[c] - reference[c]) ** 2 for c in walker.coordinates if c in reference)

    bounds, scales = bounds_and_scales(walker, replace(gait, drive=None))
    phase = Phase(
        system,
        tf=DURATION,
        integrals={
            "effort": Integral(lambda v: power_sum([v[n] for n in (*names, *walker.drives)], 2)),
            "distance": Integral(distance_from),
        },
        bounds=bounds,
        scales={**scales, **dict.fromkeys(walker.drives, DRIVE)},
    )
    problem = TrajectoryProblem(
        [phase],
        cost=lambda e: e.integral["effort"] + CLOSENESS * e.integral["distance"],
        constraints=mirror_constraints(walker),
        parameters={v.name: v.low if np.isfinite(v.low) else 0.0 for v in system.parameters},
    )
    guess = _guess(walker, walk, names)
    with step(f"synthetic walk at {walk.speed:g} m/s to start from"):
        return Program(problem, program_options(intervals, TOLERANCE), guess).solve(guess=guess)


def _guess(walker: Walker, walk: SyntheticWalk, names: list[str]) -> Guess:
    time = np.linspace(0.0, DURATION, _SAMPLES)
    values: dict[str, Floats] = {c: v for c, v in walk.coordinates(time).items() if c in walker.coordinates}
    values |= {f"{c}_speed": np.gradient(v, time) for c, v in list(values.items())}
    constant = np.full(_SAMPLES, ACTIVATION)
    values |= dict.fromkeys(names, constant)
    values |= {f"activation_{name}": constant for name in walker.muscles.names}
    return Guess({"motion": sampled(time, values)})
