"""Robustness of sampled loops whose controller has more parts than a PID: sections, a Smith predictor, an inner loop.

The closed loop's matrix is that of `Structure.sample`, the statement that is simulated, for unit states: nothing is
linearised by hand. The loop is broken at the command of the plant. A cascade is also broken at the command of its
outer controller, and its inner loop is analysed alone. One loop at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.controllers.nested import leaves, with_structure
from designopt_regulator.controllers.pid import Law, Limits, Memory
from designopt_regulator.controllers.structure import Structure, StructureMemory
from designopt_regulator.frequency.grid import grid, refine_grid
from designopt_regulator.frequency.margins import Margins, margins, no_margins, peaks
from designopt_regulator.frequency.sampled_loop import LoopMeasures, damping_ratio, largest, rates, variance_of
from designopt_regulator.plants.sampled_plant import SampledPlant

Complex = NDArray[np.complex128]

_INTEGRATES = 1e-12  # 1/s: poles of a smaller magnitude are integrators


class ClosedLoop(NamedTuple):
    """The closed loop ``x' = M x + noise e``, ``u = command x + direct e`` of measurement noise e.

    The last `controller_states` states are those of the controller.
    """

    M: Floats
    noise: Floats
    command: Floats
    direct: float
    controller_states: int


@dataclass(frozen=True)
class StructuredLoop:
    """A single `plant`, whose second output is the input of a cascade's inner law, with a `structure` of numbers."""

    plant: SampledPlant
    structure: Structure
    model: SampledPlant | None = None  # of the predictor: with its delay, and without
    inner_plant: SampledPlant | None = None  # of a cascade, by itself

    @property
    def sample_time(self) -> float:
        return self.plant.sample_time

    @cached_property
    def closed(self) -> ClosedLoop:
        free = self.structure._replace(limits=Limits(), inner_limits=Limits())
        rest_memory = free.at_rest(0.0)
        alive = np.array(list(leaves(_alive(free, rest_memory))), dtype=bool)
        s, chains = len(self.plant.R), [out.samples for out in self.plant.outputs]
        controller_states = int(alive.sum())
        size = s + sum(chains) + controller_states
        unit = np.eye(size, size + 1)  # the last column is the noise
        x, late, states = unit[:s], unit[s : size - controller_states], iter(unit[size - controller_states :])
        start = with_structure(rest_memory, (next(states) if lives else np.zeros(size + 1) for lives in alive))
        noise = np.eye(1, size + 1, size)[0]
        ends = np.cumsum(chains)
        inputs = [late[end - 1] + (noise if k == 0 else 0.0) for k, end in enumerate(ends)]
        u, after = free.sample(np, start, np.zeros(size + 1), *inputs)
        rows = [x + self.plant.R @ x + np.outer(self.plant.G, u)]
        for end, out in zip(ends, self.plant.outputs, strict=True):
            rows += [(out.P @ x + out.q * u)[None], late[end - out.samples : end - 1]]
        rows.append(np.stack([np.broadcast_to(v, size + 1) for v in leaves(after)])[alive])
        equations = np.concatenate(rows)
        return ClosedLoop(equations[:, :-1], equations[:, -1], u[:-1], float(u[-1]), controller_states)

    def parts(self, frequency: Floats) -> tuple[Complex, Complex]:
        """K from the measured output to the command, and G of the plant."""
        path, G, _ = self._parts(self._z(frequency))
        return path, G

    def response(self, frequency: Floats) -> Complex:
        """L of the loop broken at the command of the plant."""
        return self._loop(self._z(frequency))

    def outer_response(self, frequency: Floats) -> Complex:
        """L of the outer loop of a cascade, its inner loop closed."""
        return self._outer(self._z(frequency))

    def outer_parts(self, frequency: Floats) -> tuple[Complex, Complex]:
        """K of the outer controller of a cascade, and G from its command, the inner set-point, to the output."""
        z = self._z(frequency)
        K, _ = _controller(self.structure.law, z)
        return K, np.asarray(self._outer(z) / K)

    def inner(self) -> StructuredLoop:
        """The inner loop of a cascade alone."""
        assert self.structure.inner is not None
        assert self.inner_plant is not None
        return StructuredLoop(self.inner_plant, Structure(self.structure.inner))

    def measures(self) -> LoopMeasures:
        """Measures of the loop broken at the command of the plant, arrays (1,)."""
        closed_loop = self.closed
        modes = np.linalg.eigvals(closed_loop.M)[None]
        radius = largest(modes)
        degree = -np.log(np.maximum(radius, np.finfo(float).tiny)) / self.sample_time
        noise_gain, loop_margins = np.full(1, np.inf), no_margins(1)
        if radius[0] < 1.0:
            variance = variance_of(
                closed_loop.M[None].copy(), closed_loop.noise[None], closed_loop.command[None], radius
            )
            noise_gain = np.sqrt(variance + closed_loop.direct**2)
            loop_margins = self._margins(self._loop)
        return LoopMeasures(
            radius, degree, **{f.name: getattr(loop_margins, f.name) for f in fields(Margins)}, noise_gain=noise_gain,
            damping=damping_ratio(modes),
        )  # fmt: skip

    def outer_margins(self) -> Margins:
        """Margins of the outer loop of a stable cascade."""
        return self._margins(self._outer)

    def sensitivity_peaks(self) -> tuple[float, float]:
        """Peaks of |K S| and |G S| of a stable loop."""

        def sizes(_: NDArray[np.intp], w: Floats) -> tuple[Floats, Floats, Floats]:
            path, G, within = self._parts(self._z(w))
            return np.abs(1.0 + within + path * G) ** 2, np.abs(path) ** 2, np.abs(G) ** 2

        ks, gs = peaks(sizes, self.grid, 1)
        return float(ks[0]), float(gs[0])

    @cached_property
    def grid(self) -> Floats:
        """Frequencies (rad/s) up to half the sampling rate, dense where anything of the loop is hardly damped."""
        T = self.sample_time
        z = np.linalg.eigvals(self.closed.M).astype(np.complex128)
        controller = np.linalg.eigvals(
            self.closed.M[len(z) - self.closed.controller_states :, len(z) - self.closed.controller_states :]
        )
        rate = float(rates(z[None]).min()) / T
        loop_poles = np.concatenate([z, controller, _notches(self.structure)])
        poles = np.concatenate([self.plant.poles(), np.log(loop_poles[np.abs(loop_poles) > 0.0]) / T])
        latest = max(out.samples for out in self.plant.outputs)
        poles = poles[(poles.imag > 0.0) & (poles.imag < np.pi / T * (1.0 - 1e-9))]
        frequencies = refine_grid(grid(T, float(latest)), rate, poles)
        on_pole = [np.abs(frequencies - pole.imag) <= 1e-10 * pole.imag for pole in poles]
        return frequencies[~np.any(on_pole, axis=0)] if on_pole else frequencies

    def _margins(self, loop: Callable[[Complex], Complex]) -> Margins:
        def response(_: NDArray[np.intp], w: Floats) -> tuple[Floats, Floats]:
            L = loop(self._z(w))
            return L.real.copy(), L.imag.copy()

        re, im = response(np.empty(0, np.intp), self.grid)
        laws = [law for law in (self.structure.law, self.structure.inner) if law is not None]
        integrates = any(law.ki != 0.0 for law in laws) or bool((np.abs(self.plant.poles()) < _INTEGRATES).any())
        at_rest = np.nan if integrates else float(loop(np.ones(1, complex)).real[0])
        margin_values = margins(response, self.grid, re[None], im[None], at_rest=np.array([at_rest]), real_at_end=True)
        return replace(margin_values, mt=np.maximum(margin_values.mt, 1.0)) if integrates else margin_values

    def _z(self, frequency: Floats) -> Complex:
        return np.asarray(np.exp(1j * np.asarray(frequency, dtype=np.float64) * self.sample_time))

    def _loop(self, z: Complex) -> Complex:
        path, G, within = self._parts(z)
        return np.asarray(within + path * G)

    def _outer(self, z: Complex) -> Complex:
        path, G, within = self._parts(z)
        return np.asarray(path * G / (1.0 + within))

    def _parts(self, z: Complex) -> tuple[Complex, Complex, Complex]:
        """The controller from output to command, the plant to the output, and the inner loop, 0 without one."""
        G, *inner_responses = self.plant.responses(z)
        path, _ = _controller(self.structure.law, z)
        if self.model is not None:
            late, prompt = self.model.responses(z)
            path = path / (1.0 + path * (prompt - late))
        if self.structure.inner is None:
            return path, G, np.zeros_like(G)
        feedback, setpoint = _controller(self.structure.inner, z)
        return setpoint * path, G, feedback * inner_responses[0]


