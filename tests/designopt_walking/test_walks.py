"""Tracked and predicted walks against the references of the specification (section 5, problems B and C). Slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_recordings.files.read import read_table
from designopt_recordings.table import TimeTable
from designopt_walking.bundled import planar_walker
from designopt_walking.models.predict import WalkPredict
from designopt_walking.programs.gait import GaitRanges, program_options, ranged_tree, with_interval_errors
from designopt_walking.programs.predict import Effort, predicted_walk
from designopt_walking.programs.predictor import PredictionMesh, WalkPredictor, agreeing
from designopt_walking.programs.recording import RecordingReader
from designopt_walking.programs.track import recorded_guess, tracked_walk
from designopt_walking.results.cycle import SolvedWalk
from designopt_walking.results.outputs import walk_outputs
from designopt_walking.walker import Walker, walker_of
from single_intervals import interval_differences

from designopt.collocation import Guess, Program, Solution
from designopt.plugin import InputFile

pytestmark = pytest.mark.slow


def walker(friction: str = "smooth") -> Walker:
    model = read_model(planar_walker().content)
    tree = ranged_tree(model, GaitRanges())
    ranges = {c.name: (c.low, c.high) for c in tree.coordinates}
    return walker_of(model, tree=tree, ranges=ranges, friction=friction)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def predictor() -> WalkPredictor:
    return WalkPredictor(walker(), mesh=PredictionMesh(25))


@pytest.fixture(scope="module")
def tracked(walking_data: Path) -> Solution:
    """Problem B with OpenSim's friction."""

    def table(name: str) -> TimeTable:
        return read_table(InputFile(name, (walking_data / name).read_bytes()))

    body = walker("opensim")
    walk = RecordingReader().walk(body, table("tracked_states.sto"), table("referenceGRF.sto"))
    guess = recorded_guess(body, walk)
    problem = tracked_walk(body, GaitRanges(), walk)
    solution = Program(problem, program_options(24, 1e-6), guess).solve(guess=guess)
    assert solution.success
    return with_interval_errors(problem, solution)


def compare(solution: Solution, walking_data: Path, name: str, objective: float) -> None:
    """Section 10.3: cost within 0.1 %, angles within 0.3 degrees and activations within 0.005 (root mean square) of a
    solution of OpenSim Moco."""
    assert solution.objective == pytest.approx(objective, rel=1e-3)
    moco = read_table(InputFile(name, (walking_data / "reference" / name).read_bytes()))
    duration = solution.phase.tf
    values = solution.phase.interpolate(np.clip(moco.time * duration / moco.time[-1], 0.0, duration))
    model = read_model(planar_walker().content)
    angles = [values[c.name] - moco.column(c.name) for c in model.coordinates if c.rotational]
    activations = [
        values[f"activation_{m.name}"] - moco.column(moco.label(m.name, "activation")) for m in model.muscles
    ]
    assert np.sqrt(np.mean(np.square(angles))) < np.radians(0.3)
    assert np.sqrt(np.mean(np.square(activations))) < 0.005


def test_a_tracked_walk_is_that_of_the_reference_and_of_moco(tracked: Solution, walking_data: Path) -> None:
    figures = tracked.figures
    assert tracked.objective == pytest.approx(1.563486, rel=1e-3)
    assert [figures[n] for n in ("effort", "states", "contact")] == pytest.approx(
        [0.811984, 0.351473, 0.400029], rel=1e-3
    )
    compare(tracked, walking_data, "B_track_moco_4.6.sto", 1.564098)
    outputs = walk_outputs(SolvedWalk(walker("opensim"), tracked, half=True))
    assert outputs["failed_checks"] == 0.0
    assert outputs["cost_of_transport"] == pytest.approx(4.015, rel=1e-3)
    assert outputs["early_peak_r"] == pytest.approx(1.823, rel=2e-3)


def test_a_walk_predicted_with_the_friction_of_opensim_is_that_of_moco(tracked: Solution, walking_data: Path) -> None:
    problem = predicted_walk(walker("opensim"), GaitRanges(), Effort(), 1.2)
    guess = Guess({"motion": tracked.phase})
    solution = Program(problem, program_options(25, 1e-6), guess).solve(guess=guess)
    assert solution.success
    assert solution.objective <= 0.1348292 * 1.005
    assert solution.phase.tf == pytest.approx(0.497863, rel=5e-3)
    compare(solution, walking_data, "C_walk_1p2_moco_4.6_mesh25.sto", 0.1348770)


