"""Dynamic sharing meets the reference solution of walking with 18 muscles, five of each leg on compliant tendons."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.dynamic_sharing.equations import DynamicTrial
from designopt_muscle.dynamic_sharing.share import share_dynamic
from designopt_muscle.dynamic_sharing.terms import DynamicTerms
from designopt_muscle.models.dynamic.sharing import DynamicSharingModel
from designopt_muscle.report.excitations import muscle_excitations
from designopt_recordings.files.storage import read_storage
from dynamic_case import walk_armless
from opensim_cases import table

import designopt
from designopt.plugin import Diverged, InputFile, InvalidDesign

STUDIES = Path(__file__).parents[3] / "studies"


@cache
def solved(opensim):
    balance, muscles, reserves = walk_armless(opensim)
    return muscles, share_dynamic(DynamicTrial(balance, muscles, reserves, DynamicTerms(sharpness=0.1)))


def test_the_objective_is_that_of_the_reference(opensim):
    """specs/muscle_force_sharing.md section 7: 0.876169 within 5e-5, of which 0.844829 is effort."""
    _, sharing = solved(opensim)
    assert sharing.converged
    assert sharing.objective == pytest.approx(0.876169, abs=5e-5)
    assert sharing.effort == pytest.approx(0.844829, abs=5e-5)
    assert sharing.largest_residual <= 1e-7
    assert sharing.activations[0] == pytest.approx(sharing.excitations[0], abs=1e-9)


def test_free_initial_activations_would_cost_less_and_are_wrong(opensim):
    """Without e(0) = a(0) the objective is 0.8731 (specs/muscle_force_sharing.md section 7)."""
    balance, muscles, reserves = walk_armless(opensim)
    terms = DynamicTerms(sharpness=0.1, start_from_rest=False)
    sharing = share_dynamic(DynamicTrial(balance, muscles, reserves, terms))
    assert sharing.objective == pytest.approx(0.8731, abs=1e-4)
    assert np.abs(sharing.activations[0] - sharing.excitations[0]).max() > 0.05


def test_activations_and_tendon_forces_are_those_of_the_reference(opensim):
    muscles, sharing = solved(opensim)
    names, values = table(opensim / "reference" / "walk_armless_collocation_solution.csv")
    columns = dict(zip(names, values.T, strict=True))
    activations = np.column_stack([columns[f"activation:{name}"] for name in muscles.names])
    assert np.abs(sharing.activations - activations).max() <= 2e-3
    tendons = np.column_stack([columns[f"norm_tendon_force:{muscles.names[j]}"] for j in muscles.compliant])
    assert np.abs(sharing.tendon_forces - tendons).max() <= 2e-3


def test_activations_are_close_to_those_of_moco_inverse(opensim):
    """rms 2e-3 and 2e-2 at most (specs/muscle_force_sharing.md section 7)."""
    muscles, sharing = solved(opensim)
    reference = opensim / "reference" / "walk_armless_MocoInverse_4.6.sto"
    peer = read_storage(InputFile(reference.name, reference.read_bytes()))
    at = [int(np.abs(peer.time - t).argmin()) for t in sharing.time]
    assert np.abs(peer.time[at] - sharing.time).max() < 1e-6
    theirs = np.column_stack([peer.column(f"/forceset/{name}/activation")[at] for name in muscles.names])
    difference = sharing.activations - theirs
    assert np.sqrt((difference**2).mean()) <= 2e-3
    assert np.abs(difference).max() <= 2e-2


def test_tendons_and_fibres_balance_the_moments_at_every_point(opensim):
    balance, muscles, reserves = walk_armless(opensim)
    _, sharing = solved(opensim)
    left = balance.residual(sharing.forces) - reserves.optimal * sharing.reserves
    assert np.abs(left).max() <= 1e-6
    assert sharing.forces[:, muscles.compliant] == pytest.approx(
        muscles.force[muscles.compliant] * sharing.tendon_forces, rel=1e-12
    )


def test_a_motion_beyond_the_muscles_names_the_equation_that_fails(opensim):
    balance, muscles, reserves = walk_armless(opensim)
    weak = replace(muscles, force=muscles.force * 0.05)
    trial = DynamicTrial(balance, weak, replace(reserves, limit=0.01), DynamicTerms(sharpness=0.1))
    sharing = share_dynamic(trial, iterations=60)
    assert not sharing.converged
    assert sharing.largest_residual > 1e-3
    assert re.search(r"balance_\w+|equilibrium_\w+|activation_\w+", sharing.worst)
    assert " s: " in sharing.worst  # when
    assert f"Largest residual: {sharing.worst}" in sharing.message
    assert sharing.static.activations.shape == sharing.activations.shape  # what is left


def test_frames_that_are_no_mesh_are_refused(opensim):
    balance, muscles, reserves = walk_armless(opensim)
    fewer = replace(
        balance, time=balance.time[:-1], arms=balance.arms[:-1], moments=balance.moments[:-1],
        status=balance.status[:-1],
    )  # fmt: skip
    shorter = replace(muscles, lengths=muscles.lengths[:-1], speeds=muscles.speeds[:-1])
    with pytest.raises(ValueError, match="44 frames: collocation by hermite_simpson needs an odd number"):
        share_dynamic(DynamicTrial(fewer, shorter, reserves))
    with pytest.raises(ValueError, match="slack of 'bifemsh_r' is out of range"):
        replace(muscles, slack=np.where(np.arange(18) == 0, -0.1, muscles.slack))


QUICK = {"assisted": "ankle_angle", "window": (0.7, 1.1), "mesh": 0.05}


def test_the_model_shares_the_bundled_trial_and_a_drive_spares_the_muscles():
    model = DynamicSharingModel(**QUICK)
    model.check()
    bare, arrays = model.evaluate({}, {}, frozenset({"time", "activations", "excitations", "forces", "muscles"}))
    helped, _ = model.evaluate({"assistance": 0.5}, {})
    assert helped["effort"] < 0.9 * bare["effort"]
    assert arrays["time"][[0, -1]] == pytest.approx([0.7, 1.1])
    assert len(arrays["time"]) == 17  # eight intervals with their midpoints
    assert arrays["activations"].shape == arrays["forces"].shape == (17, 9)
    assert bare["worst_residual"] < 1e-6
    repeated, _ = DynamicSharingModel(**QUICK).evaluate({}, {})
    assert repeated == bare


def test_rigid_tendons_are_a_smaller_problem_with_an_answer_of_the_same_size():
    compliant, _ = DynamicSharingModel(**QUICK).evaluate({}, {})
    rigid, _ = DynamicSharingModel(**QUICK, tendon="rigid").evaluate({}, {})
    assert rigid["objective"] == rigid["effort"]
    assert rigid["effort"] == pytest.approx(compliant["effort"], rel=0.5)


def test_a_program_without_a_solution_says_which_equation_fails():
    model = DynamicSharingModel(**QUICK)
    with pytest.raises(Diverged, match=r"Largest residual: path constraint .*Frame by frame"):
        # a spring so stiff that no reserve within its limits balances it
        model.evaluate({"stiffness": 1e7, "rest": 1.0}, {})


def test_a_device_without_a_coordinate_is_refused():
    with pytest.raises(InvalidDesign, match="a device needs a coordinate"):
        DynamicSharingModel(window=(0.7, 1.1)).evaluate({"stiffness": 1.0}, {})


def test_the_study_runs_and_its_report_draws_the_excitations(tmp_path):
    quick = ("model.window=[0.7, 1.1]", "model.mesh=0.1")
    result = designopt.load(STUDIES / "dynamic_sharing.yaml", overrides=quick).run(tmp_path / "dynamic.study")
    efforts = result.outcomes.figures["effort"][:, 0]
    assert np.isfinite(efforts).all()
    assert efforts[2] < efforts[0]
    section = muscle_excitations(result)
    assert section is not None
    balances = [figure.title for figure in section.figures if figure.title.startswith("Balance about")]
    assert sorted(balances) == [f"Balance about {name}" for name in ("ankle_angle", "hip_flexion", "knee_angle")]
