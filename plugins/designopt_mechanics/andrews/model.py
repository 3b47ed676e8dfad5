"""The model ``andrews_squeezer``: one mechanism, integrated with joint functions or with stabilised constraints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, TypedDict

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import Integral, Phase, TrajectoryProblem
from designopt.dynamics.simulation.simulator import Simulator
from designopt.dynamics.simulation.trajectory import SimulationStatus, Trajectory
from designopt.plugin import Array, Diverged, filled, model
from designopt.plugin import Quantity as Q
from designopt_mechanics.andrews.mechanism import ANGLES, START, STIFFNESS, TORQUE, drawing
from designopt_mechanics.andrews.systems import Formulation, system


class Treatment(TypedDict, total=False):
    """How the mechanism is formulated and integrated, and its spring."""

    formulation: Annotated[
        Formulation, Q("", "one coordinate, or seven with stabilised constraints", default="joint_functions")
    ]
    tolerance: Annotated[
        float, Q("", "relative, of the integration; a tenth of it absolute", gt=0, le=1e-2, default=1e-8)
    ]
    stabilisation: Annotated[
        float, Q("1/s", "rate at which constraints pull the gaps of the loops back", ge=0, default=0.0)
    ]
    stiffness: Annotated[float, Q("N/m", "of the spring", gt=0, default=STIFFNESS)]


class Drive(TypedDict, total=False):
    """The crank's drive."""

    torque: Annotated[float, Q("N m", "on the crank, constant", default=TORQUE)]
    duration: Annotated[float, Q("s", "of the motion from rest", gt=0, le=1.0, default=0.03)]


class AndrewsOutputs(TypedDict):
    """Figures of one integration."""

    crank: Annotated[float, Q("rad", "angle beta at the end")]
    error: Annotated[float, Q("", "largest relative difference of an angle at the end to the reference integration")]
    drift: Annotated[float, Q("m", "largest gap of the loops over the motion")]
    energy_drift: Annotated[float, Q("", "largest relative change of the energy over the motion")]
    steps: Annotated[float, Q("", "of the integration")]
    evaluations: Annotated[float, Q("", "of the right-hand side")]
    effort: Annotated[float, Q("N^2 m^2 s", "integral of the squared torque")]


ARRAYS = {
    "time": Array(("time",), "s", "of the motion"),
    "angles": Array(("time", "joint"), "rad", "beta, Theta, gamma, Phi, delta, Omega, epsilon"),
    "speeds": Array(("time", "joint"), "rad/s", "in the order of the angles"),
    "gap": Array(("time",), "m", "largest of the loops"),
    "scene": Array(
        ("time", "vertex", "axis"), "m", "drawing of the mechanism; lines end where a place is not a number"
    ),
}

#: Tolerance of the reference: 15 times its error at 30 ms is below 1e-10 against 30-digit arithmetic.
_REFERENCE = 1e-12
_SAMPLES = 301


