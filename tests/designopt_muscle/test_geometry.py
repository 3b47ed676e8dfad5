"""Lengths are those of OpenSim; moment arms are the slopes of the lengths."""

import csv
import functools

import numpy as np
import pytest
from designopt_mechanics.surfaces.torus import around_torus
from designopt_muscle.geometry.drawing import drawing
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.geometry.jumps import Jump, in_words, jumps
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.storage import read_storage
from opensim_cases import table
from small_models import USED, hinge, surface

from designopt.plugin import InputFile

MODELS = {
    "gait10dof18musc": "gait10dof18musc_subject01",
    "gait2392": "gait2392_subject01",
    "walk_armless_18musc": "walk_armless_18musc",
    "arm26": "arm26",
}


@functools.cache
def posed(opensim, name):
    """The model, its geometry, values and speeds at the reference poses, and the reference rows."""
    model = read_model((opensim / "models" / f"{MODELS[name]}.osim").read_bytes())
    names, numbers = table(opensim / "reference" / f"{name}_poses.csv")
    values, rates = ({n[2:]: c for n, c in zip(names, numbers.T, strict=True) if n[:2] == k} for k in ("q:", "u:"))
    with (opensim / "reference" / f"{name}_pose_geometry.csv").open() as file:
        rows = list(csv.DictReader(file))
    return model, muscle_geometry(model, values), values, rates, rows


def differences(geometry, rates, rows):
    """Of all rows: lengths, speeds, and moment arms less the reference."""
    coordinates = {n: i for i, n in enumerate(geometry.coordinates)}
    muscles = {n: i for i, n in enumerate(geometry.muscles)}
    still = np.zeros(len(geometry.lengths))
    speeds = geometry.speeds(np.column_stack([rates.get(n, still) for n in geometry.coordinates]))
    length, speed, arm = [], [], []
    for row in rows:
        frame, k = int(row["pose"]), muscles[row["muscle"]]
        length.append(geometry.lengths[frame, k] - float(row["length_m"]))
        speed.append(speeds[frame, k] - float(row["lengthening_speed_m_per_s"]))
        if row["coordinate"] in coordinates:
            arm.append(geometry.arms[frame, coordinates[row["coordinate"]], k] - float(row["moment_arm_m"]))
    return np.abs(length), np.abs(speed), np.abs(arm)


@pytest.mark.parametrize("name", ["gait10dof18musc", "gait2392"])
def test_paths_without_surfaces_are_those_of_opensim_to_the_printed_digits(opensim, name):
    """Splines, moving and conditional points: 1e-9 m and 1e-7 m (specs/muscle_force_sharing.md section 7)."""
    _, geometry, _, rates, rows = posed(opensim, name)
    length, speed, arm = differences(geometry, rates, rows)
    assert len(length) > 400
    assert length.max() <= 1e-9
    assert arm.max() <= 1e-7
    assert speed.max() <= 1e-8  # printed with ten digits, speeds up to 1 m/s


def test_spot_values_at_zero_coordinates(opensim):
    """specs/muscle_force_sharing.md section 2."""
    model = read_model((opensim / "models" / "gait2392_subject01.osim").read_bytes())
    geometry = muscle_geometry(model, {n: np.zeros(1) for n in model.names})

    def length(muscle):
        return geometry.lengths[0, geometry.muscles.index(muscle)]

    def arm(muscle, coordinate):
        return geometry.arms[0, geometry.coordinates.index(coordinate), geometry.muscles.index(muscle)]

    assert length("rect_fem_r") == pytest.approx(0.4695770938, abs=1e-10)
    assert arm("rect_fem_r", "knee_angle_r") == pytest.approx(0.05008835756, abs=1e-10)
    assert arm("rect_fem_r", "hip_flexion_r") == pytest.approx(0.04322456728, abs=1e-10)
    assert arm("rect_fem_r", "hip_adduction_r") == pytest.approx(-0.01268153081, abs=1e-10)
    assert length("psoas_r") == pytest.approx(0.274442301, abs=1e-9)
    assert arm("med_gas_r", "ankle_angle_r") == pytest.approx(-0.05119320629, abs=1e-10)


