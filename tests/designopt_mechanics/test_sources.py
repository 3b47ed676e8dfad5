"""Numbers that model files and tables transcribe, against the files of their sources."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from designopt_mechanics.exoskeleton import anthropometry
from designopt_mechanics.exoskeleton.anthropometry import SegmentShares

MODELS = files("designopt_mechanics.model_file").joinpath("models")


@pytest.fixture(scope="module")
def opensim(shared: Path) -> Path:
    folder = shared / "data" / "opensim" / "models"
    if not folder.is_dir():
        pytest.skip("the OpenSim models (../shared/data/opensim/models) are not there")
    return folder


def bundled(name: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(MODELS.joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def numbers(text: str | None) -> np.ndarray:
    return np.array([float(v) for v in (text or "").split()])


def curve(joint: ElementTree.Element, axis: str) -> tuple[np.ndarray, np.ndarray]:
    """Abscissae and scaled ordinates of the spline that a transform axis follows."""
    (transform,) = (a for a in joint.iter("TransformAxis") if a.get("name") == axis)
    splines = [*transform.iter("SimmSpline"), *transform.iter("NaturalCubicSpline")]
    scale = next((float(s.text or "1") for s in transform.iter("scale")), 1.0)
    return numbers(splines[0].findtext("x")), scale * numbers(splines[0].findtext("y"))


def test_the_patella_is_that_of_the_scaled_model_of_rajagopal(opensim: Path) -> None:
    root = ElementTree.parse(opensim / "walk_scaled_80musc.osim").getroot()
    knee = bundled("knee_patella")
    (joint,) = (j for j in root.iter("CustomJoint") if j.get("name", "").startswith("patellofemoral_r"))
    for name, axis in (("turn", "rotation1"), ("x", "translation1"), ("y", "translation2")):
        x, y = curve(joint, axis)
        ours = knee["functions"][f"patella_{name}"]["spline"]
        assert ours["x"] == pytest.approx(x, abs=1e-6)
        assert ours["y"] == pytest.approx(y, abs=1e-6)
    offset = next(numbers(f.findtext("translation")) for f in joint.iter("PhysicalOffsetFrame"))
    assert knee["frames"]["patella"]["place"][:2] == pytest.approx(offset[:2], abs=1e-6)
    (muscle,) = (m for m in root.iter() if m.get("name") == "vasint_r" and m.find(".//PathPointSet") is not None)
    points = [numbers(p.findtext("location")) for p in muscle.iter("PathPoint")]
    ours = [p["at"] for p in knee["wires"]["quadriceps"]["points"]]
    assert len(points) == len(ours)
    for mine, theirs in zip(ours, points, strict=True):
        assert mine[:2] == pytest.approx(theirs[:2], abs=1e-6)
    bodies = {b.get("name"): float(b.findtext("mass") or "nan") for b in root.iter("Body")}
    for frame, body in (("tibia", "tibia_r"), ("patella", "patella_r")):
        assert knee["frames"][frame]["body"]["mass"] == pytest.approx(bodies[body], abs=1e-3)


def test_the_tibia_is_that_of_yamaguchi_and_zajac(opensim: Path) -> None:
    """Flexion is negative there; the bundled range of flexion from 0 to 120 degrees needs the knots around it."""
    root = ElementTree.parse(opensim / "gait10dof18musc_subject01.osim").getroot()
    (joint,) = (j for j in root.iter("CustomJoint") if j.get("name") == "knee_r")
    knee = bundled("knee_patella")
    for name, axis in (("tibia_x", "translation1"), ("tibia_y", "translation2")):
        x, y = curve(joint, axis)
        scale = 1.0 if name == "tibia_x" else float(y[-1]) / -0.396  # the subject's scaled model
        theirs = dict(zip(np.round(-x, 6).tolist(), (y / scale).tolist(), strict=True))
        ours = knee["functions"][name]["spline"]
        matched = [(mine, theirs[at]) for at, mine in zip(ours["x"], ours["y"], strict=True) if at in theirs]
        assert len(matched) >= 5
        ratio = np.array([b / a for a, b in matched])
        assert np.ptp(ratio) < 2e-3 * abs(float(ratio.mean())), (name, ratio)  # one factor of scaling


def test_the_shares_of_the_spine_are_complete() -> None:
    functions = bundled("lumbo_pelvic")["functions"]
    for coordinate in ("flexion", "bending"):
        shares = [f["affine"][coordinate] for n, f in functions.items() if n.startswith(coordinate)]
        assert len(shares) == 5
        assert sum(shares) == pytest.approx(1.0, abs=1e-12)


#: Winter, Biomechanics and Motor Control of Human Movement, table 4.1, after Dempster (1955): mass by the body's,
#: centre from the proximal joint (of trunks from the hip) and radius of gyration about the centre, by length.
WINTER = """\
FOREARM     0.022  0.682 0.468
UPPER_ARM   0.028  0.436 0.322
FOOT        0.0145 0.5   0.475
SHANK       0.0465 0.433 0.302
THIGH       0.1    0.433 0.323
TRUNK       0.578  0.66  0.503
UPPER_BODY  0.678  0.626 0.496
LOWER_LEG   0.061  0.606 0.416
"""
#: Drillis and Contini (1966), Winter's figure 4.1, by stature: shoulder at 0.818 and hip at 0.530 over the ground.
LENGTHS = {
    "THIGH": 0.530 - 0.285,
    "SHANK": 0.285 - 0.039,
    "UPPER_ARM": 0.186,
    "FOREARM": 0.146,
    "UPPER_BODY": 0.818 - 0.530,
    "TRUNK": 0.818 - 0.530,
    "FOOT": 0.152 * 2.0 / 3.0,
    "LOWER_LEG": 0.285 - 0.039,
}


def test_the_anthropometry_is_the_published_table() -> None:
    rows = re.findall(r"(\w+) +([\d.]+) +([\d.]+) +([\d.]+)", WINTER)
    segments = {name for name, value in vars(anthropometry).items() if isinstance(value, SegmentShares)}
    assert {row[0] for row in rows} == segments == set(LENGTHS)
    for name, *values in rows:
        segment = getattr(anthropometry, name)
        assert (segment.mass, segment.centre, segment.gyration) == tuple(float(v) for v in values)
        assert segment.length == pytest.approx(LENGTHS[name], abs=5e-4)
