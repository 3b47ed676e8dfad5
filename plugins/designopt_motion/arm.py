"""The model ``reach_arm6``: an arm with six muscles reaches from rest to rest with the least excitation."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import (
    Constraint,
    Integral,
    Options,
    Phase,
    Refinement,
    Solution,
    TrajectoryProblem,
    solve_design,
)
from designopt.collocation.statement.symbols import Symbols
from designopt.dynamics.rows import Rows, outputs_over
from designopt.dynamics.system import System
from designopt.lazy import casadi as ca
from designopt.plugin import Array, InvalidDesign, filled, model
from designopt.plugin import Quantity as Q
from designopt_motion import arm_equations as equations
from designopt_motion.arm_equations import ACTIVATIONS, EXCITATIONS, FIBRE_SPEEDS, FIBRES, MIN_ACTIVATION


class Support(TypedDict, total=False):
    """Values of a design: the movement's duration, and a spring worn at the elbow."""

    duration: Annotated[float, Q("s", "of the movement", ge=0.2, le=1.0, default=0.6)]
    elbow_stiffness: Annotated[float, Q("N m/rad", "of the spring at the elbow", ge=0, le=50, default=0.0)]
    elbow_rest: Annotated[
        float, Q("rad", "flexion of the elbow at which the spring is relaxed", ge=0, le=2.6, default=1.5)
    ]


class Reach(TypedDict, total=False):
    """Positions of the hand relative to the shoulder, x sideways and y forward."""

    start_x: Annotated[float, Q("m", "where the hand starts", default=0.0)]
    start_y: Annotated[float, Q("m", "where the hand starts", default=0.35)]
    target_x: Annotated[float, Q("m", "where the hand ends", default=0.15)]
    target_y: Annotated[float, Q("m", "where the hand ends", default=0.5)]
    load: Annotated[float, Q("kg", "held in the hand", ge=0, default=0.0)]


class ReachOutputs(TypedDict):
    """Outputs of the optimal movement for one design."""

    effort: Annotated[float, Q("s", "integral of the sum of squared excitations")]
    work: Annotated[float, Q("J", "integral of the size of the muscles' power at the joints, rounded near zero")]
    peak_torque: Annotated[float, Q("N m", "largest magnitude of the muscles' torque at shoulder or elbow")]
    peak_excitation: Annotated[float, Q("", "largest of any muscle")]
    peak_speed: Annotated[float, Q("m/s", "of the hand")]
    detour: Annotated[float, Q("m", "largest distance of the hand from the straight line to the target")]
    min_fibre_length: Annotated[float, Q("", "in optimal lengths; the curves are valid from 0.2")]
    max_fibre_length: Annotated[float, Q("", "in optimal lengths; the curves are valid up to 1.8")]
    max_fibre_speed: Annotated[
        float,
        Q(
            "",
            "maximum speed relative to the maximum shortening velocity; the curves are valid up to 1",
        ),
    ]
    spread: Annotated[float, Q("", "of the effort over all starts that were solved, relative to the least")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]
    resimulation_error: Annotated[float, Q("", "of a simulation with the same excitations, relative to the states")]


ARRAYS = {
    "time": Array(("time",), "s", "of the movement"),
    "angles": Array(("time", "joint"), "rad", "of shoulder and elbow"),
    "path": Array(("time", "point", "axis"), "m", "of elbow and hand from the shoulder"),
    "excitations": Array(("time", "muscle"), "", "flexor and extensor of shoulder, of elbow, and of both"),
    "activations": Array(("time", "muscle"), "", "in the order of the excitations"),
    "torques": Array(("time", "joint"), "N m", "of the muscles at shoulder and elbow, and of the spring at the elbow"),
}

#: The size of a power is rounded below this power (W).
_ROUNDED = 0.1
_SAMPLES = 121


