"""Derivatives by quintic splines: exact for quintics, of known order, gaps kept."""

import numpy as np
import pytest
from designopt_recordings.errors import RecordingError
from designopt_recordings.signals.derivatives import derivatives


def test_a_quintic_is_differentiated_exactly() -> None:
    time = np.sort(np.random.default_rng(0).uniform(0.0, 2.0, 30))
    curve = np.polynomial.Polynomial([1.0, -2.0, 3.0, 0.5, -1.0, 0.2])
    values = np.stack([curve(time), -curve(time)], axis=1)
    first, second = derivatives(time, values)
    np.testing.assert_allclose(first[:, 0], curve.deriv(1)(time), atol=1e-8)
    np.testing.assert_allclose(second[:, 0], curve.deriv(2)(time), atol=1e-6)
    np.testing.assert_allclose(first[:, 1], -first[:, 0], atol=1e-12)


def test_errors_fall_with_the_fifth_and_fourth_power_of_the_step() -> None:
    errors = []
    for count in (101, 201):
        time = np.linspace(0.0, 2.0, count)
        first, second = derivatives(time, np.sin(2 * np.pi * time))
        middle = slice(count // 4, -count // 4)
        errors.append(
            (
                np.abs(first - 2 * np.pi * np.cos(2 * np.pi * time))[middle].max(),
                np.abs(second + (2 * np.pi) ** 2 * np.sin(2 * np.pi * time))[middle].max(),
            )
        )
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert orders[0] > 4.7
    assert 3.7 < orders[1] < 5.0


def test_gaps_stay_and_each_run_is_differentiated_by_itself() -> None:
    time = np.arange(40) / 100.0
    values = np.stack([time**2, time**3], axis=1)
    values[10:12, 0] = np.nan
    values[14, 0] = np.nan
    first, second = derivatives(time, values)
    assert np.flatnonzero(np.isnan(first[:, 0])).tolist() == [10, 11, 14]
    assert np.isfinite(first[:, 1]).all()
    np.testing.assert_allclose(first[15:, 0], 2 * time[15:], atol=1e-9)
    np.testing.assert_allclose(second[:10, 0], 2.0, atol=1e-6)
    np.testing.assert_allclose(first[12:14, 0], 0.25)  # a line through 0.12 and 0.13 squared
    assert (second[12:14, 0] == 0.0).all()


def test_a_single_sample_has_no_derivative() -> None:
    first, _ = derivatives([0.0, 1.0, 2.0], [np.nan, 5.0, np.nan])
    assert np.isnan(first).all()


def test_times_must_increase() -> None:
    with pytest.raises(RecordingError, match="row 3"):
        derivatives([0.0, 1.0, 1.0], [0.0, 1.0, 2.0])
