"""Wires over cylinders, pulleys and spheres: lengths, moment arms, forces on what carries the surface, and mistakes."""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics import Body, Coordinate, Frame, Point, Rotate, Slide, Tree, Wire, read_mechanism, solve
from designopt_mechanics.loads import generalised_force
from designopt_mechanics.mechanism.scene import scene_of
from designopt_mechanics.model_file.reading import read
from designopt_mechanics.model_file.wire_arms import WireArms
from designopt_mechanics.state import TreeState
from designopt_mechanics.surfaces.circle import around_cylinder, around_sphere
from designopt_mechanics.surfaces.over import Surface, SurfaceError, SurfaceWrap
from designopt_mechanics.tasks.model import MechanismModel
from designopt_mechanics.wires import lengths, moment_arms, pulls, wire_path

from designopt.plugin import Diverged, InputFile
from designopt.study.language.errors import StudyError

#: A load on a block, and a rope from the ground around the block and over a pulley on a bracket to a hand.
HOIST = """gravity: [0, -10, 0]
parameters: {radius: {value: 50 mm}, load: {value: 20 kg}}
coordinates:
  height: {unit: m}
  hand: {unit: m, reference: -1}
frames:
  bracket: {place: [-0.1, 1, 0], body: {mass: 1 kg}}
  block: {motions: [slide: {axis: [0, 1, 0], by: height}], body: {mass: load}}
  grip: {place: [-2*radius - 0.05, 0, 0], motions: [slide: {axis: [0, 1, 0], by: hand}], body: {mass: 0.5 kg}}
surfaces:
  fixed: {on: bracket, at: [0, 0, 0], cylinder: {axis: [0, 0, 1], radius: radius}}
  moving: {on: block, at: [0, 0, 0], cylinder: {axis: [0, 0, -1], radius: radius}}
springs:
  rope:
    points:
      - {on: ground, at: [radius, 1, 0]}
      - {over: moving, turn: left}
      - {over: fixed, turn: left}
      - {on: grip, at: [-0.1 + radius + 0.05, 0, 0]}
    stiffness: 20 kN/m
    rest: 4.3 m
    damping: 500
"""


def hand_and_ball() -> tuple[Tree, TreeState]:
    names = ("x", "y", "z", "turn", "tip", "roll")
    body = Body(1.0, (0, 0, 0), (1, 1, 1))
    slides = tuple(Slide(tuple(row), name) for row, name in zip(np.eye(3).tolist(), names, strict=False))
    tree = Tree(
        tuple(Coordinate(n, "m" if n in "xyz" else "rad") for n in names),
        (
            Frame("hand", motions=(*slides, Rotate((0, 0, 1), "turn"), Rotate((0, 1, 0), "tip")), body=body),
            Frame("ball", motions=(Rotate((1, 0, 0), "roll"),), position=(0.1, 0.02, 0.03), body=body),
        ),
    )
    return tree, TreeState(tree, ca.SX.sym("z", 6))


@pytest.mark.parametrize("side", [None, (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)])
@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), None])
def test_a_path_in_the_way_of_a_surface_is_that_of_muscles_and_its_arms_are_its_derivatives(
    axis: tuple[float, float, float] | None, side: tuple[float, float, float] | None
) -> None:
    _, state = hand_and_ball()
    surface = Surface("s", Point("ball", (0.01, 0.02, 0.0)), 0.07, axis)
    wire = Wire(
        "w", (Point("ground", (0.3, 0.1, 0.2)), SurfaceWrap(surface, side=side), Point("hand", (-0.2, 0.05, 0.1)))
    )
    path = wire_path(state, wire)
    R = moment_arms(state, [wire])
    work = generalised_force(state, pulls(state, [wire], ca.SX(3.0)))
    axes, centre = state.axes("ball"), state.position(surface.centre)
    places = ca.horzcat(*(axes.T @ (point - centre) for _, point, _ in path.nodes)).T
    gap = ca.mmax(ca.vertcat(*path.gaps.values()))
    function = ca.Function(
        "f", [state.z], [path.length, R, ca.gradient(path.length, state.z), work, places, path.touches[0].angle, gap]
    )
    quadrant = "all" if side is None else "+x" if side[0] else "-y"
    touching = 0
    for z in np.random.default_rng(1).uniform(-0.3, 0.3, (60, 6)):
        length, arms, slopes, works, nodes, angle, inside = (np.asarray(r, dtype=np.float64) for r in function(z))
        if inside.item() > 0.0:
            continue
        a, b, first, last = (row[None] for row in nodes)
        touch = around_sphere(a, b, 0.07, quadrant) if axis is None else around_cylinder(a, b, 0.07, np.inf, quadrant)
        np.testing.assert_allclose(arms, -slopes, atol=1e-12)
        np.testing.assert_allclose(works, 3.0 * arms, atol=1e-12)
        if not touch.is_engaged[0]:
            assert angle.item() == 0.0
            assert length.item() == pytest.approx(float(np.linalg.norm(b - a)), abs=1e-13)
            continue
        touching += 1
        around = np.linalg.norm(first - a) + touch.arc[0] + np.linalg.norm(b - last)
        assert length.item() == pytest.approx(float(around.item()), abs=1e-12)
        np.testing.assert_allclose(np.vstack([first, last]), np.vstack([touch.first, touch.last]), atol=1e-12)
    assert touching > 3


