"""The exoskeleton: recorded gait, anthropometry, the checks of the specification, and the bundled studies."""

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from designopt_mechanics.exoskeleton.anthropometry import ADDED, build
from designopt_mechanics.exoskeleton.gait import angle, leg, sole_angle
from designopt_mechanics.exoskeleton.model import ExoskeletonGait, Operator, start
from designopt_mechanics.exoskeleton.walker import single_support, system
from designopt_mechanics.report.exoskeleton import exoskeleton_support
from designopt_mechanics.report.scene import mechanism_scene
from scipy.integrate import simpson

import designopt
from designopt.collocation import Options, solve_design
from designopt.dynamics import Simulator
from designopt.plugin import filled

STUDIES = Path(__file__).parents[2] / "studies"
DESIGN = {"stiffness": 8e4, "link_damping": 0.4, "frequency": 15.0, "drive_damping": 1.0}
WALK = filled(Operator, {})


def simulated(limit: float, rtol: float = 1e-8, samples: int = 2001, **changes: float) -> dict[str, Any]:
    """Outputs by name over a single support of five rods, and the time."""
    plant = system(5, limit=limit)
    design = {**DESIGN, **changes}
    times = np.linspace(0.0, float(single_support(5, WALK)), samples)
    run = Simulator(plant, rtol=rtol, atol=1e-2 * rtol).run(start(5, design, WALK), times, p=design, q=WALK)
    return {"time": run.t, "states": run.x, **{v.name: run.y[:, i] for i, v in enumerate(plant.outputs)}}


def test_the_series_are_the_recorded_angles(skeletal: Path) -> None:
    """Root mean square differences as stated with the series: 0.02, 0.06 and 0.17 degrees."""
    lines = (skeletal.parent / "gait" / "normal_angles_cycle.csv").read_text().splitlines()
    rows = [line for line in lines if not line.startswith("#")]
    head, *values = rows
    table = np.array([[float(v) for v in row.split(",")] for row in values])[:-1]
    phase = ca.SX.sym("phase")
    for name, most in (("thigh", 0.03), ("knee", 0.06), ("ankle", 0.18)):
        f = ca.Function("f", [phase], [angle(name, phase)])
        series = np.degrees(np.asarray(f.map(len(table))(table[:, 0]), float).ravel())
        assert np.sqrt(np.mean((series - table[:, head.split(",").index(f"{name}_deg")]) ** 2)) < most


def test_the_sole_stays_flat_until_the_heel_lifts() -> None:
    flat, up = (float(ca.evalf(sole_angle(ca.SX(a)))) for a in (0.3, -0.5))
    assert -1e-3 < flat <= 0.0
    assert up == pytest.approx(-0.5, abs=1e-3)
    thigh, shank, _ = (float(ca.evalf(a)) for a in leg(ca.SX(0.5)))
    assert thigh < 0.0  # the stance leg trails at the end
    assert shank < thigh


@pytest.mark.parametrize(("size", "share"), [(5, 0.0465 + 0.1 + 0.678 + 0.1 + 0.061), (11, 1.0)])
def test_masses_add_up_to_the_body_and_what_the_legs_carry_more(size: Any, share: float) -> None:
    """Without the stance foot five rods have 0.9855 of the body; the tables' parts sum to 1 within their rounding."""
    exoskeleton = build(size, 80.0, 1.8, 1e5, 0.1)
    total = sum(rod.mass for rod in exoskeleton.tree.rods)
    legs = sum(exoskeleton.tree.rods[i].mass for i in exoskeleton.legs)
    assert total - legs * ADDED / (1.0 + ADDED) == pytest.approx(80.0 * share, rel=2e-3)
    assert exoskeleton.tree.rods[exoskeleton.legs[0]].parent == "ground"


def test_the_energy_balance_holds_to_1e_6_of_the_work() -> None:
    """Change of energy = work of joints less what dampers take; no drive saturates here."""
    series = simulated(1000.0)
    change = series["energy"][-1] - series["energy"][0]
    work = simpson(series["joint_power"], x=series["time"])
    damped = simpson(series["damped_power"], x=series["time"])
    assert change == pytest.approx(work - damped, abs=1e-6 * simpson(np.abs(series["joint_power"]), x=series["time"]))
    assert damped > 0.01


def test_with_stiff_links_the_moments_go_to_those_of_the_rigid_model_with_the_first_order() -> None:
    rigid = simulated(1000.0, stiffness=1e9, link_damping=1.0, samples=41)
    moments = [n for n in rigid if n.startswith("Mphi")]
    far = []
    for k in (2e6, 4e6):
        series = simulated(1000.0, stiffness=k, link_damping=1.0, samples=41)
        far.append(max(np.abs(series[n][20:] - rigid[n][20:]).max() for n in moments))
    assert far[0] < 5.0
    assert far[0] / far[1] == pytest.approx(2.0, rel=0.15)


