"""Forces of a model file that depend on the motion alone: planar models leave them out, and say so; a walk in space
refuses them."""

from __future__ import annotations

from typing import Any

import pytest
from designopt_walking.amputee.model import AmputeeWalk
from designopt_walking.bundled import planar_walker, squat_leg
from designopt_walking.models.predict import WalkPredict
from designopt_walking.models.squat import SquatToStand
from designopt_walking.models.track import WalkTrack
from designopt_walking.spatial.model import WalkTrack3D

from designopt.plugin import InputFile, InvalidSetting


def with_limit(file: InputFile) -> InputFile:
    """The file with a force that ends the motion of the knee."""
    limit = (
        '<CoordinateLimitForce name="knee_limit"><coordinate>knee_angle_r</coordinate>'
        "<upper_stiffness>1</upper_stiffness><upper_limit>0</upper_limit><lower_stiffness>1</lower_stiffness>"
        "<lower_limit>-120</lower_limit><damping>0.01</damping><transition>5</transition></CoordinateLimitForce>"
    )
    content = file.content.decode()
    at = content.index("<objects>", content.index("<ForceSet")) + len("<objects>")
    return InputFile("limited.osim", (content[:at] + limit + content[at:]).encode())


@pytest.mark.parametrize(
    ("model", "bundled"),
    [(WalkPredict, planar_walker), (WalkTrack, planar_walker), (AmputeeWalk, planar_walker), (SquatToStand, squat_leg)],
)
def test_forces_that_take_no_part_are_named_with_what_ends_the_motion_instead(model: Any, bundled: Any) -> None:
    assert not any("motion alone" in note for note in model(model=bundled()).remarks({}))
    (note,) = (note for note in model(model=with_limit(bundled())).remarks({}) if "motion alone" in note)
    assert "the motion alone take no part (knee_limit): joints end at the ranges of their coordinates;" in note


def test_a_walk_in_space_refuses_them_with_the_way_out() -> None:
    with pytest.raises(InvalidSetting, match=r"\(knee_limit\): take them out of the file, and state springs") as error:
        WalkTrack3D(model=with_limit(planar_walker())).check()
    assert error.value.name == "model"
