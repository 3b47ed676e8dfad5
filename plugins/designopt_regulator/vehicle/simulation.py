"""The closed loops of speed and heading in time: many vehicles side by side, each with its own controllers.

Classical Runge-Kutta of order 4 with a fixed step that divides the sample time. Commands are held over a sample and
delayed by whole steps, so they change only between steps. Rows are independent: results are the same to the bit in any
grouping of rows. The computation is stated in `step` and `vehicle`; it runs as machine code, or with NumPy without a C
compiler: the two differ in the last digits only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt.plugin import Quantity
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.pid import PID, Law, Memory
from designopt_regulator.vehicle import equations
from designopt_regulator.vehicle.compiled_step import CompiledLoops, compile_step
from designopt_regulator.vehicle.equations import State
from designopt_regulator.vehicle.quality import SETTLED, Quality, Times, quality, trapezoids
from designopt_regulator.vehicle.slip import SlippingMotion, trim_slip
from designopt_regulator.vehicle.step import Gain, Loops, MeasuredSignals, References, runge_kutta, sample

Loop = Literal["speed", "course"]

_LIMIT = 1e3  # speed (m/s) or heading (rad) beyond which a row has diverged
_ROWS = 32  # simulated and assessed together by machine code: their records stay in the processor's cache
_NUMPY_ROWS = 200  # the same for NumPy, whose calls cost more than their arithmetic


@dataclass(frozen=True)
class Manoeuvre:
    """The manoeuvre of n vehicles: arrays (n,) and, common to all, times (s), whole numbers of samples.

    They drive straight in trim at `speed`. At `step_at` the references step to `target_speed` (m/s) and to the heading
    `turn` (rad); from `load_at` on the moment `moment` (N m) and the `grade`, the sine of the slope, act.
    """

    speed: Floats
    target_speed: Floats
    turn: Floats
    moment: Floats
    grade: Floats
    step_at: float
    load_at: float
    horizon: float
    band: float = SETTLED  # share of the step within which a loop is settled
    feed: Floats | None = None  # fed forward to the speed's command from `load_at` on
    noise: Floats | None = None  # (n, 2, samples), of the measured speed (m/s) and heading (rad)


@dataclass(frozen=True)
class Schedule:
    """A gain of the heading controller that falls with speed: kp times reference_speed / max(v, min_speed)."""

    reference_speed: Annotated[float, Quantity("m/s", "at which the gain is kp", gt=0)]
    min_speed: Annotated[float, Quantity("m/s", "below which the gain grows no further", gt=0)] = 0.5

    def factor(self, speed: Floats) -> Floats:
        """Factor on kp at a speed (m/s)."""
        return np.asarray(self.reference_speed / np.maximum(speed, self.min_speed))


@dataclass(frozen=True)
class RateLoop:
    """Inner loops of the yaw rate, arrays (n,): the difference command is gain (max_rate w - r).

    w is the heading controller's output, r the yaw rate (rad/s). A row with the gain 0 has no such loop.
    """

    gain: Floats  # s/rad
    max_rate: Floats  # rad/s, which the heading controller asks for at full output

    @property
    def forward(self) -> Floats:
        """The factor from the output of the heading controller to the difference command."""
        return np.where(self.gain > 0.0, self.gain * self.max_rate, 1.0)


@dataclass(frozen=True)
class Trace:
    """Samples of n runs: `time` (k,), the others (k, n); SI units. The last row repeats the last commands."""

    time: Floats
    speed: Floats
    course: Floats
    yaw_rate: Floats
    speed_command: Floats
    course_command: Floats
    speed_reference: Floats
    course_reference: Floats


@dataclass(frozen=True)
class SimulatedRuns:
    """Results of n runs. Rows with `failed` True diverged at `divergence_time` (s): their outputs have no meaning.

    `quality` contains the watched loops, `energy` (n,) is the work of the tracks (J), `sharp` (n,) the share of samples
    with a radius below half the distance of the tracks, for which Nikitin's law is extrapolated, `final` (5, n) are the
    last states.
    """

    quality: Mapping[Loop, Quality]
    energy: Floats
    sharp: Floats
    final: Floats
    failed: NDArray[np.bool_]
    divergence_time: Floats
    trace: Trace | None


def whole_number(time: float, unit: float) -> int | None:
    """The quotient of `time` and `unit`; None if it is not a whole number."""
    count = round(time / unit)
    return count if abs(count * unit - time) <= 1e-9 * max(unit, abs(time)) else None


def simulate(
    plant: equations.VehicleNumbers,
    speed_regulator: PID,
    course_regulator: PID,
    manoeuvre: Manoeuvre,
    delay_steps: NDArray[np.int64],
    *,
    substeps: int = 5,
    schedule: Schedule | None = None,
    rate_loop: RateLoop | None = None,
    quality_loops: Collection[Loop] = ("speed", "course"),
    trace: bool = False,
    machine_code: bool = True,
) -> SimulatedRuns:
    """Run n vehicles through a manoeuvre; `delay_steps` (n,) is their delay in integration steps.

    Both controllers have the same sample time, divided into `substeps` integration steps. All arrays have n rows.
    `quality_loops` are the loops whose quality is computed. Without `machine_code` NumPy computes the runs.
    """
    runs = _Runs(plant, speed_regulator, course_regulator, manoeuvre, delay_steps, rate_loop)
    parts, order = [], []
    with np.errstate(all="ignore"):  # diverged rows overflow; `failed` marks them
        for same_motion in (np.flatnonzero(plant.shear_modulus == 0.0), np.flatnonzero(plant.shear_modulus > 0.0)):
            if not len(same_motion):
                continue
            setup = _setup(_rows(runs, same_motion, len(plant)), substeps, schedule)
            code = compile_step(setup.loops, len(setup.start)) if machine_code else None
            part_size = _ROWS if code is not None else _NUMPY_ROWS
            for first in range(0, len(same_motion), part_size):
                part = setup.rows(slice(first, first + part_size))
                record = _by_numpy(part) if code is None else _by_machine(part, code)
                parts.append(_assess(part, record, quality_loops, trace))
            order.append(same_motion)
    return _join(parts, np.argsort(np.concatenate(order)))


@dataclass(frozen=True, eq=False)
class _Runs:
    """What differs from run to run; arrays (n,)."""

    plant: equations.VehicleNumbers
    speed_regulator: PID
    course_regulator: PID
    manoeuvre: Manoeuvre
    delay_steps: NDArray[np.int64]
    rate_loop: RateLoop | None


def _rows(table: Any, rows: NDArray[np.intp], n: int) -> Any:
    """Some of the n rows of arrays in a dataclass, or of an array."""
    if isinstance(table, np.ndarray):
        return table[rows] if len(table) == n else table
    if not is_dataclass(table) or isinstance(table, type):
        return table
    return replace(table, **{f.name: _rows(getattr(table, f.name), rows, n) for f in fields(table)})


class _Setup(NamedTuple):
    """Initial values of n runs; arrays (n,)."""

    loops: Loops
    start: State
    memory: tuple[Memory, Memory]
    trim: tuple[Floats, Floats]
    before: tuple[Floats, Floats]
    after: tuple[Floats, Floats]
    load: tuple[Floats, Floats, Floats]
    noise: Floats | None
    delay: NDArray[np.int64]
    times: Times
    samples: int

    def rows(self, selection: slice) -> _Setup:
        """Some of the rows."""
        parts = {name: part for name, part in self._asdict().items() if name not in ("times", "samples")}
        return self._replace(
            **{name: with_structure(part, (a[selection] for a in leaves(part))) for name, part in parts.items()}
        )


class _Record(NamedTuple):
    """Record of n runs: signals at the steps (n, steps + 1), and the commands (n, samples)."""

    speed: Floats
    yaw_rate: Floats
    course: Floats
    power: Floats
    commands: tuple[Floats, Floats, Floats, Floats]  # speed, before clipping, heading, before clipping
    final: Floats  # (5, n)
    divergence_sample: NDArray[np.int64]  # the sample at whose end a row had diverged, or 0


def _setup(runs: _Runs, substeps: int, schedule: Schedule | None) -> _Setup:
    plant, m, T, n = runs.plant, runs.manoeuvre, runs.speed_regulator.sample_time, len(runs.plant)
    zeros = np.zeros(n)
    rate_loop = runs.rate_loop or RateLoop(zeros, zeros)
    trim, difference = equations.trim(plant, m.speed), equations.trim_difference(plant, m.speed)
    gain = None if schedule is None else Gain(np.full(n, schedule.reference_speed), np.full(n, schedule.min_speed))
    forces = [plant.max_force * (trim + side * difference) for side in (-1.0, 1.0)]
    start: State = (m.speed, zeros, zeros, *forces)
    if slips := bool(plant.shear_modulus.any()):
        start += tuple(m.speed / (1.0 - slip) for slip in trim_slip(plant, *forces))
    loops = Loops(
        motion=SlippingMotion.of_vehicle(plant) if slips else equations.VehicleDynamics.of_vehicle(plant),
        speed=Law.with_settings(runs.speed_regulator, m.speed),
        course=Law.with_settings(runs.course_regulator, zeros),
        schedule=gain,
        forward=rate_loop.forward,
        rate_gain=rate_loop.gain,
        max_force=plant.max_force,
    )
    return _Setup(
        loops=loops,
        start=start,
        memory=(Memory.at_rest(m.speed, trim), Memory.at_rest(zeros, difference / rate_loop.forward)),
        trim=(trim, difference),
        before=(m.speed, zeros),
        after=(m.target_speed, m.turn),
        load=(-plant.weight * m.grade, m.moment, zeros if m.feed is None else m.feed),
        noise=m.noise,
        delay=np.asarray(runs.delay_steps),
        times=Times(m.step_at, m.load_at, T, substeps, m.band),
        samples=round(m.horizon / T),
    )


def _by_machine(setup: _Setup, compiled_loops: CompiledLoops) -> _Record:
    """The runs by machine code."""
    n, times, samples = len(setup.delay), setup.times, setup.samples
    nodes = samples * times.substeps + 1
    motion, commands, final = np.zeros((n, 4, nodes)), np.zeros((n, 4, samples)), np.zeros((n, len(setup.start)))
    divergence_sample = np.zeros(n, np.dtype("l"))
    numbers, start, memory, before, after, load = (
        np.stack(list(leaves(part)), axis=1)
        for part in (setup.loops, setup.start, setup.memory, setup.before, setup.after, setup.load)
    )
    noise = None if setup.noise is None else np.ascontiguousarray(setup.noise)
    compiled_loops.run(
        {
            "rows": n,
            "samples": samples,
            "substeps": times.substeps,
            "step_at": round(times.step_at / times.sample_time),
            "load_at": round(times.load_at / times.sample_time),
            "h": times.sample_time / times.substeps,
            "bound": _LIMIT,
        },
        [numbers, start, memory, before, after, load, setup.delay.astype("l"), noise],
        [motion, commands, final, divergence_sample],
    )
    final[divergence_sample > 0] = 0.0
    tracks = (commands[:, 0], commands[:, 1], commands[:, 2], commands[:, 3])
    return _Record(motion[:, 0], motion[:, 1], motion[:, 2], motion[:, 3], tracks, final.T[:5], divergence_sample)


def _by_numpy(setup: _Setup) -> _Record:
    """The runs by NumPy, all rows side by side."""
    loops, motion, times, samples = setup.loops, setup.loops.motion, setup.times, setup.samples
    n, substeps, h = len(setup.delay), times.substeps, times.sample_time / times.substeps
    step_at, load_at = (round(at / times.sample_time) for at in (times.step_at, times.load_at))
    record, commands = np.zeros((4, samples * substeps + 1, n)), np.zeros((4, samples, n))
    forces = np.empty((samples + 1, 2, n))
    x, memory, row_numbers, zeros = setup.start, setup.memory, np.arange(n), np.zeros(n)
    forces[0] = x[3:5]
    divergence_sample = np.zeros(n, np.int64)
    for k in range(samples):
        reference = setup.after if k >= step_at else setup.before
        force, moment, feed = setup.load if k >= load_at else (zeros, zeros, zeros)
        measurement = MeasuredSignals(*x[:3])
        if setup.noise is not None:
            measurement = measurement._replace(speed=x[0] + setup.noise[:, 0, k], course=x[2] + setup.noise[:, 1, k])
        outputs, memory = sample(np, loops, memory, measurement, References(*reference, feed))
        commands[:, k] = outputs[:4]
        forces[k + 1] = outputs[4:]
        for node in range(k * substeps, (k + 1) * substeps):
            sent_at = np.where(node < setup.delay, 0, 1 + (node - setup.delay) // substeps)
            delayed_forces = forces[sent_at, :, row_numbers].T
            record[:, node] = *x[:3], motion.drive_power(np, x)
            x = runge_kutta(partial(motion.rates, np, command=tuple(delayed_forces), load=(force, moment)), x, h)
        has_diverged = ~((np.abs(x[0]) <= _LIMIT) & (np.abs(x[2]) <= _LIMIT) & np.isfinite(x).all(axis=0))
        if has_diverged.any():  # set to 0, which triggers no further check; their figures are void
            divergence_sample[has_diverged & (divergence_sample == 0)] = k + 1
            x = tuple(np.where(has_diverged, 0.0, a) for a in x)
            memory = with_structure(memory, (np.where(has_diverged, 0.0, a) for a in leaves(memory)))
    record[:, -1] = *x[:3], motion.drive_power(np, x)
    speed, yaw_rate, course, power = np.ascontiguousarray(record.transpose(0, 2, 1))
    u, u_raw, w, w_raw = np.ascontiguousarray(commands.transpose(0, 2, 1))
    final = np.array(x[:5])
    final[:, divergence_sample > 0] = 0.0
    return _Record(speed, yaw_rate, course, power, (u, u_raw, w, w_raw), final, divergence_sample)


def _assess(setup: _Setup, record: _Record, quality_loops: Collection[Loop], trace: bool) -> SimulatedRuns:
    """Performance of the runs."""
    times, arm = setup.times, setup.loops.motion.arm
    y = {"speed": record.speed, "course": record.course}
    speed, speed_raw, course, course_raw = record.commands
    commands = {"speed": (speed, speed_raw), "course": (course, course_raw)}
    quality_of: dict[Loop, Quality] = {}
    for i, loop in enumerate(("speed", "course")):
        if loop in quality_loops:
            quality_of[loop] = quality(  # type: ignore[index]
                y[loop], setup.before[i], setup.after[i], *commands[loop], setup.trim[i], times, angle=loop == "course"
            )
    at = slice(None, None, times.substeps)
    signals = MeasuredSignals(record.speed[:, at], record.yaw_rate[:, at], record.course[:, at])
    sharp = arm[:, None] * np.abs(signals.yaw_rate[:, :-1]) > np.abs(signals.speed[:, :-1])
    return SimulatedRuns(
        quality=quality_of,
        energy=trapezoids(np.maximum(record.power, 0.0), times.sample_time / times.substeps),
        sharp=sharp.mean(axis=1),
        final=record.final,
        failed=record.divergence_sample > 0,
        divergence_time=np.where(record.divergence_sample > 0, record.divergence_sample, setup.samples)
        * times.sample_time,
        trace=_trace(setup, signals, record) if trace else None,
    )


def _trace(setup: _Setup, signals: MeasuredSignals, record: _Record) -> Trace:
    samples, step_at = setup.samples, round(setup.times.step_at / setup.times.sample_time)
    after_step = (np.arange(samples + 1) >= min(step_at, samples - 1))[:, None]
    references = [np.where(after_step, after, before) for before, after in zip(setup.before, setup.after, strict=True)]
    last = [*range(samples), samples - 1]
    return Trace(
        setup.times.sample_time * np.arange(samples + 1.0),
        signals.speed.T,
        signals.course.T,
        signals.yaw_rate.T,
        record.commands[0].T[last],
        record.commands[2].T[last],
        *references,
    )


def _join(parts: list[SimulatedRuns], order: NDArray[np.intp]) -> SimulatedRuns:
    """The runs of all parts; row i is row ``order[i]`` of them one after another."""

    def together(part: list[Any], name: str) -> Floats:
        return np.concatenate([getattr(p, name) for p in part], axis=-1)[..., order]

    columns: dict[str, Any] = {name: together(parts, name) for name in _PER_ROW}
    traces = [p.trace for p in parts if p.trace is not None]
    return SimulatedRuns(
        quality={
            loop: Quality(**{name: together([p.quality[loop] for p in parts], name) for name in vars(q)})
            for loop, q in parts[0].quality.items()
        },
        trace=Trace(traces[0].time, **{name: together(traces, name) for name in _PER_SAMPLE}) if traces else None,
        **columns,
    )


_PER_ROW = ("energy", "sharp", "final", "failed", "divergence_time")
_PER_SAMPLE = ("speed", "course", "yaw_rate", "speed_command", "course_command", "speed_reference", "course_reference")
