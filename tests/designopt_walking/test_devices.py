"""Devices on a walker: the four-bar knee in closed form, amputation, springs, mass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from designopt_knee import linkage
from designopt_mechanics.tree import Point
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.tree import tree_of
from designopt_walking.bundled import planar_walker
from designopt_walking.devices import DEVICES, with_device_mass
from designopt_walking.devices.amputation import amputate, with_four_bar
from designopt_walking.devices.four_bar import FourBar
from designopt_walking.devices.joint_springs import elastic_ankle, single_axis_knee
from designopt_walking.walker import walker_of

from designopt.lazy import casadi as ca

MODEL = read_model(planar_walker().content)


def torque(device, model=MODEL, **values):
    """Torques of a device by coordinate, at angles and speeds (``<coordinate>_speed``) and parameters by name."""
    walker = walker_of(model).with_device(device)
    forces = walker.devices[-1]
    state = walker.state
    symbols = [state.z, state.dz, *(symbol for _, symbol in forces.parameters)]
    function = ca.Function("torque", symbols, list(forces.moments.values()))
    q = [values.get(name, 0.0) for name in walker.coordinates]
    dq = [values.get(f"{name}_speed", 0.0) for name in walker.coordinates]
    moments = function(q, dq, *(values[v.name] for v, _ in forces.parameters))
    moments = moments if isinstance(moments, tuple) else (moments,)
    return dict(zip(forces.moments, map(float, moments), strict=True))


def test_the_linkage_by_the_knee_angle_is_that_by_the_angle_of_its_rear_link() -> None:
    four_bar = FourBar()
    eta = np.linspace(0.02, -0.45, 200)
    angle = linkage.relative_angles(four_bar.geometry, eta)[1]
    d = linkage.closure(four_bar.geometry, eta)[1]
    np.testing.assert_allclose(four_bar.front_joint(angle), d, atol=1e-15)
    np.testing.assert_allclose(four_bar.damper_length(angle), linkage.damper_length(four_bar.geometry, d), atol=1e-15)


def test_a_straight_leg_on_a_four_bar_knee_is_as_long_as_before_and_swings_about_its_instant_centre() -> None:
    four_bar = FourBar()
    plain = tree_of(MODEL)
    walker = walker_of(MODEL, tree=with_four_bar(plain, four_bar))
    position = ca.Function("place", [walker.state.z], [walker.state.position(Point("talus_r"))])
    before = walker_of(MODEL)
    old = ca.Function("place", [before.state.z], [before.state.position(Point("talus_r"))])
    q = np.zeros(10)
    np.testing.assert_allclose(np.array(position(q)), np.array(old(q)), atol=1e-14)
    bent = np.array(q)
    bent[walker.coordinates.index("knee_angle_r")] = -1.0
    assert np.abs(np.array(position(bent)) - np.array(old(bent))).max() > 0.005


def test_the_damper_of_the_four_bar_does_the_work_of_its_force() -> None:
    """Virtual work: the torque on the knee angle is the force along the damper times dl/dq."""
    four_bar = FourBar()
    q, dq, k, c, h = -0.6, 1.5, 2e4, 3e3, 1e-6
    slope = (four_bar.damper_length(q + h) - four_bar.damper_length(q - h)) / (2.0 * h)
    force = k * (four_bar.damper_length(q) - four_bar.geometry["damper_rest_length"]) + c * slope * dq
    moments = torque(four_bar.device("r"), knee_angle_r=q, knee_angle_r_speed=dq, damper_stiffness=k, damper_damping=c)
    assert moments["knee_angle_r"] == pytest.approx(-force * slope, rel=1e-6, abs=0.5)  # the rounded stop: 0.25 N m


def test_knee_and_ankle_of_a_prosthesis_have_the_stated_laws() -> None:
    knee = torque(single_axis_knee("r"), knee_angle_r=-0.5, knee_angle_r_speed=2.0, knee_stiffness=20, knee_damping=3)
    assert knee["knee_angle_r"] == pytest.approx(20 * 0.5 - 3 * 2.0 - 1500 * 0.5 * (np.hypot(0.5, 0.02) - 0.5))
    stopped = torque(single_axis_knee("r"), knee_angle_r=0.05, knee_stiffness=0, knee_damping=0)
    assert stopped["knee_angle_r"] == pytest.approx(-1500 * 0.5 * (0.05 + np.hypot(0.05, 0.02)))
    ankle = torque(elastic_ankle("l"), ankle_angle_l=0.2, ankle_angle_l_speed=1.0, ankle_stiffness=300)
    assert ankle == {"ankle_angle_l": pytest.approx(-300 * 0.2 - 1.0)}


@pytest.mark.parametrize(("name", "joint"), [("hip_springs", "hip_flexion"), ("ankle_springs", "ankle_angle")])
def test_exoskeleton_springs_act_on_both_sides(name: str, joint: str) -> None:
    angles = {f"{joint}_r": 0.4, f"{joint}_l": -0.1}
    moments = torque(DEVICES[name], **angles, spring_stiffness=100, spring_rest=0.1)
    assert moments[f"{joint}_r"] == pytest.approx(-30.0, abs=0.1)
    assert moments[f"{joint}_l"] == pytest.approx(20.0 if name == "hip_springs" else 0.0, abs=0.1)


def test_a_device_with_mass_makes_the_legs_that_carry_it_heavier() -> None:
    heavier = {b.name: b.mass for b in with_device_mass(MODEL, "ankle_springs", 1.5).bodies}
    added = {b.name: heavier[b.name] - b.mass for b in MODEL.bodies}
    assert {name: mass for name, mass in added.items() if mass} == {"tibia_r": 1.5, "tibia_l": 1.5}
    with pytest.raises(ValueError, match="mass: -1 kg"):
        with_device_mass(MODEL, "hip_springs", -1.0)
    with pytest.raises(ValueError, match="no device 'knee_springs'"):
        with_device_mass(MODEL, "knee_springs", 1.0)


def test_an_amputation_takes_seven_muscles_and_a_third_of_the_mass_below_the_knee() -> None:
    left = amputate(MODEL)
    assert len(left.muscles) == 11
    assert {m.name for m in left.muscles if m.name.endswith("_r")} == {"glut_max_r", "iliopsoas_r"}
    mass = {b.name: b.mass for b in left.bodies}
    shares = {b.name: mass[b.name] / b.mass for b in MODEL.bodies if mass[b.name] != b.mass}
    assert shares == {f"{name}_r": pytest.approx(0.65) for name in ("tibia", "talus", "calcn", "toes")}


def test_a_myodesis_keeps_two_muscles_that_the_knee_angle_no_longer_changes() -> None:
    body = amputate(MODEL, "l", myodesis=True)
    walker, before = walker_of(body), walker_of(MODEL)
    assert len(walker.muscles.names) == 13
    lengths = {
        n: ca.Function("length", [w.state.z], [w.muscles.length[w.muscles.index(n)]])
        for w, n in ((walker, "hamstrings_l"), (walker, "rect_fem_l"))
    }
    intact = ca.Function("length", [before.state.z], [before.muscles.length[before.muscles.index("hamstrings_l")]])
    straight, bent = np.zeros(10), np.zeros(10)
    bent[walker.coordinates.index("knee_angle_l")] = -1.0
    for length in lengths.values():
        assert float(length(bent)) == pytest.approx(float(length(straight)), abs=1e-15)
    assert float(lengths["hamstrings_l"](straight)) == pytest.approx(float(intact(straight)), abs=1e-12)


def test_a_model_that_lacks_what_an_amputation_takes_is_refused() -> None:
    reduced = replace(MODEL, muscles=tuple(m for m in MODEL.muscles if m.name != "soleus_r"))
    with pytest.raises(ValueError, match="no muscle 'soleus_r'"):
        amputate(reduced)
