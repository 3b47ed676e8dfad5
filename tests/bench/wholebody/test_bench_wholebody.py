"""The whole body: times of a frame, OpenSim's inverse kinematics on the same walk, two workers against one.

Run: OPENBLAS_NUM_THREADS=1 python -m pytest -m bench -n 0 -s tests/bench/wholebody
OpenSim is no dependency: name a Python that has it in the environment variable DESIGNOPT_PEER_OPENSIM. Times of
frames are of the processor, which other processes disturb less than the clock.
"""

import itertools
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from designopt_recordings.files.write import trc_text
from designopt_wholebody.body.subject import Subject, make_subject
from designopt_wholebody.consistency.positions import consistent_positions
from designopt_wholebody.consistency.rates import Motion, Projection
from designopt_wholebody.dynamics.inverse import inverse_dynamics
from designopt_wholebody.model.library import load_model
from designopt_wholebody.synthetic.pushup import pushup
from designopt_wholebody.synthetic.walk import walk
from designopt_wholebody.trial.analysis import coordinate_weights
from designopt_wholebody.trial.landmarks import find_landmarks, raw_coordinates
from designopt_wholebody.trial.marker_set import OWN_NAMES

from designopt import load

sys.path.insert(0, str(Path(__file__).parents[2] / "designopt_wholebody"))
from body_postures import random_postures, with_errors

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(
        os.environ.get("OPENBLAS_NUM_THREADS") != "1",
        reason="frames are small: set OPENBLAS_NUM_THREADS=1, as workers have it",
    ),
]

FRAMES = 128


@pytest.fixture(scope="module")
def full() -> Subject:
    return make_subject(load_model("wholebody21"))


