"""Models scaled to a subject: OpenSim's pipeline of Gait2392, set-up files, least squares, marker placement."""

from dataclasses import replace

import numpy as np
import pytest
from designopt_mechanics.robot_files.xml import ModelError, document, parse
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.markers.status import MarkerError
from designopt_muscle.markers.tasks import IkTasks
from designopt_muscle.osim.markers import read_markers
from designopt_muscle.osim.read import read_model
from designopt_muscle.scaling.apply import scale_model, scaled_inertia
from designopt_muscle.scaling.factors import mean_pose
from designopt_muscle.scaling.scale import place_markers, scale_subject
from designopt_muscle.scaling.setup import Measurement, ScaleSetup, read_scale_setup
from designopt_recordings.files.read import read_recording, read_table
from small_models import FORCES, hinge, surface
from subject_model import motion, recorded, subject

from designopt.plugin import InputFile

FACTORS = {"pelvis": 1.1, "thigh_r": 1.2, "thigh_l": 1.2, "shank_r": 0.9, "shank_l": 0.9}


def factors_of(values):
    return {body: np.full(3, value) for body, value in values.items()}


@pytest.fixture(scope="module")
def pose():
    """The static pose of the small subject at the size of FACTORS."""
    content = scale_model(subject(), factors_of(FACTORS))
    model, markers = read_model(content), read_markers(content)
    values = {name: value[:1] for name, value in motion(model, 2, seed=3).items()}
    return recorded(model, markers, {name: np.repeat(v, 3) for name, v in values.items()}), values


def test_gait2392_is_scaled_as_by_opensim(opensim):
    folder = opensim / "pipeline_gait2392"
    setup = read_scale_setup((folder / "subject01_Setup_Scale.xml").read_bytes())
    static = read_recording(InputFile("static.trc", (folder / "subject01_static.trc").read_bytes()))
    markers = read_markers((folder / "gait2392_Scale_MarkerSet.xml").read_bytes())
    subject01 = scale_subject((folder / "gait2392_generic.osim").read_bytes(), static, setup, markers)
    model, theirs = subject01.model, read_model((folder / "reference/subject01_scaledOnly.osim").read_bytes())
    applied = parse((folder / "reference/subject01_scaleSet_applied.xml").read_bytes())
    printed = {e.word("segment"): e.numbers("scales", 3) for e in applied.walk() if e.tag == "Scale"}
    for body, factor in subject01.factors.items():
        assert factor == pytest.approx(printed[body], abs=5.1e-6)  # six digits are printed
    for a, b in zip(model.bodies, theirs.bodies, strict=True):
        assert a.mass == pytest.approx(b.mass, rel=1e-12)
        assert a.inertia == pytest.approx(b.inertia, rel=1e-12, abs=1e-15)
        assert a.centre == pytest.approx(b.centre, abs=1e-15)
    for a, b in zip(model.joints, theirs.joints, strict=True):  # more digits of the factors: 1e-15
        assert a.in_parent == pytest.approx(b.in_parent, abs=1e-14)
    for a, b in zip(model.muscles, theirs.muscles, strict=True):
        assert (a.fibre, a.slack) == pytest.approx((b.fibre, b.slack), rel=1e-12)
    rng = np.random.default_rng(0)
    poses = {c.name: rng.uniform(0.5 * c.low, 0.5 * c.high, 10) for c in model.coordinates}
    assert np.abs(muscle_geometry(model, poses).lengths - muscle_geometry(theirs, poses).lengths).max() < 1e-12
    # OpenSim ends its static pose 0.6 degrees before the minimum; at its pose the markers are where it puts them,
    # and at an accuracy of 1e-9 its pose is ours to 1e-6 degrees
    table = read_table(InputFile("p.mot", (folder / "reference/subject01_static_output.mot").read_bytes()))
    stopped = {name: table.column(name)[:1] for name in model.names}
    placed = place_markers(model, subject01.markers, mean_pose(static, setup.window), stopped)
    reference = {m.name: m for m in read_markers((folder / "reference/subject01_simbody.osim").read_bytes())}
    assert {m.name for m in placed} == set(reference)
    assert max(np.abs(m.location - reference[m.name].location).max() for m in placed) < 1e-7
    assert subject01.static.column("pelvis_tilt")[0] == pytest.approx(np.radians(-1.18391608), abs=1e-7)
    assert subject01.static.column("lumbar_bending")[0] == pytest.approx(np.radians(0.71876883), abs=1e-6)


