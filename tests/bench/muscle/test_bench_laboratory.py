"""The chain of a laboratory: the public full-body walk from markers and plates to muscle forces and joint reactions."""

import shutil
import time

import pytest
from designopt_laboratory.model import LaboratoryTrial

from designopt.plugin import InputFile

pytestmark = pytest.mark.bench

TRIALS = 50


@pytest.fixture
def walk(shared_data):
    """Paths of the model, of the markers and of the plates."""
    folder = shared_data("mocap") / "walk_fullbody_opensim"
    return (
        shared_data("opensim") / "models/walk_scaled_80musc.osim",
        folder / "markers_walk.trc",
        folder / "grf_walk.mot",
    )


def test_a_walk_takes_few_seconds_from_markers_to_joint_reactions(walk, record_property):
    """238 frames, 80 muscles, all joints: files read, checked and evaluated by a model that nothing was built for."""
    model, markers, plates = (InputFile(path.name, path.read_bytes()) for path in walk)
    trial = {"recording": markers, "reactions": plates}
    seconds = []
    for _ in range(3):
        start = time.process_time()
        laboratory = LaboratoryTrial(model=model)
        laboratory.check()
        laboratory.check_scenario(trial)
        figures, arrays = laboratory.evaluate({}, trial, frozenset({"reactions"}), laboratory.prepare_scenario(trial))
        seconds.append(time.process_time() - start)
    print(f"\nfirst {seconds[0]:.2f} s, again {seconds[-1]:.2f} s for {figures['frames']:.0f} frames")
    record_property("seconds of a first walk", seconds[0])
    assert arrays["reactions"].shape[0] == 238
    assert seconds[0] < 5.0


def test_two_workers_take_fifty_trials_almost_twice_as_fast(walk, tmp_path, record_property, even_shares):
    """Fifty walks: the same files, with marker errors of their own each."""
    for path in walk:
        shutil.copy(path, tmp_path)
    model, markers, plates = (path.name for path in walk)
    files = {"recording": markers, "reactions": plates, "skin": 0.003}
    study = {
        "study": "fifty",
        "model": {"use": "laboratory_trial", "model": model},
        "scenarios": [{"name": f"trial{seed}", **files, "seed": seed} for seed in range(2, 2 + TRIALS)],
        "solver": {"use": "evaluate"},
    }
    (alone, outputs), (shared, outputs_of_two) = (even_shares(study, workers) for workers in (1, 2))
    assert [status for _, status, _ in outputs] == ["ok"] * TRIALS
    assert outputs == outputs_of_two
    record_property("two workers by one, fifty trials, processor", alone / shared)
    assert alone / shared > 1.7
