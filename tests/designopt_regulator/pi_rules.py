"""Settings of continuous PI controllers by rule and by optimisation, for a given robustness.

Starting points for studies, and what their fronts are compared with.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from designopt_regulator.linear_loop.continuous import Loop
from designopt_regulator.linear_loop.step_response import step_responses
from designopt_regulator.plants.linear import Plant


def simc_pi(gain: float, time_constant: float, delay: float, tau_c: float | None = None) -> tuple[float, float]:
    """K_p and T_i (s) for ``gain e^(-delay s) / (time_constant s + 1)`` (Skogestad 2003).

    `tau_c` (s) is the time constant wanted of the closed loop, by default the delay. An infinite `time_constant` is the
    integrator ``gain / s``.
    """
    slow = delay + (delay if tau_c is None else tau_c)
    if np.isinf(time_constant):
        return 1.0 / (gain * slow), 4.0 * slow
    return time_constant / (gain * slow), min(time_constant, 4.0 * slow)


def gain_for_ms(plant: Plant, ms: float, ti: float, td: float = 0.0, tf: float = 0.0) -> float:
    """The largest K_p of a stable loop whose sensitivity peaks at `ms`.

    At each frequency the gains with |1 + K_p g| < 1/ms lie between the roots of a quadratic equation; the gain is
    the upper end of a gap that these intervals leave. Raises `ValueError` where they leave none.
    """
    from scipy.optimize import minimize_scalar

    loop = Loop(plant, 1.0, ti, td, tf)
    rest = 1.0 - 1.0 / ms**2

    def roots(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of K^2 |g|^2 + 2 K Re g + rest = 0, the smaller first; infinite where all gains pass."""
        g = loop.response(w)
        size, real = np.abs(g) ** 2, g.real
        some = (real < 0.0) & (real**2 > size * rest)
        spread = np.sqrt(np.where(some, real**2 - size * rest, 0.0)) - real
        with np.errstate(divide="ignore"):
            return np.where(some, rest / spread, np.inf), np.where(some, spread / size, np.inf)

    w = loop.grid()
    low, high = roots(w)
    order = np.flatnonzero(np.isfinite(low))
    order = order[np.argsort(low[order])]
    below = np.maximum.accumulate(np.concatenate([[0.0], high[order]]))[:-1]
    for k in np.flatnonzero(low[order] > below)[::-1]:
        if Loop(plant, 0.5 * (below[k] + low[order[k]]), ti, td, tf).stable:
            at = int(np.clip(order[k], 1, len(w) - 2))
            optimum = minimize_scalar(
                lambda log: float(roots(np.array([np.exp(log)]))[0][0]),
                bounds=(np.log(w[at - 1]), np.log(w[at + 1])),
                method="bounded",
                options={"xatol": 1e-9},
            )
            return min(float(optimum.fun), float(low[at]))
    raise ValueError(f"no gain gives a stable loop with a sensitivity peak of {ms:g}")


def max_ki_pi(plant: Plant, ms: float, low: float, high: float) -> tuple[float, float]:
    """K_p and T_i in [`low`, `high`] (s) with the largest K_p / T_i for which the sensitivity peaks at `ms`.

    Åström, Panagopoulos & Hägglund (1998).
    """
    return _best(lambda ti: -gain_for_ms(plant, ms, ti) / ti, plant, ms, low, high)


def iae_optimal_pi(
    plant: Plant, ms: float, step: Literal["output", "input"], low: float, high: float
) -> tuple[float, float]:
    """K_p and T_i in [`low`, `high`] (s) with the least integral of |e| after a unit step and sensitivity peak `ms`."""
    which = 0 if step == "output" else 1
    return _best(
        lambda ti: step_responses(Loop(plant, gain_for_ms(plant, ms, ti), ti))[which].iae, plant, ms, low, high
    )


def _best(cost: Callable[[float], float], plant: Plant, ms: float, low: float, high: float) -> tuple[float, float]:
    """The settings of least `cost` of T_i, on the curve of gains with the peak `ms`."""
    from scipy.optimize import minimize_scalar

    optimum = minimize_scalar(
        lambda log: cost(float(np.exp(log))),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    ti = float(np.exp(optimum.x))
    return gain_for_ms(plant, ms, ti), ti