def test_every_length_follows_the_factors_of_its_body():
    factors = {"thigh_r": np.array([1.1, 1.3, 0.8]), "patella_r": np.array([2.0, 1.0, 1.0]), "pelvis": np.full(3, 1.5)}
    content = scale_model(subject(), factors)
    new, old = read_model(content), read_model(subject())
    joints = {joint.name: joint for joint in old.joints}
    for joint in new.joints:
        factor = factors.get(joint.parent, np.ones(3))
        assert joint.in_parent[:3, 3] == pytest.approx(joints[joint.name].in_parent[:3, 3] * factor)
    x = np.array([-1.0])
    for joint, factor in (("knee_r", 1.1), ("knee_l", 1.0), ("root", 1.0)):
        step = next(j for j in new.joints if j.name == joint).translations[0]
        assert step.function.value(x) == pytest.approx(factor * joints[joint].translations[0].function.value(x))
    for marker, before in zip(read_markers(content), read_markers(subject()), strict=True):
        assert marker.location == pytest.approx(before.location * factors.get(marker.body, np.ones(3)))
    ratio = muscle_geometry(new, {}).lengths[0, 0] / muscle_geometry(old, {}).lengths[0, 0]
    assert ratio > 1.1
    assert new.muscles[0].fibre == pytest.approx(old.muscles[0].fibre * ratio)
    assert new.muscles[0].slack == pytest.approx(old.muscles[0].slack * ratio)


@pytest.mark.parametrize(
    ("tag", "sizes", "expected"),
    [
        ("WrapCylinder", "<radius>0.1</radius><length>0.5</length>", (0.175, 0.25)),
        ("WrapSphere", "<radius>0.1</radius>", (0.15,)),
        ("WrapEllipsoid", "<dimensions>0.1 0.2 0.3</dimensions>", (0.2, 0.3, 0.15)),
        ("WrapTorus", "<inner_radius>0.1</inner_radius><outer_radius>0.2</outer_radius>", (0.175, 0.35)),
    ],
)
def test_wrap_surfaces_follow_the_factors_along_their_axes(tag, sizes, expected):
    turned = surface(tag, sizes, at="0.1 0.2 0.3", turned="0 1.5707963267948966 0")  # x is the ground's -z, z its x
    content = scale_model(
        hinge(wraps=turned), {"ground": np.array([0.5, 1.5, 2.0]) if tag != "WrapSphere" else np.full(3, 1.5)}
    )
    (wrap,) = read_model(content).wraps
    at = [0.05, 0.3, 0.6] if tag != "WrapSphere" else [0.15, 0.3, 0.45]
    assert wrap.sizes == pytest.approx(expected)
    assert wrap.pose[:3, 3] == pytest.approx(at)


def test_resting_lengths_and_frames_of_springs_follow_too():
    forces = "".join(FORCES[name] for name in ("band", "ligament", "blankevoort", "bushing"))
    old = read_model(hinge(forces=forces))
    new = read_model(scale_model(hinge(forces=forces), {"arm": np.full(3, 1.5)}))
    ends = (np.array([-0.1, 0.2, 0.05]), np.array([0.15, 0.03, -0.02]))
    ratio = np.linalg.norm(ends[0] - 1.5 * ends[1]) / np.linalg.norm(ends[0] - ends[1])
    for tag, a, b in zip(("rest_length", "rest_length", "slack"), old.passive, new.passive, strict=False):
        assert getattr(b.law, tag) == pytest.approx(getattr(a.law, tag) * ratio)
    for factor, a, b in zip((1.0, 1.5), old.passive[3].frames, new.passive[3].frames, strict=True):
        assert b[1][:3, 3] == pytest.approx(factor * a[1][:3, 3])


