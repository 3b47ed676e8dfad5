"""The whole body: frames a second of consistency and inverse dynamics, and two workers against one on eight trials.

Run: OPENBLAS_NUM_THREADS=1 python -m pytest -m bench -n 0 -s tests/bench/test_bench_wholebody.py
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from designopt_wholebody.body.subject import Subject, make_subject
from designopt_wholebody.consistency.positions import consistent_positions
from designopt_wholebody.consistency.rates import Motion, Projection
from designopt_wholebody.dynamics.inverse import inverse_dynamics
from designopt_wholebody.model.library import load_model

from designopt import define

sys.path.insert(0, str(Path(__file__).parents[1] / "designopt_wholebody"))
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
    """Median of five runs, ms for each frame."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return 1e3 * statistics.median(taken) / FRAMES


def test_a_frame_of_the_full_model_is_consistent_within_milliseconds(
    full: Subject, record_property: Callable[[str, object], None]
) -> None:
    raw = with_errors(full, random_postures(full, FRAMES, seed=1, size=0.12), seed=2)
    taken = {
        m: milliseconds(lambda m=m: consistent_positions(full, raw, method=m))
        for m in ("schur", "augmented_lagrangian")
    }  # type: ignore[misc]
    print(f"\nconsistency of 21 segments, ms a frame: {taken}")
    record_property("consistency of 21 segments, ms a frame", taken["schur"])
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


def test_two_workers_analyse_eight_trials_almost_twice_as_fast(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    study = {
        "study": "trials",
        "model": {"use": "wholebody_trial", "cycles": 6, "rate": 100.0},
        "scenarios": [{"name": f"trial{k}", "seed": k} for k in range(8)],
        "space": {"cutoff": 4.0},
        "objectives": [{"name": "elbow", "minimize": "elbow_torque", "over": "mean"}],
        "stages": [{"name": "one", "solver": {"use": "full_factorial"}}],
    }
    taken, best = {}, {}
    for workers in (1, 2):
        made = define(**study, execution={"executor": "dask", "workers": workers})
        began = time.perf_counter()
        result = made.run(tmp_path / f"{workers}.study")
        taken[workers] = time.perf_counter() - began
        best[workers] = np.asarray(result.outcomes.F).tolist()
    assert best[1] == best[2]
    print(f"\neight trials of 1201 frames: {taken[1]:.1f} s by one worker, {taken[2]:.1f} s by two")
    record_property("two workers by one, eight trials", taken[1] / taken[2])
    assert taken[1] / taken[2] > 1.8
