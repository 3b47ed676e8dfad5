"""The model ``quarter_car``: stiffness and damping of a suspension in, the ride over a bump out.

The same equations are simulated (`evaluate`) and taken into a program (`trajectory_problem`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from functools import cached_property, partial
from typing import Annotated, Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from designopt.collocation import Integral, Phase, ProblemError, TrajectoryProblem
from designopt.dynamics.simulator import Simulator
from designopt.dynamics.system import System, Variable
from designopt.dynamics.trajectory import SimulationStatus, Trajectory
from designopt.plugin import Array, Diverged, InvalidDesign, model
from designopt.plugin import Quantity as Q

Vector = NDArray[np.float64]

#: So many widths on either side of its middle a bump is flat to 1e-11 of its height.
_REACH = 5.0
_SAMPLES = 301


class Suspension(TypedDict):
    """What is designed."""

    stiffness: Annotated[float, Q("N/m", "of the suspension's spring", gt=0)]
    damping: Annotated[float, Q("N s/m", "of the suspension's damper", ge=0)]


class Ride(TypedDict, total=False):
    """The car and the road; what is left out is as in the model's text."""

    body_mass: Annotated[float, Q("kg", "carried by one wheel", gt=0)]
    wheel_mass: Annotated[float, Q("kg", "wheel and axle", gt=0)]
    tyre_stiffness: Annotated[float, Q("N/m", "of the tyre", gt=0)]
    bump_height: Annotated[float, Q("m", "of the road")]
    bump_time: Annotated[float, Q("s", "middle of the bump", gt=0)]
    bump_width: Annotated[float, Q("s", "half the time between 1/e of its height on both sides", gt=0)]


class RideOutputs(TypedDict):
    """Integrals over the ride, and peaks."""

    discomfort: Annotated[float, Q("m^2/s^3", "integral of the body's squared acceleration")]
    travel: Annotated[float, Q("m^2 s", "integral of the squared travel of the suspension")]
    tyre: Annotated[float, Q("m^2 s", "integral of the squared deflection of the tyre")]
    cost: Annotated[float, Q("m^2/s^3", "discomfort + travel_weight travel + tyre_weight tyre")]
    peak_acceleration: Annotated[float, Q("m/s^2", "largest size of the body's acceleration")]
    peak_travel: Annotated[float, Q("m", "largest travel of the suspension")]


ARRAYS = {
    "time": Array(("time",), "s", "of the ride"),
    "body": Array(("time",), "m", "height of the body"),
    "wheel": Array(("time",), "m", "height of the wheel"),
    "road": Array(("time",), "m", "height of the road"),
    "acceleration": Array(("time",), "m/s^2", "of the body"),
}

_DEFAULTS = {
    "body_mass": 350.0,
    "wheel_mass": 45.0,
    "tyre_stiffness": 2e5,
    "bump_height": 0.08,
    "bump_time": 0.5,
    "bump_width": 0.08,
}
_INTEGRALS = ("discomfort", "travel", "tyre")


