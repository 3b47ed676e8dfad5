"""Forces in the joints of closed loops are those of a multiplier solution in maximal coordinates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import linkages
import numpy as np
import pytest
import spatial_linkages
from designopt_mechanics.andrews.mechanism import closed_tree
from designopt_mechanics.functions.dyad import dyad
from designopt_mechanics.mechanism.forces import LoopForces, RedundantLoop
from designopt_mechanics.mechanism.loops import LoopSolver
from designopt_mechanics.mechanism.mechanism import Coincidence, Mechanism, PointLoad
from designopt_mechanics.motions import Rotate, Slide
from designopt_mechanics.tree import Coordinate, Point, Tree, TreeError

CASES = [linkages.slider_crank, linkages.four_bar, linkages.andrews, linkages.patella, linkages.parallel_robot]


def joint_forces(
    forces: LoopForces, motion: linkages.MotionRows, cuts: linkages.Array, p: list[float]
) -> dict[str, linkages.Array]:
    state = forces.state
    names = list(forces.wrenches)
    f = ca.Function(
        "w", [state.z, state.dz, state.ddz, forces.cut_forces, forces.p], [forces.wrenches[n][0] for n in names]
    )
    values = f(motion.z[0], motion.dz[0], motion.ddz[0], cuts[0], p)
    return dict(zip(names, (np.asarray(v, float).ravel() for v in values), strict=True))


@pytest.mark.parametrize("case", [*CASES, *(lambda s=s: linkages.random_linkage(s) for s in range(4))])
def test_every_joint_and_cut_carries_what_the_multipliers_say(case: Callable[[], Mechanism]) -> None:
    mechanism = case()
    forces, motion, solution = linkages.solved(mechanism)
    reference = linkages.in_maximal_coordinates(mechanism, motion.z[0], motion.dz[0], motion.ddz[0], forces.driven)
    size = max(float(np.abs(v).max()) for v in reference.values())
    by_frame = joint_forces(forces, motion, solution.cuts, [])
    for frame in mechanism.tree.frames:
        if frame.name in reference and len(frame.motions) == 1:
            force = by_frame[frame.name][:2]
            if type(frame.motions[0]).__name__ == "Slide":
                assert abs(force[1] - reference[frame.name][0]) < 1e-9 * size
            else:
                assert np.abs(force - reference[frame.name]).max() < 1e-9 * size
    cuts = dict(zip([m.name for m in mechanism.meets], solution.cuts[0].reshape(-1, 2), strict=True))
    for name, force in cuts.items():
        assert np.abs(force - reference[f"meet {name}"]).max() < 1e-9 * size
    for name, effort in zip(forces.driven, solution.efforts[0], strict=True):
        assert abs(effort - reference[f"drive {name}"][0]) < 1e-9 * size


def test_loops_by_joint_functions_and_points_that_meet_carry_the_same_forces() -> None:
    """Andrews' mechanism as one coordinate whose joints follow dyads, with its points stated."""
    by_meets = linkages.andrews()
    by_functions = replace(by_meets, tree=closed_tree(), independent=())
    _, _, expected = linkages.solved(by_meets, 40.0, 100.0)
    _, _, solution = linkages.solved(by_functions, 40.0, 100.0)
    assert solution.efforts == pytest.approx(expected.efforts, rel=1e-9)
    assert solution.cuts == pytest.approx(expected.cuts, rel=1e-9, abs=1e-9 * np.abs(expected.cuts).max())


def test_loops_by_functions_without_their_points_are_refused() -> None:
    """Functions alone do not say where bodies meet; `couplers` states that they act within the joints."""
    closed = replace(linkages.andrews(), tree=closed_tree(), independent=(), meets=())
    with pytest.raises(TreeError, match="joint functions couple these frames: if they close a loop of bodies, state"):
        linkages.solved(closed)
    assert linkages.solved(replace(closed, couplers=True))[2].efforts.shape == (1, 1)


def test_a_joint_along_a_path_carries_the_forces_across_it() -> None:
    """The patella as a frame that slides and turns on the groove as functions of the knee, held by its ligament."""
    centre, radius, length, foot = (0.01, -0.02), 0.045, 0.06, (0.06, 0.03)

    def patella(z: Any) -> Any:
        knee = z["tibia"]
        end = ca.vertcat(
            foot[0] * ca.cos(knee) - foot[1] * ca.sin(knee), foot[0] * ca.sin(knee) + foot[1] * ca.cos(knee)
        )
        return dyad(ca.SX(centre), end, radius, length, -1), end

    def on_groove(z: Any) -> Any:
        return patella(z)[0] - ca.SX(centre)

    def groove_angle(z: Any) -> Any:
        return ca.atan2(on_groove(z)[1], on_groove(z)[0])

    def ligament_angle(z: Any) -> Any:
        tip, end = patella(z)
        return ca.atan2((tip - end)[1], (tip - end)[0]) - z["tibia"]

    by_meets = linkages.patella()
    tibia, bone, ligament = by_meets.tree.frames
    meet = Coincidence("insertion", Point("ligament", (length, 0, 0)), Point("patella", (radius, 0, 0)))
    load = PointLoad("quadriceps", Point("patella", (0.04, 0.02, 0)), (-300.0, 500.0, 0.0))
    by_meets = replace(by_meets, meets=(meet,), loads=(load,))
    centred = replace(bone.body, centre=(bone.body.centre[0] - radius, bone.body.centre[1], 0.0))
    path = (
        Slide((1, 0, 0), lambda z: on_groove(z)[0]),
        Slide((0, 1, 0), lambda z: on_groove(z)[1]),
        Rotate((0, 0, 1), groove_angle),
    )
    frames = (
        tibia,
        replace(bone, motions=path, body=centred),
        replace(ligament, motions=(Rotate((0, 0, 1), ligament_angle),)),
    )
    by_functions = replace(
        by_meets,
        tree=Tree(by_meets.tree.coordinates[:1], frames),
        meets=(Coincidence("insertion", Point("ligament", (length, 0, 0)), Point("patella")),),
        loads=(replace(load, point=Point("patella", (0.04 - radius, 0.02, 0))),),
    )
    expected, solution = linkages.solved(by_meets)[2], linkages.solved(by_functions)[2]
    assert solution.efforts == pytest.approx(expected.efforts, rel=1e-9)
    assert solution.cuts == pytest.approx(expected.cuts, rel=1e-9)