def test_a_belt_over_two_pulleys_consists_of_tangents_and_arcs() -> None:
    mechanism = read(HOIST.encode(), "hoist.yaml")
    state = TreeState.symbols(mechanism.tree)
    rope = [mechanism.springs[0].wire]
    evaluate = ca.Function("of", [state.z, mechanism.p], [lengths(state, rope), moment_arms(state, rope)])
    for height, hand, radius in ((0.0, -1.0, 0.05), (-0.4, 0.3, 0.05)):
        length, arms = evaluate([height, hand], [radius, 20.0])
        assert float(length) == pytest.approx(2.0 * (1.0 - height) + (1.0 - hand) + 2.0 * np.pi * radius, abs=1e-12)
        np.testing.assert_allclose(np.asarray(arms).ravel(), [2.0, 1.0], atol=1e-12)  # block and tackle


@pytest.mark.parametrize("turn", [1, -1])
def test_the_moment_arm_of_a_cable_fixed_to_the_rim_of_its_drum_is_the_radius(turn: int) -> None:
    tree = Tree((Coordinate("angle"),), (Frame("drum", motions=(Rotate((0, 0, 1), "angle"),), body=Body(1.0)),))
    state = TreeState(tree, ca.SX.sym("z", 1))
    drum = Surface("drum", Point("drum"), 0.1, (0, 0, 1))
    over = SurfaceWrap(drum, 1 if turn > 0 else -1)
    cable = Wire("cable", (Point("ground", (0.3, turn * 1.0, 0.2)), over, Point("drum", (0.1, 0.0, 0.0))))
    evaluate = ca.Function(
        "of",
        [state.z],
        [moment_arms(state, [cable]), lengths(state, [cable]), wire_path(state, cable).touches[0].angle],
    )
    angles = np.linspace(-1.5, 0.5, 7)
    values = [[float(v) for v in evaluate(turn * angle)] for angle in angles]
    rise = 0.2
    flat = np.sqrt(0.3**2 + 1.0 - 0.1**2)
    for arm, length, angle in values:  # unrolled, the cable is straight
        assert 0.0 < angle < 1.5 * np.pi
        assert length == pytest.approx(np.hypot(flat + 0.1 * angle, rise), abs=1e-12)
        assert arm == pytest.approx(-turn * 0.1 * (flat + 0.1 * angle) / length, abs=1e-12)


