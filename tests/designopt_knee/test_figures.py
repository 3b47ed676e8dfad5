"""Figures of a response on signals whose answer is known."""

import numpy as np
import pytest
from designopt_knee import figures

SAMPLES = 200
PHASE = np.arange(20 * SAMPLES + 1) / SAMPLES


def cycles(signal):
    return figures.complete_cycles(signal, SAMPLES)


def walking(n=1, size=3.0):
    """A knee angle (deg) with a part that repeats after n cycles only."""
    extra = size * np.cos(2 * np.pi * PHASE / n) if n > 1 else 0.0
    return 30.0 + 25.0 * np.sin(2 * np.pi * PHASE) + 10.0 * np.cos(4 * np.pi * PHASE) + extra


def test_cycles_leave_the_end_point_out():
    assert cycles(PHASE).shape == (20, SAMPLES)
    assert cycles(PHASE)[-1, -1] < 20.0


def test_correlation_ignores_offset_and_positive_scale_but_not_shape():
    a = walking()
    assert figures.correlation(a, 3.0 * a + 7.0) == pytest.approx(1.0)
    assert figures.correlation(a, -a) == pytest.approx(-1.0)
    assert np.isnan(figures.correlation(np.ones(50), a[:50]))


def test_correlation_is_the_ratio_of_covariance_and_deviations():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=300), rng.normal(size=300)
    assert figures.correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_period_is_the_number_of_cycles_after_which_the_angle_repeats(n):
    assert figures.period_n(cycles(walking(n)), 5) == n


def test_longer_or_irregular_response_has_period_zero():
    assert figures.period_n(cycles(walking(5)), 5) == 0
    drifting = walking() + 2.0 * PHASE
    assert figures.period_n(cycles(drifting), 5) == 0


@pytest.mark.parametrize(("size", "n"), [(0.20, 1), (0.22, 2)])
def test_period_tolerance_is_a_root_mean_square_of_0_3_degrees(size, n):
    # A cosine of double period differs from itself a cycle earlier by twice its size, sqrt(2) times it as rms.
    assert figures.period_n(cycles(walking(2, size)), 5) == n


def test_repeat_errors_are_those_of_the_shifts_by_one_to_four_cycles():
    # A cosine of double period differs from itself an odd number of cycles earlier by twice its size.
    errors = figures.repeat_errors(cycles(walking(2, 1.0)), 5)
    assert errors == pytest.approx([np.sqrt(2.0), 0.0, np.sqrt(2.0), 0.0], abs=1e-9)
    assert len(figures.repeat_errors(cycles(walking())[-6:], 5)) == 1
    assert len(figures.repeat_errors(cycles(walking())[-5:], 5)) == 0


def test_section_repeats_with_the_state_at_phase_zero():
    count = np.arange(21)
    alternating = np.column_stack([np.where(count % 2, 10.0, 12.0), np.full(21, 3.0)])
    assert figures.section_n(alternating, 5) == 2
    assert figures.section_n(np.full((21, 2), 3.0), 5) == 1
    assert figures.section_n(np.column_stack([count * 1.0, count * 1.0]), 5) == 0


def test_settled_cycles_count_until_the_last_unequal_pair():
    signal = walking() + 40.0 * np.exp(-3.0 * PHASE)
    n = figures.settled_cycles(cycles(signal))
    difference = np.sqrt(np.mean(np.diff(cycles(signal), axis=0) ** 2, axis=1))
    assert (difference[n:] < figures.SETTLED_TOLERANCE).all()
    assert difference[n - 1] >= figures.SETTLED_TOLERANCE
    assert figures.settled_cycles(cycles(walking(2))) == 20
    assert figures.settled_cycles(cycles(walking())) == 0


@pytest.mark.parametrize("n", [2, 3, 4])
def test_twelve_cycles_put_the_subharmonics_on_a_line_of_their_size(n):
    frequency, amplitude = figures.spectrum(cycles(walking(n))[-12:])
    assert amplitude[np.argmin(np.abs(frequency - 1.0 / n))] == pytest.approx(3.0, abs=1e-9)
    assert figures.subharmonic(frequency, amplitude) == pytest.approx(3.0, abs=1e-9)
    assert frequency[[0, -1]] == pytest.approx([1.0 / 12.0, 4.0])


def test_subharmonic_sees_between_one_and_two_and_not_the_harmonics():
    signal = walking() + 1.5 * np.sin(2 * np.pi * 1.5 * PHASE) + 9.0 * np.sin(2 * np.pi * 2.5 * PHASE)
    assert figures.subharmonic(*figures.spectrum(cycles(signal)[-12:])) == pytest.approx(1.5, abs=1e-9)
    assert figures.subharmonic(*figures.spectrum(cycles(walking())[-12:])) < 1e-9


@pytest.mark.parametrize(("fraction", "trailing"), [(2, 12), (2, 7), (3, 12), (3, 7)])
def test_line_uses_a_whole_number_of_its_own_periods(fraction, trailing):
    assert figures.line(cycles(walking(fraction))[-trailing:], fraction) == pytest.approx(3.0, abs=1e-9)


def test_line_of_too_few_cycles_is_zero():
    assert figures.line(cycles(walking(3))[-2:], 3) == 0.0