@model("quarter_car", version=1, arrays=ARRAYS)
class QuarterCar:
    """Body and wheel of a car on a linear spring and damper over a smooth bump, from rest.

    The bump is h exp(-((t - t_b)/w)^2). Unless the scenario says otherwise: body 350 kg, wheel 45 kg, tyre 200 kN/m, a
    bump of 80 mm with its middle at 0.5 s and a width of 0.08 s. Any text on vehicle dynamics has the equations.
    """

    duration: Annotated[float, Q("s", "of the ride", gt=0)] = 3.0
    travel_weight: Annotated[float, Q("1/s^4", "of the travel in the cost", ge=0)] = 2000.0
    tyre_weight: Annotated[float, Q("1/s^4", "of the tyre's deflection in the cost", ge=0)] = 5000.0
    rtol: Annotated[float, Q("", "relative tolerance of the simulation", gt=0, le=1e-3)] = 1e-8

    @cached_property
    def _systems(self) -> tuple[System, System]:
        """The car, and the car with its integrals as further states."""
        return _system(with_integrals=False), _system(with_integrals=True)

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self._systems[1], rtol=self.rtol, atol=1e-3 * self.rtol)

    def prepare(self) -> None:
        """Derive and compile the equations."""
        _ = self._simulator

    def evaluate(
        self, design: Suspension, scenario: Ride, arrays: Set[str] = frozenset()
    ) -> tuple[RideOutputs, dict[str, Vector]]:
        """Simulate the ride."""
        data = self._data(scenario)
        runs = self._runs(design, data)
        last = runs[-1].x[-1]
        integrals = dict(zip(_INTEGRALS, last[4:].tolist(), strict=True))
        t = np.concatenate([run.t[bool(i) :] for i, run in enumerate(runs)])
        y = np.concatenate([run.y[bool(i) :] for i, run in enumerate(runs)])
        x = np.concatenate([run.x[bool(i) :] for i, run in enumerate(runs)])
        acceleration, road = y[:, 0], y[:, 1]
        made = {"time": t, "body": x[:, 0], "wheel": x[:, 1], "road": road, "acceleration": acceleration}
        outputs = RideOutputs(
            discomfort=integrals["discomfort"],
            travel=integrals["travel"],
            tyre=integrals["tyre"],
            cost=self._cost(integrals),
            peak_acceleration=float(np.abs(acceleration).max()),
            peak_travel=float(np.abs(x[:, 0] - x[:, 1]).max()),
        )
        return outputs, {name: made[name] for name in arrays}

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The ride as a program; its figures are the integrals and the cost."""
        if late := self._late(self._data(scenario)):
            raise ProblemError("bad_bounds", "bump_time", late)
        rest = dict.fromkeys(("body", "wheel", "body_speed", "wheel_speed"), 0.0)
        phase = Phase(
            self._systems[0],
            tf=self.duration,
            name="ride",
            initial=rest,
            integrals={name: Integral(partial(_integrand, name)) for name in _INTEGRALS},
            data=self._data(scenario),
        )
        figures = {name: partial(_integral, name) for name in _INTEGRALS}
        return TrajectoryProblem([phase], cost=self._cost_of, figures={**figures, "cost": self._cost_of})

    def _cost_of(self, ends: Any) -> Any:
        return self._cost(ends.integral)

    def _cost(self, integrals: Mapping[str, Any]) -> Any:
        return (
            integrals["discomfort"]
            + self.travel_weight * integrals["travel"]
            + self.tyre_weight * integrals["tyre"]
        )  # fmt: skip

    def _data(self, scenario: Mapping[str, Any]) -> dict[str, float]:
        return {**_DEFAULTS, **{name: float(value) for name, value in scenario.items()}}

    def _late(self, data: Mapping[str, float]) -> str:
        """What is wrong with a bump that the ride does not meet; else empty."""
        if data["bump_time"] - _REACH * data["bump_width"] < self.duration:
            return ""
        return f"the bump at {data['bump_time']:g} s comes after the end at {self.duration:g} s"

    def _runs(self, design: Suspension, data: Mapping[str, float]) -> Sequence[Trajectory]:
        """The ride in pieces: a simulation that starts at rest may step over a bump that it has not met yet."""
        reach = _REACH * data["bump_width"]
        inner = [data["bump_time"] + side * reach for side in (-1.0, 0.0, 1.0)]
        edges = [0.0, *(t for t in inner if 0.0 < t < self.duration), self.duration]
        if late := self._late(data):
            raise InvalidDesign(late)
        grid = np.linspace(0.0, self.duration, _SAMPLES)
        x = np.zeros(len(self._simulator.system.states))
        runs = []
        for begin, end in itertools.pairwise(edges):
            times = np.array([begin, *grid[(grid > begin) & (grid < end)], end])
            first = 0.05 * data["bump_width"]
            run = self._simulator.run(
                x, times, p=cast(Mapping[str, float], design), q=data, first_step=min(first, end - begin)
            )
            if run.status is not SimulationStatus.DONE:
                raise Diverged(run.message, reason=run.status.name.lower())
            runs.append(run)
            x = run.x[-1]
        return runs


def _integral(name: str, ends: Any) -> Any:
    return ends.integral[name]


def _integrand(name: str, v: Mapping[str, Any]) -> Any:
    return _integrands(v)[name]


def _integrands(v: Mapping[str, Any]) -> dict[str, Any]:
    """What is integrated, of the outputs of the system."""
    return {
        "discomfort": v["acceleration"] ** 2,
        "travel": (v["body"] - v["wheel"]) ** 2,
        "tyre": (v["wheel"] - v["road"]) ** 2,
    }


def _system(*, with_integrals: bool) -> System:
    """x_s'' = F/m_s, x_u'' = (-F - k_t (x_u - z))/m_u, F = k (x_u - x_s) + c (v_u - v_s)."""
    import casadi as ca

    body, wheel, body_speed, wheel_speed = (ca.SX.sym(n) for n in ("body", "wheel", "body_speed", "wheel_speed"))
    k, c = ca.SX.sym("stiffness"), ca.SX.sym("damping")
    q = {name: ca.SX.sym(name) for name in _DEFAULTS}
    t = ca.SX.sym("t")
    road = q["bump_height"] * ca.exp(-(((t - q["bump_time"]) / q["bump_width"]) ** 2))
    force = k * (wheel - body) + c * (wheel_speed - body_speed)
    acceleration = force / q["body_mass"]
    states = [
        (Variable("body", "m"), body, body_speed),
        (Variable("wheel", "m"), wheel, wheel_speed),
        (Variable("body_speed", "m/s"), body_speed, acceleration),
        (
            Variable("wheel_speed", "m/s"),
            wheel_speed,
            (-force - q["tyre_stiffness"] * (wheel - road)) / q["wheel_mass"],
        ),
    ]
    if with_integrals:
        named = {"body": body, "wheel": wheel, "acceleration": acceleration, "road": road}
        units = {"discomfort": "m^2/s^3", "travel": "m^2 s", "tyre": "m^2 s"}
        states += [
            (Variable(name, units[name]), ca.SX.sym(name), integrand) for name, integrand in _integrands(named).items()
        ]
    condition_units = dict.fromkeys(_DEFAULTS, "")
    return System.from_expressions(
        "quarter_car",
        states=states,
        parameters=[(Variable("stiffness", "N/m", 0.0), k), (Variable("damping", "N s/m", 0.0), c)],
        data=[(Variable(name, condition_units[name]), symbol) for name, symbol in q.items()],
        outputs=[(Variable("acceleration", "m/s^2"), acceleration), (Variable("road", "m"), road)],
        time=t,
    )
