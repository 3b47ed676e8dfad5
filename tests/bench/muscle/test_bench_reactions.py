"""Joint reactions with their moments and points beside OpenSim's, which runs out of process: see `opensim_peer`."""

import json
from pathlib import Path

import numpy as np
import pytest
from designopt_laboratory.model import LaboratoryTrial
from scipy.interpolate import make_interp_spline

from designopt.plugin import InputFile

pytestmark = pytest.mark.bench

NAMES = ("time", "angles", "rates", "coordinate_names", "muscles", "forces", "joints", "reactions",
         "reaction_moments", "reaction_points")  # fmt: skip


def test_reactions_of_a_walker_are_those_of_opensim_in_ground_axes_and_in_those_of_a_body(
    shared_data, opensim_peer, tmp_path
):
    """Forces, moments and points in six frames of a walk without its ground; a spline through the rates gives their
    accelerations."""
    folder = shared_data("opensim")
    path = folder / "models/gait10dof18musc_subject01.osim"
    motion = InputFile("walk.sto", (folder / "motion/gait10dof18musc_kinematics.sto").read_bytes())
    results = {}
    for axes in ("ground", "femur_r"):
        model = LaboratoryTrial(
            model=InputFile("walker.osim", path.read_bytes()),
            residual_limit=None,
            reaction_axes=axes,
            reserve=1000.0,
            window=(0.6, 1.9),
        )
        trial = {"motion": motion}
        results[axes] = model.evaluate({}, trial, frozenset(NAMES), model.prepare_scenario(trial))[1]
    arrays = results["ground"]
    names, muscles = list(arrays["coordinate_names"]), list(arrays["muscles"])
    accelerations = make_interp_spline(arrays["time"], arrays["rates"], k=5).derivative()(arrays["time"])
    frames = np.linspace(20, len(arrays["time"]) - 21, 6).astype(int)
    assert np.isfinite(arrays["reactions"][frames]).all()
    content = [
        {
            "values": dict(zip(names, arrays["angles"][i].tolist(), strict=True)),
            "rates": dict(zip(names, arrays["rates"][i].tolist(), strict=True)),
            "accelerations": dict(zip(names, accelerations[i].tolist(), strict=True)),
            "forces": dict(zip(muscles, arrays["forces"][i].tolist(), strict=True)),
        }
        for i in frames
    ]
    (tmp_path / "frames.json").write_text(json.dumps(content))
    theirs = opensim_peer(Path(__file__).parent / "peer_reactions.py", path, tmp_path / "frames.json")
    expected = np.array(theirs["reactions"])
    parts = ("reactions", "reaction_moments", "reaction_points")
    for j, joint in enumerate(arrays["joints"]):
        reference = expected[:, theirs["joints"].index(joint)]
        for k, (part, tolerance) in enumerate(zip(parts, (0.01, 0.001, 1e-9), strict=True)):  # N, N m, m
            assert np.abs(arrays[part][frames, j] - reference[:, k]).max() < tolerance, (joint, part)
        for part in parts[:2]:
            sizes = [np.linalg.norm(results[axes][part][frames, j], axis=1) for axes in results]
            assert sizes[0] == pytest.approx(sizes[1])