def _controller(law: Law, z: Complex) -> tuple[Complex, Complex]:
    """The transfer from the measurement, and that from the set-point, to the output."""
    slow = law.ki / (z - 1.0) if law.ki != 0.0 else 0.0
    fast = law.kd * (z - 1.0) / (z - law.forget) if law.kd != 0.0 else 0.0
    after = np.ones_like(z)
    for section in law.sections:
        after = after * section.response(z)
    return (law.kp + slow + fast) * after, (law.kp * (1.0 - law.off) + slow) * after


def _alive(structure: Structure, law_memory: StructureMemory) -> StructureMemory:
    """The states that a law uses: unused ones would keep their value, or decay independently."""

    def used_states(law: Law, memory: Memory) -> Memory:
        acts = bool(law.kd != 0.0)
        return Memory(
            acts, bool(law.ki != 0.0), acts, with_structure(memory.sections, iter([True] * len([*leaves(memory)])))
        )

    model = (
        None
        if law_memory.model is None
        else with_structure(law_memory.model, iter([True] * len([*leaves(law_memory.model)])))
    )
    inner = None
    if structure.inner is not None and law_memory.inner is not None:
        inner = used_states(structure.inner, law_memory.inner)
    return StructureMemory(
        used_states(structure.law, law_memory.law), False, model, inner, None if inner is None else False
    )


def _notches(structure: Structure) -> Complex:
    """Zeros of the sections, about which the loop changes quickly."""
    laws: list[Any] = [law for law in (structure.law, structure.inner) if law is not None]
    zeros = [np.roots(section.b).astype(np.complex128) for law in laws for section in law.sections]
    return np.concatenate(zeros) if zeros else np.empty(0, np.complex128)