def test_masses_keep_or_follow_volumes_and_reach_the_subjects_mass():
    factors = factors_of({"thigh_r": 2.0})
    preserved, grown = (read_model(scale_model(subject(), factors, 64.4, preserve_mass=p)) for p in (True, False))
    assert sum(b.mass for b in preserved.bodies) == pytest.approx(64.4, rel=1e-14)
    mass = {b.name: b.mass for b in preserved.bodies}
    assert mass["thigh_r"] == pytest.approx(mass["thigh_l"])
    mass = {b.name: b.mass for b in grown.bodies}
    assert sum(mass.values()) == pytest.approx(64.4)
    assert mass["thigh_r"] == pytest.approx(8.0 * mass["thigh_l"])


def test_inertia_of_uneven_factors_is_that_of_the_scaled_cylinder():
    mass, radius, length = 3.0, 0.05, 0.4
    across = mass * (length**2 / 12 + radius**2 / 4)
    inertia = np.diag([across, 0.5 * mass * radius**2, across])
    inertia[0, 2] = inertia[2, 0] = 0.001
    factors = np.array([1.2, 1.5, 0.9])
    new_mass, new = scaled_inertia(mass, inertia, factors, False)
    across = new_mass * ((1.5 * length) ** 2 / 12 + radius**2 * 1.08 / 4)
    assert new_mass == pytest.approx(mass * 1.62)
    assert np.diag(new) == pytest.approx([across, 0.5 * new_mass * radius**2 * 1.08, across])
    assert new[0, 2] == pytest.approx(0.001 * 1.08 * 1.62)
    assert scaled_inertia(0.0, inertia, factors, True) == (0.0, pytest.approx(np.zeros((3, 3))))


def test_least_squares_recover_the_size_of_all_bodies(pose):
    static, values = pose
    setup = ScaleSetup(order=("least_squares",), placing=IkTasks())
    fitted = scale_subject(subject(), static, setup)
    for body, factor in FACTORS.items():
        assert fitted.factors[body] == pytest.approx(factor, abs=1e-4)
    assert fitted.static.rms[0] < 1e-4
    assert fitted.static.column("knee_r") == pytest.approx(values["knee_r"], abs=1e-3)


def test_measurements_by_hand_and_their_order_decide_the_factors(pose):
    static, _ = pose
    across = Measurement("pelvis", (("pelvis0", "pelvis1"), ("pelvis1", "pelvis2")), {"pelvis": "XZ", "tail": "X"})
    setup = ScaleSetup(measurements=(across,), manual={"shank_r": (1.3, 1.2, 1.1), "pelvis": (2.0, 2.0, 2.0)})
    by_hand = scale_subject(subject(), static, setup)
    assert by_hand.factors["pelvis"] == pytest.approx([2.0, 2.0, 2.0])
    assert by_hand.factors["shank_r"] == pytest.approx([1.3, 1.2, 1.1])
    measured = scale_subject(subject(), static, replace(setup, order=("manualScale", "measurements")))
    assert measured.factors["pelvis"] == pytest.approx([1.1, 2.0, 1.1], abs=1e-12)
    assert "bodies that the model does not have: tail" in measured.notes[0]
    lost = replace(setup, order=("measurements",), measurements=(replace(across, pairs=(("pelvis0", "sacrum"),)),))
    unscaled = scale_subject(subject(), static, lost)
    assert unscaled.factors["pelvis"] == pytest.approx(1.0)
    assert any("'pelvis' is not used: 'sacrum' is not in the model" in note for note in unscaled.notes)


