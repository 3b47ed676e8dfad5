"""Geometry of the four-bar knee with the substitute set; numbers in mm and N m are section 4 of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from designopt_knee import linkage
from scipy.optimize import brentq


def eta_of_flexion(g, flexion_deg):
    """The angle eta (rad) at which the knee is bent by so many degrees, 0 to 110."""
    return brentq(lambda eta: np.degrees(-linkage.relative_angles(g, eta)[1]) - flexion_deg, 0.06, -2.6, xtol=1e-14)


def instant_centre(p):
    """Where lines AD and BC meet: section 2, equation (3) of the specification."""
    (xa, ya), (xb, yb), (xc, yc), (xd, yd) = p["A"], p["B"], p["C"], p["D"]
    w = (xa - xd) * (yb - yc) - (ya - yd) * (xb - xc)
    ad, bc = xa * yd - ya * xd, xb * yc - yb * xc
    return np.array([(ad * (xb - xc) - (xa - xd) * bc) / w, (ad * (yb - yc) - (ya - yd) * bc) / w])


def posed(g, flexion_deg):
    eta = eta_of_flexion(g, flexion_deg)
    ad, shank = linkage.relative_angles(g, eta)
    return linkage.points(g, (0.0, 0.0), 0.0, shank, ad, eta, 0.0)


def knee_torque(g, stiffness, flexion_deg):
    """Moment of the damper's spring that extends the knee (N m), by virtual work."""
    h = 1e-5
    length = [
        linkage.damper_length(g, linkage.closure(g, eta_of_flexion(g, flexion_deg + np.degrees(s)))[1])
        for s in (-h, 0.0, h)
    ]
    return stiffness * (length[1] - g["damper_rest_length"]) * (length[2] - length[0]) / (2.0 * h)


def test_front_link_length_is_the_one_that_straightens_the_knee_where_the_stop_closes(base):
    assert linkage.straight_ad_length(base) == pytest.approx(0.134234, abs=5e-7)


def test_knee_is_straight_at_eta_zero(leg):
    assert linkage.relative_angles(leg, 0.0)[1] == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(
    ("flexion", "x", "y"), [(0.5, -12, 107), (10, 8, 54), (30, 11, 17), (60, -3, -2), (110, -19, 7)]
)
def test_instant_centre_starts_above_the_knee_and_follows_a_j_down(leg, flexion, x, y):
    p = posed(leg, flexion)
    centre = instant_centre(p) - np.array(p["A"])
    assert np.round(1e3 * centre) == pytest.approx([x, y])


@pytest.mark.parametrize(("flexion", "torque"), [(10, 2.2), (30, 5.0), (45, 5.7), (60, 5.2)])
def test_spring_extends_the_knee_with_the_tabulated_moment(leg, flexion, torque):
    assert knee_torque(leg, 1.6e4, flexion) == pytest.approx(torque, abs=0.05)


def test_spring_no_longer_extends_the_knee_beyond_105_degrees(leg):
    assert knee_torque(leg, 1.6e4, 104.0) > 0.0 > knee_torque(leg, 1.6e4, 106.0)


def test_damper_has_its_rest_length_at_full_extension_and_its_stroke_at_60_degrees(leg):
    def length(eta):
        return linkage.damper_length(leg, linkage.closure(leg, eta)[1])

    assert length(0.0) == pytest.approx(0.16879, abs=1e-12)
    stroke = length(0.0) - length(eta_of_flexion(leg, 60.0))
    assert stroke == pytest.approx(0.0234, abs=5e-5)


def test_linkage_hyperextends_by_less_than_4_degrees_and_bends_beyond_110(leg):
    lowest, highest = np.degrees(linkage.flexion_range(leg))
    assert lowest == pytest.approx(-3.7, abs=0.05)
    assert highest > 110.0


def test_front_link_and_lower_link_fold_over_at_the_documented_angle(leg):
    assert linkage.fold(leg, 0.512) < 1.0 < linkage.fold(leg, 0.515)


def test_links_keep_their_lengths_in_every_pose(leg):
    for flexion in (0.5, 20.0, 45.0, 80.0, 110.0):
        p = posed(leg, flexion)
        for a, b, name in (("A", "B", "ab"), ("B", "C", "bc"), ("C", "D", "cd"), ("A", "D", "ad"), ("D", "F", "df")):
            assert np.hypot(*np.subtract(p[a], p[b])) == pytest.approx(leg[f"{name}_length"], abs=1e-12)


def test_every_drawn_line_joins_two_joints(leg):
    assert set(linkage.JOINTS) == set(posed(leg, 10.0))
    assert {end for line in linkage.LINKS for end in line} == set(linkage.JOINTS)