@pytest.mark.parametrize("starts_on_drum", [False, True])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_winch_winds_any_number_of_turns(turn: int, starts_on_drum: bool) -> None:
    """The drum turns on a boom that turns too; only the rotation against the load's frame counts."""
    tree = Tree(
        (Coordinate("boom"), Coordinate("angle")),
        (
            Frame("boom", motions=(Rotate((0, 0, 1), "boom"),), body=Body(1.0)),
            Frame("drum", "boom", (Rotate((0, 0, -1), "angle"),), Body(1.0)),
        ),
    )
    state = TreeState(tree, ca.SX.sym("z", 2))
    drum, end, load = (
        Surface("drum", Point("drum"), 0.1, (0, 0, 1)),
        Point("drum", (0, 0.1, 0)),
        Point("boom", (0.3, -2, 0)),
    )
    over = SurfaceWrap(drum, 1 if turn > 0 else -1)
    cable = Wire("cable", (end, over, load) if starts_on_drum else (load, over, end))
    path = wire_path(state, cable)
    evaluate = ca.Function("of", [state.z], [path.length, path.touches[0].angle, moment_arms(state, [cable])])
    winds = -turn if not starts_on_drum else turn  # the axis of the motion is against that of the drum
    length, angle = (float(v) for v in evaluate([0.0, 0.0])[:2])
    for turns in (0.4, 1.0, 2.6, 7.3):
        values = evaluate([5.0, 2.0 * np.pi * turns * winds])
        assert float(values[0]) == pytest.approx(length + 0.2 * np.pi * turns, abs=1e-12)
        assert float(values[1]) == pytest.approx(angle + 2.0 * np.pi * turns, abs=1e-12)
        np.testing.assert_allclose(np.asarray(values[2]).ravel(), [0.0, -0.1 * winds], atol=1e-12)


def test_a_wire_presses_on_what_carries_its_surfaces() -> None:
    mechanism = read(HOIST.encode(), "hoist.yaml")
    outputs = solve(mechanism, "equilibrium", drives={"hand": "-95"}).outputs
    assert outputs["tension_rope"] == pytest.approx(100.0, rel=1e-9)  # half of the load of 20 kg
    assert outputs["press_rope_moving"] == pytest.approx(200.0, rel=1e-9)
    assert outputs["force_bracket"] == pytest.approx(210.0, rel=1e-9)


def test_a_block_and_tackle_may_run_over_a_pulley_twice() -> None:
    """Four falls of rope carry the block; the forces of both passes have names of their own."""
    more = "      - {over: fixed, turn: left}\n"
    text = HOIST.replace(more, more + "      - {over: moving, turn: left}\n" + more).replace("rest: 4.3", "rest: 6.6")
    outputs = solve(read(text.encode(), "hoist.yaml"), "equilibrium", drives={"hand": "-45"}).outputs
    assert outputs["tension_rope"] == pytest.approx(50.0, rel=5e-3)  # two falls cross from pulley to pulley
    assert outputs["press_rope_moving"] + outputs["press_rope_moving_2"] == pytest.approx(200.0, rel=1e-2)


def test_a_wire_over_pulleys_keeps_the_energy_of_a_motion() -> None:
    text = HOIST.replace("    damping: 500\n", "")
    result = solve(
        read(text.encode(), "h.yaml"), "simulation", initial={"hand": -1.02}, drives={"hand": "-95"}, duration=0.4
    )
    a = result.arrays
    kinetic = 0.5 * (20.0 * a["height_speed"] ** 2 + 0.5 * a["hand_speed"] ** 2)
    potential = 10.0 * (20.0 * a["height"] + 0.5 * a["hand"]) + 95.0 * a["hand"] + 0.5 * a["tension_rope"] ** 2 / 2e4
    np.testing.assert_allclose(kinetic + potential, potential[0], rtol=0, atol=1e-5)
    assert np.ptp(kinetic) > 0.1


def test_derivatives_by_the_radius_of_pulleys_are_exact(tmp_path: Path) -> None:
    model = MechanismModel(
        file=InputFile("hoist.yaml", HOIST.encode()),
        task="inverse_dynamics",
        motion={"height": "0.1*sin(3*time)", "hand": "-1.02 - 0.2*sin(3*time)"},
        samples=11,
        outputs=["effort_height_rms", "tension_rope_mean", "press_rope_fixed_max"],
    )
    design = {"radius": 0.05, "load": 20.0}
    slopes = model.gradient(design, {})
    for name, step in (("radius", 1e-6), ("load", 1e-3)):
        high, low = (model.evaluate({**design, name: design[name] + s * step}, {}, set())[0] for s in (1, -1))
        for output, row in slopes.items():
            assert row[name] == pytest.approx((high[output] - low[output]) / (2.0 * step), rel=1e-6, abs=1e-6)


