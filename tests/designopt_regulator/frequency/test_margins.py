"""Margins of loops whose phase is known, and of random ones, conditionally stable ones included, against an
independent computation."""

import numpy as np
import pytest
from designopt_regulator.controllers.pid import pid
from designopt_regulator.frequency.margins import _phase_margins
from designopt_regulator.frequency.sampled_loop import measures
from designopt_regulator.linear_loop.continuous import Loop, loop_margins
from designopt_regulator.plants.linear import transfer_function
from random_loops import (
    FIGURES,
    T,
    continuous_open_loop,
    random_biproper,
    random_loops,
    reference,
    sampled_open_loop,
    sampled_reference,
    sampled_stable,
)


@pytest.mark.parametrize(
    ("phase", "phase_margin", "turn"),
    [(-140.0, 40.0, 40.0), (-200.0, 20.0, 340.0), (-181.0, 1.0, 359.0)],
    ids=["behind -180 degrees", "past it", "just past it"],
)
def test_the_delay_margin_turns_a_loop_that_is_past_minus_180_degrees_nearly_all_the_way_round(
    phase, phase_margin, turn
):
    """L(jw) = 4/w exp(j phase): |L| = 1 at 4 rad/s; a delay T turns it there by 4 T, the shorter way is a lead."""

    def response(each, w):
        return 4.0 / w * np.cos(np.radians(phase)), 4.0 / w * np.sin(np.radians(phase))

    w = np.geomspace(0.1, 100.0, 200)
    margin, delay, crossover = _phase_margins(response, w[None, :], (4.0 / w)[None, :])
    assert np.degrees(margin) == pytest.approx([phase_margin])
    assert crossover == pytest.approx([4.0])
    assert delay == pytest.approx([np.radians(turn) / 4.0])


def test_margins_of_200_random_sampled_loops_agree_with_the_reference():
    loops = list(random_loops(12, 200, sampled_open_loop, sampled_stable))
    conditional = 0
    for order in {len(bottom) for _, bottom, *_ in loops}:
        same = [loop for loop in loops if len(loop[1]) == order]
        A, B, C = (np.stack([getattr(transfer_function(*loop[:2]), name) for loop in same]) for name in "ABC")
        settings = pid(**{name: [loop[3][name] for loop in same] for name in same[0][3]}, sample_time=T)
        margins = measures(A, B, C, np.array([loop[2] for loop in same]), settings)
        for i, (top, bottom, delay, s, loop, _) in enumerate(same):
            ends = [-1.0] + [1.0] * bool(np.isinf(s["ti"]) and bottom[-1] != 0.0)
            numbers = tuple(float(getattr(margins, name)[i]) for name in FIGURES)
            assert numbers == pytest.approx(sampled_reference(loop, ends), rel=1e-6, abs=1e-7), (top, bottom, delay, s)
            conditional += numbers[0] < np.inf and numbers[1] > 0.0
    assert sum(loop[5] for loop in loops) >= 60  # open-loop unstable
    assert conditional >= 60


def test_margins_of_random_continuous_loops_agree_with_the_reference():
    def stable(A):
        return bool(np.linalg.eigvals(A).real.max() < 0.0)

    w = np.geomspace(1e-5, 1e4, 3_000)
    for top, bottom, _, s, loop, _ in random_loops(3, 60, continuous_open_loop, stable):
        (margins,) = loop_margins([Loop(transfer_function(top, bottom), **s)])
        ends = [0.0] * bool(np.isinf(s["ti"]) and bottom[-1] != 0.0)
        expected = reference(loop, lambda w: 1j * w, w, ends, stable)
        assert tuple(float(getattr(margins, name)[0]) for name in FIGURES) == pytest.approx(
            expected, rel=1e-6, abs=1e-7
        ), (top, bottom, s)


def test_margins_of_random_continuous_loops_with_feedthrough_agree_with_the_reference():
    """Their gain does not fall to 0: at infinite frequency L is real, and from 1 on no delay more is allowed."""

    def stable(A):
        return bool(np.linalg.eigvals(A).real.max() < 0.0)

    w, jumps = np.geomspace(1e-5, 1e6, 4_000), 0
    for top, bottom, _, s, loop, _ in random_loops(8, 40, continuous_open_loop, stable, random_biproper):
        (margins,) = loop_margins([Loop(transfer_function(top, bottom), **s)])
        ends = [np.inf] + [0.0] * bool(np.isinf(s["ti"]) and bottom[-1] != 0.0)
        expected = reference(loop, lambda w: 1j * w, w, ends, stable)
        if abs(loop[3]) >= 1.0:
            expected, jumps = (*expected[:3], 0.0, np.inf), jumps + 1
        assert tuple(float(getattr(margins, name)[0]) for name in FIGURES) == pytest.approx(
            expected, rel=1e-6, abs=1e-7
        ), (top, bottom, s)
    assert 5 <= jumps <= 35


def test_a_loop_that_less_gain_destabilises_is_reported():
    """kp (1 + s) / (s^2 - 9.81) is stable for kp above 9.81: at kp 10 a factor of 0.981 on the gain is too little."""
    (margins,) = loop_margins([Loop(transfer_function([1.0], [1.0, 0.0, -9.81]), 10.0, td=1.0)])
    assert margins is not None
    assert margins.gm_down == pytest.approx([0.981], rel=1e-9)
    assert margins.gm == pytest.approx([np.inf])
