"""Outputs computed from a simulated response: correlation, peaks, period, spectrum, ground contact.

Signals are sampled `samples` times per cycle from the start, the end point included: cycle k is ``[k*samples,
(k+1)*samples)``. The analysis window is the last few whole cycles without the end point (with it, the correlation
changes by up to 3e-4).
"""

from __future__ import annotations

import numpy as np

from designopt.arrays import Floats

#: A response has period n when it repeats within this after n cycles (root mean square, deg).
PERIOD_TOLERANCE = 0.3
#: Two successive cycles count as equal below this (root mean square, deg).
SETTLED_TOLERANCE = 0.1
LONGEST_PERIOD = 4
#: The spectrum is given up to this frequency (1/cycle).
HIGHEST_FREQUENCY = 4


def complete_cycles(signal: Floats, samples: int) -> Floats:
    """`signal` (cycles * samples + 1,) as (cycles, samples); the end point is left out."""
    return signal[: len(signal) // samples * samples].reshape(-1, samples)


def correlation(a: Floats, b: Floats) -> float:
    """rho = Cov(a, b) / sqrt(D(a) D(b)) (24); NaN if either has no variance.

    rho is 1 for any positive affine relation, so it is insensitive to a wrong amplitude.
    """
    a, b = a - a.mean(), b - b.mean()
    spread = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / spread) if spread > 1e-12 * len(a) else float("nan")


def repeat_errors(cycles: Floats, window: int) -> Floats:
    """Root mean square differences (deg) between the last `window` cycles and those 1, ... 4 earlier, if available."""
    last = cycles[-window:]
    shifts = range(1, min(LONGEST_PERIOD, len(cycles) - window) + 1)
    return np.array([np.sqrt(np.mean((last - cycles[-window - n : -n]) ** 2)) for n in shifts])


def period_n(cycles: Floats, window: int) -> int:
    """Smallest n in 1..4 for which the last `window` cycles equal those n earlier within `PERIOD_TOLERANCE`; else 0.

    `cycles` (cycles, samples) in deg. 0 means a longer period or an irregular response.
    """
    equal = repeat_errors(cycles, window) < PERIOD_TOLERANCE
    return int(np.argmax(equal)) + 1 if equal.any() else 0


def section_n(sections: Floats, window: int) -> int:
    """Smallest n in 1..4 for which the state at phase 0 repeats after n cycles, over the last `window`; else 0.

    `sections` (cycles + 1, states): angles in deg, rates in deg per radian of phase. Each must return within
    `PERIOD_TOLERANCE` (root mean square over the window).
    """
    last = sections[-window:]
    for n in range(1, min(LONGEST_PERIOD, len(sections) - window) + 1):
        if (np.sqrt(np.mean((last - sections[-window - n : -n]) ** 2, axis=0)) < PERIOD_TOLERANCE).all():
            return n
    return 0


def settled_cycles(cycles: Floats) -> int:
    """Cycles before the response repeats from cycle to cycle until the end; all of them when it never does."""
    unequal = np.sqrt(np.mean(np.diff(cycles, axis=0) ** 2, axis=1)) >= SETTLED_TOLERANCE
    if len(unequal) == 0 or unequal[-1]:
        return len(cycles)
    return int(np.flatnonzero(unequal)[-1]) + 1 if unequal.any() else 0


def spectrum(cycles: Floats) -> tuple[Floats, Floats]:
    """Frequencies (1/cycle) up to `HIGHEST_FREQUENCY` without 0, and amplitudes (deg), of `cycles` (n, samples).

    No taper: a response that repeats within the n cycles has its lines exactly on bins.
    """
    count, samples = cycles.shape
    size = min(HIGHEST_FREQUENCY * count, count * samples // 2 - 1)
    amplitude = 2.0 / (count * samples) * np.abs(np.fft.rfft(cycles.ravel()))
    return np.arange(1, size + 1) / count, np.asarray(amplitude[1 : size + 1])


def subharmonic(frequency: Floats, amplitude: Floats) -> float:
    """Largest amplitude (deg) below 1 per cycle, and between 1 and 2 per cycle."""
    between = (frequency < 2.0 - 1e-9) & (np.abs(frequency - 1.0) > 1e-9)
    return float(amplitude[between].max(initial=0.0))


def line(cycles: Floats, fraction: int) -> float:
    """Amplitude (deg) at ``1/fraction`` per cycle, over the largest multiple of `fraction` trailing cycles.

    0 with fewer cycles than `fraction`.
    """
    count = len(cycles) // fraction * fraction
    if count == 0:
        return 0.0
    _, amplitude = spectrum(cycles[-count:])
    return float(amplitude[count // fraction - 1])