def test_markers_are_placed_where_they_were_recorded_and_fixed_ones_stay(pose):
    static, _ = pose
    markers = [replace(m, location=m.location + 0.02, fixed=m.name == "pelvis1") for m in read_markers(subject())]
    setup = ScaleSetup(manual={b: (f, f, f) for b, f in FACTORS.items()}, placing=IkTasks(), name="anna")
    fitted = scale_subject(subject(), static, setup, tuple(markers[:-1]))
    assert parse(fitted.content).need("Model").name == "anna"
    assert len(fitted.markers) == len(markers)  # the last is that of the file
    assert read_markers(fitted.content)[3].location == pytest.approx(fitted.markers[3].location)
    placed = {m.name: m for m in fitted.markers}
    assert placed["pelvis1"].location == pytest.approx(markers[1].location * 1.1)
    assert np.linalg.norm(placed["pelvis2"].location - placed["pelvis0"].location) == pytest.approx(
        np.linalg.norm(static.marker("pelvis2")[0] - static.marker("pelvis0")[0])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"manual": {"thing_r": (1.0, 1.0, 1.0)}}, "'thing_r', which is not a body"),
        ({"manual": {"thigh_r": (1.0, -1.0, 1.0)}}, "are not positive"),
        ({"mass": -70.0}, "mass of the subject is -70 kg"),
        ({"mass": float("nan")}, "mass of the subject is nan kg"),
        ({"measurements": (Measurement("size", (("pelvis0", "pelvis1"),), {"tail": "X"}),)}, "'tail', which is not"),
        ({"window": (7.0, 8.0), "placing": IkTasks()}, "between 7 and 8 s"),
        (
            {"placing": IkTasks(coordinates={"knee_r": 1.0}, from_table=frozenset({"knee_r"}))},
            "the task for 'knee_r' reads a table of coordinates",
        ),
    ],
)
def test_scalings_that_do_not_fit_are_refused(pose, change, message):
    with pytest.raises(MarkerError, match=message):
        scale_subject(subject(), pose[0], replace(ScaleSetup(), **change))


def test_a_static_pose_in_another_unit_is_refused_with_the_measurement(pose):
    static, _ = pose
    across = ScaleSetup(measurements=(Measurement("pelvis", (("pelvis0", "pelvis1"),), {"pelvis": "XYZ"}),))
    with pytest.raises(MarkerError, match=r"'pelvis' gives the factor 1\.1e\+03: check the unit"):
        scale_subject(subject(), replace(static, markers=1e3 * static.markers), across)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("measurements manualScale", "guess", "'guess' is neither"),
        ("R.ASIS L.ASIS", "R.ASIS", "names 1 markers, not two"),
        ("<axes> X Y Z </axes>", "<axes> X W </axes>", "axes are X, Y and Z"),
        ("<mass>      72.60000000 </mass>", "<mass>heavy</mass>", "'heavy' is not a number"),
        ("1.14724000       1.14724000       1.14724000", "1.1 0 1.1", "factors must be positive"),
        ("ScaleTool", "Tool", "is not a scaling"),
    ],
)
def test_set_up_files_are_refused_with_line_and_column(opensim, old, new, message):
    content = (opensim / "pipeline_gait2392/subject01_Setup_Scale.xml").read_text()
    assert old in content
    with pytest.raises(ModelError, match=f"line \\d+, column \\d+.*{message}"):
        read_scale_setup(content.replace(old, new).encode())


def test_a_document_is_written_as_it_was_read():
    assert document(parse(document(parse(subject())))) == document(parse(subject()))
    text = b'<a name="x &amp; &quot;y&quot;"><b>1 &lt; 2</b><c /></a>'
    reread = parse(document(parse(text)))
    assert reread.name == 'x & "y"'
    assert reread.word("b") == "1 < 2"
