"""Springs and limits of coordinates, ligaments and bushings: OpenSim's values, and their part in inverse dynamics."""

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.geometry.kinematics import kinematics
from designopt_muscle.geometry.passive import passive_action
from designopt_muscle.models.dynamics import Dynamics
from designopt_muscle.osim.read import read_model
from small_models import FORCES, PATH, hinge

#: Angle (rad) and speed (rad/s) of the two states.
Q, U = np.array([0.7, -0.6]), np.array([1.3, -2.0])


def action(*names):
    model = read_model(hinge(forces="".join(FORCES[name] for name in names)))
    return model, passive_action(model, {"flexion": Q}, {"flexion": U})


#: Generalised forces (N m) of OpenSim 4.6 at the two states.
EXPECTED = {
    "limit": (-191.64573627630253, 200.93552175925936),
    "spring": (-2.41, 3.8),
    "formula": (-0.75091469620859, 2.962118800390509),
    "band": (7.285691096334251, 11.650130364481882),
    "ligament": (10.81263121762186, 18.463760340297675),
    "blankevoort": (16.24270812710371, 28.770098972566224),
    "bushing": (-3.2277470651936415, 6.225002245162912),
}


@pytest.mark.parametrize("name", FORCES)
def test_forces_are_those_of_opensim(name):
    model, forces = action(name)
    moments = forces.moments(model, kinematics(model, {"flexion": Q}))[:, 0]
    assert forces.names == (name,)
    assert moments == pytest.approx(EXPECTED[name], rel=1e-9)


def test_net_moments_and_joint_forces_are_what_the_passive_forces_leave():
    free = read_model(hinge())
    model, forces = action(*FORCES)
    motion = {"flexion": (Q, U, np.array([3.0, -4.0]))}
    alone, helped = Dynamics.from_model(free, motion, {}), Dynamics.from_model(model, motion, {})
    passive = forces.moments(model, kinematics(model, {"flexion": Q}))
    assert passive[:, 0] == pytest.approx(np.sum(list(EXPECTED.values()), axis=0))
    assert helped.moments() == pytest.approx(alone.moments() - passive)
    on_arm = forces.bodies["arm"][:, :3]
    assert helped.joint_forces(["arm"])["arm"] == pytest.approx(alone.joint_forces(["arm"])["arm"] - on_arm)
    assert helped.take(np.array([1])).moments() == pytest.approx(helped.moments()[1:])


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("limit", "flexion", "extension", "acts at 'extension'"),
        ("limit", "<transition>15", "<transition>0", "must be positive"),
        ("formula", "exp(-q)", "exp(-p)", "an expression of q and qdot"),
        ("formula", "exp(-q)", "system(q)", "is not understood"),
        ("band", "bodyset/arm", "bodyset/leg", "'leg', which is not a body"),
        ("band", "<stiffness>900", "<stiffness>stiff", "'stiff' is not a number"),
        ("blankevoort", "<slack_length>0.16", "<slack_length>0", "must be positive"),
        ("bushing", "/bodyset/arm", "/bodyset/leg", "'leg', which is not a body"),
        ("spring", "viscosity", "mass", "not supported within"),
    ],
)
def test_unusable_forces_are_refused_with_their_place(name, old, new, message):
    with pytest.raises(ModelError, match=f"line \\d+, column \\d+.*{message}"):
        read_model(hinge(forces=FORCES[name].replace(old, new)))


def test_drives_and_contacts_are_left_out_with_a_note():
    drive = f'<PathActuator name="strap">{PATH}<optimal_force>1</optimal_force></PathActuator>'
    contact = '<HuntCrossleyForce name="sole"><appliesForce>true</appliesForce></HuntCrossleyForce>'
    off = FORCES["limit"].replace("<coordinate>", "<appliesForce>false</appliesForce><coordinate>")
    model = read_model(hinge(forces=drive + contact + off))
    assert model.passive == ()
    assert "drives along paths do not take part in the sharing: strap" in model.notes
    assert "contacts are not computed, ground forces are those of the external loads: sole" in model.notes