@model("andrews_squeezer", version=2, arrays=ARRAYS)
class AndrewsSqueezer:
    """Andrews' squeezing mechanism from rest: seven planar bodies, three closed loops, one degree of freedom.

    Schiehlen (ed.), Multibody Systems Handbook (1990). With joint functions (Ehsani, Rostami and Parnianpour 2016) beta
    is the only coordinate and no loop can open; with constraints all seven angles are coordinates, multipliers close
    the loops on the level of accelerations, and Baumgarte's terms stabilise the gaps. The errors are
    differences to an integration with joint functions at a tolerance of 1e-12.

    As a trajectory problem the crank turns by `turn` from rest to rest with the least integral of its squared torque.
    """

    own_options = True

    turn: Annotated[float, Q("rad", "of the crank in the trajectory problem")] = 2.0 * math.pi
    max_torque: Annotated[float, Q("N m", "to both sides in the trajectory problem", gt=0)] = 0.5
    method: Annotated[Literal["auto", "rosenbrock4", "lsoda"], Q("", "integrator")] = "auto"

    def prepare(self) -> None:
        """Derive and compile the equations."""
        _reference(TORQUE, STIFFNESS, filled(Drive, {})["duration"])

    def evaluate(
        self, design: Treatment, scenario: Drive, arrays: Set[str] = frozenset()
    ) -> tuple[AndrewsOutputs, dict[str, Floats]]:
        """Integrate the motion. Raises `Diverged` if the integration fails."""
        treatment, drive = filled(Treatment, design), filled(Drive, scenario)
        torque, duration = drive["torque"], drive["duration"]
        formulation, stiffness = treatment["formulation"], treatment["stiffness"]
        simulator = _simulator(formulation, self.method, treatment["tolerance"])
        data = {"torque": torque}
        if formulation == "constraints":
            data["stabilisation"] = treatment["stabilisation"]
        times = np.linspace(0.0, duration, _SAMPLES)
        run = simulator.run(_at_rest(formulation), times, p={"stiffness": stiffness}, q=data)
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.status.name.lower())
        n = len(ANGLES)
        angles, speeds, gap, energy = run.y[:, :n], run.y[:, n : 2 * n], run.y[:, 2 * n], run.y[:, 2 * n + 1]
        exact = _reference(torque, stiffness, duration)
        outputs = AndrewsOutputs(
            crank=float(angles[-1, 0]),
            error=float(np.abs((angles[-1] - exact) / exact).max()),
            drift=float(gap.max()),
            energy_drift=float(np.abs(energy / energy[0] - 1.0).max()),
            steps=float(run.steps),
            evaluations=float(run.evaluations),
            effort=torque**2 * duration,
        )
        all_arrays = {"time": run.t, "angles": angles, "speeds": speeds, "gap": gap}
        if "scene" in arrays:
            all_arrays["scene"] = drawing(angles)
        return outputs, {name: all_arrays[name] for name in arrays}

    @cached_property
    def _driven(self) -> Any:
        return system("joint_functions", driven=True)

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """A turn of the crank from rest to rest in the scenario's duration."""
        duration = filled(Drive, scenario)["duration"]
        start = START["beta"]
        phase = Phase(
            self._driven,
            tf=duration,
            name="turn",
            initial={"beta": start, "beta_speed": 0.0},
            final={"beta": start + self.turn, "beta_speed": 0.0},
            bounds={"torque": (-self.max_torque, self.max_torque)},
            integrals={"effort": Integral(lambda v: v["torque"] ** 2, unit="N^2 m^2 s")},
            guess={"beta": (start, start + self.turn)},
        )
        return TrajectoryProblem(
            [phase],
            cost=lambda e: e.integral["effort"],
            guess={"stiffness": STIFFNESS},
            figures={"effort": lambda e: e.integral["effort"]},
        )


@lru_cache(maxsize=32)
def _simulator(formulation: Formulation, method: Any, tolerance: float) -> Simulator:
    return Simulator(_system(formulation), method, rtol=tolerance, atol=0.1 * tolerance, max_steps=1_000_000)


@lru_cache(maxsize=2)
def _system(formulation: Formulation) -> Any:
    return system(formulation)


def _at_rest(formulation: Formulation) -> Floats:
    angles = [START["beta"]] if formulation == "joint_functions" else [START[n] for n in ANGLES]
    return np.array([*angles, *np.zeros(len(angles))])


@lru_cache(maxsize=64)
def _reference(torque: float, stiffness: float, duration: float) -> Floats:
    """(7,) the angles at the end with joint functions at the tolerance of the reference."""
    run: Trajectory = _simulator("joint_functions", "auto", _REFERENCE).run(
        _at_rest("joint_functions"), [0.0, duration], p={"stiffness": stiffness}, q={"torque": torque}
    )
    if run.status is not SimulationStatus.DONE:
        raise Diverged(f"the reference integration: {run.message}", reason=f"reference_{run.status.name.lower()}")
    return run.y[-1, : len(ANGLES)]
