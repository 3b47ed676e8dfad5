"""OpenSim model files are read, or refused with the element, the line and the column."""

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError
from designopt_muscle.osim.functions import Polynomial, ScaledFunction, Sine, lines, natural_spline, simm_spline
from designopt_muscle.osim.read import read_model
from small_models import USED, hinge, surface

UNREAD = "is not read within <components>; move it into the set of its kind"


def added(text: str) -> bytes:
    """The hinge with `text` at the end of its model."""
    return hinge().replace(b"  </Model>", f"  {text}</Model>".encode())


def within(tag: str, component: str) -> bytes:
    """The hinge with a component in its model or in its body."""
    return hinge().replace(f"</{tag}>".encode(), f"<components>{component}</components></{tag}>".encode())


#: specs/muscle_force_sharing.md section 1.4: muscles, points (all kinds), wraps of paths, couplers.
CENSUS = {
    "arm26": (6, 32, 7, 0),
    "gait10dof18musc_subject01": (18, 48 + 8 + 4, 0, 0),
    "gait2392_subject01": (92, 288 + 26 + 8, 0, 0),
    "walk_armless_18musc": (18, 60, 16, 2),
    "walk_scaled_80musc": (80, 288, 46, 2),
}


@pytest.mark.parametrize("name", CENSUS)
def test_reference_models_are_read_as_a_whole(opensim, name):
    model = read_model((opensim / "models" / f"{name}.osim").read_bytes())
    points = sum(len(m.points) for m in model.muscles)
    wraps = sum(len(m.wraps) for m in model.muscles)
    assert (len(model.muscles), points, wraps, len(model.couplers)) == CENSUS[name]
    assert all(body.mass >= 0 for body in model.bodies)


def test_a_property_that_a_muscle_leaves_out_is_that_of_the_files_defaults(opensim):
    model = read_model((opensim / "models" / "walk_armless_18musc.osim").read_bytes())
    assert {m.fastest for m in model.muscles} == {10.0}
    assert model.free == tuple(n for n in model.names if not n.endswith("_beta"))


def test_defaults_of_a_file_are_those_of_muscles_bodies_and_wrap_objects():
    """Also of flags: OpenSim makes every object of the file from the default of its class."""
    sphere = surface("WrapSphere", "<radius>0.02</radius>").replace("<quadrant>all</quadrant>", "")
    more = """<defaults>
      <Thelen2003Muscle><ignore_tendon_compliance>true</ignore_tendon_compliance></Thelen2003Muscle>
      <WrapSphere><quadrant>-y</quadrant></WrapSphere>
      <Body><mass_center>0.3 0 0</mass_center></Body>
    </defaults>"""
    plain = hinge(wraps=sphere).replace(b"<mass_center>0.2 0 0</mass_center>", b"")
    explicit = plain.replace(b'<Model name="hinge">', f'<Model name="hinge">{more}'.encode())
    for content, rigid, quadrant, centre in ((plain, False, "all", 0.0), (explicit, True, "-y", 0.3)):
        model = read_model(content)
        assert model.muscles[0].rigid is rigid
        assert model.wraps[0].quadrant == quadrant
        assert model.bodies[0].centre[0] == centre


