"""Margins at the crossings of one, for loops whose phase is known."""

import numpy as np
import pytest
from designopt_regulator.frequency.margins import _phase_margins


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
