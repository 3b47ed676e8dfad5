"""Simulation of a declared model, in pieces between breaks: figures, arrays and derivatives of the figures."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from designopt.arrays import Floats
from designopt.dynamics import SimulationStatus, Simulator, System, Trajectory
from designopt.dynamics.simulation.side_by_side import NextRun, OverRuns, run_alone
from designopt.lazy import scipy
from designopt.models.equations import SAMPLED, Equations
from designopt.models.quantities import Event, Final, Integral, Output, Parameter, Peak, Series, State
from designopt.plugin import Diverged

#: First step after a break, as a share of the shortest interval between two breaks.
_FIRST_STEP = 0.01
#: Absolute tolerance over relative tolerance, for a state of size 1.
_ABSOLUTE = 1e-3


@dataclass(frozen=True, eq=False)
class SimulatedMotion:
    """A simulated motion: times `t` (n,), states and integrals `x` (n, nx), sampled outputs `y` (n, ny)."""

    t: Floats
    x: Floats
    y: Floats


class Simulation:
    """Simulates the model of `equations` with relative tolerance `rtol` at `samples` equidistant times and at all
    breaks."""

    def __init__(self, equations: Equations, rtol: float, samples: int) -> None:
        self.equations, self.rtol, self.samples = equations, rtol, samples
        self.states = equations.names(State, Integral)
        self.sampled_names = [n for kind in SAMPLED for n in equations.names(kind)]
        self.parameters = equations.names(Parameter)

    @cached_property
    def simulator(self) -> Simulator:
        """Simulator of the states and integrals."""
        return self._simulator_of(self.equations.simulation_system())

    @cached_property
    def sensitive(self) -> Simulator:
        """Simulator of their derivatives with respect to the parameters, too."""
        return self._simulator_of(self.equations.sensitive())

    def _simulator_of(self, system: System) -> Simulator:
        sizes = [self.equations.quantities[n].size for n in self.states]  # type: ignore[attr-defined]
        all_sizes = np.tile(sizes, len(system.states) // len(sizes))
        return Simulator(system, rtol=self.rtol, atol=_ABSOLUTE * self.rtol * all_sizes)

    def first(self, numbers: Mapping[str, float]) -> Floats:
        """The states and integrals (nx,) at time 0."""
        initial = [getattr(self.equations.quantities[n], "initial", 0.0) for n in self.states]
        return np.array([numbers[i] if isinstance(i, str) else i for i in initial], dtype=np.float64)

    def evaluation(
        self, numbers: Mapping[str, float], duration: float, breaks: Sequence[float], arrays: Set[str]
    ) -> OverRuns[tuple[dict[str, float], dict[str, Floats]]]:
        """All figures by name, and the `arrays`; yields the runs between the breaks. Raises `Diverged`."""
        motion = yield from self.runs(self.simulator, self.first(numbers), numbers, duration, breaks)
        return self.figures(motion, numbers), {name: self.array(motion, name) for name in arrays}

    def runs(
        self, simulator: Simulator, x: Floats, numbers: Mapping[str, float], duration: float, breaks: Sequence[float]
    ) -> OverRuns[SimulatedMotion]:
        """The motion from the states and integrals `x` (nx,)."""
        edges = [0.0, *(t for t in breaks if 0.0 < t < duration), duration]
        gaps = np.diff(sorted(breaks))
        step = _FIRST_STEP * float(gaps.min()) if len(gaps) and gaps.min() > 0.0 else None
        grid = np.linspace(0.0, duration, self.samples)
        runs = []
        for begin, end in itertools.pairwise(edges):
            times = np.array([begin, *grid[(grid > begin) & (grid < end)], end])
            runs.append((yield from self._piece(simulator, x, times, numbers, step)))
            x = runs[-1].x[-1]
        return SimulatedMotion(*(
            np.concatenate([getattr(run, name)[bool(i) :] for i, run in enumerate(runs)]) for name in ("t", "x", "y")
        ))  # fmt: skip

    def _piece(
        self, simulator: Simulator, x: Floats, times: Floats, numbers: Mapping[str, float], step: float | None
    ) -> OverRuns[Trajectory]:
        system = simulator.system
        p, q = ({v.name: numbers[v.name] for v in table} for table in (system.parameters, system.data))
        first = None if step is None else min(step, float(times[-1] - times[0]))
        run = yield NextRun(simulator, {"x0": x, "times": times, "p": p, "q": q, "first_step": first})
        if run.status is not SimulationStatus.DONE:
            raise Diverged(run.message, reason=run.guard or run.status.name.lower())
        return run

    # ------------------------------------------------------------------------------------------------------- figures

    def figures(self, motion: SimulatedMotion, numbers: Mapping[str, float]) -> dict[str, float]:
        """All figures of a motion by name. Raises `Diverged` if an event without `never` does not happen."""
        figure_values = {}
        for name, quantity in self.equations.quantities.items():
            if isinstance(quantity, Integral):
                figure_values[name] = float(motion.x[-1, self.states.index(name)])
            elif isinstance(quantity, Peak):
                y = motion.y[:, self.sampled_names.index(name)]
                figure_values[name] = float(_signed_value(quantity, y)[_peak_row(quantity, y)])
            elif isinstance(quantity, Final):
                figure_values[name] = float(motion.y[-1, self.sampled_names.index(name)])
            elif isinstance(quantity, Event):
                figure_values[name] = self._event(name, quantity, self.simulator, motion, numbers)[0]
        return figure_values

    def array(self, motion: SimulatedMotion, name: str) -> Floats:
        """The array `name` of a motion (n,)."""
        if name == "time":
            return motion.t
        if isinstance(self.equations.quantities[name], Series):
            return motion.y[:, self.sampled_names.index(name)]
        return motion.x[:, self.states.index(name)]

    def _event(
        self, name: str, event: Event, simulator: Simulator, motion: SimulatedMotion, numbers: Mapping[str, float]
    ) -> tuple[float, Floats | None]:
        """The time (s) of an event, and the outputs (ny,) there; None if it does not happen."""
        column = self.sampled_names.index(name)
        rows = np.flatnonzero(~(motion.y[:, column] > 0.0))
        if not len(rows):
            if event.never is None:
                raise Diverged(f"{name} does not occur within {motion.t[-1]:g} s", reason=name)
            return float(numbers[event.never] if isinstance(event.never, str) else event.never), None
        after = int(rows[0])
        if after == 0 or motion.y[after, column] == 0.0:
            return float(motion.t[after]), motion.y[after]
        begin, x = motion.t[after - 1], motion.x[after - 1]

        def outputs(t: float) -> Floats:
            times = np.array([begin, t])
            output_row: Floats = (
                motion.y[after - 1] if t == begin else run_alone(self._piece(simulator, x, times, numbers, None)).y[-1]
            )
            return output_row

        at = float(
            scipy.optimize.brentq(
                lambda t: outputs(t)[column], begin, motion.t[after], xtol=1e-12 * motion.t[-1], rtol=1e-14
            )
        )
        return at, outputs(at)

    # --------------------------------------------------------------------------------------------------- derivatives

    def gradient(
        self, numbers: Mapping[str, float], duration: float, breaks: Sequence[float]
    ) -> dict[str, dict[str, float]]:
        """Derivatives of all figures with respect to all parameters, by sensitivity equations. Raises `Diverged`."""
        scale = {n: abs(numbers[n]) or 1.0 for n in self.parameters}
        all_numbers = {**numbers, **{f"scale_{n}": s for n, s in scale.items()}}
        initial = [getattr(self.equations.quantities[n], "initial", 0.0) for n in self.states]
        S = [[scale[n] if i == n else 0.0 for i in initial] for n in self.parameters]
        x = np.concatenate([self.first(numbers), np.array(S).ravel()])
        motion = run_alone(self.runs(self.sensitive, x, all_numbers, duration, breaks))
        names, nx = [v.name for v in self.sensitive.system.outputs], len(self.states)
        figure_slopes: dict[str, dict[str, float]] = {}
        for name, quantity in self.equations.quantities.items():
            if not isinstance(quantity, Output):
                continue
            columns = [] if isinstance(quantity, Integral) else [names.index(f"{name}_by_{n}") for n in self.parameters]
            if isinstance(quantity, Integral):
                i = self.states.index(name)
                slopes = motion.x[-1, [nx * (j + 1) + i for j in range(len(self.parameters))]]
            elif isinstance(quantity, Peak):
                y = motion.y[:, names.index(name)]
                peak_row = _peak_row(quantity, y)
                sign = -1.0 if quantity.extremum == "size" and y[peak_row] < 0.0 else 1.0
                slopes = sign * motion.y[peak_row, columns]
            elif isinstance(quantity, Final):
                slopes = motion.y[-1, columns]
            else:
                assert isinstance(quantity, Event)
                _, slopes_at_event = self._event(name, quantity, self.sensitive, motion, all_numbers)
                zero = np.zeros(len(self.parameters))
                slopes = (
                    zero
                    if slopes_at_event is None
                    else -slopes_at_event[columns] / slopes_at_event[names.index(f"{name}_by_time")]
                )
            figure_slopes[name] = {n: float(v / scale[n]) for n, v in zip(self.parameters, slopes, strict=True)}
        return figure_slopes


def _signed_value(peak: Peak, y: Floats) -> Floats:
    return np.abs(y) if peak.extremum == "size" else y


def _peak_row(peak: Peak, y: Floats) -> int:
    """Index of the sample at which a peak occurs."""
    values = _signed_value(peak, y)
    return int(np.argmin(values) if peak.extremum == "smallest" else np.argmax(values))