@pytest.mark.parametrize("name", ["walk_armless_18musc", "arm26"])
def test_paths_over_surfaces_are_close_to_those_of_opensim(opensim, name):
    """Ellipsoids and double wraps: 1e-3 m in the median, the goal of specs/muscle_force_sharing.md section 7."""
    _, geometry, _, rates, rows = posed(opensim, name)
    length, _, arm = differences(geometry, rates, rows)
    assert np.median(length) <= 1e-6
    assert np.median(arm) <= 1e-6
    assert np.quantile(arm, 0.9) <= 1e-3


def test_one_cylinder_of_each_muscle_over_a_walking_trial(opensim):
    """Unfiltered coordinates, 238 frames, driven coordinates computed: at most 3e-6 m from OpenSim's own test file."""
    model = read_model((opensim / "models" / "walk_armless_18musc.osim").read_bytes())
    motion = opensim / "motion" / "walk_armless_coordinates.mot"
    recording = read_storage(InputFile(motion.name, motion.read_bytes()))
    turns = [c.name for c in model.coordinates if c.rotational]
    in_radians = recording.radians([n for n in turns if n in recording.names])
    geometry = muscle_geometry(model, {n: in_radians.column(n) for n in model.free if n in recording.names})
    lengths_file = opensim / "reference" / "wrapping_subject_walk_armless_muscle_lengths.sto"
    reference = read_storage(InputFile(lengths_file.name, lengths_file.read_bytes()))
    largest, medians = {}, {}
    for label, column in zip(reference.names, reference.values.T, strict=True):
        muscle = label.rpartition("/")[2].removesuffix("|length")
        off = np.abs(geometry.lengths[:, geometry.muscles.index(muscle)] - column)
        largest[muscle], medians[muscle] = off.max(), np.median(off)
    twice_wrapped = {m.name for m in model.muscles if len(m.wraps) > 1}
    assert twice_wrapped == {"med_gas_r", "med_gas_l"}
    assert max(v for m, v in largest.items() if m not in twice_wrapped) <= 3e-6
    assert max(medians[m] for m in twice_wrapped) <= 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_moment_arms_are_the_slopes_of_the_lengths(opensim, name):
    """With surfaces, conditional points and couplers; away from where a path switches."""
    model, geometry, values, *_ = posed(opensim, name)
    step = 1e-6
    for i, coordinate in enumerate(geometry.coordinates):
        if coordinate not in values:  # locked at its default
            continue
        ahead, behind = (muscle_geometry(model, {**values, coordinate: values[coordinate] + s}) for s in (step, -step))
        slope = (behind.lengths - ahead.lengths) / (2 * step)
        same = (ahead.touch_counts == geometry.touch_counts) & (behind.touch_counts == geometry.touch_counts)
        off = np.abs(geometry.arms[:, i] - slope)
        switching = np.abs(ahead.lengths - 2 * geometry.lengths + behind.lengths) > 1e-9
        assert off[same & ~switching].max(initial=0.0) <= 1e-6
        assert (same & ~switching).mean() > 0.95


SURFACES = {
    "cylinder": ("WrapCylinder", "<radius>0.05</radius><length>2</length>"),
    "sphere": ("WrapSphere", "<radius>0.08</radius>"),
    "ellipsoid": ("WrapEllipsoid", "<dimensions>0.1 0.06 0.08</dimensions>"),
    "torus": ("WrapTorus", "<inner_radius>0.02</inner_radius><outer_radius>0.06</outer_radius>"),
}
TORUS = "<inner_radius>0.015</inner_radius><outer_radius>0.05</outer_radius>"


@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("quadrant", ["all", "+x", "-y"])
def test_a_path_over_a_surface_is_longer_than_the_straight_one_and_has_its_slope(kind, quadrant):
    q = np.linspace(-1.5, 1.0, 60)
    pose = (
        {"at": "0.02 0.1 0.03", "turned": "1.3 0.4 0"} if kind == "torus" else {}
    )  # a ring that the path goes through
    model = read_model(hinge(wraps=surface(*SURFACES[kind], quadrant=quadrant, **pose), path_wraps=USED))
    bare = read_model(hinge())
    over, straight = (muscle_geometry(m, {"flexion": q}) for m in (model, bare))
    wrapped = over.touch_counts[:, 0] > 0
    assert wrapped.sum() > 10
    assert (over.lengths[wrapped] > straight.lengths[wrapped]).all()
    assert over.lengths[~wrapped] == pytest.approx(straight.lengths[~wrapped], abs=1e-15)
    ahead, behind = (muscle_geometry(model, {"flexion": q + s}) for s in (1e-6, -1e-6))
    same = (ahead.touch_counts == over.touch_counts) & (behind.touch_counts == over.touch_counts)
    slope = (behind.lengths - ahead.lengths) / 2e-6
    assert np.abs(over.arms[:, 0] - slope)[same].max() <= 2e-7


