"""Which contact two neighbouring cycles do not share, on made-up forces whose touches are known."""

import numpy as np
import pytest
from designopt_knee.periodic.contacts import contact_change
from designopt_knee.periodic.strides import Stride

NAMES = ["knee", "heel_force", "toe_force", "stop_force"]
STANCE = {"heel_force": [(0.0, 0.35)], "toe_force": [(0.3, 0.6)], "stop_force": [(0.4, 0.45)]}


def cycle(**touches):
    """A cycle with 100 N in the given intervals of the phase, of `STANCE` where nothing is said."""
    phase = np.linspace(0.0, 1.0, 2001)
    y = np.zeros((len(phase), len(NAMES)))
    for name, intervals in {**STANCE, **touches}.items():
        for first, last in intervals:
            y[(phase >= first) & (phase <= last), NAMES.index(name)] = 100.0
    return Stride(np.zeros((len(phase), 4)), y)


def test_equal_contacts_are_no_change():
    moved = cycle(heel_force=[(0.0, 0.36)], toe_force=[(0.31, 0.58)])
    assert contact_change(cycle(), moved, NAMES) is None


def test_a_touch_more_begins():
    change = contact_change(cycle(), cycle(heel_force=[(0.0, 0.34), (0.38, 0.39)]), NAMES)
    assert (change.body, change.is_touch, change.begins) == ("heel", True, True)
    assert change.phase == pytest.approx(0.385, abs=1e-3)


def test_a_touch_less_ceases():
    change = contact_change(cycle(toe_force=[(0.3, 0.6), (0.8, 0.81)]), cycle(), NAMES)
    assert (change.body, change.is_touch, change.begins) == ("toe", True, False)
    assert change.phase == pytest.approx(0.805, abs=1e-3)


def test_a_gap_within_a_contact_is_one():
    change = contact_change(cycle(), cycle(toe_force=[(0.3, 0.5), (0.52, 0.6)]), NAMES)
    assert (change.body, change.is_touch, change.begins) == ("toe", False, True)
    assert change.phase == pytest.approx(0.51, abs=1e-3)


def test_of_several_the_shortest_is_the_one_that_grazes():
    before = cycle(stop_force=[(0.4, 0.45), (0.9, 0.95)])
    change = contact_change(before, cycle(heel_force=[(0.0, 0.35), (0.97, 0.971)]), NAMES)
    assert (change.body, change.begins) == ("heel", True)


def test_an_edge_that_passes_the_beginning_of_the_cycle_is_no_change():
    landed_before = cycle(heel_force=[(0.0, 0.35), (0.99, 1.0)])
    landed_after = cycle(heel_force=[(0.01, 0.35)])
    assert contact_change(cycle(), landed_before, NAMES) is None
    assert contact_change(cycle(), landed_after, NAMES) is None


@pytest.mark.parametrize("landing", [[(0.0, 0.35), (0.99, 1.0)], [(0.01, 0.35)]])
def test_a_touch_is_seen_beside_such_an_edge(landing):
    change = contact_change(cycle(), cycle(heel_force=[*landing, (0.7, 0.72)]), NAMES)
    assert (change.body, change.is_touch, change.begins) == ("heel", True, True)
    assert change.phase == pytest.approx(0.71, abs=1e-3)