@model("reach_arm6", version=1, arrays=ARRAYS)
class ReachArm:
    """Reaching of a planar two-segment arm with three antagonist pairs of muscles that minimises the integral of
    squared excitation.

    Muscles on rigid tendons with constant moment arms act at the shoulder, the elbow and both. Force depends on length
    and speed as in De Groote et al. (2016); activation follows excitation in 15 ms and decays in 60 ms. Segments and
    moment arms of Selen et al. (2009), muscles of Holzbaur et al. (2005). The plane is horizontal; the muscles are
    relaxed at the start.

    Activation rises faster than it decays, so pulses of excitation maintain an activation at less effort than a steady
    excitation. Movements that need much excitation therefore have many local optima, with more and shorter pulses on
    finer meshes; `starts` and `spread` report how far these differ. A `sharpness` of 0.1, as published, makes both
    rates nearly equal and the optimum smooth. One evaluation solves one trajectory problem.
    """

    own_options = True

    scheme: Annotated[Literal["hermite_simpson", "radau"], Q("", "of the transcription")] = "radau"
    intervals: Annotated[int, Q("", "of the mesh", ge=4)] = 30
    starts: Annotated[
        int, Q("", "guesses from which the movement is searched; the best result counts", ge=1, le=1000)
    ] = 1
    seed: Annotated[int, Q("", "of the guesses after the first", ge=0)] = 0
    refine_to: Annotated[
        float | None, Q("", "error estimate to which the mesh is refined; default: no refinement", gt=0)
    ] = None
    sharpness: Annotated[float, Q("", "of the switch between 15 ms and 60 ms; see the text", gt=0)] = 10.0

    @cached_property
    def _system(self) -> System:
        return equations.system(self.sharpness)

    def _options(self) -> Options:
        refine = None if self.refine_to is None else Refinement(tolerance=self.refine_to)
        return Options(scheme=self.scheme, intervals=self.intervals, starts=self.starts, seed=self.seed, refine=refine)

    def evaluate(
        self, design: Support, scenario: Reach, arrays: Set[str] = frozenset()
    ) -> tuple[ReachOutputs, dict[str, Floats]]:
        """Solve for the movement of this design."""
        solution = solve_design(self.trajectory_problem(scenario), cast(Mapping[str, float], design), self._options())
        trajectory, fibres, speeds = _sample(self._system, solution, filled(Reach, scenario)["load"])
        hand = trajectory["path"][:, 1]
        outputs = ReachOutputs(
            effort=solution.figures["effort"],
            work=solution.figures["work"],
            peak_torque=float(np.abs(trajectory["torques"][:, :2]).max()),
            peak_excitation=float(trajectory["excitations"].max()),
            peak_speed=float(np.linalg.norm(np.gradient(hand, trajectory["time"], axis=0), axis=1).max()),
            detour=_detour(hand),
            min_fibre_length=float(fibres.min()),
            max_fibre_length=float(fibres.max()),
            max_fibre_speed=float(np.abs(speeds).max()),
            spread=_spread(solution),
            error_estimate=solution.error_estimate,
            resimulation_error=solution.phase.resimulation_error,
        )
        return outputs, {name: trajectory[name] for name in arrays}

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The movement as a program. Raises `InvalidDesign` for places that the hand does not reach."""
        reach, usual = filled(Reach, scenario), cast(Mapping[str, float], filled(Support, {}))
        try:
            start = equations.angles_at(reach["start_x"], reach["start_y"])
            target = equations.angles_at(reach["target_x"], reach["target_y"])
        except ValueError as error:
            raise InvalidDesign(str(error)) from None
        zero_speeds = {"shoulder_speed": 0.0, "elbow_speed": 0.0}
        phase = Phase(
            self._system,
            tf=(0.2, 1.0),
            name="reach",
            initial={
                "shoulder": start[0],
                "elbow": start[1],
                **zero_speeds,
                **dict.fromkeys(ACTIVATIONS, MIN_ACTIVATION),
            },
            final={"shoulder": target[0], "elbow": target[1], **zero_speeds},
            integrals={
                "effort": Integral(lambda v: sum(v[n] ** 2 for n in EXCITATIONS), unit="s"),
                "work": Integral(_power, unit="J"),
            },
            data={"load": reach["load"]},
        )
        return TrajectoryProblem(
            [phase],
            cost=lambda e: e.integral["effort"],
            constraints={"duration": Constraint(lambda e: e.duration - e["duration"], 0.0, 0.0, "s")},
            parameters=usual,
            guess=usual,
            figures={"effort": lambda e: e.integral["effort"], "work": lambda e: e.integral["work"]},
        )


def _spread(solution: Solution) -> float:
    efforts = [start.objective for start in solution.starts if start.status.success]
    return max(efforts) / min(efforts) - 1.0 if efforts else 0.0


def _power(v: Symbols) -> Any:
    powers = (v["shoulder_torque"] * v["shoulder_speed"], v["elbow_torque"] * v["elbow_speed"])
    return sum(ca.sqrt(power**2 + _ROUNDED**2) - _ROUNDED for power in powers)


def _detour(hand: Floats) -> float:
    """Largest distance of the path `hand` (n, 2) from the line between its ends."""
    way = hand[-1] - hand[0]
    length = float(np.linalg.norm(way))
    off = hand - hand[0]
    if length == 0.0:
        return float(np.linalg.norm(off, axis=1).max())
    return float(np.abs(off[:, 0] * way[1] - off[:, 1] * way[0]).max()) / length


def _sample(system: System, solution: Solution, load: float) -> tuple[dict[str, Floats], Floats, Floats]:
    """All of `ARRAYS` at equal time steps, lengths and speeds of the fibres."""
    motion = solution.phase
    time = np.linspace(motion.t0, motion.tf, _SAMPLES)
    values = motion.interpolate(time)
    outputs = outputs_over(system, values, solution.parameters, {"load": load}, time)
    angles = np.column_stack([values["shoulder"], values["elbow"]])
    q = ca.SX.sym("q", 2)
    joint_positions = Rows(ca.Function("places", [q], [ca.vertcat(*equations.joints(q[0], q[1]))]), compiled=False)
    sampled_arrays = {
        "time": time,
        "angles": angles,
        "path": joint_positions(angles)[0].reshape(_SAMPLES, 2, 2),
        "excitations": np.column_stack([values[n] for n in EXCITATIONS]),
        "activations": np.column_stack([values[n] for n in ACTIVATIONS]),
        "torques": np.column_stack([outputs[n] for n in ("shoulder_torque", "elbow_torque", "spring_torque")]),
    }
    return sampled_arrays, np.array([outputs[n] for n in FIBRES]), np.array([outputs[n] for n in FIBRE_SPEEDS])
