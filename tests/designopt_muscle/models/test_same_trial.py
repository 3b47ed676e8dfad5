"""The same trial written in another way gives the same activations: order, names, mirroring, labels and units."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from designopt_muscle.geometry.geometry import muscle_geometry
from designopt_muscle.models.static_sharing import StaticSharing
from designopt_muscle.models.trial import TrialFrames, bundled_file, read_trial
from designopt_muscle.osim.read import read_model
from opensim_cases import table
from small_models import hinge

from designopt.plugin import Diverged, InputFile

LEG, WALK = bundled_file("planar_leg.osim"), bundled_file("walking_leg.csv")
NAMES = frozenset({"activations", "muscles", "notes", "status"})
DESIGNS = [{}, {"exponent": 3.0}, {"strength": 0.35}]


def by_name(leg, walk, design):
    """Activations (n,) by muscle, and the notes."""
    _, arrays = StaticSharing(model=leg, reserve=5.0).evaluate(design, {"motion": walk}, NAMES)
    return dict(zip(arrays["muscles"].tolist(), arrays["activations"].T, strict=True)), arrays["notes"].tolist()


def file_of(root):
    return InputFile("changed.osim", ET.tostring(root))


def assert_same(one, second, names=None):
    for name, activations in one.items():
        label = (names or {}).get(name, name)
        assert np.abs(second[label] - activations).max() <= 1e-9, name


@pytest.mark.parametrize("design", DESIGNS)
def test_the_order_of_the_muscles_does_not_count(design):
    root = ET.fromstring(LEG.content)
    holder = next(e for e in root.iter("objects") if any(m.tag.endswith("Muscle") for m in e))
    muscles = list(holder)
    for muscle in muscles:
        holder.remove(muscle)
    holder.extend(muscles[i] for i in np.random.default_rng(3).permutation(len(muscles)))
    assert_same(by_name(LEG, WALK, design)[0], by_name(file_of(root), WALK, design)[0])


@pytest.mark.parametrize("design", DESIGNS)
def test_the_names_of_coordinates_do_not_count(design):
    def renamed(file):
        content = file.content
        for old, new in ((b"hip_flexion", b"q_three"), (b"knee_angle", b"q_one"), (b"ankle_angle", b"q_two")):
            content = content.replace(old, new)
        return InputFile(file.name, content)

    assert_same(by_name(LEG, WALK, design)[0], by_name(renamed(LEG), renamed(WALK), design)[0])


@pytest.mark.parametrize("design", DESIGNS)
def test_a_leg_that_is_mirrored_walks_with_the_same_activations(design):
    """x is turned round: places, sides of wraps, coordinates about z, ranges, and the net moments."""
    root = ET.fromstring(LEG.content)
    for tag in ("location", "translation", "mass_center"):
        for element in root.iter(tag):
            x, y, z = (float(v) for v in element.text.split())
            element.text = f"{-x} {y} {z}"
    for element in root.iter("quadrant"):
        element.text = element.text.translate(str.maketrans("+-", "-+")) if "x" in element.text else element.text
    for coordinate in root.iter("Coordinate"):
        low, high = (float(v) for v in coordinate.find("range").text.split())
        coordinate.find("range").text = f"{-high} {-low}"
    lines = [line for line in WALK.content.decode().splitlines() if not line.startswith("#")]
    rows = [[float(v) for v in line.split(",")] for line in lines[1:]]
    turned = [",".join([repr(row[0]), *(repr(-v) for v in row[1:])]) for row in rows]
    walk = InputFile("mirrored.csv", "\n".join([lines[0], *turned]).encode())
    assert_same(by_name(LEG, WALK, design)[0], by_name(file_of(root), walk, design)[0])


def test_forces_in_other_numbers_with_moments_in_the_same_ones_give_the_same_activations():
    """A model in kN has moments in kN m."""
    content = re.sub(
        rb"<max_isometric_force>([\d.]+)<",
        lambda match: b"<max_isometric_force>%.12g<" % (float(match[1]) / 1000.0),
        LEG.content,
    )
    lines = WALK.content.decode().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("time"))
    rows = [[float(v) for v in line.split(",")] for line in lines[at + 1 :]]
    scaled = [",".join(map(repr, [*row[:4], *(v / 1000.0 for v in row[4:])])) for row in rows]
    walk = InputFile("kilo.csv", "\n".join([lines[at], *scaled]).encode())
    model = StaticSharing(model=InputFile("kilo.osim", content))
    _, rescaled = model.evaluate({}, {"motion": walk}, NAMES)
    _, one = StaticSharing().evaluate({}, {}, NAMES)
    assert np.abs(rescaled["activations"] - one["activations"]).max() <= 1e-9


# ------------------------------------------------------------------------------------------- labels and units of tables


def sto(header, labels, rows, ending="\n"):
    lines = ["walk", *header, "endheader", "\t".join(labels), *("\t".join(f"{v:.15g}" for v in row) for row in rows)]
    return InputFile("walk.sto", (ending.join(lines) + ending).encode())


def walking():
    lines = [line for line in WALK.content.decode().splitlines() if not line.startswith("#")]
    return lines[0].split(","), np.array([[float(v) for v in line.split(",")] for line in lines[1:]])


NEW = ["version=3", "nRows=41", "nColumns=7", "inDegrees=no"]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({}, ""),
        ({"ending": "\r\n"}, ""),
        ({"paths": True}, ""),
        ({"header": ["version=3", "inDegrees=yes"], "degrees": True}, ""),
        ({"header": ["datacolumns 7", "datarows 41", "range 0 1"], "degrees": True}, "assumed to be in degrees"),
        ({"header": ["version=3"]}, "assumed to be in radians"),
        ({"header": ["version=3", "nRows=9", "inDegrees=no"]}, "the header says 9 rows"),
        ({"extra": True}, ""),
    ],
)
def test_a_table_may_be_labelled_and_headed_in_all_the_ways_that_there_are(change, note):
    names, rows = walking()
    if change.get("degrees"):
        rows = rows.copy()
        rows[:, 1:4] = np.degrees(rows[:, 1:4])
    if change.get("paths"):
        joints = {"hip_flexion": "hip", "knee_angle": "knee", "ankle_angle": "ankle"}
        names = [f"/jointset/{joints[n]}/{n}/value" if n in joints else n for n in names]
    if change.get("extra"):
        names, rows = [*names, "marker_x"], np.column_stack([rows, np.full(len(rows), 7.0)])
    motion = sto(change.get("header", NEW), names, rows, change.get("ending", "\n"))
    same, notes = by_name(LEG, motion, {})
    assert_same(by_name(LEG, WALK, {})[0], same)
    assert any(note in printed for printed in notes)


def test_degrees_in_a_table_that_says_radians_are_reported():
    names, rows = walking()
    rows[:, 1:4] = np.degrees(rows[:, 1:4])
    trial = read_trial(LEG, sto(NEW, names, rows))
    assert any("it is probably in degrees" in note for note in trial.notes)


def test_a_driven_coordinate_is_never_read_from_the_table(opensim):
    """walk_scaled_80musc.sto has knee_angle_r_beta in degrees beside radians (specification, section 1.1)."""
    model = InputFile("m.osim", (opensim / "models" / "walk_scaled_80musc.osim").read_bytes())
    motion = InputFile("m.sto", (opensim / "motion" / "walk_scaled_80musc_kinematics.sto").read_bytes())
    moments = InputFile("i.csv", (opensim / "reference" / "walk_scaled_80musc_inverse_dynamics.csv").read_bytes())
    _, values = table(opensim / "reference" / "walk_scaled_80musc_inverse_dynamics.csv")
    window = (values[0, 0], values[5, 0])
    one = read_trial(model, motion, moments, frames=TrialFrames(window))
    without = re.sub(rb"knee_angle_r_beta(?=[\t/])", b"something_else", motion.content, count=1)
    assert without != motion.content
    trimmed = read_trial(model, InputFile("n.sto", without), moments, frames=TrialFrames(window))
    assert np.array_equal(one.balance.arms, trimmed.balance.arms)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.0, 0.1, 1.0], [0.1, 0.2, 1.0], [0.1, 0.3, 1.0]], "walk.sto.*time"),
        ([[0.0, 0.1, 1.0], [0.2, 0.2, 1.0], [0.1, 0.3, 1.0]], "walk.sto.*time"),
    ],
)
def test_times_that_do_not_increase_are_refused_with_the_file(rows, message):
    model = StaticSharing(model=InputFile("hinge.osim", hinge()))
    with pytest.raises(Diverged, match=message):
        model.evaluate({}, {"motion": sto(NEW, ["time", "flexion", "flexion_moment"], rows)})


# ---------------------------------------------------------------------------------------------------------- lengthening


@pytest.mark.parametrize("name", ["gait10dof18musc_subject01", "gait2392_subject01"])
def test_lengthening_speeds_are_the_rates_of_the_lengths(opensim, name):
    """dl/dt = -R dq/dt along a motion, against differences of eighth order: 1e-10 m/s."""
    model = read_model((opensim / "models" / f"{name}.osim").read_bytes())
    rng = np.random.default_rng(2)
    ends = {c.name: (c.low, c.high) for c in model.coordinates}
    middle = {n: 0.02 * float(rng.uniform(-1, 1)) + np.clip(0.05, *ends[n]) for n in model.free}
    size = {n: 0.02 * float(rng.uniform(-1, 1)) for n in model.free}
    step, at = 4e-3, 0.3

    def pose(t):
        return {n: middle[n] + size[n] * np.sin(3.0 * t) for n in model.free}

    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    times = np.array([at + s * k * step for k in weights for s in (1, -1)])
    lengths = muscle_geometry(model, pose(times)).lengths.reshape(4, 2, -1)
    rate = sum(w * (lengths[k - 1, 0] - lengths[k - 1, 1]) for k, w in weights.items()) / step
    geometry = muscle_geometry(model, pose(np.array([at])))
    rates = np.array([[3.0 * size[n] * np.cos(3.0 * at) for n in geometry.coordinates]])
    off = np.abs(geometry.speeds(rates)[0] - rate)
    assert np.quantile(off, 0.9) <= 1e-10
    assert off.max() <= 1e-8  # a conditional point that comes or goes within the differences would be far more