def test_a_walk_from_the_synthetic_start_is_that_of_the_reference(predictor: WalkPredictor) -> None:
    solution = predictor.solve(1.2)
    assert solution.success
    assert solution.objective == pytest.approx(0.1349437, rel=5e-3)
    assert solution.phase.tf == pytest.approx(0.4986, rel=5e-3)
    outputs = walk_outputs(SolvedWalk(predictor.walker, solution, half=True))
    assert outputs["failed_checks"] == 0.0
    assert outputs["early_peak_r"] == pytest.approx(1.56, rel=0.03)
    assert outputs["net_cost_of_transport"] == pytest.approx(2.377, rel=0.02)


def test_motions_of_single_intervals_are_within_the_error_estimate(tracked: Solution, predictor: WalkPredictor) -> None:
    """Section 10.4, on each interval of B and C, with LSODA at a relative error of 1e-9. Where the knee passes
    -0.785 rad, a conditional point of the gastrocnemius switches, and the steps of the re-simulation lose 0.4 % of the
    difference."""
    predicted = predictor.checked(1.2, predictor.solve(1.2))
    for body, phase in ((walker("opensim"), tracked.phase), (predictor.walker, predicted.phase)):
        differences = interval_differences(body, phase, {})
        assert (differences <= phase.error).all()
        knee = phase.values["knee_angle_l"][phase.mesh.bases]
        switches = (knee[:-1] < -0.785) != (knee[1:] < -0.785)
        tolerance = np.where(switches, 1e-2, 1e-4) * differences + 1e-6
        assert (np.abs(phase.segment_errors - differences) <= tolerance).all()


@pytest.mark.timeout(3600)
def test_speeds_in_a_chain_cost_what_they_cost_from_the_synthetic_start(predictor: WalkPredictor) -> None:
    """At least 11 of 12 solved, and the same cost within 1 % (section 10.6)."""
    speeds = [0.9, 1.0, 1.1, 1.2, 1.3, 1.4]
    cold = [predictor.solve(speed) for speed in speeds]
    chained = predictor.chain(speeds)
    assert sum(solution.success for solution in (*chained, *cold)) >= 11
    pairs = [(a.objective, b.objective) for a, b in zip(chained, cold, strict=True) if a.success and b.success]
    assert [a for a, _ in pairs] == pytest.approx([b for _, b in pairs], rel=1e-2)
    assert {s.warm_path for s in chained[1:]} == {("full",)}


def test_weights_of_muscles_scale_the_cost_and_a_dearer_muscle_works_less(predictor: WalkPredictor) -> None:
    """Three times all weights: the same walk. Three times one weight: the least cost lies between that of the walk
    before, with and without its share."""
    before = predictor.solve(1.2)
    names = predictor.walker.muscles.names

    def weighted(weights: dict[str, float]) -> Solution:
        return WalkPredictor(predictor.walker, effort=Effort(weights=weights), first=before.phase).solve(1.2)

    def share(solution: Solution, muscles: list[str]) -> float:
        points = SolvedWalk(predictor.walker, solution, half=True).points
        cubes = sum(points.values[f"excitation_{name}"] ** 3 for name in muscles)
        return 10.0 * float(points.integral(np.asarray(cubes))) / (1.2 * points.time[-1])

    tripled = weighted(dict.fromkeys(names, 3.0))
    assert tripled.objective == pytest.approx(3.0 * before.objective, rel=1e-3)
    assert tripled.phase.tf == pytest.approx(before.phase.tf, rel=5e-3)
    soleus = ["soleus_r", "soleus_l"]
    dearer = weighted(dict.fromkeys(soleus, 3.0))
    assert before.objective < dearer.objective < before.objective + 2.0 * share(before, soleus)
    assert share(dearer, soleus) < share(before, soleus)


@pytest.mark.timeout(3600)
def test_the_cost_of_a_walk_converges_with_the_mesh(predictor: WalkPredictor) -> None:
    """Section 10.9, each walk near that on half of the intervals; references 0.1349437, 0.1345157 and 0.1343625."""
    coarse = predictor.solve(1.2)
    middle = predictor.confirmed(1.2, {}, coarse)
    fine = predictor.finer.confirmed(1.2, {}, middle)
    costs = [coarse.objective, middle.objective, fine.objective]
    assert costs == pytest.approx([0.1349437, 0.1345157, 0.1343625], rel=1e-3)
    assert costs == sorted(costs, reverse=True)
    assert costs[2] == pytest.approx(costs[1], rel=1e-3)
    assert fine.iterations < 0.5 * coarse.iterations


