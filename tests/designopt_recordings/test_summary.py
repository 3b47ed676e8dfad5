"""The summary says in a few lines what a recording holds."""

from collections.abc import Callable

import numpy as np
from designopt_recordings.channels import Channels
from designopt_recordings.files.read import read_recording
from designopt_recordings.plate import ForcePlate
from designopt_recordings.recording import MarkedEvent, Recording
from designopt_recordings.summary import summary

from designopt.plugin import InputFile


def test_a_small_recording_is_summed_up() -> None:
    markers = np.ones((101, 2, 3))
    markers[:25, 1] = np.nan
    force = np.zeros((1001, 3))
    force[200:700, 1] = 812.4
    plates = (
        ForcePlate("left", 1000.0, force, np.zeros((1001, 3))),
        ForcePlate("right", 1000.0, np.zeros((1001, 3)), np.zeros((1001, 3))),
    )
    recording = Recording(
        100.0, np.arange(101) / 100.0, ("A", "B"), markers, Channels(1000.0, ("e",), ("V",), np.zeros((1001, 1))),
        plates, (MarkedEvent("Foot Off", 0.7, "Left"),), notes=("the file is odd",),
    )  # fmt: skip
    assert summary(recording) == (
        "101 frames at 100 Hz, 1.000 s",
        "2 markers, 12.4% of their positions missing: B 25%",
        "left: up to 812 N, in contact 0.199-0.700 s",
        "right: unloaded",
        "1 channels at 1000 Hz",
        "events: Left Foot Off 0.700 s",
        "note: the file is odd",
    )


def test_the_shared_walk_is_summed_up(shared: Callable[[str], InputFile]) -> None:
    lines = summary(read_recording(shared("mocap/plugin_gait_fullbody/Movement_trial.c3d")))
    assert lines[0] == "323 frames at 120 Hz, 2.683 s"
    assert "117 markers, complete" in lines
    assert "plate 1: up to 1214 N, in contact 7.696-8.474 s (cut off)" in lines