def milliseconds(call: Callable[[], object]) -> float:
    """Median of five runs, ms of the processor for each frame."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        call()
        taken.append(time.process_time() - began)
    return 1e3 * statistics.median(taken) / FRAMES


def test_a_frame_of_the_full_model_is_consistent_within_milliseconds(
    full: Subject, record_property: Callable[[str, object], None]
) -> None:
    raw = with_errors(full, random_postures(full, FRAMES, seed=1, size=0.12), seed=2)
    taken = {
        m: milliseconds(lambda m=m: consistent_positions(full, raw, method=m))
        for m in ("recursion", "schur", "augmented_lagrangian")
    }  # type: ignore[misc]
    print(f"\nconsistency of 21 segments, ms a frame: {taken}")
    record_property("consistency of 21 segments, ms a frame", taken["recursion"])
    assert taken["recursion"] < 1.0
    assert taken["schur"] < 3.5


def test_inverse_dynamics_of_a_frame_takes_milliseconds(
    full: Subject, record_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng(3)
    q = random_postures(full, FRAMES, seed=4, size=0.12)
    projection = Projection(full)
    qdot = projection.velocities(q, rng.normal(size=q.shape))
    qddot = projection.accelerations(q, qdot, 10.0 * rng.normal(size=q.shape))
    motion = Motion(np.arange(FRAMES) / 100.0, q, qdot, qddot, np.zeros(FRAMES, dtype=bool))
    names = ("newton", "lagrange", "velocity_transformation")
    taken = {m: milliseconds(lambda m=m: inverse_dynamics(full, motion, method=m)) for m in names}  # type: ignore[misc]
    print(f"\ninverse dynamics of 21 segments, ms a frame: {taken}")
    record_property("inverse dynamics of 21 segments, ms a frame", taken["newton"])
    assert taken["newton"] < 2.5


#: The model of OpenSim: segment, the one before it, joint, its centre, and our segments whose markers it carries.
SEGMENTS = (
    ("pelvis", "", "free", "CAL", ("pelvis",)),
    ("trunk", "pelvis", "ball", "CAL", ("thorax", "clavicle_R", "clavicle_L", "scapula_R", "scapula_L")),
    ("head", "trunk", "ball", "CAC", ("head",)),
    *(
        part
        for s in "RL"
        for part in (
            (f"thigh_{s}", "pelvis", "ball", f"CAQ_{s}", (f"thigh_{s}",)),
            (f"shank_{s}", f"thigh_{s}", "pin", f"KC_{s}", (f"shank_{s}",)),
            (f"foot_{s}", f"shank_{s}", "ball", f"CAT_{s}", (f"foot_{s}",)),
            (f"humerus_{s}", "trunk", "ball", f"GU_{s}", (f"humerus_{s}",)),
            (f"forearm_{s}", f"humerus_{s}", "pin", f"PME_{s}", (f"ulna_{s}", f"radius_{s}")),
            (f"hand_{s}", f"forearm_{s}", "ball", f"CAP_{s}", (f"hand_{s}",)),
        )
    ),
)


def test_opensims_inverse_kinematics_takes_longer_for_the_same_accuracy(
    full: Subject, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Its model has 15 segments without shoulder girdles, ours 21; both fit the same markers of the same walk.

    Compared at its own usual accuracy, 1e-5, and at our usual tolerance, 1e-10, each against both of the other.
    """
    python = os.environ.get("DESIGNOPT_PEER_OPENSIM", os.environ.get("DESIGNOPT_PEER_MOCO"))
    if python is None:
        pytest.skip("name a Python with opensim in DESIGNOPT_PEER_OPENSIM")
    walking = walk(cycles=2, rate=60.0)
    marks, seen, bodies = full.landmarks, set(), []
    for name, parent, joint, centre, ours in SEGMENTS:
        markers = {}
        for segment in ours:
            for landmark in full.bodies[segment].local:
                if landmark in walking.recording.marker_names and landmark not in seen:
                    seen.add(landmark)
                    markers[landmark] = marks[landmark].tolist()
        stated = {"name": name, "parent": parent, "joint": joint, "centre": marks[centre].tolist(), "markers": markers}
        bodies.append(stated)
    (tmp_path / "model.json").write_text(json.dumps(bodies))
    (tmp_path / "walk.trc").write_text(trc_text(walking.recording))
    script = Path(__file__).parent / "inverse_kinematics.py"
    theirs = {}
    for accuracy in ("1e-5", "1e-10"):
        files = [str(tmp_path / "model.json"), str(tmp_path / "walk.trc")]
        done = subprocess.run(
            [python, str(script), *files, accuracy], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        found = json.loads(done.stdout.strip().splitlines()[-1])
        assert found["distance"] < 0.03  # it found the postures
        theirs[accuracy] = found["milliseconds"]
    raw = raw_coordinates(full, find_landmarks(full, walking.recording, OWN_NAMES).positions)
    weights = coordinate_weights(full, "lengths")
    ours = {}
    for accuracy in ("1e-5", "1e-10"):
        assert consistent_positions(full, raw, weights=weights, tolerance=float(accuracy)).usable.all()
        taken = milliseconds(lambda: consistent_positions(full, raw, weights=weights, tolerance=float(accuracy)))  # noqa: B023
        ours[accuracy] = taken * FRAMES / len(raw)
    print(f"\nms a frame of the walk: OpenSim {theirs}, consistency {ours}")
    for other, mine in itertools.product(theirs, ours):
        what = f"OpenSim's inverse kinematics to {other} by consistency to {mine}, a frame"
        record_property(what, theirs[other] / ours[mine])
    assert theirs["1e-10"] > 8.0 * ours["1e-10"]


def as_files(folder: Path) -> list[dict[str, object]]:
    """Eight trials as a laboratory has them, in files: no worker shares anything of theirs with another."""
    scenarios: list[dict[str, object]] = []
    for seed in range(8):
        trial = pushup("closed", cycles=12, rate=100.0, seed=seed)
        (folder / f"trial{seed}.trc").write_text(trc_text(trial.recording))
        if not seed:
            subject = trial.subject
            marks = np.stack([subject.landmarks[name] for name in subject.model.landmarks])
            static = replace(
                trial.recording,
                time=trial.recording.time[:20],
                marker_names=tuple(subject.model.landmarks),
                markers=np.repeat(marks[None], 20, axis=0),
                plates=(),
                results=None,
            )
            (folder / "static.trc").write_text(trc_text(static))
        files = {"recording": f"trial{seed}.trc", "static": "static.trc"}
        scenarios.append({"name": f"trial{seed}", **files, "mass": subject.mass})
    return scenarios


def test_two_workers_analyse_eight_trials_almost_twice_as_fast(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    study = {
        "study": "trials",
        "model": {"use": "wholebody_trial"},
        "scenarios": as_files(tmp_path),
        "solver": {"use": "evaluate", "designs": [{"name": "usual", "cutoff": 4.0}]},
    }
    taken, kept = {}, {}
    for workers in (1, 2):
        file = tmp_path / f"{workers}.yaml"
        file.write_text(json.dumps({**study, "execution": {"executor": "dask", "workers": workers}}))
        made = load(file)
        began = time.perf_counter()
        made.run(tmp_path / f"{workers}.study")
        taken[workers] = time.perf_counter() - began
        with sqlite3.connect(tmp_path / f"{workers}.study" / "journal.db") as journal:
            kept[workers] = journal.execute("select key, status, outputs from evaluation order by key").fetchall()
    assert [status for _, status, _ in kept[1]] == ["ok"] * 8
    assert kept[1] == kept[2]
    print(f"\neight trials: {taken[1]:.1f} s by one worker, {taken[2]:.1f} s by two, with their start")
    record_property("two workers by one, eight trials", taken[1] / taken[2])
    assert taken[1] / taken[2] > 1.8
