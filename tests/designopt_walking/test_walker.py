"""A walker against OpenSim 4.6 in twelve random states, and its symmetric gait."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.contacts import sphere_forces
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.geometry.symbolic import path_length
from designopt_muscle.osim.read import read_model
from designopt_walking.bundled import planar_walker
from designopt_walking.devices import DEVICES
from designopt_walking.devices.joint_springs import elastic_ankle
from designopt_walking.models.predict import WalkPredict
from designopt_walking.programs.gait import GaitError, GaitRanges, check_mirror, ranged_tree
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.walker import Walker, on_slope, walker_of, with_mass, with_pull

import designopt
from designopt.study.language.errors import StudyError

#: Agreement with OpenSim, relative to the largest entry of each quantity.
CLOSE = 1e-9


@pytest.fixture(scope="module")
def walker() -> Walker:
    """The bundled walker in the ranges of a gait."""
    model = read_model(planar_walker().content)
    tree = ranged_tree(model, GaitRanges())
    return walker_of(model, tree=tree, ranges={c.name: (c.low, c.high) for c in tree.coordinates})


def test_accelerations_forces_and_paths_are_those_of_opensim(walking_data: Path) -> None:
    model = read_model((walking_data / "models" / "2D_gait.osim").read_bytes())
    reference = json.loads((walking_data / "reference" / "walk_spot_values.json").read_text())
    walker = walker_of(model, friction="opensim")
    state, muscles, spheres = walker.state, walker.muscles, reference["spheres"]
    drives = ca.vertcat(*walker.drives.values())
    contacts = [replace(c, friction="opensim") for n in spheres for c in model.contacts if c.name == n]
    matrix, remainder = ca.jacobian(walker.residual, state.ddz), walker.residual
    results = [
        remainder,
        matrix,
        muscles.activation_rate,
        muscles.length,
        muscles.force,
        sphere_forces(state, contacts)[0],
    ]
    function = ca.Function(
        "spot", [state.z, state.dz, state.ddz, muscles.activation, muscles.excitation, drives], results
    )
    places = [reference["names"].index(name) for name in walker.coordinates]
    rows = [reference["muscles"].index(name) for name in muscles.names]
    for point in reference["points"]:
        q, dq, ddq = (np.array(point[name])[places] for name in ("q", "dq", "ddq"))
        a, e, rates, lengths, forces = (np.array(point[name])[rows] for name in ("a", "e", "da", "len", "F"))
        values = [np.array(v) for v in function(q, dq, np.zeros(len(q)), a, e, point["lum"])]
        accelerations = np.linalg.solve(values[1], -values[0].ravel())
        ground = np.array(point["contact"])[:, :3].T
        for found_value, expected in (
            (accelerations, ddq), (values[2].ravel(), rates), (values[3].ravel(), lengths),
            (values[4].ravel(), forces), (values[5], ground),
        ):  # fmt: skip
            assert np.abs(found_value - expected).max() <= CLOSE * np.abs(expected).max()


def test_symbolic_path_lengths_are_those_of_the_arrays_within_the_ranges(walker: Walker) -> None:
    rng = np.random.default_rng(1)
    values = {c.name: rng.uniform(c.low, c.high, 40) for c in walker.state.tree.coordinates}
    geometry = muscle_geometry(walker.model, values)
    function = ca.Function("lengths", [walker.state.z], [walker.muscles.length, walker.muscles.arms])
    postures = np.stack([values[name] for name in walker.coordinates])
    lengths, arms = (np.array(v) for v in function.map(40)(postures))

    np.testing.assert_allclose(lengths.T, geometry.lengths, rtol=1e-12)
    order = [geometry.coordinates.index(name) for name in walker.coordinates]
    arms = arms.reshape(len(order), 40, -1).transpose(1, 0, 2)
    np.testing.assert_allclose(arms, geometry.arms[:, order], atol=1e-12)


def test_a_conditional_point_without_ranges_switches_where_the_file_says(walker: Walker) -> None:
    model, state = walker.model, walker.state
    (psoas,) = (m for m in model.muscles if m.name == "iliopsoas_r")
    hip = np.linspace(0.6, 0.95, 8)
    length = ca.Function("length", [state.z], [path_length(state, model, psoas)])
    z = np.zeros((len(walker.coordinates), 8))
    z[walker.coordinates.index("hip_flexion_r")] = hip
    by_arrays = muscle_geometry(model, {"hip_flexion_r": hip, "pelvis_ty": np.zeros(8)}).lengths
    np.testing.assert_allclose(
        np.array(length.map(8)(z)).ravel(), by_arrays[:, walker.muscles.index("iliopsoas_r")], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: replace(m, contacts=()), "no contact sphere"),
        (lambda m: replace(m, muscles=m.muscles[1:]), "'hamstrings_l' has no partner 'hamstrings_r'.*full cycle"),
        (
            lambda m: replace(m, muscles=(replace(m.muscles[0], force=1.0), *m.muscles[1:])),
            "'hamstrings_r' and 'hamstrings_l' have different numbers",
        ),
        (
            lambda m: replace(m, bodies=tuple(replace(b, mass=9.0) if b.name == "tibia_r" else b for b in m.bodies)),
            "'tibia_l' and 'tibia_r' have different numbers",
        ),
    ],
)
def test_a_half_cycle_needs_contact_and_symmetry(walker: Walker, change, message: str) -> None:  # type: ignore[no-untyped-def]
    model = change(walker.model)
    with pytest.raises(GaitError, match=message):
        predicted_walk(walker_of(model, tree=ranged_tree(model, GaitRanges())), GaitRanges(), Effort(), 1.2)


def test_a_slope_turns_gravity_in_the_axes_of_the_ground(walker: Walker) -> None:
    g, angle = walker.model.gravity, np.arctan(0.1)
    assert on_slope(walker.model, 0.0) is walker.model
    np.testing.assert_allclose(on_slope(walker.model, 0.1).gravity, [g[1] * np.sin(angle), g[1] * np.cos(angle), 0.0])


def test_a_heavier_person_has_heavier_bodies_and_the_same_muscles(walker: Walker) -> None:
    heavy = with_mass(walker.model, 1.25 * walker.mass)
    assert sum(body.mass for body in heavy.bodies) == pytest.approx(1.25 * walker.mass, rel=1e-12)
    for body, before in zip(heavy.bodies, walker.model.bodies, strict=True):
        assert body.mass == pytest.approx(1.25 * before.mass)
        assert body.inertia == pytest.approx(1.25 * before.inertia)
        assert body.centre is before.centre
    assert (heavy.muscles, heavy.contacts) == (walker.model.muscles, walker.model.contacts)


def walking_study(**settings: Any) -> designopt.Study:
    return designopt.define(
        study="walk", model={"use": "walk_predict", **settings}, scenarios=[{"name": "w", "speed": 1.2}],
        solver={"use": "evaluate", "designs": [{"name": "walk"}]}, execution={"executor": "serial"},
    )  # fmt: skip


def test_the_mass_of_the_person_is_part_of_the_key_only_where_it_is_stated() -> None:
    keys = [walking_study(**settings).problem.keys(np.empty((1, 0))) for settings in ({}, {"body_mass": None})]
    assert keys[0] == keys[1] != walking_study(body_mass=85).problem.keys(np.empty((1, 0)))
    model = WalkPredict(body_mass=85.0, device="hip_springs", mass=1.0)
    assert model._predictor(0.0)[0].walker.mass == pytest.approx(87.0)


@pytest.mark.parametrize("mass", [8.5, 850])
def test_a_mass_that_no_person_has_is_refused(mass: float) -> None:
    with pytest.raises(StudyError, match=r"body_mass: .*(at least 20|at most 250)"):
        walking_study(body_mass=mass)


def test_a_pull_acts_forward_on_the_pelvis_alone(walker: Walker) -> None:
    assert with_pull(walker, "pelvis_tx", 0.0) is walker
    difference = walker.residual - with_pull(walker, "pelvis_tx", 30.0).residual
    symbols = ca.vertcat(*ca.symvar(difference))
    force = ca.Function("force", [symbols], [difference])(0.1)
    expected = [30.0 * (name == "pelvis_tx") for name in walker.coordinates]
    np.testing.assert_allclose(np.array(force).ravel(), expected, atol=1e-9)


def test_a_device_on_one_side_has_no_mirror_image(walker: Walker) -> None:
    check_mirror(walker.with_device(DEVICES["hip_springs"]))
    with pytest.raises(GaitError, match="acts on 'ankle_angle_r' and not on 'ankle_angle_l'"):
        check_mirror(walker.with_device(elastic_ankle("r")))


@pytest.mark.parametrize(
    ("ranges", "speed", "message"),
    [
        (GaitRanges(duration=(0.4, 0.6)), 2.6, r"2.6 m/s needs 0.4 s x 2.6 = 1.04 m .. 1.56 m; pelvis_tx allows 1 m"),
        (GaitRanges(), -1.0, "-1 m/s is not positive"),
        (GaitRanges(), float("nan"), "nan m/s is not positive"),
        (GaitRanges(duration=(0.6, 0.4)), 1.2, "not a range of durations"),
    ],
)
def test_a_speed_out_of_reach_is_refused_before_the_solve(
    walker: Walker, ranges: GaitRanges, speed: float, message: str
) -> None:
    with pytest.raises(GaitError, match=message):
        predicted_walk(walker, ranges, Effort(), speed)


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"knee": (-1.0, 0.0)}, "ranges.knee: is no coordinate"),
        ({"knee_angle": (0.0, -1.0)}, "ranges.knee_angle: from 0 to -1 is not a range"),
        ({"knee_angle": (float("nan"), 0.0)}, "is not a range"),
    ],
)
def test_ranges_name_a_coordinate_and_are_not_empty(walker: Walker, ranges, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GaitError, match=message):
        ranged_tree(walker.model, GaitRanges(ranges=ranges))