def test_an_ellipsoid_of_equal_axes_is_a_sphere():
    q = np.linspace(-1.5, 1.0, 60)
    geometries = [
        muscle_geometry(read_model(hinge(wraps=surface(*form, turned=turned), path_wraps=USED)), {"flexion": q})
        for form, turned in (
            (("WrapSphere", "<radius>0.08</radius>"), "0 0 0"),
            (("WrapEllipsoid", "<dimensions>0.08 0.08 0.08</dimensions>"), "0.5 1.0 -0.3"),
        )
    ]
    assert geometries[0].touch_counts.sum() > 10
    assert geometries[0].lengths == pytest.approx(geometries[1].lengths, abs=1e-8)
    assert geometries[0].arms == pytest.approx(geometries[1].arms, abs=1e-7)


def test_an_ellipsoid_with_one_long_axis_is_nearly_a_cylinder():
    q = np.linspace(-1.5, 1.0, 40)
    cylinder, long = (
        muscle_geometry(read_model(hinge(wraps=surface(*form), path_wraps=USED)), {"flexion": q})
        for form in (
            ("WrapCylinder", "<radius>0.05</radius><length>20</length>"),
            ("WrapEllipsoid", "<dimensions>0.05 0.05 20</dimensions>"),
        )
    )
    assert (cylinder.touch_counts == long.touch_counts).all()
    assert cylinder.lengths == pytest.approx(long.lengths, abs=2e-6)


def test_a_path_through_a_ring_in_a_plane_with_its_axis_goes_round_a_circle():
    """Then the tube is a circle of 15 mm, 50 mm from the axis: tangents and arc by plane geometry."""
    ends = np.array([[0.09, 0.0, 0.08], [0.07, 0.0, -0.11]])
    path = around_torus(ends[:1], ends[1:], 0.015, 0.05, "all")
    d = ends[:, [0, 2]] - [0.05, 0.0]
    far = np.linalg.norm(d, axis=1)
    from_inside = np.pi - np.arctan2(np.abs(d[:, 1]), d[:, 0])  # angle of each end from the side of the axis
    arc = from_inside.sum() - np.arccos(0.015 / far).sum()
    assert path.is_engaged[0]
    assert path.arc[0] == pytest.approx(0.015 * arc, abs=1e-10)
    way = np.linalg.norm(path.first[0] - ends[0]), np.linalg.norm(path.last[0] - ends[1])
    assert way == pytest.approx(np.sqrt(far**2 - 0.015**2), abs=1e-10)
    assert path.first[0, 1] == pytest.approx(0.0, abs=1e-10)


def test_a_path_through_the_middle_of_a_ring_does_not_touch_it():
    path = around_torus(np.array([[0.01, 0.0, 0.1]]), np.array([[-0.01, 0.01, -0.1]]), 0.015, 0.05, "all")
    assert not path.is_engaged[0]


def test_lengths_over_a_torus_have_the_ends_tangents_as_gradient():
    """Shortest paths pull along their tangents: 300 pairs of ends above and below the ring, touching or beside it."""
    rng = np.random.default_rng(0)
    a, b = (np.column_stack([*rng.uniform(-0.1, 0.1, (2, 300)), s * rng.uniform(0.05, 0.2, 300)]) for s in (1, -1))

    def length(a, b):
        t = around_torus(a, b, 0.02, 0.06, "all")
        around = np.linalg.norm(t.first - a, axis=1) + t.arc + np.linalg.norm(b - t.last, axis=1)
        return np.where(t.is_engaged, around, np.linalg.norm(b - a, axis=1)), t

    lengths, touch = length(a, b)
    assert 0.5 < touch.is_engaged.mean() < 0.9
    assert (lengths >= np.linalg.norm(b - a, axis=1)).all()
    to = np.where(touch.is_engaged[:, None], touch.first, b)
    pull = (a - to) / np.linalg.norm(a - to, axis=1)[:, None]
    for i, step in enumerate(1e-6 * np.eye(3)):
        slope = (length(a + step, b)[0] - length(a - step, b)[0]) / 2e-6
        assert slope == pytest.approx(pull[:, i], abs=1e-6)


