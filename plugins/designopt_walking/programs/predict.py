"""A predicted walk: least effort by distance at a speed, with half-cycle symmetry (Ackermann, van den Bogert 2010)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from designopt.collocation import Constraint, Ends, Integral, Phase, PhaseGuess, Symbols, TrajectoryProblem
from designopt.dynamics.system import Variable
from designopt.lazy import casadi as ca
from designopt_walking.metabolics import BASAL, ROUNDING, metabolic_rates
from designopt_walking.programs.gait import (
    GaitRanges,
    bounds_and_scales,
    check_contact,
    check_mirror,
    check_speed,
    distance,
    excitations,
    forward_range,
    mirror_constraints,
    power_sum,
)
from designopt_walking.system import walking_system
from designopt_walking.walker import Walker

#: First trajectories for values of the parameters; with a random generator, other ones.
Start = Callable[[Mapping[str, float], np.random.Generator | None], PhaseGuess]


@dataclass(frozen=True)
class Effort:
    """J = (10/d) int (sum w e^p + sum |tau/torque_scale|^p) + `metabolic` C: `exponent` p, `weights` w of muscles by
    name (1), `torque_scale` (N m), and the metabolic cost of transport C in J/(kg m), with smooth corners."""

    exponent: int = 3
    weights: Mapping[str, float] = field(default_factory=dict)
    torque_scale: float = 1.0
    metabolic: float = 0.0

    def rate(self, walker: Walker) -> Callable[[Symbols], Any]:
        """The integrand."""
        names = excitations(walker)
        weights = [self.weights.get(name, 1.0) for name in walker.muscles.names]

        def rate(v: Symbols) -> Any:
            muscles = sum((w * v[n] ** self.exponent for w, n in zip(weights, names, strict=True)), ca.SX(0))
            return muscles + power_sum([v[n] / self.torque_scale for n in walker.drives], self.exponent)

        return rate


def predicted_walk(
    walker: Walker, gait: GaitRanges, effort: Effort, speed: float, start: Start | None = None
) -> TrajectoryProblem:
    """The program of half a cycle at `speed` (m/s), with the parameters of the walker's devices; the phase is
    "motion" and its first trajectories are those of `start`.

    The speed is data: it may change from solve to solve of one program. Figures: `objective`, `effort`,
    `cost_of_transport` if it is charged, `final_time`, `step_length`. Raises `GaitError` for a walker without contact
    or symmetry, and for a speed out of reach.
    """
    check_contact(walker)
    check_mirror(walker)
    check_speed(speed, gait, forward_range(walker))
    integrals = {"effort": Integral(effort.rate(walker), unit="s")}
    outputs: list[tuple[Variable, Any]] = []
    if effort.metabolic:
        heat = ca.sum1(metabolic_rates(walker.muscles, rounding=ROUNDING)) / walker.mass + BASAL
        outputs.append((Variable("metabolic_rate", "W/kg"), heat))
        integrals["metabolic"] = Integral(lambda v: v["metabolic_rate"], unit="J/kg")
    system = walking_system(walker, outputs, ((Variable("speed", "m/s"), ca.SX.sym("speed")),))
    bounds, scales = bounds_and_scales(walker, gait)
    phase = Phase(
        system,
        tf=gait.duration,
        integrals=integrals,
        data={"speed": speed},
        start=start,
        bounds=bounds,
        scales=scales,
    )

    def of_excitations(e: Ends) -> Any:
        return 10.0 * e.integral["effort"] / distance(e)

    def of_transport(e: Ends) -> Any:
        return e.integral["metabolic"] / distance(e)

    def cost(e: Ends) -> Any:
        return of_excitations(e) + (effort.metabolic * of_transport(e) if effort.metabolic else 0.0)

    return TrajectoryProblem(
        [phase],
        cost=cost,
        constraints={
            **mirror_constraints(walker),
            "speed": Constraint(
                lambda e: (distance(e) - e.data["speed"] * e.duration) / e.data["speed"], 0.0, 0.0, "s"
            ),
        },
        figures={
            "objective": cost,
            "effort": of_excitations,
            **({"cost_of_transport": of_transport} if effort.metabolic else {}),
            "final_time": lambda e: e.duration,
            "step_length": distance,
        },
    )