def test_half_the_tolerance_changes_no_figure() -> None:
    one, finer = (ExoskeletonGait(rtol=rtol).evaluate(DESIGN, {})[0] for rtol in (1e-7, 5e-8))
    for name, value in one.items():
        assert value == pytest.approx(finer[name], rel=1e-4, abs=1e-12)


def test_stiffer_links_are_compressed_less_and_slower_walking_needs_less_moment() -> None:
    model = ExoskeletonGait()
    soft, stiff = (model.evaluate({**DESIGN, "stiffness": k}, {})[0] for k in (4e4, 1.6e5))
    assert soft["compression"] > 2.0 * stiff["compression"]
    slow, _ = model.evaluate(DESIGN, {"speed": 0.8})
    fast, _ = model.evaluate(DESIGN, {"speed": 1.2})
    assert slow["peak_moment"] < fast["peak_moment"]


def test_a_swaying_trunk_needs_moments_out_of_the_plane() -> None:
    model = ExoskeletonGait()
    upright, swaying = (
        model.evaluate(DESIGN, {"sway": sway}, {"moments"})[1]["moments"][:, 5:] for sway in (0.0, np.radians(3.0))
    )
    assert np.abs(upright).max() < 1e-9
    assert np.abs(swaying).max() > 5.0


@pytest.mark.slow
def test_eleven_rods_walk_as_well() -> None:
    outputs, arrays = ExoskeletonGait(rods=11).evaluate(DESIGN, {"speed": 0.8}, {"scene", "stretch"})
    assert outputs["tracking_error"] < 0.05
    assert arrays["scene"].shape == (401, 32, 3)
    assert arrays["stretch"].shape == (401, 6)


def test_links_that_collapse_under_the_weight_are_refused() -> None:
    with pytest.raises(designopt.InvalidDesign, match="stiffness: at 1500 N/m a link collapses"):
        ExoskeletonGait().evaluate({**DESIGN, "stiffness": 1500.0}, {})


def test_the_bundled_study_searches_and_its_report_draws_it(tmp_path: Path) -> None:
    changes = ["execution.executor=serial", "stages.0.budget.evaluations=8", "stages.0.solver.population=4",
               "scenarios=[{name: one, mass: 60, height: 1.65}]", "constraints=[]",
               "report.tolerances={neighbours: 1, front: 0}"]  # fmt: skip
    result = designopt.load(STUDIES / "exoskeleton_gait.yaml", overrides=changes).run(tmp_path / "exo.study")
    assert len(result.outcomes.X) >= 8
    for part in (exoskeleton_support, mechanism_scene):
        section = part(result)
        assert section is not None
        assert section.figures


def test_the_bundled_program_loads() -> None:
    assert designopt.load(STUDIES / "exoskeleton_program.yaml").problem.space.free


STIFF = {**DESIGN, "stiffness": 1.5e5}


def test_the_program_finds_a_motion_that_is_followed_better_than_the_recorded_one() -> None:
    """The evaluation with feed-forward solves the program and simulates what it finds: the figures are the same."""
    recorded, chosen = (ExoskeletonGait(feed_forward=f, intervals=10).evaluate(STIFF, {})[0] for f in (False, True))
    assert recorded["penalised_error"] == recorded["tracking_error"]
    assert chosen["tracking_error"] < chosen["penalised_error"] < 0.95 * recorded["tracking_error"]
    assert chosen["compression"] < 0.0201
    solution = solve_design(ExoskeletonGait().trajectory_problem({}), STIFF, Options(scheme="radau", intervals=10))
    assert solution.figures["tracking_error"] == pytest.approx(chosen["tracking_error"], rel=1e-3)
    assert solution.figures["penalised_error"] == pytest.approx(chosen["penalised_error"], rel=1e-3)


@pytest.mark.slow
def test_the_program_converges_with_its_mesh() -> None:
    """A step ends with all deviations with which it begins: no transient of the links is left for the mesh to miss."""
    problem = ExoskeletonGait().trajectory_problem({})
    runs = [solve_design(problem, STIFF, Options(scheme="radau", intervals=n)) for n in (10, 20, 40, 80)]
    errors = np.array([r.figures["penalised_error"] for r in runs])
    assert (np.abs(errors / errors[-1] - 1.0) < [1e-3, 1e-3, 1e-4, 1e-9]).all()
    assert runs[2].phase.resimulation_error < 5e-4
    assert runs[3].phase.resimulation_error < runs[1].phase.resimulation_error
