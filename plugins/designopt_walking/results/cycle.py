"""A solved walk over one full cycle: at the points of its mesh, and at equal steps from right heel strike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.collocation import PhaseSolution, Solution
from designopt.collocation.statement.mesh import lagrange
from designopt_walking.programs.gait import FORWARD, mirror_name
from designopt_walking.results.observables import ORIGINS, Observables, observables
from designopt_walking.walker import Walker

#: Vertical force of a foot, in body weights, from which on it stands.
CONTACT = 0.05
#: Instants of the arrays of a cycle, its end included.
SAMPLES = 201
#: Gauss points of an interval of length 1.
GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)

#: The row of the ground's moments.
CONTACTS = ORIGINS.index("contacts")

Values = Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class WalkPoints:
    """A cycle at n instants: `time` (n,) s, `weights` (n,) s of the quadrature over the cycle, `values` (n,) by
    variable, and what follows from them."""

    time: Floats
    weights: Floats
    values: Values
    observed: Observables

    def integral(self, values: Floats) -> Floats:
        """Over the cycle, of `values` (n, ...)."""
        return np.asarray(np.tensordot(self.weights, values, axes=1))


@dataclass(frozen=True)
class Stance:
    """Time of a foot's strike within the solved cycle, and duration of its stance (s)."""

    strike: float
    duration: float


@dataclass(frozen=True, eq=False)
class SolvedWalk:
    """The `solution` of a walk of a `walker`: of a half cycle that its mirror image continues (`half`), or of a cycle.

    The solution has one phase, with the names of `designopt_walking.system.walking_system`; `durations` (s) is the
    range of its duration, where that is free, and `chosen_parameters` are those of devices that the
    program chose.
    """

    walker: Walker
    solution: Solution
    half: bool
    durations: tuple[float, float] | None = None
    chosen_parameters: tuple[str, ...] = ()

    @property
    def phase(self) -> PhaseSolution:
        """The only phase."""
        return self.solution.phase

    @property
    def step(self) -> float:
        """Distance (m) of the solved part."""
        x = self.phase.values[FORWARD]
        return float(x[-1] - x[0])

    @property
    def stride(self) -> float:
        """Distance (m) of the cycle."""
        return 2.0 * self.step if self.half else self.step

    @property
    def stride_time(self) -> float:
        """Duration (s) of the cycle."""
        return (2.0 if self.half else 1.0) * (self.phase.tf - self.phase.t0)

    @cached_property
    def points(self) -> WalkPoints:
        """The walk at the points of the mesh: what is integrated here is balanced by the program itself."""
        phase = self.phase
        duration = phase.tf - phase.t0
        time, weights = phase.times - phase.t0, duration * phase.mesh.weights
        values = dict(phase.values)
        if self.half:
            time, weights = np.append(time, time + duration), np.append(weights, weights)
            values = {n: np.append(v, w) for (n, v), w in zip(values.items(), self._second(values), strict=True)}
        return WalkPoints(time, weights, values, self._observables(values))

    @cached_property
    def stances(self) -> tuple[Stance, Stance]:
        """The longest stance of the right and of the left foot: its vertical force is above `CONTACT`."""
        force = self.points.observed.ground_force[:, :, 1] / self.walker.weight - CONTACT
        right, left = (_longest_stance(self.points.time, force[:, i]) for i in (0, 1))
        return right, left

    @cached_property
    def samples(self) -> WalkPoints:
        """`SAMPLES` instants at equal steps, from right heel strike on; `weights` are those of the trapezoidal rule."""
        cycle, strike = self.stride_time, self.stances[0].strike
        time = np.linspace(0.0, cycle, SAMPLES)
        later = time + strike > cycle  # continues at the beginning of the solved cycle
        time_in_cycle = time + strike - np.where(later, cycle, 0.0)
        duration = self.phase.tf - self.phase.t0
        second = time_in_cycle > duration if self.half else np.zeros(SAMPLES, bool)
        values = self.phase.at(np.clip((time_in_cycle - np.where(second, duration, 0.0)) / duration, 0.0, 1.0))
        if self.half:
            mirror_image = self._second(values)
            values = {n: np.where(second, w, v) for (n, v), w in zip(values.items(), mirror_image, strict=True)}
        values[FORWARD] = values[FORWARD] + np.where(later, self.stride, 0.0)
        weights = np.full(SAMPLES, cycle / (SAMPLES - 1))
        weights[[0, -1]] *= 0.5
        return WalkPoints(time, weights, values, self._observables(values))

    @cached_property
    def friction_samples(self) -> tuple[Floats, Floats]:
        """Values at the times of `samples`: fore-aft forces (`SAMPLES`, 2) N on the feet, and moments (`SAMPLES`, m) of
        the ground at the coordinates.

        Friction at the feet is stiff (a foot stops sliding within a millisecond), and Hermite-Simpson does not damp
        stiff parts (Hairer and Wanner, Solving ODE II, 1996, section IV.5: Lobatto IIIA, |R(inf)| = 1): after a heel
        strike what depends on sliding is off by d at the nodes and by -d/2 at midpoints. The parabola through the three
        points is free of this part at the two Gauss points, where it is read here; it is linear between them.
        """
        phase, observed = self.phase, self.samples.observed
        scheme, m = phase.mesh.schemes[0], observed.moments.shape[2]
        if scheme.damps_stiff_parts:
            return observed.ground_force[:, :, 0], observed.moments[:, CONTACTS]
        at_points = self.points.observed
        values = np.concatenate([at_points.ground_force[:, :, 0], at_points.moments[:, CONTACTS]], axis=1)
        parts = values.reshape(-1, phase.mesh.slots, 2 + m)  # one, or two halves
        intervals = np.stack([parts[:, :-1:2], parts[:, 1::2], parts[:, 2::2]])
        readings = np.einsum("gp,phik->higk", lagrange(scheme.points, GAUSS), intervals).reshape(-1, 2 + m)
        duration = phase.tf - phase.t0
        within = duration * (phase.mesh.nodes[:-1, None] + phase.mesh.widths[:, None] * GAUSS).ravel()
        times = np.concatenate([within + i * duration for i in range(len(parts))])
        later = self.samples.time + self.stances[0].strike
        columns = [np.interp(later, times, column, period=self.stride_time) for column in readings.T]
        return np.stack(columns[:2], axis=1), np.stack(columns[2:], axis=1)

    def _second(self, values: Values) -> list[Floats]:
        """The values of the second half of a half cycle, in the order of `values`."""
        return [values[mirror_name(name)] + (self.step if name == FORWARD else 0.0) for name in values]

    def _observables(self, values: Values) -> Observables:
        return observables(self.walker, values, self.solution.parameters)


def _longest_stance(time: Floats, force: Floats) -> Stance:
    """The longest stance, over a cycle, of a foot that stands while `force` (n,) is positive; all or none of it where
    it never changes."""
    up, down = (np.flatnonzero((sign * force[:-1] <= 0.0) & (sign * force[1:] > 0.0)) for sign in (1.0, -1.0))
    cycle = float(time[-1] - time[0])
    if not len(up) or not len(down):
        return Stance(0.0, cycle if force[0] > 0.0 else 0.0)

    def crossing(k: int) -> float:
        return float(time[k] + (time[k + 1] - time[k]) * force[k] / (force[k] - force[k + 1]))

    lifts = [crossing(k) for k in down.tolist()]
    stances = [Stance(strike, min((lift - strike) % cycle for lift in lifts)) for strike in map(crossing, up.tolist())]
    return max(stances, key=lambda stance: stance.duration)
