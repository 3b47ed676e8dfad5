"""The tree of an OpenSim model moves as the model does, and needs the moments that OpenSim computes."""

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_mechanics.tree import Point
from designopt_mechanics.tree_rows import TreeRows
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.loads import body_loads, sum_by_body
from designopt_muscle.osim.read import read_model
from designopt_muscle.osim.tree import tree_of
from designopt_recordings.files.storage import read_storage
from designopt_recordings.signals.derivatives import derivatives
from opensim_cases import table

from designopt.plugin import InputFile


@pytest.mark.parametrize("name", ["arm26", "gait10dof18musc_subject01", "walk_armless_18musc"])
def test_bodies_are_where_muscle_geometry_has_them(opensim, name):
    """Splines, couplers, offsets and both file versions: the expressions against the arrays."""
    model = read_model((opensim / "models" / f"{name}.osim").read_bytes())
    tree = tree_of(model)
    q = np.random.default_rng(5).uniform(-0.5, 0.5, (4, len(tree.names)))
    motion = kinematics(model, dict(zip(tree.names, q.T, strict=True)))
    offset = (0.03, -0.2, 0.05)
    points = [Point(body.name, offset) for body in model.bodies]
    positions = TreeRows(tree, compiled=False).positions(points, q)
    for i, body in enumerate(model.bodies):
        assert positions[:, i] == pytest.approx(motion.position(body.name, np.array(offset)), abs=1e-12)


def test_net_moments_of_the_arm_are_those_of_opensim(opensim):
    """arm26, frames away from the ends of the recording: 1e-2 N m (specs/muscle_force_sharing.md section 7)."""
    model = read_model((opensim / "models" / "arm26.osim").read_bytes())
    file = opensim / "motion" / "arm26_kinematics.sto"
    motion = read_storage(InputFile(file.name, file.read_bytes()))
    tree = tree_of(model)
    q = np.column_stack([motion.column(name) for name in tree.names])
    dq, ddq = derivatives(motion.time, q)
    names, values = table(opensim / "reference" / "arm26_inverse_dynamics.csv")
    reference = dict(zip(names, values.T, strict=True))
    frames = np.searchsorted(motion.time, values[:, 0] - 1e-6)
    needed = TreeRows(tree, gravity=model.gravity, compiled=False).inverse_dynamics(q, dq, ddq)[frames]
    inner = slice(5, -5)
    for i, name in enumerate(tree.names):
        assert np.abs(needed[inner, i] - reference[f"{name}_moment"][inner]).max() <= 1e-2


def test_net_moments_of_walking_with_ground_reactions_are_those_of_opensim(opensim):
    """gait10dof18musc, interior frames: 1e-2 N m of rotations (forces of the pelvis in N)."""
    model = read_model((opensim / "models" / "gait10dof18musc_subject01.osim").read_bytes())

    def stored(name):
        return read_storage(InputFile(name, (opensim / "motion" / name).read_bytes()))

    motion, ground = stored("gait10dof18musc_kinematics.sto"), stored("subject01_walk_grf.mot")
    names, values = table(opensim / "reference" / "gait10dof18musc_inverse_dynamics.csv")
    reference = dict(zip(names, values.T, strict=True))
    tree = tree_of(model)
    q = np.column_stack([motion.column(name) for name in tree.names])
    dq, ddq = derivatives(motion.time, q)
    frames = np.searchsorted(motion.time, values[:, 0] - 1e-6)
    content = (opensim / "motion" / "gait10dof18musc_walk_grf.xml").read_bytes()
    places = kinematics(model, {name: motion.column(name) for name in tree.names})
    loads = sum_by_body(body_loads(content, ground, places, motion.time))
    assert set(loads) == {"calcn_r", "calcn_l"}
    rows = TreeRows(tree, gravity=model.gravity, loaded=tuple(loads), compiled=False)
    needed = rows.inverse_dynamics(q[frames], dq[frames], ddq[frames], {b: load[frames] for b, load in loads.items()})
    inner = slice(5, -5)
    for i, coordinate in enumerate(tree.coordinates):
        suffix = "moment" if coordinate.unit == "rad" else "force"
        off = np.abs(needed[:, i] - reference[f"{coordinate.name}_{suffix}"])[inner]
        assert off.max() <= 1e-2, coordinate.name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"calcn_r", b"calcn_x"), "applied_to_body is 'calcn_x', which is not a body"),
        ((b"<ExternalForce name", b"<Spring name"), "is not well-formed"),
        ((b"ground_force_v<", b"ground_push_v<"), "names the column 'ground_push_vx'"),
        ((b"ExternalLoads", b"Loads"), "is not a file of external loads"),
    ],
)
def test_loads_that_are_not_understood_are_refused_with_their_place(opensim, change, message):
    model = read_model((opensim / "models" / "gait10dof18musc_subject01.osim").read_bytes())
    file = opensim / "motion" / "subject01_walk_grf.mot"
    ground = read_storage(InputFile(file.name, file.read_bytes()))
    content = (opensim / "motion" / "gait10dof18musc_walk_grf.xml").read_bytes().replace(*change)
    with pytest.raises(ModelError, match=message) as caught:
        body_loads(content, ground, kinematics(model, {}), np.array([0.7]))
    assert caught.value.line >= 1
