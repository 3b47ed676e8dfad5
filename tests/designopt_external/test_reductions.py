"""Reductions of a signal over time, against the integrals of simple functions."""

import math
from typing import Any

import numpy as np
import pytest
from designopt_external import reductions

TIME = np.linspace(0.0, 2.0 * np.pi, 2001)
SINE = np.sin(TIME)


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ({}, 0.0),
        ({"take": "first"}, 0.0),
        ({"take": "last"}, 0.0),
        ({"take": "max"}, 1.0),
        ({"take": "min"}, -1.0),
        ({"take": "largest"}, 1.0),
        ({"take": "mean"}, 0.0),
        ({"take": "rms"}, math.sqrt(0.5)),
        ({"take": "integral"}, 0.0),
        ({"take": "crossing", "level": 0.5}, math.pi / 6.0),
        ({"take": "crossing", "level": 0.5, "direction": "falling"}, 5.0 * math.pi / 6.0),
        ({"take": "crossing", "level": -0.5, "direction": "rising"}, 11.0 * math.pi / 6.0),
        ({"take": "crossing", "level": 2.0}, math.inf),
    ],
)
def test_a_sine_is_reduced_to_its_known_numbers(section: dict[str, Any], value: float) -> None:
    assert reductions.reduce(section, TIME, SINE) == pytest.approx(value, abs=1e-6)


def test_uneven_samples_count_with_their_duration() -> None:
    time, values = np.array([0.0, 1.0, 1.0, 4.0]), np.array([2.0, 2.0, 6.0, 6.0])  # an event at 1 s
    assert reductions.reduce({"take": "integral"}, time, values) == 20.0
    assert reductions.reduce({"take": "mean"}, time, values) == 5.0
    assert reductions.reduce({"take": "rms"}, time, values) == pytest.approx(math.sqrt((4.0 + 108.0) / 4.0))


def test_a_crossing_at_an_event_is_at_its_time() -> None:
    time, values = np.array([0.0, 1.0, 1.0, 4.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    assert reductions.crossing(time, values) == 1.0


def test_units_follow_the_reduction() -> None:
    units = {take: reductions.unit_of({"take": take}, "N") for take in ("max", "integral", "crossing")}
    assert units == {"max": "N", "integral": "N s", "crossing": "s"}
    assert reductions.unit_of({"take": "integral"}, "") == "s"
