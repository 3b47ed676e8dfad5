"""The model ``pendulum_record``: a pendulum's length, friction and drag from the record of a swing."""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cached_property
from typing import Annotated, Any, TypedDict, cast

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import (
    Measurements,
    NoColumn,
    Options,
    Phase,
    ProblemError,
    Solution,
    TrajectoryProblem,
    read_measurements,
    solve_design,
    with_measurements,
)
from designopt.dynamics.system import System, Variable
from designopt.lazy import casadi as ca
from designopt.plugin import Array, InputFile, InvalidSetting, model
from designopt.plugin import Quantity as Q

GRAVITY = 9.81
_SAMPLES = 401
#: Angle (deg) below which a record in degrees may be one in radians.
_SMALL = 2.0


class Pendulum(TypedDict):
    """The unknown parameters."""

    length: Annotated[float, Q("m", "of the simple pendulum of equal period", gt=0)]
    friction: Annotated[float, Q("1/s", "rate of the viscous friction", ge=0)]
    drag: Annotated[float, Q("1/rad", "of the air: retardation over the squared angular speed", ge=0)]


class Swing(TypedDict, total=False):
    """Conditions: none."""


class RecordOutputs(TypedDict):
    """Outputs of the best fit of one pendulum."""

    chi_squared: Annotated[float, Q("", "sum of the squared residuals over their standard deviations")]
    worst_residual: Annotated[float, Q("", "largest residual over its standard deviation")]
    error_estimate: Annotated[float, Q("", "of the discretisation, relative to the states")]


ARRAYS = {
    "time": Array(("time",), "s", "of the motion"),
    "angle": Array(("time",), "rad", "of the fitted swing"),
    "sample": Array(("sample",), "s", "times of the record"),
    "measured": Array(("sample",), "rad", "angle of the record, not a number where it has a gap"),
}


@model("pendulum_record", version=1, arrays=ARRAYS)
class PendulumRecord:
    """The swing of a pendulum that fits a record of its angle best: weighted least squares over the initial state.

    phi'' = -(g / length) sin phi - friction phi' - drag |phi'| phi', with |w| as sqrt(w^2 + 1e-6 /s^2). The record is a
    CSV table with columns ``time [ms]`` and `column`, with the unit in brackets; a column ``sigma NAME`` contains the
    standard deviations unless `sigma` gives one. With the solver ``collocation`` the three parameters are fitted in one
    program, and the report shows their confidence intervals. One evaluation fits the initial state alone.
    """

    own_options = True

    file: InputFile
    column: Annotated[str, Q("", "name of the column of angles")] = "angle"
    sigma: Annotated[float, Q("rad", "standard deviation of the angles; default: that of the table", gt=0)] | None = (
        None
    )
    intervals: Annotated[int, Q("", "of the mesh", ge=4)] = 80

    def check(self) -> None:
        """Read the record. Raises `InvalidSetting` if it cannot be read."""
        _ = self._measurements

    def remarks(self, conditions: Swing) -> list[str]:
        """Sentences on what a look at the record shows: a column without a unit, an angle in another unit than its
        heading says."""
        unit, largest = (
            self._record.units.get("angle", ""),
            float(np.nanmax(np.abs(self._measurements.values["angle"]))),
        )
        notes = [] if unit else [f"{self.file.name}: column '{self.column}' has no unit and is taken in rad"]
        if largest > np.pi:
            notes.append(
                f"{self.file.name}: the angle reaches {largest:.3g} rad, more than half a turn; is it in degrees?"
            )
        elif unit == "deg" and np.degrees(largest) < _SMALL:
            notes.append(f"{self.file.name}: the angle stays below {np.degrees(largest):.2g} deg; is it in radians?")
        return notes

    @cached_property
    def _record(self) -> Measurements:
        try:
            deviations = {} if self.sigma is None else {"angle": 1.0}  # in the column's unit: replaced below
            return read_measurements(self.file.text(), deviations, columns={"angle": self.column})
        except UnicodeDecodeError:
            raise InvalidSetting(
                "file", f"{self.file.name}: is not UTF-8 text; save it as UTF-8 (spreadsheets: 'CSV UTF-8')"
            ) from None

    @cached_property
    def _measurements(self) -> Measurements:
        try:
            record = self._record
            values, sigma = record.converted("angle", "rad")
        except NoColumn as error:
            raise InvalidSetting(
                "column" if error.name == self.column else "file", f"{self.file.name}: {error}"
            ) from error
        except ValueError as error:
            raise InvalidSetting("file", f"{self.file.name}: {error}") from error
        if record.times.min() < 0.0 or np.ptp(record.times) == 0.0:
            raise InvalidSetting("file", f"{self.file.name}: times must begin at 0 or later and must not all be equal")
        return Measurements(record.times, {"angle": values}, {"angle": sigma if self.sigma is None else self.sigma})

    def trajectory_problem(self, scenario: Mapping[str, Any]) -> TrajectoryProblem:
        """The fit as a program. Raises `InvalidSetting` for an unusable file."""
        swing = Phase(_system(), tf=float(self._measurements.times.max()), name="swing")
        plain = TrajectoryProblem([swing], cost=lambda e: 0.0, guess={"length": 1.0, "friction": 0.1, "drag": 0.01})
        try:
            return with_measurements(plain, self._measurements)
        except ProblemError as error:
            raise InvalidSetting("file", f"{self.file.name}: {error}") from error

    def evaluate(
        self, design: Pendulum, scenario: Swing, arrays: Set[str] = frozenset()
    ) -> tuple[RecordOutputs, dict[str, Floats]]:
        """Fit the initial state of the swing for this pendulum."""
        options = Options(intervals=self.intervals)
        solution = solve_design(self.trajectory_problem(scenario), cast(Mapping[str, float], design), options)
        measurements = self._measurements
        residuals = (
            solution.interpolate(measurements.times)["angle"] - measurements.values["angle"]
        ) / measurements.sigma["angle"]
        outputs = RecordOutputs(
            chi_squared=solution.figures["chi_squared"],
            worst_residual=float(np.nanmax(np.abs(residuals))),
            error_estimate=solution.error_estimate,
        )
        return outputs, {name: values for name, values in self._arrays(solution).items() if name in arrays}

    def _arrays(self, solution: Solution) -> dict[str, Floats]:
        time = np.linspace(solution.phase.t0, solution.phase.tf, _SAMPLES)
        angle = solution.interpolate(time)["angle"]
        return {
            "time": time,
            "angle": angle,
            "sample": np.asarray(self._measurements.times),
            "measured": np.asarray(self._measurements.values["angle"]),
        }


def _system() -> System:
    angle, speed, length, friction, drag = (ca.SX.sym(n) for n in ("angle", "speed", "length", "friction", "drag"))
    retardation = friction * speed + drag * ca.sqrt(speed**2 + 1e-6) * speed
    return System.from_expressions(
        "pendulum",
        states=[
            (Variable("angle", "rad"), angle, speed),
            (Variable("speed", "rad/s"), speed, -GRAVITY / length * ca.sin(angle) - retardation),
        ],
        parameters=[
            (Variable("length", "m", 0.01, 100.0), length),
            (Variable("friction", "1/s", 0.0, 10.0), friction),
            (Variable("drag", "1/rad", 0.0, 10.0), drag),
        ],
    )