def test_the_drawing_shows_arcs_and_surfaces(tmp_path: Path) -> None:
    (tmp_path / "hoist.yaml").write_text(HOIST)
    mechanism = read_mechanism(tmp_path / "hoist.yaml")
    scene = scene_of(mechanism, [[0.0, -1.0]], mechanism.column())[0]
    for centre in ((0.0, 0.0), (-0.1, 1.0)):
        near = scene[np.abs(np.hypot(*(scene[:, :2] - centre).T) - 0.05) < 1e-12]
        assert len(near) >= 13 + 37
        assert np.ptp(near[:, 1]) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("at: [radius, 1, 0]", "at: [10 mm, 20 mm, 0]", 15, "the first is inside of 'moving', by 0.0276"),
        ("over: moving", "over: movin", 17, "no surface 'movin'; did you mean 'moving'?"),
        ("moving, turn: left", "moving", 14, "of several surfaces between two points each needs a 'turn'"),
        ("moving, turn: left", "moving, turn: up", 17, "'up' is not one of left, right"),
        ("moving, turn: left", "moving, turn: left, side: [1, 0, 0]", 17, "'turn' says where a pulley is touched"),
        ("axis: [0, 0, -1]", "axis: [0, 0, 0]", 12, "has the length 0"),
        ("axis: [0, 0, -1]", "axis: [0, 1, 0]", 15, "the axes of 'moving' and 'fixed' are not parallel"),
        ("cylinder: {axis: [0, 0, -1], radius: radius}", "sphere: {radius: radius}", 17, "is a sphere"),
        ("cylinder: {axis: [0, 0, -1], radius: radius}", "cone: {}", 12, "state one shape"),
        ("[0, 0, -1], radius: radius", "[0, 0, -1], radius: 0 mm", 12, "0 m is not a radius"),
        ("[0, 0, -1], radius: radius", "[0, 0, -1], radius: 3 kg", 12, "kg"),
        ("[0, 0, -1], radius: radius", "[0, 0, -1], radius: .nan", 12, "finite"),
        ("      - {on: ground, at: [radius, 1, 0]}\n", "", 14, "a surface is between two points, not at an end"),
    ],
)
def test_a_mistake_about_surfaces_is_shown_where_it_is(old: str, new: str, line: int, message: str) -> None:
    assert old in HOIST
    text = HOIST.replace(old, new)
    with pytest.raises(StudyError) as error:
        read(text.encode(), "hoist.yaml")
    assert [(issue.line, message in issue.message) for issue in error.value.issues] == [(line, True)], str(error.value)


def test_a_motion_that_a_wire_cannot_follow_names_the_wire_and_the_surface() -> None:
    mechanism = read(HOIST.encode(), "hoist.yaml")
    with pytest.raises(Diverged, match=r"from 0\.9\d* s on .*wire 'rope'.*'moving' and 'fixed' overlap"):
        solve(mechanism, "inverse_dynamics", {"radius": 0.06}, motion={"height": "time", "hand": "-1"})
    with pytest.raises(Diverged, match=r"in the initial state wire 'rope'.*'moving' and 'fixed' overlap") as error:
        solve(mechanism, "simulation", {"radius": 0.06}, initial={"height": 0.99})
    assert error.value.reason == "cannot_close"
    with pytest.raises(SurfaceError, match="radius"):
        Surface("s", Point("ground"), -1.0)


def test_arms_of_wires_are_drawn_with_the_pulleys_they_run_over() -> None:
    text = """gravity: [0, -9.81, 0]
coordinates: {bend: {unit: rad, range: [-1, 0.3]}}
frames: {arm: {motions: [rotate: {axis: [0, 0, 1], by: bend}], body: {mass: 1, centre: [0.1, 0, 0], inertia: 1e-3}}}
surfaces: {wheel: {on: ground, at: [0, 0, 0], cylinder: {axis: [0, 0, 1], radius: 20 mm}}}
wires:
  cable: {points: [{on: ground, at: [-0.2, 0.02, 0]}, {over: wheel, turn: right}, {on: arm, at: [0.1, -0.05, 0]}]}
"""
    model = WireArms(file=InputFile("arm.yaml", text.encode()), wire="cable", coordinate="bend")
    model.check()
    outputs, arrays = model.evaluate({}, {}, {"scene"})
    assert (outputs["min_arm"], outputs["peak_arm"]) == pytest.approx((0.02, 0.02), abs=1e-12)
    assert outputs["consistency"] < 1e-9
    on_wheel = np.abs(np.hypot(*arrays["scene"][0, :, :2].T) - 0.02) < 1e-12
    assert on_wheel.sum() >= 13 + 37