def test_a_redundant_loop_names_its_joints_or_is_solved_by_least_squares() -> None:
    """A parallelogram with a third crank: one equation more than freedoms to close."""
    cranks = {"a": 0.0, "b": 0.5, "c": 1.0}
    frames = [linkages.link(n, "ground", (x, 0.0), 0.4) for n, x in cranks.items()]
    coordinates = tuple(Coordinate(n, reference=1.1) for n in cranks)
    bar = linkages.link("bar", "a", (0.4, 0.0), 1.0)
    tree = Tree((*coordinates, Coordinate("bar", reference=-1.1)), (*frames, bar))
    meets = tuple(Coincidence(n, Point("bar", (x, 0, 0)), Point(n, (0.4, 0, 0))) for n, x in cranks.items() if x)
    mechanism = Mechanism(tree, linkages.GRAVITY, meets=meets)
    loops = LoopSolver(mechanism)
    assert len(loops.independent) == 1
    with pytest.raises(
        RedundantLoop, match=r"closed by b, c are redundant: the forces in the joints of .*least_squares"
    ):
        linkages.solved(mechanism)
    forces = LoopForces(loops, redundant="least_squares")
    assert forces.is_redundant
    still = linkages.solved(mechanism, 0.0, 0.0, "least_squares")
    by_frame = joint_forces(forces, still[1], still[2].cuts, [])
    weight = 9.81 * sum(f.body.mass for f in tree.frames)
    assert sum(by_frame[n][1] for n in cranks) == pytest.approx(weight, rel=1e-9)


def test_a_load_across_the_plane_of_a_loop_is_refused_or_left_to_the_tree() -> None:
    """A four-bar that lies flat: which of its pins carry the weight is not determined; in its plane all is."""
    flat = replace(linkages.four_bar(), gravity=(0.0, 0.0, -9.81))
    with pytest.raises(RedundantLoop, match=r"closed by tip is planar, .* 19\.6 N across its plane: .* least_squares"):
        linkages.solved(flat)
    weightless = linkages.solved(replace(flat, gravity=(0.0, 0.0, 0.0)))[2]
    assert linkages.solved(flat, redundant="least_squares")[2].efforts == pytest.approx(weightless.efforts)


@pytest.mark.parametrize(
    "case",
    [
        lambda: spatial_linkages.crank_and_rocker(spins=False),
        lambda: spatial_linkages.crank_and_rocker(spins=True),
        lambda: spatial_linkages.rps_platform(quaternion=False),
        lambda: spatial_linkages.rps_platform(quaternion=True),
        spatial_linkages.delta,
    ],
)
def test_every_joint_of_a_loop_in_space_carries_the_force_and_moment_of_the_multipliers(
    case: Callable[[], Mechanism],
) -> None:
    mechanism = case()
    forces, motion, solution = linkages.solved(mechanism, 0.6)
    row = (motion.z[0], motion.dz[0], motion.ddz[0])
    joints, meets, efforts = spatial_linkages.in_maximal_coordinates(mechanism, *row, forces.driven)
    wrenches = ca.Function(
        "w", [forces.state.z, forces.state.dz, forces.state.ddz, forces.cut_forces],
        [ca.horzcat(*forces.wrenches[frame.name]) for frame in mechanism.tree.frames],
    )(*row, solution.cuts[0])  # fmt: skip
    size = max(float(np.abs(force).max()) for force, _ in joints.values())
    assert size > 10.0
    for frame, wrench in zip(mechanism.tree.frames, wrenches, strict=True):
        expected = np.column_stack(joints[frame.name])
        assert np.abs(np.asarray(wrench, float) - expected).max() < 1e-9 * size, frame.name
    assert np.abs(solution.cuts[0] - np.concatenate([meets[m.name] for m in mechanism.meets])).max() < 1e-9 * size
    assert np.abs(solution.efforts[0] - [efforts[name] for name in forces.driven]).max() < 1e-9 * size