@pytest.mark.parametrize(
    ("at", "turned", "opensim"),
    [
        ("0 0.12 0", "1.2 0 0", [0.51139978, 0.47835941, 0.42442011, 0.36534892, 0.32304488]),
        ("0.02 0.1 0.03", "1.3 0.4 0", [0.51139978, 0.47835941, 0.42345161, 0.36659618, 0.34410962]),
    ],
)
def test_lengths_through_a_torus_are_near_those_of_opensim(at, turned, opensim):
    """OpenSim 4.6 goes round a straight cylinder in place of the bent tube: up to 2.5 mm shorter, never longer."""
    model = read_model(hinge(wraps=surface("WrapTorus", TORUS, at=at, turned=turned), path_wraps=USED))
    geometry = muscle_geometry(model, {"flexion": np.linspace(-1.0, 1.0, 5)})
    assert geometry.touch_counts[:, 0].tolist() == [0, 0, 1, 1, 1]
    assert geometry.lengths[:2, 0] == pytest.approx(opensim[:2], abs=1e-8)
    longer = geometry.lengths[2:, 0] - opensim[2:]
    assert (longer > 0).all()
    assert longer.max() < 2.5e-3


def test_jumps_of_a_path_are_reported_with_muscle_and_time():
    """The path changes the side of a cylinder at the joint where its points are opposite, near -1.3 rad."""
    q = np.linspace(-1.5, 1.0, 1000)
    form = surface("WrapCylinder", "<radius>0.05</radius><length>2</length>", turned="0 0 0")
    model = read_model(hinge(wraps=form, path_wraps=USED))
    (jump,) = jumps(muscle_geometry(model, {"flexion": q}), q, {"flexion": q})
    assert (jump.muscle, jump.coordinate, jump.is_engaged) == ("flexor", "flexion", False)
    assert jump.time == pytest.approx(-1.3, abs=0.01)
    assert jump.by == pytest.approx(0.1, abs=2e-4)  # from one side of the cylinder to the other
    assert str(jump) == f"flexor at {jump.time:.4g} s: its moment arm about flexion jumps by 99.9 mm"
    assert not jumps(muscle_geometry(read_model(hinge()), {"flexion": q}), q, {"flexion": q})


def test_many_jumps_are_one_sentence_with_the_largest():
    some = [Jump("soleus", 0.1 * k, 1e-3 * k, "ankle") for k in range(1, 5)]
    assert in_words(some[:1]) == ["soleus at 0.1 s: its moment arm about ankle jumps by 1 mm"]
    assert in_words([*some, Jump("psoas", 0.2, 2e-3)]) == [
        "4 jumps of moment arms between frames, of 1 muscle, the largest: soleus at 0.4 s: its moment arm"
        " about ankle jumps by 4 mm",
        "1 jump of lengths between frames, of 1 muscle, the largest: psoas at 0.2 s: its length jumps by 2 mm",
    ]


def test_coordinates_that_are_none_are_refused():
    with pytest.raises(ValueError, match="'knee' is not a coordinate of the model 'hinge'"):
        muscle_geometry(read_model(hinge()), {"knee": np.zeros(2)})


def test_a_drawing_has_the_bones_and_the_paths_with_their_lengths():
    """A hinge in the plane: the bone goes from the pin to its mass centre."""
    q = np.linspace(-1.0, 1.0, 7)
    model = read_model(hinge())
    skeleton, paths = drawing(model, {"flexion": q})
    assert skeleton.shape == (7, 3, 2)
    assert skeleton[:, 1] == pytest.approx(0.2 * np.column_stack([np.cos(q), np.sin(q)]))
    assert np.isnan(skeleton[:, 2]).all()
    assert paths.shape == (7, 1, 2, 2)


def test_a_drawing_in_space_stands_upright(opensim):
    model = read_model((opensim / "models" / "gait10dof18musc_subject01.osim").read_bytes())
    skeleton, paths = drawing(model, {"pelvis_ty": np.full(3, 0.95)})
    assert skeleton.shape[2] == paths.shape[3] == 3
    assert 1.0 < np.nanmax(skeleton[..., 2]) - np.nanmin(skeleton[..., 2]) < 2.0  # a body's height is the last axis
    way = np.linalg.norm(np.diff(paths, axis=2), axis=3)
    lengths = muscle_geometry(model, {"pelvis_ty": np.full(3, 0.95)}).lengths
    assert np.nansum(way, axis=2) == pytest.approx(lengths, abs=1e-12)
