"""The report parts of predicted walks: what they draw of which arrays, and what they say of walks without a result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from designopt_muscle.osim.read import read_model
from designopt_walking.bundled import planar_walker
from designopt_walking.report import checks, curves, figure, sides
from designopt_walking.report.checks import walking_checks
from designopt_walking.report.curves import walking_activations, walking_angles, walking_fibres, walking_tendons
from designopt_walking.report.device_map import DeviceMap
from designopt_walking.report.effort import effort_shares, walking_asymmetry
from designopt_walking.report.figure import ASSUMPTIONS, ground_force, walking_figure
from designopt_walking.report.moments import walking_device, walking_moments
from designopt_walking.results.arrays import WALK_ARRAYS, walk_arrays
from designopt_walking.results.outputs import WalkOutputs, walk_outputs
from designopt_walking.results.physics import refuse_implausible
from designopt_walking.walker import walker_of
from recorded_walks import recorded_walk

import designopt
from designopt.plugin import Diverged, find, model
from designopt.report import designs, summary_table
from designopt.report.page.page import sections
from designopt.report.section import Section
from designopt.store.result import Result

_REFERENCE = "data/walking/reference/C_walk_1p2_smooth.csv"


@lru_cache(maxsize=1)
def _recorded() -> tuple[WalkOutputs, dict[str, Any]]:
    shared = Path(os.environ.get("DESIGNOPT_SHARED", Path(__file__).parents[3] / "shared"))
    walker = walker_of(read_model(planar_walker().content))
    walk = recorded_walk(walker, shared / _REFERENCE, half=True)
    arrays = walk_arrays(walk)
    band = np.stack([arrays["positions"], np.full_like(arrays["positions"], 0.1)], axis=2)
    touched = {"bounds": np.array(["knee_angle_l, least: -50 deg"]), "bound_shares": np.array([0.04])}
    return walk_outputs(walk), {**arrays, "recorded_positions": band, **touched}


class ConfirmedOutputs(WalkOutputs):
    """Outputs of a walk that is confirmed on a finer mesh."""

    mesh_change: float


@model("recorded_walk", version=1, arrays=WALK_ARRAYS)
class Recorded:
    """The reference walk, whose effort and change with the mesh grow with the stiffness; stiff springs sink in, stiffer
    ones are not solved."""

    def declares(self) -> designopt.Declaration:
        """The parts of a page that predicted walks propose."""
        walk = find("model", "walk_predict").build({"device": "hip_springs"})
        return designopt.Declaration(plots=walk.declares().plots)

    def evaluate(
        self, design: Mapping[str, Any], scenario: Mapping[str, Any], arrays: frozenset[str]
    ) -> tuple[ConfirmedOutputs, dict[str, Any]]:
        """Outputs and arrays of the walk. Raises `Diverged`."""
        outputs, every = _recorded()
        stored = {name: every[name] for name in arrays}
        k = float(design["stiffness"])
        if k > 30.0:
            raise Diverged("not solved within the limit", reason="iteration_limit")
        deep = {
            **outputs,
            "mesh_change": 1e-4 * k,
            "effort": outputs["effort"] * (1.0 + k / 100.0),
            "penetration": 0.05 if k > 20.0 else 0.02,
        }
        refuse_implausible(deep, stored)
        return deep, stored  # type: ignore[return-value]


@pytest.fixture(scope="module")
def result(walking_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    study = designopt.define(
        study="walks",
        title="Recorded walks",
        model={"use": "recorded_walk"},
        space={
            "rest": 0.1,
            "stiffness": {"low": 0.0, "high": 40.0},
            "damping": {"low": 0.0, "high": 4.0},
        },
        objectives=[{"name": "effort", "minimize": "effort"}],
        solver={"use": "full_factorial", "levels": {"stiffness": 5, "damping": 2}},
        execution={"executor": "serial", "arrays": dict.fromkeys(WALK_ARRAYS, "all")},
    )
    return study.run(tmp_path_factory.mktemp("walks") / "walks.study")


def plots(section: Section | None) -> dict[str, Any]:
    assert section is not None
    return {figure.title: figure.plot for figure in section.figures}


def test_implausible_and_unsolved_walks_never_lead(result: Result) -> None:
    values = dict(zip(result.outcomes.X[:, 0].tolist(), result.reason[:, 0].tolist(), strict=True))
    assert values == {0.0: "", 10.0: "", 20.0: "", 30.0: "implausible", 40.0: "iteration_limit"}
    assert set(result.outcomes.X[result.front(), 0].tolist()) == {0.0}


def test_the_figure_moves_through_a_cycle_with_the_ground_forces_and_says_what_is_assumed(result: Result) -> None:
    section = walking_figure(result)
    (plot,) = plots(section).values()
    assert len(plot["frames"]) > 50
    assert plot["layout"]["sliders"]
    assert [trace["name"] for trace in plot["data"]] == ["trunk", "right leg", "left leg", "ground force"]
    assert len({trace["line"]["color"] for trace in plot["data"]}) == 4
    (floor,) = plot["layout"]["shapes"]
    assert (floor["xref"], floor["y0"], floor["y1"]) == ("paper", 0.0, 0.0)
    assert section is not None
    assert section.notes == ASSUMPTIONS


def test_the_trunk_is_above_the_pelvis_and_both_legs_below(result: Result) -> None:
    (plot,) = plots(walking_figure(result)).values()
    heights = [[y for y in trace["y"] if y is not None] for trace in plot["data"][:3]]
    trunk, right, left = (np.array(y) for y in heights)
    assert trunk.max() > 1.5
    assert min(right.min(), left.min()) < 0.1
    assert max(right.max(), left.max()) == pytest.approx(trunk.min(), abs=1e-3)  # the hips


def test_the_legs_of_an_amputee_are_named(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "prosthetic_side", lambda result: "l")
    (plot,) = plots(walking_figure(result)).values()
    names = ["sound leg (right)", "prosthesis (left)"]
    assert [trace["name"] for trace in plot["data"]] == ["trunk", *names, "ground force"]
    section = walking_figure(result)
    assert section is not None
    assert section.introduction.startswith("The left leg is the prosthesis: names that end in _l are of it")
    for part in (ground_force, walking_angles, walking_activations, effort_shares):
        for plot in plots(part(result)).values():
            assert {*names} <= {trace.get("name") for trace in plot["data"]}
    (moments,) = plots(walking_moments(result)).values()
    assert "knee angle, prosthesis (left)" in [a["text"] for a in moments["layout"]["annotations"]]


def test_strains_of_tendons_are_drawn_in_percent(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    every = _recorded()[1]
    strained = {**every, "tendon_strains": np.full_like(every["fibre_lengths"], 0.03)}
    monkeypatch.setattr(curves, "stored_arrays", lambda *_: {("walk", "slow"): strained})
    (plot,) = plots(walking_tendons(result)).values()
    np.testing.assert_allclose([trace["y"] for trace in plot["data"]], 3.0)


def test_ground_forces_carry_the_weight(result: Result) -> None:
    forces = plots(ground_force(result))
    assert list(forces) == ["Vertical force", "Fore-aft force"]
    total = np.asarray(forces["Vertical force"]["data"][-1]["y"])
    assert total.mean() == pytest.approx(62.0 * 9.80665, rel=0.02)


@pytest.mark.parametrize(
    ("recorded_force", "introduction"),
    [
        (0.0, "Over the window of the recording, which is dotted."),
        (np.nan, "Over the window of the recording."),
        (None, "Over the window of the recording."),
    ],
)
def test_ground_forces_in_space_are_those_of_a_window(
    result: Result, recorded_force: float | None, introduction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    force = np.zeros((3, 2, 3))
    arrays = {"percent": np.linspace(0.0, 100.0, 3), "ground_force": force}
    arrays |= {} if recorded_force is None else {"recorded_force": force + recorded_force}
    for module in (figure, designs):
        monkeypatch.setattr(module, "stored_arrays", lambda *_: {("walk", "slow"): arrays})
    section = ground_force(result)
    assert list(plots(section)) == ["Vertical force", "Fore-aft force", "Lateral force"]
    assert section is not None
    assert section.introduction == introduction


def test_angles_have_a_panel_for_each_joint_with_both_sides_and_the_recorded_band(result: Result) -> None:
    section = walking_angles(result)
    (plot,) = plots(section).values()
    names = [annotation["text"] for annotation in plot["layout"]["annotations"]]
    assert set(names) == {"pelvis tilt", "hip flexion", "knee angle", "ankle angle", "lumbar"}
    assert sum(trace.get("fill") == "toself" for trace in plot["data"]) == 2 * 8  # two widths, three joints twice
    assert section is not None
    (table,) = section.tables
    assert {row[-1] for row in table.rows} == {"100 %"}


def test_activations_moments_and_efforts_are_drawn_for_every_muscle_and_joint(result: Result) -> None:
    (activations,) = plots(walking_activations(result)).values()
    assert len(activations["layout"]["annotations"]) == 9
    (moments,) = plots(walking_moments(result)).values()
    titles = [annotation["text"] for annotation in moments["layout"]["annotations"]]
    sided = [f"{joint}, {side}" for joint in ("hip flexion", "knee angle", "ankle angle") for side in ("right", "left")]
    assert titles == [*sided[:2], "lumbar", *sided[2:]]
    assert {trace["name"] for trace in moments["data"]} == {"muscles", "ground", "drives"}
    (fibres,) = plots(walking_fibres(result)).values()
    lengths = np.concatenate([trace["y"] for trace in fibres["data"]])
    assert len(fibres["layout"]["annotations"]) == 9
    assert 0.4 < lengths.min() < lengths.max() < 1.6
    assert walking_tendons(result) is None  # rigid
    (shares,) = plots(effort_shares(result)).values()
    assert sum(float(np.sum(trace["x"])) for trace in shares["data"]) == pytest.approx(100.0, abs=0.2)
    device = walking_device(result)
    assert device is not None
    assert device.introduction == "No device acts on this walker."


def test_asymmetry_is_a_table_of_the_chosen_designs(result: Result) -> None:
    section = walking_asymmetry(result)
    assert section is not None
    (table,) = section.tables
    assert len(table.columns) == 2 + 6


def test_the_map_marks_failed_designs_with_their_reasons_and_draws_nothing_between(result: Result) -> None:
    section = DeviceMap()(result)
    (plot,) = plots(section).values()
    solved, failed = plot["data"][:2]
    titles = [plot["layout"][axis]["title"]["text"] for axis in ("xaxis", "yaxis")]
    assert titles == ["stiffness", "damping"]  # not the fixed parameter before them
    assert max(solved["x"]) == 20.0
    assert all(trace["mode"] == "markers" for trace in plot["data"])
    assert (len(solved["x"]), len(failed["x"])) == (6, 4)
    assert set(failed["text"]) == {"implausible", "iteration_limit"}
    assert section is not None
    assert section.introduction == "4 of 10 designs have no result in some scenario."


def test_a_page_without_plots_has_the_walk_and_the_map_of_its_device(result: Result) -> None:
    """As the model proposes; not the time in per cent of the cycle as a curve."""
    parts = sections(result)
    titles = [section.title for section in parts]
    assert {"The walk", "Map over the device"} <= {*titles}
    assert titles.index("The walk") < titles.index("Motions")
    motions = next(section for section in parts if section.title == "Motions")
    assert "percent" not in [figure.title for figure in motions.figures]


def test_without_a_free_number_the_map_says_what_to_name_in_the_space(result: Result) -> None:
    spaceless = SimpleNamespace(problem=SimpleNamespace(space=SimpleNamespace(free=())), outcomes=result.outcomes)
    section = DeviceMap()(cast(Result, spaceless))
    assert section is not None
    assert section.introduction.startswith(
        "No number of the device is free, so there is no map: name one or two in space"
    )


def test_a_knee_at_its_bound_in_swing_is_no_prediction(result: Result) -> None:
    section = walking_checks(result)
    assert section is not None
    assert any("The knee bends to its bound (-50 deg), as in" in text for text in section.findings)


@pytest.mark.parametrize("bound", ["knee_angle_r_speed, least: -687.5 deg/s", "knee_angle_r, largest: 0 deg"])
def test_other_bounds_of_a_knee_are_no_bound_of_its_flexion(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(checks, "stored_arrays", lambda *_: {("walk", "slow"): {"bounds": np.array([bound])}})
    assert checks._flexion_at_bound(cast(Result, None)) == []


def test_checks_list_errors_and_how_each_walk_ended(result: Result) -> None:
    section = walking_checks(result)
    assert section is not None
    assert section.findings[0] == "6 of 10 walks have a result."
    assert section.findings[1].startswith("2 of 6 walks are not converged with the mesh: ")
    assert "up to 0.2 % (at most 0.1 %)" in section.findings[1]
    statuses = [row[2] for row in section.tables[0].rows]
    assert sorted(set(statuses)) == ["implausible", "iteration_limit", "ok"]


def test_failed_checks_are_named_with_their_limits_and_the_remedy(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = dict(result.outcomes.figures)
    coarse = np.array([[0.0137], [0.02], *[[np.nan]] * 8])
    figures |= {"energy_error": coarse, "force_peaks": coarse * 0.0 + 2.0, "failed_checks": coarse * 0.0 + 1.0}
    monkeypatch.setattr(Result, "outcomes", replace(result.outcomes, figures=figures))
    section = walking_checks(result)
    assert section is not None
    assert section.findings[1] == (
        "2 walks fail a check of mechanics: not to be used. Raise 'intervals': the error of the energy balance is up "
        "to 0.02 (at most 0.01) in 2 walks."
    )
    note, *lines = (line for line in summary_table(result).splitlines() if "failed_checks" in line or "balance" in line)
    assert note == (
        "note: failed_checks is up to 1 in 2 of 10 evaluations: beyond mean_force_error 0.001, impulse_error 0.005, "
        "energy_error 0.01, force_peaks 4: not to be used, raise 'intervals'"
    )
    assert lines == []  # the walks that are stored fail no check


def test_without_arrays_a_part_says_how_to_store_them(walking_data: Path, tmp_path: Path) -> None:
    study = designopt.define(
        study="bare",
        title="Bare",
        model={"use": "recorded_walk"},
        space={"stiffness": 1.0},
        objectives=[{"name": "effort", "minimize": "effort"}],
        solver={"use": "evaluate", "designs": [{"name": "only"}]},
        execution={"executor": "serial"},
    )
    section = walking_figure(study.run(tmp_path / "bare.study"))
    assert section is not None
    assert "skeleton: all" in section.introduction
