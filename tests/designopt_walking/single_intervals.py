"""Motions that the controls of a solution cause over single intervals, by an integrator of SciPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from designopt_walking.walker import Walker
from scipy.integrate import solve_ivp

from designopt.arrays import Floats
from designopt.collocation import PhaseSolution
from designopt.lazy import casadi as ca


def interval_differences(walker: Walker, phase: PhaseSolution, parameters: Mapping[str, float]) -> Floats:
    """(intervals,) largest difference of a state at the right end of each interval from the motion that starts at its
    left end, with linear controls, relative to 1 + the state's largest absolute value in the phase."""
    state, muscles = walker.state, walker.muscles
    controls = {f"excitation_{name}": muscles.excitation[j] for j, name in enumerate(muscles.names)}
    controls |= walker.drives
    controls |= {v.name: symbol for device in walker.devices for v, symbol in device.controls}
    values = [symbol for device in walker.devices for _, symbol in device.parameters]
    matrix = ca.jacobian(walker.residual, state.ddz)
    bias = ca.substitute(walker.residual, state.ddz, ca.SX.zeros(state.ddz.shape))
    x = ca.vertcat(state.z, state.dz, muscles.activation)
    arguments = [x, ca.vertcat(ca.SX(0, 1), *controls.values()), ca.vertcat(ca.SX(0, 1), *values)]
    terms = ca.Function("terms", arguments, [matrix, bias, ca.densify(ca.vec(muscles.activation_rate))])
    device = [parameters[v.name] for device in walker.devices for v, _ in device.parameters]
    speeds = [f"{name}_speed" for name in walker.coordinates]
    names = [*walker.coordinates, *speeds, *(f"activation_{name}" for name in muscles.names)]
    states = np.stack([phase.values[name] for name in names])[:, phase.mesh.bases]
    inputs = np.stack([phase.values[name] for name in controls])[:, phase.mesh.bases]
    size = 1.0 + np.abs(np.stack([phase.values[name] for name in names])).max(axis=1)
    times, m = phase.times[phase.mesh.bases], len(walker.coordinates)

    def rates(t: float, y: Floats, k: int) -> Floats:
        share = (t - times[k]) / (times[k + 1] - times[k])
        u = inputs[:, k] * (1.0 - share) + inputs[:, k + 1] * share
        M, b, da = (value.full() for value in terms(y, u, device))
        return np.concatenate([y[m : 2 * m], np.linalg.solve(M, -b)[:, 0], da[:, 0]])

    differences = np.empty(len(times) - 1)
    for k in range(len(differences)):
        motion = solve_ivp(rates, times[k : k + 2], states[:, k], "LSODA", args=(k,), rtol=1e-9, atol=1e-10)
        differences[k] = (np.abs(motion.y[:, -1] - states[:, k + 1]) / size).max()
    return differences
