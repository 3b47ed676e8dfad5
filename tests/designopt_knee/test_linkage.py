"""Geometry of the four-bar knee with the substitute set; numbers in mm and N m are section 4 of the specification."""

import numpy as np
import pytest
from designopt_knee import linkage
from designopt_knee.report.centre import hip_moment
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


def test_the_arm_of_the_damper_is_the_derivative_of_its_length_by_the_angle_of_its_lever(leg):
    for eta in (-0.1, eta_of_flexion(leg, 30.0), eta_of_flexion(leg, 80.0)):
        lengths, angles = [], []
        for near in (eta - 1e-6, eta + 1e-6):
            lengths.append(linkage.damper_length(leg, linkage.closure(leg, near)[1]))
            angles.append(linkage.relative_angles(leg, near)[0])
        d = linkage.closure(leg, eta)[1]
        arm = linkage.damper_arm(leg, d, linkage.damper_length(leg, d))
        assert arm == pytest.approx((lengths[1] - lengths[0]) / (angles[1] - angles[0]), rel=1e-6)


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


@pytest.mark.parametrize(("half", "lean"), [(0.01, 0.1), (0.02, 0.4), (0.005, 1.0)])
def test_instant_centre_of_a_symmetric_linkage_is_where_its_legs_meet(half, lean):
    """AB 2 h wide, AD and BC of 60 mm lean outwards by an angle a to both sides: they meet h / tan(a) above AB."""
    g = {
        "ab_length": 2.0 * half,
        "bc_length": 0.06,
        "ad_length": 0.06,
        "cd_length": 2.0 * half + 0.12 * np.sin(lean),
        "upper_body_angle": 0.5 * np.pi,
    }
    assert linkage.instant_centre(g, -lean) == pytest.approx((-half, half / np.tan(lean)), abs=1e-12)


@pytest.mark.parametrize("flexion", [1.0, 10.0, 30.0, 60.0, 110.0])
def test_the_shank_turns_about_its_instant_centre(leg, flexion):
    """Velocities of C and D by central differences: those of a rotation about the centre."""
    eta, h = eta_of_flexion(leg, flexion), 1e-6
    ahead, back = linkage.closure(leg, eta + h), linkage.closure(leg, eta - h)
    turn = (linkage.relative_angles(leg, eta + h)[1] - linkage.relative_angles(leg, eta - h)[1]) / (2.0 * h)
    centre = np.array(linkage.instant_centre(leg, eta))
    for joint, (ends, position) in enumerate(
        zip(zip(ahead, back, strict=True), linkage.closure(leg, eta), strict=True)
    ):
        velocity = (np.array(ends[0]) - np.array(ends[1])) / (2.0 * h)
        arm = np.array(position) - centre
        assert velocity == pytest.approx(turn * np.array([-arm[1], arm[0]]), abs=1e-8), joint


def test_the_path_of_the_centre_is_that_of_the_poses(leg):
    flexions = np.array([0.5, 10.0, 30.0, 60.0, 110.0])
    path = np.stack(linkage.instant_centre(leg, linkage.eta_of_flexion(leg, np.radians(flexions))), axis=1)
    for flexion, position in zip(flexions, path, strict=True):
        p = posed(leg, flexion)
        assert position == pytest.approx(instant_centre(p) - np.array(p["A"]), abs=2e-5)


def test_the_stability_of_the_straight_knee_is_measured_from_the_load_line(leg):
    """By the foot of the perpendicular from the centre on the line from hip to heel: 3.5 mm behind it."""
    height, offset = linkage.centre_offset(leg)
    p = linkage.points(leg, (0.0, 0.0), 0.0, 0.0, float(linkage.relative_angles(leg, 0.0)[0]), 0.0, 0.0)
    heel, centre = np.array(p["heel"]), instant_centre(p)
    foot = heel * (heel @ centre) / (heel @ heel)
    assert height == pytest.approx(centre[1] - p["A"][1])
    assert abs(offset) == pytest.approx(np.hypot(*(centre - foot)))
    assert offset == pytest.approx(3.455e-3, abs=1e-6)
    assert centre[0] < foot[0]  # the load passes before the centre and straightens the knee


def test_hip_moment_is_what_brings_the_load_through_the_centre(leg):
    """A force of 1 N from the heel through the centre has that moment about the hip (Radcliffe 1994)."""
    p = linkage.points(leg, (0.0, 0.0), 0.0, 0.0, float(linkage.relative_angles(leg, 0.0)[0]), 0.0, 0.0)
    heel, centre = np.array(p["heel"]), instant_centre(p)
    force = (centre - heel) / np.hypot(*(centre - heel))
    flexing = heel[0] * force[1] - heel[1] * force[0]  # of the ground's force about the hip, forwards positive
    assert hip_moment(leg) == pytest.approx(1e3 * flexing, rel=2e-3, abs=1e-9)
    assert np.sign(hip_moment(leg)) == -np.sign(linkage.centre_offset(leg)[1])