@pytest.mark.parametrize(
    ("content", "at", "message"),
    [
        (hinge(muscle="<colour>red</colour>"), "<colour>", "is not supported within <Thelen2003Muscle>"),
        (hinge(forces='<PointToPointSpring name="s"/>'), "<PointTo", "is not a supported force"),
        (hinge(constraints='<WeldConstraint name="w"/>'), "<WeldC", "is not a supported constraint"),
        (hinge(path_wraps=USED), "<PathWrap ", "wraps around 'surface', which does not exist"),
        (
            hinge(path_wraps=USED, wraps=surface("WrapCylinder", "<radius>-1</radius><length>1</length>")),
            "<WrapC",
            "has the sizes -1, 1; they must be positive",
        ),
        (
            hinge(
                path_wraps=USED,
                wraps=surface("WrapTorus", "<inner_radius>0.05</inner_radius><outer_radius>0.01</outer_radius>"),
            ),
            "<WrapT",
            "has an outer_radius of 0.01; it must be larger than the inner_radius, 0.05",
        ),
        (hinge().replace(b"0.2 0.01 0<", b"0.2 zero 0<"), "<location>0.2", "'zero' is not a number"),
        (hinge().replace(b"0.2 0.01 0<", b"0.2 0<"), "<location>0.2", "contains 2 numbers, not 3"),
        (hinge().replace(b"0.2 0.01 0<", b"nan 0 0<"), "<location>nan", "holds NaN"),
        (hinge().replace(b"0.2 0.01 0<", b"0.2 inf 0<"), "<location>0.2", "'inf' is not finite"),
        (hinge().replace(b"0.2 0.01 0<", b"0.2 1e999 0<"), "<location>0.2", "'1e999' is not finite"),
        (hinge(muscle="<Af>inf</Af>"), "<Af>", "'inf' is not finite"),
        (hinge(muscle="<Af>0</Af>"), "<Af>", "Af must be positive, not 0"),
        (hinge(muscle="<Flen>1</Flen>"), "<Flen>", "Flen must be above 1, not 1"),
        (hinge(forces='<PointActuator name="FX"/>'), "<PointActuator", "is not a supported force"),
        (hinge(forces='<TorqueActuator name="MX"/>'), "<TorqueActuator", "is not a supported force"),
        (hinge(forces='<PointActuator name="f"/>'), "<PointA", "is not a supported force"),
        (within("Model", '<Thelen2003Muscle name="more"/>'), '<Thelen2003Muscle name="more"', "has no GeometryPath"),
        (within("Model", '<Thelen2003Muscle name="flexor"/>'), '<Thelen2003Muscle name="flexor"', "has no name of its"),
        (within("Model", '<PointActuator name="heel"/>'), "<PointA", UNREAD),
        (within("Body", '<SmoothSphereHalfSpaceForce name="heel"/>'), "<SmoothSphere", UNREAD),
        (within("Body", '<CoordinateActuator name="drive"/>'), "<CoordinateActuator", UNREAD),
        (within("Body", '<ContactSphere name="heel"/>'), "<ContactSphere", UNREAD),
        (
            added("<ComponentSet><objects><BushingForce/></objects></ComponentSet>"),
            "<BushingForce",
            "is not read within <ComponentSet>",
        ),
        (added('<ForceSet name="second"/>'), '<ForceSet name="second"', "a model has one <ForceSet>; join both"),
        (
            hinge().replace(b"<ConstraintSet><objects></objects>", b'<ConstraintSet><WeldConstraint name="w"/>'),
            "<WeldC",
            "is not supported within <ConstraintSet>",
        ),
        (hinge().replace(b">500<", b">-5<"), "<max_isometric_force>", "max_isometric_force must be positive, not -5"),
        (hinge().replace(b"/bodyset/arm", b"/bodyset/leg"), '<PathPoint name="p2"', "is fixed to 'leg'"),
        (hinge().replace(b">ground</socket_p", b">sky</socket_p"), "<socket_parent_frame>sky", "leads to 'sky'"),
        (hinge().replace(b"PinJoint", b"ScrewJoint"), "<ScrewJoint", "is not a supported joint"),
        (hinge().replace(b"<mass>1", b"<mass>-1"), "<mass>", "-1 kg is not a mass"),
        (hinge().replace(b'Version="40000"', b'Version="20000"'), "<OpenSimD", "has the version '20000'"),
    ],
)
def test_unsupported_entries_are_named_with_their_place(content, at, message):
    before = content[: content.index(at.encode())].decode()
    with pytest.raises(ModelError, match=message.replace("(", r"\(")) as caught:
        read_model(content)
    assert caught.value.line == before.count("\n") + 1
    assert caught.value.column == len(before.rpartition("\n")[2]) + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no element found"),
        (b"<Model>", "no element found|unclosed"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><OpenSimDocument/>', "document types and entities are not supported"),
        (b"<html></html>", "is not an OpenSim model"),
        (b"\xff\xfe\x00", "not well-formed"),
        (b"<a>" * 500, "nested more than 200 deep"),
    ],
)
def test_other_files_are_refused_in_a_sentence(content, message):
    with pytest.raises(ModelError, match=message):
        read_model(content)


