"""Objective plugins of the knee."""

import numpy as np
import pytest
from designopt_knee.objectives import gait_correlation, healthy_band_share

from designopt.plugin import find

PHASE = np.arange(1001) / 200.0


def test_installed_under_their_names():
    assert find("objective", "gait_correlation").needs == ("knee_angle", "knee_angle_recorded")
    assert find("objective", "healthy_band_share").settings["half_width"].default == 5.0


def test_correlation_leaves_the_end_point_out():
    a = np.sin(2 * np.pi * PHASE)
    b = a.copy()
    b[-1] = 1e6
    assert gait_correlation(a, b) == pytest.approx(1.0)


def test_band_share_counts_samples_within_the_half_width():
    recorded = np.zeros(1001)
    knee = np.where(np.arange(1001) < 250, 4.0, 20.0)
    assert healthy_band_share(knee, recorded) == pytest.approx(0.25)
    assert healthy_band_share(knee, recorded, half_width=20.0) == 1.0
