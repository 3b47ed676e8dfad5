"""Indices of the variables of a program: phases in the order of time, then parameters, times and integrals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from designopt.arrays import Floats, Indices
from designopt.collocation.statement.problem import TrajectoryProblem
from designopt.collocation.transcription.mesh.mesh import Mesh
from designopt.collocation.transcription.mesh.points import CollocationPoint
from designopt.collocation.transcription.mesh.samples import SampleEntries, SamplePoint, sample_entries


@dataclass(frozen=True, eq=False)
class PhaseLayout:
    """Indices of one phase's variables and numbers.

    `states` (slots, nx); `point` (points, nw) of all variables of each collocation point; `theta` of the phase's
    parameters and free times; `t0` and `tf` of the times, -1 for fixed ones. Its parameters of the program's functions
    are those from `constants` to `signals`, the constants of all points, and from there to `numbers_end`, the signals
    point by point.
    """

    mesh: Mesh
    states: Indices
    point: Indices
    theta: Indices
    t0: int
    tf: int
    constants: int
    signals: int
    numbers_end: int

    def at_points(self, x: Floats) -> Floats:
        """The entries (points, nw) of the program's variables `x` at all collocation points, as a view: their indices
        follow each other."""
        return x[int(self.point[0, 0]) : int(self.point[-1, -1]) + 1].reshape(self.point.shape)

    def at_ends(self, x: Floats) -> tuple[Floats, Floats]:
        """All variables of a point (nw,) at both ends, of the program's variables `x`.

        Without a point at the left end, variables other than states are NaN there.
        """
        first = x[self.point[0]] if self.mesh.first == 0 else np.full(self.point.shape[1], np.nan)
        first[: self.states.shape[1]] = x[self.states[0]]
        return first, x[self.point[-1]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Indices of all variables of a program: `size` of them. `parameters` by name, `integrals` by phase and number.

    `samples` are the places of all samples; `numbers` counts the parameters of the program's functions.
    """

    phases: tuple[PhaseLayout, ...]
    parameters: Mapping[str, int]
    integrals: Mapping[tuple[int, int], int]
    size: int
    samples: tuple[SampleEntries, ...]
    numbers: int


def layout(
    problem: TrajectoryProblem,
    points: Sequence[CollocationPoint],
    meshes: Sequence[Mesh],
    integral_keys: Sequence[tuple[int, int]],
    samples: Sequence[SamplePoint] = (),
) -> Layout:
    """Number the variables; `integral_keys` are the integrals (phase, number) that are variables of the program."""
    offset = 0
    numbered = []
    for point, mesh in zip(points, meshes, strict=True):
        nw = len(point.names)
        sizes = np.full(mesh.slots, nw)
        sizes[: mesh.first] = point.nx
        starts = offset + np.concatenate([[0], np.cumsum(sizes)[:-1]])
        states = starts[:, None] + np.arange(point.nx)
        numbered.append((states, starts[mesh.first :, None] + np.arange(nw)))
        offset += int(sizes.sum())
    parameters = {v.name: offset + i for i, v in enumerate(problem.variables)}
    offset += len(parameters)
    times: list[tuple[int, int]] = []
    for phase, point in zip(problem.phases, points, strict=True):
        t0 = tf = -1
        if phase.t0 is None:
            t0 = times[-1][1]
        elif point.phase.free_times[0]:
            t0, offset = offset, offset + 1
        if point.phase.free_times[1]:
            tf, offset = offset, offset + 1
        times.append((t0, tf))
    integrals = {key: offset + i for i, key in enumerate(integral_keys)}
    phases: list[PhaseLayout] = []
    for (states, at_points), point, mesh, (t0, tf) in zip(numbered, points, meshes, times, strict=True):
        free = [t for t, is_free in zip((t0, tf), point.phase.free_times, strict=True) if is_free]
        theta = np.array([*(parameters[n] for n in point.parameter_names), *free], np.int64)
        begin = phases[-1].numbers_end if phases else 0
        signals = begin + point.constants.numel()
        end = signals + point.signals.numel() * len(at_points)
        phases.append(PhaseLayout(mesh, states, at_points, theta, t0, tf, begin, signals, end))
    sample_places: list[SampleEntries] = []
    numbers = phases[-1].numbers_end
    for sample in samples:
        phase_layout = phases[sample.phase]
        phase = problem.phases[sample.phase]
        sample_places.append(
            sample_entries(
                sample, phase, phase_layout.mesh, phase_layout.states, phase_layout.point, phase_layout.theta, numbers
            )
        )
        numbers = sample_places[-1].end
    return Layout(tuple(phases), parameters, integrals, offset + len(integrals), tuple(sample_places), numbers)
