"""Report parts `branches` and `best_dampers`, from followed motions and from a scan, with known numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designopt_knee.branch import FourBarKneeBranch
from designopt_knee.report.branches import best_dampers, branches
from knee_results import CRITICAL, MadeUp, made_up, minimize, plugin

from designopt.plugin import Use, find
from designopt.problem import Problem
from designopt.study.study import DesignVariable, Scenario, Stage, StudyDefinition

#: Three dampings: a flip, an end at a contact of the heel, a branch that is not lost.
RATIOS = np.array([0.02, 0.05, 0.1])
FIGURES = {
    "critical_stiffness": [16600.0, 15906.0, 12000.0],
    "loss": [1.0, 4.0, 0.0],
    "loss_contact": [0.0, 1.0, 0.0],
    "loss_phase": [0.0, 0.3825, 0.0],
    "critical_multiplier": [-0.998, 0.26, 0.4],
    "best_rho": [0.98, 0.955, 0.949],
    "best_stiffness": [17000.0, 16400.0, 15000.0],
    "best_peak": [60.5, 58.6, 57.0],
    "best_clearance": [0.001, 0.002, 0.003],
    "robust_low": [16700.0, 16000.0, 14000.0],
    "robust_high": [17900.0, 17000.0, 16000.0],
    "robust_width": [1200.0, 1000.0, 2000.0],
}


@dataclass(frozen=True)
class Followed(MadeUp):
    """Branches of three motions each, 1 kN/m apart."""

    def arrays(self, i: int, scenario: int = 0) -> dict[str, Any]:
        top = FIGURES["best_stiffness"][i] + 1000.0
        series = {
            "branch_stiffness": top - 1000.0 * np.arange(3),
            "branch_rho": FIGURES["best_rho"][i] - np.array([0.02, 0.0, 0.01]),
            "branch_peak": FIGURES["best_peak"][i] + np.array([-2.0, 0.0, 3.0]),
            "branch_clearance": np.full(3, 1e-3),
            "branch_multiplier": np.array([-0.1, -0.4, FIGURES["critical_multiplier"][i]]),
            "branch_modulus": np.array([0.1, 0.4, abs(FIGURES["critical_multiplier"][i])]),
        }
        return {name: value for name, value in series.items() if name in self.array_names}


def followed(*scenarios: str, **more: Any) -> Followed:
    names = scenarios or ("nominal",)
    study = StudyDefinition(
        name="stability",
        title="Followed",
        model=Use(plugin(FourBarKneeBranch), more.pop("settings", {})),
        space=(DesignVariable("damping_ratio", "real", low=0.02, high=0.12, unit="s"),),
        objectives=(minimize("critical", "critical_stiffness", "N/m"),),
        stages=(Stage("sweep", Use(find("solver", "random"), {"samples": 8})),),
        scenarios=tuple(Scenario(name) for name in names),
    )
    problem = Problem.from_study(study)
    figures = {name: np.repeat(np.array(values)[:, None], len(names), axis=1) for name, values in FIGURES.items()}
    status = np.full((len(RATIOS), len(names)), "ok", dtype="U12")
    table = {"outcomes": problem.judge(RATIOS[:, None], figures, status != "ok"), "status": status}
    return Followed(Path("stability.study"), study, problem, table, frozenset(plugin(FourBarKneeBranch).arrays), **more)


def test_each_damping_is_a_curve_over_stiffness_and_stability_ends_at_one() -> None:
    section = branches(followed())
    assert section is not None
    multiplier, rho, peak, clearance = (f.plot for f in section.figures)
    assert [t["name"] for t in multiplier["data"]] == ["c/k 0.02 s", "c/k 0.05 s", "c/k 0.1 s"]
    assert multiplier["data"][0]["x"].tolist() == [18000.0, 17000.0, 16000.0]
    assert multiplier["data"][0]["y"].tolist() == [-0.1, -0.4, -0.998]
    assert [s["y0"] for s in multiplier["layout"]["shapes"]] == [-1.0, 1.0]
    assert rho["data"][1]["y"].max() == 0.955
    assert peak["data"][2]["y"].tolist() == [55.0, 57.0, 60.0]
    assert clearance["layout"]["shapes"][0]["y0"] == 0.0


def test_the_table_of_ends_says_how_stability_is_lost_and_at_which_contact() -> None:
    (table,) = branches(followed()).tables  # type: ignore[union-attr]
    assert table.columns == ("design", "critical stiffness [N/m]", "multiplier before it", "how", "contact")
    assert table.rows == (
        ("c/k 0.02 s", 16600.0, -0.998, "the period doubles", ""),
        ("c/k 0.05 s", 15906.0, 0.26, "a contact begins or ends", "heel at 38.2 % of the cycle"),
        ("c/k 0.1 s", "", 0.4, "not lost in the range", ""),
    )


def test_scenarios_have_rows_and_a_selector_of_their_own() -> None:
    section = branches(followed("level", "raised"))
    assert section is not None
    assert [row[0] for row in section.tables[0].rows] == ["level", "raised"] * 3
    assert section.figures[0].choices[0].options == ("level", "raised")


def test_without_arrays_the_ends_are_there_and_the_curves_are_asked_for() -> None:
    bare = followed()
    section = branches(Followed(bare.path, bare.study, bare.problem, bare.table, frozenset()))
    assert section is not None
    assert not section.figures
    assert len(section.tables[0].rows) == 3
    assert "branch_stiffness: all" in section.notes[0]


def test_a_scan_has_no_branches() -> None:
    section = branches(made_up())
    assert section is not None
    assert "four_bar_knee_branch" in section.introduction
    assert not section.tables


def test_best_dampers_of_followed_motions_are_the_outputs_of_the_model() -> None:
    section = best_dampers(followed(settings={"rho_margin": 0.02}))
    assert section is not None
    assert section.tables[0].rows[1] == ("c/k 0.05 s", 0.955, 16400.0, 58.6, 0.002, 16000.0, 17000.0, 1000.0)
    assert "no more than 0.02" in section.introduction
    bars = section.figures[0].plot["data"][0]
    assert bars["x"].tolist() == RATIOS.tolist()
    assert bars["y"].tolist() == [17000.0, 16400.0, 15000.0]
    assert bars["error_y"]["array"].tolist() == [900.0, 600.0, 1000.0]
    assert bars["error_y"]["arrayminus"].tolist() == [300.0, 400.0, 1000.0]


def test_best_dampers_of_a_scan_are_among_the_walks_of_period_t() -> None:
    """rho is 0.99 - |k - 14| / 100 - c/k / 10: below the critical stiffness better, but not of period T."""
    scanned = made_up(clearance=0.012)
    section = best_dampers(scanned)
    assert section is not None
    for row, (ratio, critical) in zip(section.tables[0].rows, CRITICAL.items(), strict=True):
        rho = 0.99 - 0.01 * abs(critical - 14.0) - 0.1 * ratio
        assert row[0] == f"{ratio:g} s"
        assert row[1:3] == pytest.approx((rho, 1000.0 * critical))
        assert row[4] == 0.012
        assert row[5:] == pytest.approx((1000.0 * critical, 1000.0 * (critical + 1.0), 1000.0), abs=1e-6)


@pytest.mark.parametrize("ratios", [1, 3])
def test_the_figure_of_best_dampers_is_valid_plotly(ratios: int) -> None:
    from plotly.graph_objects import Figure as PlotlyFigure

    section = best_dampers(followed("level", "raised") if ratios == 3 else made_up(clearance=0.012))
    assert section is not None
    for figure in section.figures:
        text = {**figure.plot, "data": [dict(t, line={}, marker={}) for t in figure.plot["data"]]}
        PlotlyFigure({"data": text["data"]})


def test_a_study_without_either_is_reported_what_is_needed() -> None:
    section = best_dampers(made_up())  # no clearance on record
    assert section is not None
    assert "needs a scan" in section.introduction
