"""Robustness of the heading loop with an inner loop of the yaw rate, broken at the difference command.

The open loop is L = F P_psi + k P_r: the heading controller F times the gain on its output, the gain k of the yaw rate,
and the sampled plants from the command to heading and yaw rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from designopt.arrays import Floats
from designopt_regulator.controllers.pid import PID
from designopt_regulator.frequency.grid import grid
from designopt_regulator.frequency.margins import margins, no_margins
from designopt_regulator.frequency.sampled_loop import LoopMeasures, damping_ratio, variance_of
from designopt_regulator.plants.linear import sample_plants

_LOWEST = 1e-4  # rad/s, where the grid of frequencies begins


def cascade_measures(A: Floats, B: Floats, C: Floats, delay: Floats, pid: PID, gain: Floats) -> LoopMeasures:
    """Measures of n loops of plants `A` (n, s, s), `B` (n, s), `C` (n, s) from the difference command to the heading.

    `delay` (n,) in samples; `pid` are the heading controllers, kp times the gain on their output; `gain` (n,) is that
    of the yaw rate (s). A loop with gain 0 has no inner loop.
    """
    T = pid.sample_time
    rate = (C[:, None, :] @ A)[:, 0]  # of the heading: C x' = C A x, without direct feedthrough
    R, B0, B1, whole_samples = sample_plants(A, B, delay, T)
    n, s = B0.shape
    loop_margins = no_margins(n)
    radius, noise_gain, damping = np.empty(n), np.full(n, np.inf), np.empty(n)
    for d in np.unique(whole_samples):
        rows = np.flatnonzero(whole_samples == d)
        M, noise, command, direct = _close_loops(
            R[rows], B0[rows], B1[rows], C[rows], rate[rows], int(d), pid, gain, rows
        )
        modes = np.linalg.eigvals(M)
        radius[rows], damping[rows] = np.abs(modes).max(axis=1), damping_ratio(modes)
        stable_rows = np.flatnonzero(radius[rows] < 1.0)
        if len(stable_rows):
            variance = variance_of(M[stable_rows], noise[stable_rows], command[stable_rows], radius[rows[stable_rows]])
            noise_gain[rows[stable_rows]] = np.sqrt(direct[stable_rows] ** 2 + variance)
    stable = np.flatnonzero(radius < 1.0)

    def response(each: NDArray[np.intp], w: Floats) -> tuple[Floats, Floats]:
        i = stable[each]
        z = np.exp(1j * w * T)
        held_input = (B0[i] * z[:, None] + B1[i]) * (z ** -(whole_samples[i] + 1.0))[:, None]
        x = np.linalg.solve((z - 1.0)[:, None, None] * np.eye(s) - R[i], held_input[:, :, None])[..., 0]
        slow, fast = T / pid.ti[i] / (z - 1.0), pid.td[i] * (z - 1.0) / ((pid.tf[i] + T) * z - pid.tf[i])
        L = pid.kp[i] * (1.0 + slow + fast) * (C[i] * x).sum(axis=1) + gain[i] * (rate[i] * x).sum(axis=1)
        return L.real, L.imag

    for late in np.unique(delay[stable]):
        rows = np.flatnonzero(delay[stable] == late)
        w = grid(T, float(late), _LOWEST)
        re, im = (part.reshape(len(rows), len(w)) for part in response(np.repeat(rows, len(w)), np.tile(w, len(rows))))
        unknown = np.full(len(rows), np.nan)
        margin_values = margins(
            lambda each, w, rows=rows: response(rows[each], w),  # type: ignore[misc]
            w, re, im, at_rest=unknown, real_at_end=True,
        )  # fmt: skip
        for name, values in vars(loop_margins).items():
            values[stable[rows]] = getattr(margin_values, name)
    degree = -np.log(np.maximum(radius, np.finfo(float).tiny)) / T
    return LoopMeasures(radius, degree, **vars(loop_margins), noise_gain=noise_gain, damping=damping)


def _close_loops(
    R: Floats, B0: Floats, B1: Floats, C: Floats, rate: Floats, d: int, pid: PID, gain: Floats, rows: NDArray[np.intp]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Closed loops of equal delay: transition, effect of noise of the heading, and the command, of states and of noise.

    States: those of the plant, d + 1 past commands, the integral part, the derivative part, the last heading.
    """
    n, s = B0.shape
    T, kp, ti, td, tf = pid.sample_time, *(v[rows] for v in (pid.kp, pid.ti, pid.td, pid.tf))
    forget, kd = tf / (tf + T), kp * td / (tf + T)
    chain, integral, derivative, last = s, s + d + 1, s + d + 2, s + d + 3
    command = np.zeros((n, s + d + 4))
    command[:, :s] = -(kp + kd)[:, None] * C - gain[rows][:, None] * rate
    command[:, integral], command[:, derivative], command[:, last] = 1.0, forget, kd
    direct = -(kp + kd)

    M = np.zeros((n, s + d + 4, s + d + 4))
    noise = np.zeros((n, s + d + 4))
    M[:, :s, :s] = R + np.eye(s)
    if d == 0:
        M[:, :s] += B0[:, :, None] * command[:, None, :]
        noise[:, :s] = B0 * direct[:, None]
    else:
        M[:, :s, chain + d - 1] += B0
    M[:, :s, chain + d] += B1
    M[:, chain], noise[:, chain] = command, direct
    for k in range(1, d + 1):
        M[:, chain + k, chain + k - 1] = 1.0
    M[:, integral, integral] = np.isfinite(ti)
    M[:, integral, :s], noise[:, integral] = -(T * kp / ti)[:, None] * C, -T * kp / ti
    M[:, derivative, derivative], M[:, derivative, last] = forget, kd
    M[:, derivative, :s], noise[:, derivative] = -kd[:, None] * C, -kd
    M[:, last, :s], noise[:, last] = C, 1.0
    return M, noise, command, direct
