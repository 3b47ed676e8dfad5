"""The numbers of `studies/own_plant.csv`: a made-up heater whose step was never measured, with noise."""

import numpy as np

GAIN, SLOW, FAST, DELAY, REST, NOISE = 0.8, 120.0, 20.0, 12.0, 42.0, 0.05  # degC/%, s, s, s, degC, degC

REMARKS = """\
# Heater of a tank: power and temperature. Made up, not measured:
# output = 42 + 0.8 sum over the steps d of the input at s of d h(time - s - 12), h(x) = 1 - (120 exp(-x/120) -
# 20 exp(-x/20))/100 for x > 0, and noise of deviation 0.05 (numpy.random.default_rng(1).normal); to two decimals.
"""


def heater() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time (s), input (%) and output (degC) by the formula of the remarks."""
    time = np.arange(0.0, 1201.0, 5.0)
    power = 40.0 + 20.0 * (time >= 60.0) - 15.0 * (time >= 700.0)
    output = np.full_like(time, REST)
    for step, at in ((20.0, 60.0), (-15.0, 700.0)):
        x = np.maximum(time - at - DELAY, 0.0)
        output += GAIN * step * (1.0 - (SLOW * np.exp(-x / SLOW) - FAST * np.exp(-x / FAST)) / (SLOW - FAST))
    return time, power, output + NOISE * np.random.default_rng(1).normal(size=len(time))


def text() -> str:
    """The file."""
    rows = "".join(f"{t:.0f},{u:.0f},{y:.2f}\n" for t, u, y in zip(*heater(), strict=True))
    return f"{REMARKS}time [s],input [%],output [degC]\n{rows}"
