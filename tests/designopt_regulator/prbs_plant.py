"""The numbers of `studies/identified_plant.csv`: a made-up cooler that was never measured, with noise."""

import numpy as np
from scipy.signal import max_len_seq

GAIN, SLOW, FAST, DELAY, REST, NOISE, STEP = -0.6, 90.0, 15.0, 8.0, 70.0, 0.05, 4.0  # degC/%, s, s, s, degC, degC, s

REMARKS = """\
# Cooler of a reactor: valve and temperature. Made up, not measured. The valve is at 45 or 55 % in a pseudo-random
# binary sequence of 63 bits (scipy.signal.max_len_seq(6)) of 20 s, after 60 s at 50 %; output = 70 - 0.6 sum over the
# steps d of the input at s of d h(time - s - 8), h(x) = 1 - (90 exp(-x/90) - 15 exp(-x/15))/75 for x > 0, and noise of
# deviation 0.05 (numpy.random.default_rng(2).normal); to two decimals.
"""


def cooler() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time (s), input (%) and output (degC) by the formula of the remarks."""
    bits = np.repeat(max_len_seq(6)[0], 5)
    valve = np.concatenate([np.full(15, 50.0), 45.0 + 10.0 * bits, np.full(40, 50.0)])
    time = STEP * np.arange(len(valve))
    output = np.full_like(time, REST)
    for k in np.flatnonzero(np.diff(valve)) + 1:
        x = np.maximum(time - time[k] - DELAY, 0.0)
        answer = 1.0 - (SLOW * np.exp(-x / SLOW) - FAST * np.exp(-x / FAST)) / (SLOW - FAST)
        output += GAIN * (valve[k] - valve[k - 1]) * answer
    return time, valve, output + NOISE * np.random.default_rng(2).normal(size=len(time))


def text() -> str:
    """The file."""
    rows = "".join(f"{t:.0f},{u:.0f},{y:.2f}\n" for t, u, y in zip(*cooler(), strict=True))
    return f"{REMARKS}time [s],input [%],output [degC]\n{rows}"
