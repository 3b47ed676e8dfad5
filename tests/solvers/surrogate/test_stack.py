"""Processes that are computed together: the same numbers as one by one, whatever their kinds are."""

from dataclasses import replace

import numpy as np
import pytest

from designopt.solvers.surrogate.gaussian_process import GaussianProcess, Hyperparameters
from designopt.solvers.surrogate.matern import Slopes
from designopt.solvers.surrogate.stack import StackedProcesses

RNG = np.random.default_rng(5)
POINTS, GROUPS = RNG.random((25, 3)), np.arange(3)
LEVEL = GaussianProcess(POINTS, POINTS[:, 0] ** 2, GROUPS, Hyperparameters(np.array([0.7, 0.9, 2.0]), 1e-4))
WAVE = GaussianProcess(POINTS, np.sin(5.0 * POINTS[:, 1]), GROUPS, Hyperparameters(np.ones(3), 1e-6, False))
SHORT = GaussianProcess(POINTS[:9], POINTS[:9, 2], np.zeros(3, dtype=np.int64), Hyperparameters(np.ones(1), 0.02))
SUM = replace(WAVE, hyperparameters=replace(WAVE.hyperparameters, additive=0.7))
JUMPY = replace(WAVE, jumps=0.3)
STEEP = replace(LEVEL, observed_slopes=Slopes(np.array([2, 7]), np.array([0, 1]), RNG.random((2, 2))))


@pytest.mark.parametrize(
    "processes",
    [(LEVEL,), (LEVEL, WAVE), (SHORT, LEVEL, STEEP, WAVE), (STEEP,), (JUMPY, WAVE), (SUM, LEVEL), (SHORT, SUM, JUMPY)],
)
def test_values_and_slopes_are_those_of_each_process(processes):
    at = np.array([0.31, 0.62, 0.5])
    together = StackedProcesses.from_processes(processes).slopes(at)
    for i, process in enumerate(processes):
        for mine, alone in zip(together, process.slopes(at), strict=True):
            assert mine[i] == pytest.approx(alone, rel=1e-8, abs=1e-10)