@pytest.mark.timeout(3600)
def test_a_walk_that_changes_on_the_finer_mesh_is_called_not_converged() -> None:
    """References 0.1349437 and 0.1345157 on 25 and 50 intervals: 0.3 %, above the 0.1 % of the specification."""
    outputs, _ = WalkPredict(intervals=25, confirm=True).evaluate({}, {"speed": 1.2})
    assert outputs["objective"] == pytest.approx(0.1345157, rel=1e-3)
    assert outputs["mesh_change"] == pytest.approx(3e-3, rel=0.2)
    assert outputs["mesh_unconverged"] == 1.0
    assert outputs["failed_checks"] == 0.0


def test_a_charge_on_metabolic_energy_lowers_the_cost_of_transport() -> None:
    body, mesh = walker(), PredictionMesh(12)
    plain = WalkPredictor(body, mesh=mesh).solve(1.2)
    charged = WalkPredictor(body, effort=Effort(metabolic=1.0), mesh=mesh, first=plain.phase).solve(1.2)
    before, after = (walk_outputs(SolvedWalk(body, s, half=True))["cost_of_transport"] for s in (plain, charged))
    assert charged.figures["cost_of_transport"] == pytest.approx(after, rel=0.02)  # with rounded corners
    assert after < 0.9 * before


def test_a_walk_is_solved_where_metabolic_energy_is_nearly_all_of_its_cost() -> None:
    solution = WalkPredictor(walker(), effort=Effort(metabolic=10.0), mesh=PredictionMesh(12)).solve(1.2)
    assert solution.success, solution.message
    assert solution.figures["effort"] < 0.02 * solution.objective
    assert walk_outputs(SolvedWalk(walker(), solution, half=True))["cost_of_transport"] < 2.8


@pytest.mark.timeout(3600)
def test_walking_uphill_costs_more_and_downhill_less() -> None:
    """Uphill, muscles also lift the body: 9.81 J/(kg m) times the sine, at an efficiency of at most 1. The energy
    balance compares the work of muscles, ground and drives with that against gravity; on 12 intervals it is off by up
    to 7 % of the muscles' work (on 25 by 1.2 % downhill)."""
    model = WalkPredict(intervals=12)
    costs = []
    for slope in (-0.05, 0.0, 0.05):
        predictor = model._predictor(slope)[0]
        walk = SolvedWalk(predictor.walker, predictor.solve(1.2), half=True)
        outputs, points = walk_outputs(walk), walk.points
        assert outputs["mean_force_error"] < 2e-3
        assert outputs["impulse_error"] < 5e-3
        speeds = np.stack([points.values[f"{name}_speed"] for name in walk.walker.coordinates], axis=1)
        powers = (points.observed.moments * speeds[:, None]).sum(axis=2)
        lifting = walk.walker.mass * 9.80665 * walk.stride * np.sin(np.arctan(slope))
        muscles = float(points.integral(np.abs(powers[:, 0])))
        missing = abs(float(points.integral(powers).sum()) - lifting) / muscles
        assert missing == pytest.approx(outputs["energy_error"], abs=1e-6)
        assert missing < 0.1
        costs.append(outputs["net_cost_of_transport"])
    down, level, up = costs
    assert up - level > 9.81 * 0.05
    assert down < level


@pytest.mark.timeout(3600)
def test_a_pull_backward_costs_at_least_its_work_and_a_pull_forward_saves_energy() -> None:
    """30 N on the pelvis are 5 % of body weight, 0.49 J/(kg m), which muscles do at an efficiency of at most 1. From a
    tracked walk the search with 30 N forward ended at an objective of 0.147, above that without a pull."""
    model = WalkPredict()
    outputs = [model.evaluate({}, {"speed": 1.2, "pull": pull})[0] for pull in (-30.0, 0.0, 30.0)]
    assert [o["failed_checks"] for o in outputs] == [0.0, 0.0, 0.0]
    backward, free, forward = (o["net_cost_of_transport"] for o in outputs)
    assert backward - free > 30.0 / model._predictor(0.0)[0].walker.mass
    assert forward < free
    assert [o["objective"] for o in outputs] == pytest.approx([0.286, 0.1349, 0.0655], rel=1e-2)


def test_several_starts_are_reported_with_their_costs() -> None:
    coarse = WalkPredictor(walker(), mesh=PredictionMesh(12))
    solution = coarse.solve(1.2, starts=3, seed=1)
    assert len(solution.starts) == 3
    assert 1 <= agreeing(solution) <= 3
    best = min(record.objective for record in solution.starts if record.status.success)
    assert solution.objective == pytest.approx(best)
