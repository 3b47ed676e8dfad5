"""The closed loops of speed and course in time: many vehicles, each with regulators of its own, side by side.

Classical Runge-Kutta of order 4 with a fixed step that divides the sample time. Commands are held over a sample and
delayed by whole steps, so that they change only between steps. No number of a row depends on another row: results are
the same bits however rows are put together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy import add, multiply
from numpy.typing import NDArray

from designopt.plugin import Quantity
from designopt_regulator import vehicle
from designopt_regulator.quality import Quality, Times, Watch
from designopt_regulator.regulator import PID, Running

Vector = NDArray[np.float64]
Loop = Literal["speed", "course"]

_LIMIT = 1e3  # speed (m/s) or course (rad) beyond which a row has diverged


@dataclass(frozen=True)
class Manoeuvre:
    """What n vehicles are asked to do: arrays (n,) and, common to all, times (s), whole numbers of samples.

    They drive straight in trim at `speed`. At `step_at` the references step to `target_speed` (m/s) and to the course
    `turn` (rad); from `load_at` on there are the moment `moment` (N m) and the `grade`, the sine of the slope.
    """

    speed: Vector
    target_speed: Vector
    turn: Vector
    moment: Vector
    grade: Vector
    step_at: float
    load_at: float
    horizon: float


@dataclass(frozen=True)
class Schedule:
    """A gain of the course regulator that falls with speed: kp times reference_speed / max(v, least_speed)."""

    reference_speed: Annotated[float, Quantity("m/s", "at which the gain is kp", gt=0)]
    least_speed: Annotated[float, Quantity("m/s", "below which the gain grows no further", gt=0)] = 0.5

    def factor(self, speed: Vector) -> Vector:
        """What kp is multiplied with at a speed (m/s)."""
        return np.asarray(self.reference_speed / np.maximum(speed, self.least_speed))


@dataclass(frozen=True)
class Trace:
    """Samples of n runs: `time` (k,), the others (k, n); SI units. The last row repeats the last commands."""

    time: Vector
    speed: Vector
    course: Vector
    yaw_rate: Vector
    speed_command: Vector
    course_command: Vector
    speed_reference: Vector
    course_reference: Vector


@dataclass(frozen=True)
class Runs:
    """What came of n runs. Rows with `failed` True diverged at `ended` (s): their figures mean nothing.

    `quality` is there for the loops that were watched, `energy` (n,) is what the tracks gave (J), `sharp` (n,) the
    share of samples with a radius below half the distance of the tracks, where Nikitin's law is extrapolated, `final`
    (5, n) are the last states.
    """

    quality: Mapping[Loop, Quality]
    energy: Vector
    sharp: Vector
    final: Vector
    failed: NDArray[np.bool_]
    ended: Vector
    trace: Trace | None


def whole_number(time: float, unit: float) -> int | None:
    """How many times `unit` fits into `time`; None where it is no whole number."""
    count = round(time / unit)
    return count if abs(count * unit - time) <= 1e-9 * max(unit, abs(time)) else None


def simulate(
    plant: vehicle.Plant,
    speed_regulator: PID,
    course_regulator: PID,
    manoeuvre: Manoeuvre,
    delay_steps: NDArray[np.int64],
    *,
    substeps: int = 5,
    schedule: Schedule | None = None,
    watched: Collection[Loop] = ("speed", "course"),
    trace: bool = False,
) -> Runs:
    """Run n vehicles through a manoeuvre; `delay_steps` (n,) is their delay in integration steps.

    Both regulators have the same sample time, of which `substeps` integration steps are made. All arrays have n rows.
    `watched` are the loops whose quality is wanted.
    """
    with np.errstate(all="ignore"):  # of rows that diverge; they are found by what they have become
        batch = _Batch(plant, speed_regulator, course_regulator, manoeuvre, delay_steps, substeps, schedule)
        return batch.run(watched, trace)


class _Batch:
    def __init__(
        self,
        plant: vehicle.Plant,
        speed_regulator: PID,
        course_regulator: PID,
        manoeuvre: Manoeuvre,
        delay_steps: NDArray[np.int64],
        substeps: int,
        schedule: Schedule | None,
    ) -> None:
        m, T, n = manoeuvre, speed_regulator.sample_time, len(plant)
        self.plant, self.manoeuvre, self.substeps, self.schedule = plant, m, substeps, schedule
        self.sample_time, self.h = T, T / substeps
        self.samples = round(m.horizon / T)
        trim = vehicle.trim(plant, m.speed)
        self._trim, self._rest = trim, np.zeros(n)
        self.speed_loop = Running(speed_regulator, m.speed, trim)
        self.course_loop = Running(course_regulator, self._rest, self._rest, angle=True)
        self.rates = vehicle.Rates(plant)
        self._arm = 0.5 * plant.track_distance
        self.load = np.zeros((2, n))
        self.states = np.zeros((substeps + 1, 5, n))  # of one sample
        self.states[0, 0] = m.speed
        self.states[0, 3:] = plant.greatest_force * trim
        self._commands(plant.greatest_force * trim, np.asarray(delay_steps))
        self._columns = [vehicle.Columns.of(x) for x in self.states]
        self._parts = np.array(self.h), np.array(0.5 * self.h), np.array(1.0 / 3.0)
        self._stages = [vehicle.Columns.of(x) for x in np.empty((4, 5, n))]
        self._energy, self._sharp = np.zeros(n), np.zeros(n)
        self.failed = np.zeros(n, bool)
        self.ended = np.full(n, m.horizon)

    def _commands(self, trim: Vector, delay: NDArray[np.int64]) -> None:
        """The commands (N) of all samples, those before the first being of trim, and who hears of one at which step."""
        self.lead = int(-(-delay.max() // self.substeps))
        self.history = np.empty((self.samples + self.lead, 2, len(trim)))
        self.history[: self.lead] = trim
        self.late = [(delay - j) // self.substeps for j in range(self.substeps)]
        self.heard = [np.flatnonzero((delay - j) % self.substeps == 0) for j in range(self.substeps)]
        self.command = np.empty((2, len(trim)))
        self.command[:] = trim

    def run(self, watched: Collection[Loop], trace: bool) -> Runs:
        m, n = self.manoeuvre, len(self.plant)
        step_sample, load_sample = round(m.step_at / self.sample_time), round(m.load_at / self.sample_time)
        watches = self._watches(watched)
        kept = np.empty((7, self.samples + 1, n)) if trace else None
        for sample in range(self.samples):
            if sample == load_sample:
                self.load[0], self.load[1] = -self.plant.weight * m.grade, m.moment
            x = self.states[0]
            self._sharp += self._arm * np.abs(x[1]) > np.abs(x[0])
            stepped = sample >= step_sample
            speed_reference = m.target_speed if stepped else m.speed
            course_reference = m.turn if stepped else self._rest
            u = self.speed_loop.sample(speed_reference, x[0])
            w = self.course_loop.sample(
                course_reference, x[2], None if self.schedule is None else self.schedule.factor(x[0])
            )
            if kept is not None:
                kept[:, sample] = x[0], x[2], x[1], u, w, speed_reference, course_reference
            mixed = self.history[self.lead + sample]
            np.subtract(u, w, out=mixed[0])
            np.add(u, w, out=mixed[1])
            np.clip(mixed, -1.0, 1.0, out=mixed)
            mixed *= self.plant.greatest_force
            self._sample(sample)
            for loop, watch in watches.items():
                if loop == "speed":
                    watch.sample(sample, self.states[:, 0], u, self.speed_loop.raw)
                else:
                    watch.sample(sample, self.states[:, 2], w, self.course_loop.raw)
            self._add_energy()
            self.states[0] = self.states[-1]
            if not np.abs(self.states[0, 0:3:2]).max() <= _LIMIT:
                self._freeze((sample + 1) * self.sample_time)
        if kept is not None:
            kept[:, -1] = kept[:, -2]
            kept[:3, -1] = self.states[0, 0], self.states[0, 2], self.states[0, 1]
        return Runs(
            quality={loop: watch.quality(self.samples) for loop, watch in watches.items()},
            energy=self._energy,
            sharp=self._sharp / self.samples,
            final=self.states[0].copy(),
            failed=self.failed,
            ended=self.ended,
            trace=None if kept is None else Trace(self.sample_time * np.arange(self.samples + 1.0), *kept),
        )

    def _watches(self, watched: Collection[Loop]) -> dict[Loop, Watch]:
        m, rest = self.manoeuvre, self._rest
        times = Times(m.step_at, m.load_at, self.sample_time, self.substeps)
        watches: dict[Loop, Watch] = {}
        if "speed" in watched:
            watches["speed"] = Watch(m.speed, m.target_speed, self._trim, times)
        if "course" in watched:
            watches["course"] = Watch(rest, m.turn, rest, times, angle=True)
        return watches

    def _sample(self, sample: int) -> None:
        """The steps of one sample, from ``states[0]`` to the last of `states`."""
        for j in range(self.substeps):
            rows = self.heard[j]
            if len(rows) == self.command.shape[1] and (self.late[j] == self.late[j][0]).all():
                self.command[:] = self.history[self.lead + sample - self.late[j][0]]
            elif len(rows):
                self.command[:, rows] = self.history[self.lead + sample - self.late[j][rows], :, rows].T
            self._step(self._columns[j], self._columns[j + 1].all)

    def _step(self, x: vehicle.Columns, new: Vector) -> None:
        """One step of the classical method, from `x` to `new`."""
        rates, command, load = self.rates, self.command, self.load
        whole, half, third_part = self._parts
        first, second, third, between = self._stages
        k1, k2, k3, y = first.all, second.all, third.all, between.all
        rates(x, command, load, first)
        multiply(k1, half, k1)
        add(x.all, k1, y)
        rates(between, command, load, second)
        multiply(k2, half, k2)
        add(x.all, k2, y)
        rates(between, command, load, third)
        multiply(k3, whole, k3)
        add(x.all, k3, y)
        add(k1, k3, k1)
        add(k1, k2, k1)
        add(k1, k2, k1)
        rates(between, command, load, third)
        multiply(k3, half, k3)
        add(k1, k3, k1)
        multiply(k1, third_part, k1)
        add(x.all, k1, new)

    def _add_energy(self) -> None:
        power = np.maximum(vehicle.drive_power(self.plant, self.states), 0.0)
        total = 0.5 * (power[0] + power[-1])
        for inner in power[1:-1]:
            total += inner
        total *= self.h
        self._energy += total

    def _freeze(self, time: float) -> None:
        """Put rows that have diverged to rest, where they disturb no check; their figures are void."""
        bad = ~(np.abs(self.states[0, 0:3:2]).max(axis=0) <= _LIMIT)
        self.ended[bad & ~self.failed] = time
        self.failed |= bad
        self.states[0][:, bad] = 0.0
        self.speed_loop.reset(bad)
        self.course_loop.reset(bad)
