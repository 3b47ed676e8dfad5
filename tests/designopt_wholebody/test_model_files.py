"""Model files: what the bundled ones hold, how one is based on another, and what is said of mistakes."""

import numpy as np
import pytest
from designopt_wholebody.model.library import bundled_names, content_of, load_model
from designopt_wholebody.model.reading import read_model
from designopt_wholebody.model.schema import BodyModel

from designopt.study.language.errors import StudyError

ROD = """\
model: rod
landmarks:
  top: [0.0, 0.0, 0.0]
  end: [0.0, -1.0, 0.0]
segments:
  rod: {layout: 2p, points: [top, end], inertia: {mass: 1.0}}
joints:
  hinge: {type: spherical, proximal: ground, distal: rod, at: top}
"""


def read(text: str) -> BodyModel:
    return read_model(text.encode(), "own.yaml", content_of)


def test_the_bundled_models_are_read() -> None:
    assert bundled_names() == ("arm7", "four_bar", "lower_limbs7", "two_rods", "wholebody17", "wholebody21")
    for name in bundled_names():
        assert load_model(name).model == name


def test_blocks_of_the_full_model_stand_in_the_order_of_the_thesis() -> None:
    # Nunes 2017, table 4.3: right before left
    names = list(load_model("wholebody21").segments)
    assert names[:6] == ["head", "thorax", "clavicle_R", "clavicle_L", "scapula_R", "scapula_L"]
    assert names[14:] == ["pelvis", "thigh_R", "thigh_L", "shank_R", "shank_L", "foot_R", "foot_L"]


def test_the_left_side_is_mirrored_from_the_right() -> None:
    model = load_model("wholebody21")
    for name, (x, y, z) in model.landmarks.items():
        if name.endswith("_R"):
            assert model.landmarks[name[:-2] + "_L"] == (x, y, -z)
    assert model.segments["thigh_L"].points == ("CAQ_L", "KC_L")
    assert model.joints["radioulnar_L"].axis == ("EU_L", "EL_L")
    assert model.mirrored == {name for name in model.segments if name.endswith("_L")}
    # abduction is positive for both, and a turn about x of the other sign
    assert model.angles["hip_R"].names["abduction"] == -model.angles["hip_L"].names["abduction"]
    assert model.angles["hip_R"].names["flexion"] == model.angles["hip_L"].names["flexion"]


def test_a_model_based_on_another_changes_and_leaves_out() -> None:
    full, less = load_model("wholebody21"), load_model("wholebody17")
    assert set(full.segments) - set(less.segments) == {"clavicle_R", "clavicle_L", "scapula_R", "scapula_L"}
    assert less.joints["glenohumeral_L"].proximal == "thorax"
    assert less.segments["thorax"].inertia.mass_less == 0.0
    assert less.segments["thorax"].inertia.radii == full.segments["thorax"].inertia.radii
    assert not [name for name in less.joints if "scapulo" in name or "clavicular" in name]


def test_a_spring_of_a_segment_that_is_left_out_goes_with_it() -> None:
    spring = "s: {first: [ground, pivot], second: [lower, tip], stiffness: 1}"
    base = f"model: sprung\nbased_on: two_rods\nsprings:\n  {spring}\n"
    assert read(base).springs.keys() == {"s"}

    def library(name: str) -> bytes:
        return base.encode() if name == "sprung" else content_of(name)

    model = read_model(b"model: upper\nbased_on: sprung\nwithout: [lower]\n", "own.yaml", library)
    assert (set(model.segments), model.springs) == ({"upper"}, {})


def test_one_side_only() -> None:
    arm = load_model("arm7")
    assert not [name for name in arm.segments if name.endswith("_L")]
    assert "EC_L" in arm.landmarks


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "message"),
    [
        ("layout: 2p,", "layout: 2q,", 6, 17, "2q"),
        ("points: [top, end]", "points: [top, ned]", 6, 29, "there is no landmark 'ned'; did you mean 'end'?"),
        ("points: [top, end]", "points: [top]", 6, 29, "layout 2p has 2 points, not 1"),
        ("mass: 1.0", "mass: -1.0", 6, 57, "-1"),
        ("mass: 1.0", "tensor: [1, 1, 1, 0, 0, 0]", 6, 50, "either mass or mass_percent"),
        ("distal: rod", "distal: rood", 8, 54, "there is no segment 'rood'; did you mean 'rod'?"),
        ("at: top", "at: top, axes: [u, v]", 8, 74, "a joint of type spherical has no 'axes'"),
        (", at: top", "", 8, 10, "a joint of type spherical needs 'at'"),
        ("spherical", "revolute", 8, 10, "a joint of type revolute needs 'axis'"),
        ("[0.0, -1.0, 0.0]", "[0.0, -1.0]", 4, 8, "needs 3 values, has 2"),
        ("[0.0, -1.0, 0.0]", "[0.0, .nan, 0.0]", 4, 14, "finite"),
        ("model: rod\n", "model: rod\nbased_on: hole_body\n", 2, 11, "there is no model 'hole_body'"),
        ("model: rod\n", "model: rod\nbased_on: two_rods\nwithout: [uper]\n", 3, 11, "did you mean 'upper'"),
        ("joints:", "jionts:", 7, 1, "unknown key 'jionts'; did you mean 'joints'?"),
    ],
)
def test_a_mistake_is_reported_with_its_place(old: str, new: str, line: int, column: int, message: str) -> None:
    assert old in ROD
    with pytest.raises(StudyError) as raised:
        read(ROD.replace(old, new))
    issue = next(i for i in raised.value.issues if message in i.message)
    assert (issue.file, issue.line, issue.column) == ("own.yaml", line, column)


def test_every_mistake_is_reported_at_once() -> None:
    text = ROD.replace("distal: rod", "distal: rood").replace("[top, end]", "[top, ned]")
    with pytest.raises(StudyError) as raised:
        read(text)
    assert len(raised.value.issues) == 2


def test_an_axis_that_depends_on_itself_is_refused() -> None:
    text = content_of("wholebody21").decode().replace("v: [CAC, VC]", "v: {cross: [w, u]}")
    with pytest.raises(StudyError, match="axis v depends on itself"):
        read(text)


def test_a_left_segment_beside_its_mirror_image_is_refused() -> None:
    text = ROD.replace("rod: {", "rod_L: {").replace("distal: rod", "distal: rod_L")
    with pytest.raises(StudyError, match="sides: right"):
        read(text)


def test_random_changes_of_a_file_end_in_a_model_or_in_sentences() -> None:
    rng = np.random.default_rng(16)
    lines = content_of("wholebody21").decode().splitlines()
    refused = 0
    for _ in range(30):
        changed = list(lines)
        k = int(rng.integers(len(changed)))
        changed[k] = ["", changed[k][::-1], changed[k] + " ]", changed[k].replace("_R", "_Q")][int(rng.integers(4))]
        try:
            read("\n".join(changed))
        except StudyError as error:
            refused += all(issue.message for issue in error.issues)
    assert refused > 10