def test_a_force_that_is_switched_off_takes_no_part():
    off = '<SpringGeneralizedForce name="s"><appliesForce>false</appliesForce></SpringGeneralizedForce>'
    assert len(read_model(hinge(forces=off)).muscles) == 1


def test_components_without_mechanics_are_allowed_and_what_is_not_used_is_noted():
    extra = '<Marker name="m"/><Station name="s"/><UmbergerProbe name="p"/><TableReporter name="r"/>'
    off = '<BushingForce name="b"><appliesForce>false</appliesForce></BushingForce>'
    assert read_model(within("Model", extra + off)).notes == ()
    drive = '<CoordinateActuator name="motor"><coordinate>flexion</coordinate></CoordinateActuator>'
    controller = '<ControllerSet><objects><PrescribedController name="given"/></objects></ControllerSet>'
    content = hinge(forces=drive).replace(b"  </Model>", f"{controller}</Model>".encode())
    content = content.replace(b"</range>", b"</range><prescribed>true</prescribed>")
    assert read_model(content).notes == (
        "coordinate 'flexion': its prescribed function is not used",
        "drives of coordinates do not take part in the sharing: motor",
        "controllers are not used: given",
    )


def test_limits_without_an_end_are_read():
    (flexion,) = read_model(hinge().replace(b"-3 3", b"-inf inf")).coordinates
    assert (flexion.low, flexion.high) == (-np.inf, np.inf)


def test_splines_go_through_their_points_and_continue_straight():
    x = np.array([-1.0, 0.0, 0.5, 2.0, 3.0])
    y = np.array([0.3, -0.2, 0.4, 1.0, 0.8])
    for spline in (simm_spline(x, y), natural_spline(x, y), lines(x, y)):
        assert spline.value(x) == pytest.approx(y)
        at = np.linspace(-2, 4, 101) + 1e-3
        slope = (spline.value(at + 1e-6) - spline.value(at - 1e-6)) / 2e-6
        assert spline.slope(at) == pytest.approx(slope, abs=1e-7)
        assert spline.value(np.array([5.0])) == pytest.approx(y[-1] + 2.0 * spline.slope(np.array([3.0])))


@pytest.mark.parametrize(
    "function",
    [Polynomial((2.0, -1.0, 0.5, 3.0)), Sine(0.7, 3.0, 0.2, 0.1), ScaledFunction(Polynomial((1.0, 4.0)), -2.5)],
)
def test_the_slopes_of_functions_are_those_of_their_values(function):
    at = np.linspace(-2.0, 2.0, 41)
    slope = (function.value(at + 1e-6) - function.value(at - 1e-6)) / 2e-6
    assert function.slope(at) == pytest.approx(slope, abs=1e-7)


def test_the_simm_spline_of_a_cubic_is_the_cubic():
    """Its ends have the third derivative of the cubic through four points."""
    x = np.array([-1.0, -0.3, 0.4, 1.1, 2.0])
    spline = simm_spline(x, x**3 - x)
    at = np.linspace(-1, 2, 50)
    assert spline.value(at) == pytest.approx(at**3 - at)
    assert simm_spline(x[:2], x[:2] * 3).value(np.array([0.0])) == pytest.approx(0.0)


@pytest.mark.slow
def test_mutated_models_are_read_or_refused_with_a_place(opensim):
    """2 000 files with bytes, words and lines changed: an error with line and column, or a model; nothing else."""
    rng = np.random.default_rng(15)
    names = ["arm26", "gait10dof18musc_subject01", "walk_armless_18musc"]
    contents = [(opensim / "models" / f"{name}.osim").read_bytes() for name in names]
    places = []
    for i in range(2000):
        content = bytearray(contents[i % 3])
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, len(content)))
            match int(rng.integers(0, 4)):
                case 0:
                    content[at] = int(rng.integers(0, 256))
                case 1:
                    del content[at : at + int(rng.integers(1, 200))]
                case 2:
                    content[at:at] = content[at : at + int(rng.integers(1, 200))]
                case _:
                    content[at:at] = b" -1e999 nan "
        try:
            read_model(bytes(content))
        except ModelError as error:
            places.append((error.line, error.column))
    assert 100 < len(places) < 1900
    assert min(min(position) for position in places) >= 1


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
