"""Forces of spheres on half spaces are read from an OpenSim model, wherever they stand, or refused with their place."""

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.osim.read import read_model
from small_models import hinge

GEOMETRY = """<ContactGeometrySet name="set"><objects>
  <ContactSphere name="ball"><socket_frame>/bodyset/arm</socket_frame><radius>0.03</radius>
    <location>0.4 0.01 0</location></ContactSphere>
  <ContactHalfSpace name="floor"><socket_frame>/ground</socket_frame><location>0 -0.2 0</location>
    <orientation>0 0 -1.5707963267948966</orientation></ContactHalfSpace>
  <ContactMesh name="mesh"><socket_frame>/bodyset/arm</socket_frame></ContactMesh>
</objects></ContactGeometrySet>"""
FORCE = """<SmoothSphereHalfSpaceForce name="foot"><socket_sphere>/contactgeometryset/ball</socket_sphere>
  <socket_half_space>/contactgeometryset/floor</socket_half_space><stiffness>1e6</stiffness>
  <dissipation>2</dissipation><static_friction>0.8</static_friction><dynamic_friction>0.7</dynamic_friction>
  <derivative_smoothing>0.1</derivative_smoothing></SmoothSphereHalfSpaceForce>"""


def model(force: str = FORCE, geometry: str = GEOMETRY, *, component: bool = False) -> bytes:
    more = f"{geometry}<components>{force}</components>" if component else geometry
    return hinge(forces="" if component else force).replace(b"  </Model>", f"{more}</Model>".encode())


@pytest.mark.parametrize("component", [False, True])
def test_a_sphere_on_a_half_space_is_read_from_the_set_and_from_the_components(component: bool) -> None:
    read = read_model(model(component=component))
    (contact,) = read.contacts
    assert (contact.name, contact.radius, contact.stiffness, contact.dissipation) == ("foot", 0.03, 1e6, 2.0)
    assert (contact.centre.frame, contact.centre.position) == ("arm", (0.4, 0.01, 0.0))
    assert contact.plane.position == (0.0, -0.2, 0.0)
    np.testing.assert_allclose(contact.plane.normal, [0.0, 1.0, 0.0], atol=1e-12)  # above its solid side
    assert (contact.static, contact.dynamic, contact.viscous) == (0.8, 0.7, 0.0)
    assert (contact.constant_force, contact.hertz_smoothing, contact.speed_smoothing) == (1e-5, 300.0, 50.0)
    assert contact.friction == "opensim"
    assert read.notes == ("contacts do not take part in the sharing: foot",)


def test_muscles_and_drives_among_the_components_are_read() -> None:
    drive = '<CoordinateActuator name="motor"><coordinate>flexion</coordinate></CoordinateActuator>'
    content = hinge().replace(b"</Model>", f"<components>{drive}</components></Model>".encode())
    assert [actuator.name for actuator in read_model(content).actuators] == ["motor"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(FORCE.replace("/ball", "/bull")), "socket_sphere names 'bull', which is not in ContactGeometrySet"),
        (model(FORCE.replace("set/ball", "set/floor")), "needs a ContactSphere as socket_sphere"),
        (model(FORCE.replace("set/ball", "set/mesh")), 'ContactMesh "mesh": is not supported contact geometry'),
        (model(FORCE.replace("1e6", "-1")), 'SmoothSphereHalfSpaceForce "foot": stiffness: -1 is not finite and pos'),
        (model(FORCE.replace("<dissipation>2</dissipation>", "")), "dissipation: 0 is not finite and positive"),
        (model(FORCE.replace("<stiffness>", "<hardness>").replace("/stiff", "/hard")), "<hardness|hardness: is not"),
        (model(geometry=GEOMETRY.replace("/arm", "/leg")), "is fixed to 'leg', which is not a body"),
        (model(FORCE + FORCE), "has no name of its own"),
    ],
)
def test_an_invalid_contact_is_refused_with_its_place(content: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_model(content)
