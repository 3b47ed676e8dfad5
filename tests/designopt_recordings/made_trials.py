"""The bundled trials of studies/marker_filter.yaml: known motions with known noise, written as TRC files.

python made_trials.py FOLDER
"""

import sys
from pathlib import Path

import numpy as np
from designopt_recordings.files.write import trc_text
from designopt_recordings.recording import Recording

NAMES = ("SACR", "RKNE", "RHEE", "RTOE")
PLACES = np.array([[0.0, 1.0, 0.0], [0.05, 0.5, 0.1], [-0.1, 0.1, 0.1], [0.1, 0.06, 0.12]])
SWINGS = np.array([[0.03, 0.02, 0.02], [0.2, 0.04, 0.02], [0.35, 0.1, 0.02], [0.35, 0.08, 0.03]])  # m

#: Noise (RMS, mm) and steps a second of each trial.
TRIALS = {"slow": (0.4, 0.8), "normal": (0.6, 1.0), "fast": (0.9, 1.3)}


def motion(steps: float, time: np.ndarray) -> np.ndarray:
    """(n, 4, 3) m: four harmonics of the step, falling with the square of their number."""
    phase = 2.0 * np.pi * steps * time[:, None, None] + np.arange(12).reshape(4, 3)
    waves = sum(np.sin(k * phase + k) / k**2 for k in range(1, 5))
    return np.asarray(PLACES + SWINGS * waves)


def trial(name: str) -> Recording:
    """A trial of 4 s at 100 Hz with a gap of six frames at the heel."""
    noise, steps = TRIALS[name]
    time = np.arange(400) / 100.0
    seed = list(TRIALS).index(name)
    markers = motion(steps, time) + 1e-3 * noise * np.random.default_rng(seed).normal(size=(400, 4, 3))
    markers = np.round(markers, 5)
    markers[200:206, 2] = np.nan
    return Recording(100.0, time, NAMES, markers)


if __name__ == "__main__":
    for name in TRIALS:
        (Path(sys.argv[1]) / f"{name}.trc").write_text(trc_text(trial(name)))
