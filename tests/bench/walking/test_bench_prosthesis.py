"""Knees of an amputee on two workers beside one: processor time by even shares, after the start that all walks have."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from designopt_walking.amputee import shared_walks
from designopt_walking.amputee.model import AmputeeWalk

from designopt.dynamics.compile import cache_dir

pytestmark = pytest.mark.bench

LIMITS = {"max_swing_flexion": float(np.radians(65.0)), "max_stop_torque": 40.0}
SETTINGS = {"knee": "four_bar", "intervals": 40, **LIMITS}
STIFFNESSES, DAMPINGS = (4e3, 7e3, 14e3, 18e3), (500.0, 2000.0)


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the first walk, which takes two to three minutes of processor time, and with compiled functions."""
    folder = tmp_path / "start"
    shutil.copytree(cache_dir(), folder, ignore=shutil.ignore_patterns("walks"))
    with monkeypatch.context() as patch:
        patch.setattr(shared_walks, "cache_dir", lambda: folder)
        AmputeeWalk(**SETTINGS)._walks(0.0).middle(0.9)
    return folder


def test_two_workers_find_the_walks_of_eight_knees_almost_twice_as_fast(
    tmp_path, start, record_property, even_shares, monkeypatch
):
    study = {
        "study": "knees",
        "model": {"use": "amputee_walk", **SETTINGS},
        "scenarios": [{"name": "slow", "speed": 0.9}],
        "solver": {
            "use": "evaluate",
            "designs": [
                {"name": f"k{k:.0f}_c{c:.0f}", "damper_stiffness": k, "damper_damping": c}
                for k in STIFFNESSES
                for c in DAMPINGS
            ],
        },
    }
    seconds, outputs = {}, {}
    for workers in (1, 2):
        cache = tmp_path / f"cache{workers}"
        shutil.copytree(start, cache)
        monkeypatch.setenv("DESIGNOPT_CACHE_DIR", str(cache))
        seconds[workers], outputs[workers] = even_shares(study, workers)
    assert outputs[1] == outputs[2]
    record_property("two workers by one, eight knees, processor", seconds[1] / seconds[2])
    assert seconds[1] / seconds[2] > 1.7
